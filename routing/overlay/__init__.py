"""Brokers joined into any connected graph: links, link states, the centre, processing trees.

An :class:`routing.overlay.overlay.Overlay` is one broker's part (docs/brokers.md). Each state has
one owner: ``channel`` (one end of a link: ordered, reliable, resumable; ``ends`` is what comes of
it, ``greeting`` how it begins, ``retransmission`` when it is overdue), ``connections`` (which link
carries whom), ``link_states`` (what is known of every broker), ``trees`` (father and children in
each tree); ``topology`` draws conclusions. ``graph`` holds what follows from link states alone: the
connected parts and their centres. docs/brokers.md tells the format.
"""

"""The matchers: one protocol (``matcher``), several ways, and ``choose``, which is ``auto``.

``naive`` is the oracle, ``pcm`` the thesis's algorithm (4.4), ``ocm`` its form for threads, and
``counting`` the sequential one that it compares with. ``indexed`` looks at few filters, by
signatures or by rarest constraint (``homes``, ``grouped``, ``bucketed``, ``prefixes``), with a
``rival`` of the other kind made beside it; ``tabled`` is what all on a table share, ``loading``
loads their kernels. ``guarded`` is one on a device, with the processor in its place once that
fails.
"""

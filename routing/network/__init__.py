"""Brokers that work together: one Node of many, over the processing trees of the overlay.

A :class:`routing.network.dividing.DividingBroker` is a Node that is part of a network (thesis 7.3).
``strategy`` says where rules are evaluated, ``planning`` how all come to do the same, and that
nothing is lost when the tree changes (``rounds`` gather what is found out, ``knowledge`` is what
the root tells all, ``ledger`` what is kept of own sources, ``recovery`` what of it matters,
``arrivals`` what need not come again). ``station`` evaluates a broker's part of the rules,
``divided`` gives it what it needs, and ``relaying`` brings its results to who wants them, with the
marks for which they wait (``outlook`` says how far these are, ``owed`` which are told). ``router``
has the tables of the tree, what each neighbour (``branch``) wants, leaving out filters that others
cover (``covering``). ``petitions`` are what clients ask of the root, ``visitors`` the sources of
other brokers there; ``making`` makes a broker as its strategy needs it.

With trees for sinks (7.3.2) it is a :class:`routing.network.many.SinkTreesBroker`: ``sink_trees``
says which rules belong there and which ways they have, ``division`` how they are divided,
``processing`` is a broker's part in one of them, ``detecting`` in all, and ``sharing`` sees that an
event crosses a link once for all of them.
"""

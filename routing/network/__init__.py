"""Brokers that work together: one Node of many, over the processing trees of the overlay.

A :class:`routing.network.broker.Broker` is a Node that is part of a network (thesis 7.3).
``router`` has the tables of the tree, what each neighbour (``branch``) wants, and takes events
along it, leaving out filters that others cover (``covering``); ``detection`` decides whether rules
are evaluated here, ``strategy`` where they are evaluated at all. ``petitions`` are what clients
ask of the root, ``visitors`` the sources of other brokers there, ``knowledge`` what it tells all.

With a strategy that divides rules it is a :class:`routing.network.dividing.DividingBroker`, whose
``station`` evaluates its part of them; ``making`` chooses.
"""

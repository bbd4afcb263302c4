"""Brokers that work together: one Node of many, over the processing trees of the overlay.

A :class:`routing.network.broker.Broker` is a Node that is part of a network (thesis 7.3).
``router`` has the tables of the tree, what each neighbour (``branch``) wants, and takes events
along it; ``detection`` decides whether rules are evaluated here, ``strategy`` where they are
evaluated at all.
"""

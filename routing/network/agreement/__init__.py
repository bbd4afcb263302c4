"""Agreement of the brokers of a tree: the root's catalog, and the requests of each to it.

``catalog`` is what is known as a value, ``catalog_delta`` what has changed of it; ``rounds`` gather
what is found out while the tree pauses. ``pending_requests`` are what clients ask of the root,
``remote_sources`` the sources of other brokers there, ``confirmations`` when what was asked is in
force everywhere, ``terms`` what brokers must have in common to be neighbours.
"""

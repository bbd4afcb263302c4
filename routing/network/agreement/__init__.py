"""Agreement of the brokers of a tree: the root's catalog, and who waits for what.

``catalog`` is what is known as a value, ``catalog_delta`` what has changed of it; ``rounds`` gather
what is found out while the tree pauses. ``remote_sources`` are the sources of other brokers at the
root, ``confirmations`` when what is wanted is in force everywhere, ``terms`` what brokers must have
in common to be neighbours.
"""

"""What the brokers of a tree agree on: what the root knows, and what each asks of it.

``knowledge`` is what is known as a value, ``amending`` what has changed of it; ``rounds`` gather
what is found out while the tree pauses. ``petitions`` are what clients ask of the root,
``visitors`` the sources of other brokers there, ``confirmations`` when what was asked is in force
everywhere, ``terms`` what brokers must have in common to be neighbours.
"""

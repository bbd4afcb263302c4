"""Recovery: what is kept so that nothing is lost or comes twice when the tree changes.

``ledger`` keeps what entered the network here, ``dues`` say what of it still matters to whom,
``arrivals`` what has come to this broker's sinks.
"""

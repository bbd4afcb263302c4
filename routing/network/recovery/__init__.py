"""Recovery: what is kept so that nothing is lost or comes twice when the tree changes.

``replay_buffer`` keeps what entered the network here, ``dues`` say what of it still matters to
whom, ``deduplicator`` what has come to this broker's sinks.
"""

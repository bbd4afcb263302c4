"""Recovery: what is kept so that nothing is lost or comes twice when the tree changes.

``replay_buffer`` keeps what entered the network here, ``past`` has what that has no more,
``resume_points`` say what of it still matters to whom. What has come to this broker's sinks before
is ``routing.delivery.deduplicator``'s to know.
"""

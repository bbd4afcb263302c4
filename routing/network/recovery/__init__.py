"""Recovery: what is kept so that nothing is lost or comes twice when the tree changes.

``replay_buffer`` keeps what entered the network here, ``resume_points`` say what of it still
matters to whom; ``past`` brings what the replay buffer has no more from the log. What has come to
this broker's sinks before is ``routing.delivery.deduplicator``'s to know.
"""

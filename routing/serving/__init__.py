"""The work of a Node for its clients: who is connected, who publishes how far, which rules run.

``service`` answers clients over their ``link``; ``intake`` takes events of ``sources`` (and of
``parts`` of one) in, ``credit`` bounds them, ``advertisements`` are their types, and
``source_names`` says whose their names are. ``required_rights`` has the right that each message
needs. ``deployment`` has the rules, ``changes`` decides from when on they hold, and up to when. An
``evaluator`` has the engine, ``beyond`` are the other brokers, if any, ``pending_requests`` what
these are asked, and ``request_queue`` what they ask. ``status`` tells of it all, ``rates`` how much
it is; ``tables`` has what all share, ``moment`` the time, ``outlet`` is the way out.
"""

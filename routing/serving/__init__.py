"""The work of a Node for its clients: who is connected, who publishes how far, which rules run.

``service`` answers clients over their ``link``; ``intake`` takes events of ``sources`` (and of
``parts`` of one) in, ``credit`` bounds them, ``advertisements`` are their types. ``deployment``
has the rules, ``detection`` the engine, and asks the watermarks up to which instant it may
evaluate. ``status`` tells of it all, ``rates`` how much it is; ``moment`` is the time, the same for
all.
"""

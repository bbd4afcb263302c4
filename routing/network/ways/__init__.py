"""Where rules go: how they are divided over a tree, and over which tree each is evaluated (7.3).

``places`` is a division as a value, ``division`` finds it from what the root has told.
``sink_trees`` says which rules belong to trees of sinks (7.3.2). For the strategy ``adaptive``,
``terrain`` is what ways are weighed over, ``forecast`` what events are to be expected,
``weighing`` what ways cost in bytes (``sizes``) and ``repeating`` what a change of them does, and
``preferring`` the search for those that cost least.
"""

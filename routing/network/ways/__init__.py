"""Where rules go: how they are divided over a tree, and over which tree each is evaluated (7.3).

``places`` is a division as a value, ``division`` finds it from what the root has told.
``sink_trees`` says which rules belong to trees of sinks (7.3.2). ``cost_model`` has the costs of a
division in bytes (``sizes``), by which ``adaptive`` chooses.
"""

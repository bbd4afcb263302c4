"""Where rules go: how they are divided over a tree, and over which tree each is evaluated (7.3).

``division`` finds a division (routing.partition.places) from what the root has told.
``sink_trees`` says which rules belong to trees of sinks (7.3.2). ``cost_model`` has the costs of a
division in bytes, by which ``adaptive`` chooses.
"""

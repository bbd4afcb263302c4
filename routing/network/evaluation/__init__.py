"""A broker's part in the evaluation of divided rules (thesis 7.3.5, 7.3.6; brokers.md section 5).

``tree_part`` is an evaluator (routing.evaluation) with the router of its tree.
``processing_tree`` gives it what it needs on the tree of one broker with sinks, ``divided`` on the
single one, and has all of them (``tree_table``: which have news); ``router`` takes events, results
and the marks that these wait for along a tree, and ``overview`` tells of it all (``origins``: who
may hold what a broker below forwards).
"""

"""From syntax tree to checked rules: every name resolved, every kind known.

``checker`` checks a file: its types (``schemas``), then each rule by itself (``clauses`` in a
``scope``, ``expressions``, ``alternatives``), then the rules together (``dependencies``).
"""

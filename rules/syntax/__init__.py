"""TESLA as text: from characters to the syntax tree and back (tesla.md section 2).

``words`` and ``tokens`` recognise, ``parser`` runs the ``automaton`` of the grammar
(``tesla.lark``, and its tables, ``tesla.json``), ``builder`` makes the tree (``ast``), by the
``shape`` of a statement where it is known; ``expected`` says what was missing. ``printer`` and
``formatter`` write a tree as text.
"""

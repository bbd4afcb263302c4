"""Plans of rules, linked into tables that kernels read.

``linker`` owns all that only deploying and removing rules changes. It makes ``columns`` and the
ways into them, the ``static_index`` that finds the columns of an event, ``steps`` and programs
(``assembler``), ``automata``, and takes one walk for ``straight`` rules. ``interner`` numbers
strings, ``tables`` are arrays of records that grow; ``loading`` brings the kernels that a rule
needs, ``switching`` evaluates it in another way from now on, ``horizons`` are how far it looks
back.
"""

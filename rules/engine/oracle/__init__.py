"""The naive engine: the clauses of docs/spec/tesla.md in plain Python, one after another.

``naive`` is the engine; ``events`` are its rows, ``values`` the arithmetic, ``matches`` finds what
satisfies a rule by trying everything. Every other engine is compared with it.
"""

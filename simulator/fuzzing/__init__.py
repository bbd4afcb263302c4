"""Random scenarios against the oracle, by the hundred (``rexmq simulate --fuzz``).

``making`` makes a ``case`` from a seed, of what a ``maker`` draws: rules by ``writer`` (all
operators) or ``sharp`` (made to be divided), over the types of ``world``. ``campaign`` runs many,
``shrinking`` makes one that fails as small as it goes.
"""

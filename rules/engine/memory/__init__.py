"""The memory of an engine: how it grows, what goes, and how it is carried elsewhere.

``growth`` has the arrays, ``storage`` reads the events in them; ``retention`` lets go of what no
rule can need; ``snapshots`` keeps a state as a value, ``moving`` carries it into a new engine, and
``resuming`` tells a rule what has been consumed elsewhere; ``footprints`` counts bytes by rule.
"""

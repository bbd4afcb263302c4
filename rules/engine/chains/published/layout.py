"""The words of an automaton: what the host writes once a rule, and the kernels read.

An automaton is a block of words in ``arrays.published``; a place ``..._AT`` counts from its first
word, and a list begins with how long it is. Steps are numbers of records in ``arrays.steps``:
those of the rule's plan, and behind them the tests that transitions make. A *spot* is a model and
a place in its path; sequences of a model that have come so far stand in one pool.
"""

from __future__ import annotations

RULE, EVENTS = 0, 1
"""The rule's number, and how many numbered events it has."""
TYPES_AT, DURATIONS_AT = 2, 3
"""By event: the number of its type; how long it may wait for the event that it is anchored on."""
MODELS, MODELS_AT = 4, 5
NODES, NODES_AT = 6, 7
"""The states but for the terminator's, an event before those that it is anchored on."""
GUARDS, GUARDS_AT = 8, 9
"""The negations that delete sequences as an event comes."""
MEMBERS_AT = 10
"""By event: where its spots stand."""
POOLS, FIRST_POOL = 11, 12
HEADER = 13

MODEL_POOL, MODEL_LENGTH, MODEL_STEP, MODEL_PATH = 0, 1, 2, 3
"""A model: its first pool, one for each event of its path; the test at the terminator; the path,
the earliest event first.
"""

NODE_EVENT, NODE_TYPE, NODE_ACCESS, NODE_STEP = 0, 1, 2, 3
"""A node: its event, which list it comes from, and the step that selects it."""
NODE_PARTS_AT, NODE_LIKE_AT, NODE_CHOICES_AT, NODE_BANS_AT = 4, 5, 6, 7
"""Lists: of spots with the test on the way to each (three words); of the offsets of attributes in
which an event must be like another to supersede it; of the events before it of which the choice
is made now, with the steps that choose (two words); of the negations that are looked at now (the
step, and that of the plan).
"""
NODE = 8

GUARD_ACCESS, GUARD_TYPE, GUARD_EARLIER, GUARD_STEP, GUARD_PLAN_STEP, GUARD_SPOTS = range(6)
"""A negation: its list, the event at whose time it begins, its test, the plan's step, and then a
list of models with the first and last (excluded) place of the path where sequences are deleted.
"""

NEVER_SUPERSEDES = -1
"""In place of the length of a node's list of attributes."""
CHECKED = -1
"""In place of the rank of a negation that has been looked at before the terminator."""

FIRST_WORD, ROWS = 0, 1
"""Words of a sequence: the time of its last event, then the rows of its events."""

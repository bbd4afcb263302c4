"""Layouts of the arrays that kernels read.

A filter is a run of *rows*, int64[2] each: a word that says what is asked, and the operand. The
word is ``term | relations << 32 | how << 36``: ``relations`` are those of value to operand
(LESS, SAME, GREATER, APART) that satisfy the constraint, ``how`` says how the relation is found.
An event is a run of cells (:class:`matcher.filters.encoded.EncodedEvents`).
"""

LESS, SAME, GREATER, APART = 1, 2, 4, 8
"""The relations; APART is that of NaN to all, and of a text to a test that it fails."""
BY_INT, BY_FLOAT, BY_TEST, BY_RANK, BY_PRESENCE = 0, 1, 2, 3, 4
"""How a relation is found: against an int, a float, a test, a test of order, or not at all."""
TERM_MASK = 0xFFFFFFFF
FLOAT_FLAG = 1 << 32
"""Set in a cell's first word when its value is a float."""
TEXT_SORT, TYPE_SORT = 1, 3
"""The sorts of terms that kernels tell apart: texts, and types of events."""

HASH, START, COUNT, ROOM = 0, 1, 2, 3
"""Columns of a table of lists (:mod:`matcher.kernels.segments`)."""
TOP, FREE = 0, 8
STATE = FREE + 40
"""Places of the state of an arena: rows in use, and the first free segments by size. Places
between are its user's."""

# --- the index ----------------------------------------------------------------------------------

CROWDED, LEARNT, PROBING, SIGNED, LONGEST, FULL = 1, 2, 3, 4, 5, 6
"""Its state: the part of the table, plus one, that has no room for another key, prefixes in the
Bloom filter, what events have to look up besides signatures (UNTYPED, TYPED, WAITING), filters
ever put under signatures, the terms of the longest of these, and the last bucket, plus one, that
was full when a filter came."""
PARTS_LOG = 7
PARTS = 1 << PARTS_LOG
"""The table is in so many parts, by the highest bits of the hash, each of which grows alone: a
table of a million keys would else be moved at once."""
BEGIN, LAST, KEYS = range(3)
"""Columns of ``parts``: where a part begins, its length less one, and how many keys it has."""
UNTYPED, TYPED, WAITING = 1, 2, 4
"""Access predicates of filters without type and with one, and filters under their type alone."""
SPAN = 1
"""The second column of the table of buckets: ``start << 32 | has_groups << 31 | log << 26 |
count``; ``log`` is that of the segment's length plus one, 0 where there is no segment."""
HAS_GROUPS = 1 << 31
LOG_SHIFT, LOG_MASK, SPAN_COUNT = 26, 31, (1 << 26) - 1
VISITED, PROBED, VERIFIED, EVALUATED, TERMS_EVALUATED, COMBINED, FLIPPED, TOGGLED, TOLD = range(9)
"""Places of the counts that a call of ``match`` gives: subsets, probes, candidates, groups,
their terms, the filters of each of these, the flips and the toggles of each, and the filters of
groups whose interfaces were selected one by one."""
COUNTS = 9
BLOOM_BITS = 8
"""Bits of the Bloom filter, at least, for each prefix of a signature that it learns."""
SIGNATURE_MAX = 8
"""Terms of a filter, the rarest ones, that its signature is made of at most: it bounds the walk's
depth."""
WALK_MAX = 2**16
"""Subsets of an event's terms that may be visited; beyond them it costs less to verify every
filter, and so beyond PROBES keys."""
PAIRS_OF = 8
"""The walk over subsets asks beforehand for the pairs of so many terms, the rarest."""
END = 0x5851F42D4C957F2D
"""A factor that tells the hash of a whole signature from that of a prefix, in the Bloom filter."""
PROBES = 4_096
"""Keys that an event may look up. All are hashed before the first is, so that misses overlap."""
CANDIDATES, BATCH = 512, 32
"""Candidates that are gathered at most before they are verified, and so many that it is worth it:
their misses overlap, too, and yet those of a selected interface need not be looked at."""

# --- groups -------------------------------------------------------------------------------------

GROUP_KEY, NEXT, SIZE, ALIVE, BLOCK, ROOM_OF, MASK, TERMS, RUNS, LEAST, TOLD_IN = range(11)
LAYERS, WIDTH, BASE = range(11, 14)
GROUP_COLUMNS = 14
"""Columns of ``groups``: the bucket's key, the next group of this key, its bits and how many of
them are filters that are still there, where its block begins and how many words there is room for,
the terms that all of its filters have, folded, how many terms it has, how many interfaces behind
the layers; the least identifier, and how many words identifiers take in the block, as many as there
are bits or half of that; how many layers, of so many words each, and the word of the interfaces
that they begin with."""
TERM, SORT, LACK, VALUES, VALUES_AT, FIRSTS, CHECKS, FLIPS, TOGGLES, TOGGLES_AT = range(10)
TOGGLE_SLOTS = 10
TERM_WORDS = 11
"""A term in a block (:mod:`matcher.kernels.groups`), and how many words it takes there."""
GROUP_MIN, GROUP_MAX = 64, 2_048
"""Filters of a group: fewer are sooner verified one by one, more take too long to build."""
LAYER_FILLED = 4
"""A layer of a group is worth it where one in so many of its bits is a filter."""
GROUP_BITS_MAX = 49_152
"""Bits of a group; numbers of 16 bits say which."""
GROUP_ROWS_MAX = 8
"""Rows that a filter in a group may have."""
GROUP_TERMS_MAX = 256
"""Terms that the filters of a group may have together."""
GROUP_TERM_ROWS_MAX = 13_000
"""Rows that they may have of one term: each makes four flips at most, counted in 16 bits."""
TOGGLE_SLOTS_MAX = 1_024
"""Slots that the toggles of a term are put into, by test."""
CHECKPOINT_LOG = 6
CHECKPOINT = 1 << CHECKPOINT_LOG
"""Flips between two bit maps that are kept."""

"""What is where in the arrays that kernels read.

A filter is a run of *rows*, int64[2] each: a word that says what is asked, and the operand. The
word is ``term | relations << 32 | how << 36``: ``relations`` are those of value to operand
(LESS, SAME, GREATER, APART) that satisfy the constraint, ``how`` says how the relation is found.
An event is a run of cells (:class:`matcher.vocabulary.EncodedEvents`).
"""

LESS, SAME, GREATER, APART = 1, 2, 4, 8
"""The relations; APART is that of NaN to all, and of a text to a test that it fails."""
BY_INT, BY_FLOAT, BY_TEST, BY_RANK, BY_PRESENCE = 0, 1, 2, 3, 4
"""How a relation is found: against an int, a float, a test, a test of order, or not at all."""
TERM_MASK = 0xFFFFFFFF
FLOAT_FLAG = 1 << 32
"""Set in a cell's first word when its value is a float."""

TOP, KEYS, LEARNT, ACCESSES, SIGNED = 0, 1, 2, 3, 4
FREE = 8
STATE = FREE + 40
"""Places of an index's state: arena rows in use, keys in the table, prefixes in the Bloom filter,
which access predicates there are (UNTYPED, TYPED), filters ever put under their signatures, and
the first free segments by size."""
UNTYPED, TYPED = 1, 2
HASH, START, COUNT, ROOM = 0, 1, 2, 3
"""Columns of a table of buckets; ROOM 0 marks an unused place."""
VISITED, PROBED, VERIFIED = 0, 1, 2
"""Places of the counts that a call of ``match`` gives: subsets, probes and candidates."""
BLOOM_BITS = 8
"""Bits of the Bloom filter, at least, for each prefix of a signature that it learns."""
SIGNATURE_MAX = 8
"""Terms of a filter, the rarest ones, that its signature is made of: it bounds the walk's depth."""
WALK_MAX = 2**16
"""Subsets of an event's terms that may be visited; beyond them it costs less to verify every
filter, and so beyond PROBES keys."""
END = 0x5851F42D4C957F2D
"""What tells the hash of a whole signature from that of a prefix, in the Bloom filter."""
PROBES = 4_096
"""Keys that an event may look up. All are hashed before the first is, so that misses overlap."""

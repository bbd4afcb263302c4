"""Records that host and kernels share: the words of a step, of a term, of a value, of sizes.

Addresses are places in the heap. A *segment* holds one word of every entry of a column, entry by
entry; where a column's segments begin changes only when the column gets another place (memory).
"""

from __future__ import annotations

# --- words of a step ---------------------------------------------------------------------------

EVENT = 0
"""The number of the event that is selected."""
OWN = 1
"""The frame place that its conditions call the candidate."""
RANK = 2
POLICY = 3
SIZE = 4
"""The address of the number of entries of the column."""
TIMES, NUMBERS = 5, 6
"""Segments of the column: times, and numbers of rows in their store."""
SORTED, ORDER = 7, 8
"""Segments of an index: keys in ascending order, and their entries; -1 without."""
INDEX_TERM = 9
"""The number of the term whose operand is the key."""
ANCHOR, ANCHOR_TIMES = 10, 11
EARLIER, EARLIER_TIMES = 12, 13
"""The events at the ends of the window, and the segments of their columns' times; EARLIER is -1
where the window is DURATION microseconds long."""
DURATION = 14
EARLY = 15
"""An offset to the time of EARLIER: 1 where its own instant is left out (S6)."""
STRICT = 16
SINCE = 17
TERMINATOR_TIMES = 18
TERMS, FIRST_TERM = 19, 20
REST = 21
"""The address of the program of all other conditions, or -1."""
SLOT = 22
OPERANDS = 23
"""How many operands there are: those of the terms, and behind them what the program of REST reads.
These have the words of a term, too."""
VALUES = 24
"""The segment of the attribute that is aggregated; -1 where PROGRAM computes the value."""
PROGRAM = 25
"""The address of the program that computes what is aggregated, or -1."""
VALUE_KIND = 26
BOUND = 27
"""The number of events that partial sequences have before the step."""
LONGEST = 28
"""The place among the sizes where the longest window of the step is noted."""
KIND = 29
REDUCTION = 30
"""The reduction over all candidates (REDUCE_...); EMPTY is its result where there are none."""
EMPTY = 31
INDEXED = 32
"""The address of the number of entries that an index by value knows: the first ones of the column;
RANGE_KEYS and RANGE_ORDER are its segments, keys in ascending order and their entries."""
RANGE_KEYS, RANGE_ORDER = 33, 34
LOWER, LOWER_KIND, LOWER_STRICT = 35, 36, 37
UPPER, UPPER_KIND, UPPER_STRICT = 38, 39, 40
"""The bounds of what the index is asked for: programs, or -1; how they become keys
(layout.PROBE_...); and whether the bound itself is left out."""
STRAIGHT = 41
"""1 where the program of REST has neither ``and`` and ``or`` nor choices, reads operands in place
of all events but the candidate, and needs no more than WIDE_DEPTH words of a stack."""
STEP_WORDS = 48

POLICY_EACH, POLICY_FIRST, POLICY_LAST = 0, 1, 2
SELECT, NEGATE, AGGREGATE, TIMED, TEST, LET = 0, 1, 2, 3, 4, 5

REDUCE_COUNT, REDUCE_FIRST, REDUCE_LAST, REDUCE_SUM, REDUCE_MIN, REDUCE_MAX = 0, 1, 2, 3, 4, 5
WORD_LEAST, WORD_GREATEST = -(2**63), 2**63 - 1
EMPTIES = {
    REDUCE_COUNT: 0,
    REDUCE_SUM: 0,
    REDUCE_FIRST: WORD_GREATEST,
    REDUCE_MIN: WORD_GREATEST,
    REDUCE_LAST: WORD_LEAST,
    REDUCE_MAX: WORD_LEAST,
}

# --- words of a term -----------------------------------------------------------------------------
# A condition that compares a word of the candidate with what is known before it: the operand, which
# is computed once for a partial sequence.

TERM_SEGMENT, TERM_HOW, TERM_MASK = 0, 1, 2
TERM_EVENT, TERM_PLACE = 3, 4
"""The operand is a word of this event in this segment; if EVENT is -1, PLACE is a program."""
TERM_CONVERT = 5
"""The conversion of the operand to a key (layout.PROBE_...)."""
TERM_WORDS = 8

# --- words of a value ----------------------------------------------------------------------------

VALUE_EVENT, VALUE_PLACE = 0, 1
"""Fields of a term's operand (TERM_EVENT, TERM_PLACE)."""
VALUE_WORDS = 2

# --- sizes ---------------------------------------------------------------------------------------
# Words of the one array by which kernels tell each other how much there is.

FIRST_TERMINATOR, TERMINATORS = 0, 1
"""The entry of the first terminator, and how many are evaluated: what the host asks for."""
WORDS, CHUNKS_PLACE = 6, 7
"""Words of marks that are in use, and chunks of them."""
LEVELS = 8
"""Partial sequences there are at a level: a level is what one multiple selection makes."""
NEEDS = 24
"""Partial sequences that there would have been at each level with room enough."""
WORDS_NEEDED = 40
"""Words of marks that some step would have used."""
LONGEST_RANGE = 41
"""The most candidates that an index by value has left of some window."""
LONGESTS = 42
"""The longest window of each step."""
SIZES = 129
"""Words there are; a rule has fewer than LEVELS_MAX levels, and STEPS_MAX steps that search."""
LEVELS_MAX = 16
STEPS_MAX = SIZES - LONGESTS

"""The table of buckets: filters by the hash under which events find them.

``table`` int64[places, 2] in ``parts`` int64[PARTS, 3], each open-addressed in a segment of its
own (:mod:`matcher.kernels.segments`): the hash, and the *span* of its entries in the arena
(:data:`matcher.kernels.layout.SPAN`); a place is unused where its span is 0 and, within a part,
its hash too. A bucket's entries are
contiguous, in a segment of a power of two of rows: ``masks`` int64[rows], the terms of each filter
folded to 64 bits, apart from the rest because most entries are dismissed by it; and ``arena``
int64[rows, 4]: the word and operand of a row that is tested first, the filter's rows as
``start << 32 | count``, and ``slot << 32 | place of the interface``.
"""

from __future__ import annotations

import numpy as np

from matcher.kernels.compiled import inlined, kernel
from matcher.kernels.layout import (
    BEGIN,
    FREE,
    HAS_GROUPS,
    HASH,
    KEYS,
    LAST,
    LOG_MASK,
    LOG_SHIFT,
    PARTS,
    PARTS_LOG,
    SPAN,
    SPAN_COUNT,
)
from matcher.kernels.rows import copy_row
from matcher.kernels.segments import log_of, segment


@inlined
def first_of(span):
    """Where the entries begin."""
    return span >> 32


@inlined
def count_of(span):
    """How many entries there are."""
    return span & SPAN_COUNT


@inlined
def log_of_span(span):
    """The exponent of the segment's length plus one; 0 where there is none."""
    return (span >> LOG_SHIFT) & LOG_MASK


@inlined
def bit_of(term):
    """The bit of a term in masks of terms."""
    return np.int64(1) << (term & 63)


@inlined
def part_of(key):
    """The part of the table that a key is in."""
    return (key >> (64 - PARTS_LOG)) & (PARTS - 1)


@inlined
def home_of(parts, key):
    """The place of the table at which the search for a key begins."""
    part = part_of(key)
    return parts[part, BEGIN] + (key & parts[part, LAST])


@inlined
def place_of(table, parts, key):
    """The place of a key in the table, or of the gap where it would stand."""
    part = part_of(key)
    begin, last = parts[part, BEGIN], parts[part, LAST]
    offset = key & last
    while table[begin + offset, HASH] != key and (
        table[begin + offset, HASH] or table[begin + offset, SPAN]
    ):
        offset = (offset + 1) & last
    return begin + offset


@kernel
def entry_for(table, masks, arena, state, place):
    """Room for one more entry in the bucket at a place; -1 when the arena is too small."""
    span = table[place, SPAN]
    count, log, start = count_of(span), log_of_span(span), first_of(span)
    if log == 0 or count == 1 << (log - 1):
        new = segment(arena, state, log)
        if new < 0:
            return -1
        if log:
            for row in range(count):
                copy_row(arena, start + row, arena, new + row)
                masks[new + row] = masks[start + row]
            leave(arena, state, start, log - 1)
        start, log = new, log + 1
    table[place, SPAN] = start << 32 | (span & HAS_GROUPS) | log << LOG_SHIFT | (count + 1)
    return start + count


@kernel
def leave(arena, state, start, log):
    """Put a segment on the list of free ones of its size."""
    arena[start, 0] = state[FREE + log]
    state[FREE + log] = start


@kernel
def take_entry(table, masks, arena, place, slot):
    """Remove a filter's entry from its bucket; the last entry takes its place."""
    span = table[place, SPAN]
    last = first_of(span) + count_of(span) - 1
    for row in range(first_of(span), last + 1):
        if arena[row, 3] >> 32 == slot:
            copy_row(arena, last, arena, row)
            masks[row] = masks[last]
            table[place, SPAN] = span - 1
            return


@inlined
def holds_something(span):
    """Whether a bucket has entries or groups."""
    return count_of(span) != 0 or span & HAS_GROUPS != 0


@kernel
def move_bucket(table, place, larger, parts, arena, state):
    """Move a bucket that holds something to a larger table; another one's segment goes free."""
    span = table[place, SPAN]
    if holds_something(span):
        key = table[place, HASH]
        copy_row(table, place, larger, place_of(larger, parts, key))
        parts[part_of(key), KEYS] += 1
    elif log_of_span(span):
        leave(arena, state, first_of(span), log_of_span(span) - 1)


@kernel
def rehash(table, larger, parts, arena, state):
    """Move all buckets to a larger table, whose ``parts`` have no keys yet."""
    for place in range(len(table)):
        move_bucket(table, place, larger, parts, arena, state)


@kernel
def grow_part(table, table_state, parts, part, arena, state):
    """Move the buckets of one part to where there is room for more; False: the table is full."""
    begin, last, live = parts[part, BEGIN], parts[part, LAST], 0
    for place in range(begin, begin + last + 1):
        live += holds_something(table[place, SPAN])
    log = log_of(2 * (live + 1) + 1)
    new = segment(table, table_state, log)
    if new < 0:
        return False
    table[new, HASH] = 0  # where segments that are free are linked
    parts[part, BEGIN], parts[part, LAST], parts[part, KEYS] = new, (1 << log) - 1, 0
    for place in range(begin, begin + last + 1):
        move_bucket(table, place, table, parts, arena, state)
        table[place, HASH] = table[place, SPAN] = 0
    leave(table, table_state, begin, log_of(last + 1))
    return True

"""The table of buckets: filters by the hash under which events find them.

``table`` int64[places, 2], open-addressed: the hash, and the *span* of its entries in the arena
(:data:`matcher.kernels.layout.SPAN`); a place is unused where both are 0. A bucket's entries are
contiguous, in a segment of a power of two of rows: ``masks`` int64[rows], the terms of each filter
folded to 64 bits, apart from the rest because most entries are dismissed by it; and ``arena``
int64[rows, 4]: the word and operand of a row that is tested first, the filter's rows as
``start << 32 | count``, and ``slot << 32 | place of the interface``.
"""

from __future__ import annotations

import numpy as np

from matcher.kernels.compiled import inlined, kernel
from matcher.kernels.layout import (
    FREE,
    HAS_GROUPS,
    HASH,
    KEYS,
    LOG_MASK,
    LOG_SHIFT,
    SPAN,
    SPAN_COUNT,
)
from matcher.kernels.rows import copy_row
from matcher.kernels.segments import segment


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
def place_of(table, key):
    """The place of a key in the table, or of the gap where it would stand."""
    mask = len(table) - 1
    place = key & mask
    while table[place, HASH] != key and (table[place, HASH] or table[place, SPAN]):
        place = (place + 1) & mask
    return place


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


@kernel
def rehash(table, larger, arena, state):
    """Move all buckets that hold something to a larger table; the others' segments go free."""
    state[KEYS] = 0
    for old in range(len(table)):
        span = table[old, SPAN]
        if count_of(span) == 0 and not span & HAS_GROUPS:
            if log_of_span(span):
                leave(arena, state, first_of(span), log_of_span(span) - 1)
            continue
        copy_row(table, old, larger, place_of(larger, table[old, HASH]))
        state[KEYS] += 1

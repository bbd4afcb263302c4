"""Filters that can be in groups (:mod:`matcher.kernels.groups`), and the bits that they are there.

A filter can be where each of its texts is asked for in one way: by order, or not to be some
texts, or by one test that it has to pass. What it asks of numbers may be anything.
"""

from __future__ import annotations

import numpy as np

from matcher.kernels.buckets import count_of, first_of
from matcher.kernels.compiled import kernel, making
from matcher.kernels.hashing import mix
from matcher.kernels.layout import (
    BY_PRESENCE,
    BY_RANK,
    BY_TEST,
    GROUP_ROWS_MAX,
    HASH,
    LAYER_FILLED,
    SAME,
    SPAN,
    TERM_MASK,
)
from matcher.kernels.rows import copy_row


@kernel
def type_key(term):
    """The part of a type, by its term, in the keys of filters."""
    return mix(~term)


@kernel
def type_hash(rows):
    """The part of a filter's type in its keys; 0 for one without type."""
    for row in range(len(rows)):
        if rows[row, 0] >> 36 == BY_PRESENCE:
            return type_key(rows[row, 0] & TERM_MASK)
    return 0


@kernel
def groupable(rows):
    """Whether a filter can be in a group."""
    if len(rows) == 0 or len(rows) > GROUP_ROWS_MAX:
        return False
    for row in range(len(rows)):
        word = rows[row, 0]
        how = word >> 36
        if how != BY_TEST and how != BY_RANK:
            continue
        positive = (word >> 32) & 15 == SAME
        for other in range(len(rows)):
            if other == row or rows[other, 0] & TERM_MASK != word & TERM_MASK:
                continue
            if rows[other, 0] >> 36 != how or (how == BY_TEST and positive):
                return False
    return True


@making
def order_by(high, low):
    """The places of pairs in ascending order of these, equal ones as they stand (merge sort)."""
    count = len(high)
    order, other = np.arange(count), np.empty(count, np.int64)
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            left, right = begin, middle
            for place in range(begin, end):
                take_left = right >= end
                if not take_left and left < middle:
                    one, two = order[left], order[right]
                    take_left = high[one] < high[two] or (
                        high[one] == high[two] and low[one] <= low[two]
                    )
                if take_left:
                    other[place] = order[left]
                    left += 1
                else:
                    other[place] = order[right]
                    right += 1
        order, other = other, order
        width *= 2
    return order


@making
def candidates_of(table, masks, arena, rows, place):
    """The filters of a bucket that can be in groups, in order, and where each class begins.

    Filters of one class are a group's; a class is one set of terms, folded, or for filters under
    their type alone all of them. Rows ``slot << 32 | interface``; int64[classes + 1].
    """
    span = table[place, SPAN]
    start, count = first_of(span), count_of(span)
    high, low = np.empty(count, np.int64), np.empty(count, np.int64)
    chosen = np.empty(count, np.int64)
    size = 0
    for entry in range(start, start + count):
        run = arena[entry, 2]
        own = rows[run >> 32 : (run >> 32) + (run & TERM_MASK)]
        if groupable(own):
            by_type = type_hash(own) == table[place, HASH]
            high[size] = 0 if by_type else masks[entry]
            low[size] = arena[entry, 3] & TERM_MASK
            chosen[size] = arena[entry, 3]
            size += 1
    order = order_by(high[:size], low[:size])
    begins = np.empty(size + 1, np.int64)
    classes = 0
    for number in range(size):
        if number == 0 or high[order[number]] != high[order[number - 1]]:
            begins[classes] = number
            classes += 1
    begins[classes] = size
    return chosen[order], begins[: classes + 1]


@making
def arranged(members):
    """The bits of a group, filters or -1, and how many layers, their words, and the first one's.

    ``members`` as ``candidates_of`` gives them.
    """
    count = len(members)
    runs, nth, deepest = 0, 0, 0
    depth = np.empty(count, np.int64)  # by filter: how many its interface has before it
    for member in range(count):
        new = member == 0 or (members[member] ^ members[member - 1]) & TERM_MASK
        runs += new
        nth = 0 if new else nth + 1
        deepest = max(deepest, nth)
        depth[member] = nth
    filled = np.zeros(deepest + 2, np.int64)
    for member in range(count):
        filled[depth[member]] += 1
    base = (members[0] & TERM_MASK) >> 6
    width = ((members[count - 1] & TERM_MASK) >> 6) - base + 1
    layers = 0
    while LAYER_FILLED * filled[layers] >= 64 * width:
        layers += 1
    bits = np.full(layers * width * 64 + filled[layers:].sum(), -1, np.int64)
    end = layers * width * 64
    for member in range(count):
        if depth[member] < layers:
            place = (members[member] & TERM_MASK) - 64 * base
            bits[depth[member] * width * 64 + place] = members[member]
        else:
            bits[end] = members[member]
            end += 1
    return bits, layers, width, base


@kernel
def keep_entries(table, masks, arena, place, homes):
    """Drop the entries of a bucket whose filters have found a home in a group."""
    span = table[place, SPAN]
    kept = start = first_of(span)
    for entry in range(start, start + count_of(span)):
        if homes[arena[entry, 3] >> 32] < 0:
            copy_row(arena, entry, arena, kept)
            masks[kept] = masks[entry]
            kept += 1
    table[place, SPAN] = span - (start + count_of(span) - kept)

"""How a summary comes to cover a window, and what the sums over the window are.

Covering reads each entry's row once, and only rows that a rule has just asked for; whatever
stands before or behind them stays unread, since its row may be gone.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import allocate, first_entry, logarithm, release
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.exact import (
    SPREAD,
    add,
    add_square,
    digits_needed,
    position_of,
    wrapped_difference,
)
from rules.engine.kernels.layout import (
    ENTRY_WORDS,
    FORM_EXTREMES,
    FORM_MOMENTS,
    GROW_HEAP,
    KIND_FLOAT,
    WISH,
)
from rules.engine.kernels.pyramid import complete, key_of, words_of
from rules.engine.kernels.summaries import FIRST_VALUES, empty, find_summary, make_summary

BLOCK_BITS = 4
BLOCK = 1 << BLOCK_BITS
"""A prefix sum is kept for so many entries."""

SUM, SQUARES, SPARE = 0, 128, 384
"""Where the digits of a sum, of a sum of squares and of their work stand in ``digits``."""


@kernel
def cover(  # type: ignore[no-untyped-def]
    state: int,
    number: int,
    form: int,
    type_number: int,
    attribute: int,
    kind: int,
    low: int,
    high: int,
) -> int:
    """The summary of a list, brought to cover its entries from ``low`` to ``high``, the second
    excluded, counted from its first present one; -1 where there is no room for it.
    """
    summary = find_summary(state, number, form, attribute)
    if summary < 0:
        summary = make_summary(state, number, form, attribute, kind)
        if summary < 0:
            return -1
    summaries, record = arrays.summaries(state), arrays.lists(state)[number]
    low, high = record.first + low, record.first + high
    if summaries[summary].begin <= low and high <= summaries[summary].end:
        return summary
    begin, end = max(summaries[summary].begin, record.first), summaries[summary].end
    if end < begin or low > 2 * end - begin or not is_of_use(state, number, end):
        begin, end = low, low  # what lies between is more than what is covered, or unreadable
    elif low < begin:
        begin, end, high = low, low, max(end, high)  # some ask about old entries, others about new
    room = summaries[summary].capacity - BLOCK
    if high - low > room:
        if not make_room(state, summary, high - low):
            return -1
        begin, end = low, low
    elif high - begin > room:
        begin = high - room
        if end < begin:
            begin, end = low, low
    summaries[summary].begin = begin
    summaries[summary].end = end
    return summary if extend(state, number, summary, type_number, high) else -1


@kernel
def is_of_use(state: int, number: int, entry: int) -> bool:
    """Whether an entry of a list, or the one that would follow its last, still has its row."""
    record = arrays.lists(state)[number]
    place = entry - record.first
    if place >= record.length:
        return True
    time = arrays.heap(state)[first_entry(record) + place * ENTRY_WORDS]
    return time >= arrays.accesses(state)[record.access].horizon


@kernel
def make_room(state: int, summary: int, count: int) -> bool:
    """Make a summary, emptied, large enough for ``count`` entries; False when there is no room."""
    summaries = arrays.summaries(state)
    record = summaries[summary]
    capacity = np.int64(FIRST_VALUES)
    while capacity - BLOCK < count + (count >> 2):
        capacity *= 2
    capacity = max(capacity, record.capacity)
    size = block_words(record.form, capacity, record.digits)
    return place_segments(state, summary, capacity, logarithm(size))


@kernel
def block_words(form: int, capacity: int, digits: int) -> int:
    """Words of all that a summary keeps beside its values."""
    if form == FORM_EXTREMES:
        return words_of(capacity)
    return max(np.int64(1), (capacity >> BLOCK_BITS) * width_of(form, digits))


@kernel
def width_of(form: int, digits: int) -> int:
    """Words of a prefix sum."""
    return 3 * digits if form == FORM_MOMENTS else digits


@kernel
def place_segments(state: int, summary: int, capacity: int, block_class: int) -> bool:
    """Replace the segments of a summary by new ones; False, and a wish, when there is no room."""
    empty(state, summary)
    summaries = arrays.summaries(state)
    values = allocate(state, logarithm(capacity))
    if values < 0:
        arrays.counters(state)[WISH] = GROW_HEAP
        return False
    blocks = allocate(state, block_class)
    if blocks < 0:
        release(state, values, logarithm(capacity))
        arrays.counters(state)[WISH] = GROW_HEAP
        return False
    summaries[summary].values = values
    summaries[summary].blocks = blocks
    summaries[summary].capacity = capacity
    summaries[summary].block_class = block_class
    return True


@kernel
def extend(state: int, number: int, summary: int, type_number: int, high: int) -> bool:
    """Bring a summary from its end to entry ``high``; False when there is no room for digits."""
    summaries, heap = arrays.summaries(state), arrays.heap(state)
    record, entries = summaries[summary], arrays.lists(state)[number]
    rows = arrays.types(state)[type_number]
    start = first_entry(entries) - entries.first * ENTRY_WORDS
    old, mask = record.end, record.capacity - 1
    for entry in range(old, high):
        row = heap[start + entry * ENTRY_WORDS + 1]
        word = heap[rows.offset + (row & (rows.capacity - 1)) * rows.width + record.attribute]
        if record.form == FORM_EXTREMES:
            heap[record.values + (entry & mask)] = key_of(word, record.kind)
            if (entry + 1) & (BLOCK - 1) == 0:
                complete(state, record, entry + 1)
        else:
            heap[record.values + (entry & mask)] = word
    summaries[summary].end = high
    if record.form == FORM_EXTREMES:
        return True
    if record.kind == KIND_FLOAT and widen(state, summary, old, high):
        if block_words(record.form, record.capacity, summaries[summary].digits) > (
            np.int64(1) << record.block_class
        ) and not place_wider_blocks(state, summary):
            return False
        old = record.begin
    add_blocks(state, summary, old)
    return True


# --- prefix sums ---------------------------------------------------------------------------------


@kernel
def widen(state: int, summary: int, old: int, high: int) -> bool:
    """Whether the floats from ``old`` to ``high`` need more digits, which are given then."""
    summaries, heap = arrays.summaries(state), arrays.heap(state)
    record = summaries[summary]
    lowest, top = record.lowest, record.lowest + record.digits
    for entry in range(old, high):
        word = heap[record.values + (entry & (record.capacity - 1))]
        if word << 1 == 0:
            continue
        digit = position_of(word) >> 5
        if top == record.lowest and record.digits == 0:
            lowest, top = digit, digit + SPREAD
        lowest, top = min(lowest, digit), max(top, digit + SPREAD)
    if lowest == record.lowest and top == record.lowest + record.digits:
        return False
    summaries[summary].lowest = lowest
    summaries[summary].digits = top - lowest
    return True


@kernel
def place_wider_blocks(state: int, summary: int) -> bool:
    """A larger segment for prefix sums; without room the summary is empty, and a wish left."""
    summaries = arrays.summaries(state)
    record = summaries[summary]
    block_class = logarithm(block_words(record.form, record.capacity, record.digits))
    blocks = allocate(state, block_class)
    if blocks < 0:
        empty(state, summary)
        arrays.counters(state)[WISH] = GROW_HEAP
        return False
    release(state, record.blocks, record.block_class)
    summaries[summary].blocks = blocks
    summaries[summary].block_class = block_class
    return True


@kernel
def add_blocks(state: int, summary: int, old: int) -> None:
    """Write the prefix sums behind every block that ends after entry ``old``."""
    heap, record = arrays.heap(state), arrays.summaries(state)[summary]
    width = width_of(record.form, record.digits)
    mask = (record.capacity >> BLOCK_BITS) - 1
    if old == record.begin:
        first = record.blocks + ((old >> BLOCK_BITS) & mask) * width
        for place in range(first, first + width):
            heap[place] = 0
    for block in range(old >> BLOCK_BITS, record.end >> BLOCK_BITS):
        before = record.blocks + (block & mask) * width
        target = record.blocks + ((block + 1) & mask) * width
        for place in range(width):
            heap[target + place] = heap[before + place]
        low = max(record.begin, block << BLOCK_BITS)
        add_values(
            heap, record, low, (block + 1) << BLOCK_BITS, heap, target, target + record.digits
        )


@kernel
def add_values(heap, record, low: int, high: int, digits, sums: int, squares: int) -> None:  # type: ignore[no-untyped-def]
    """Add the values from ``low`` to ``high``, and their squares, to digits."""
    for entry in range(low, high):
        word = heap[record.values + (entry & (record.capacity - 1))]
        add(digits, sums, record.lowest, word, record.kind)
        if record.form == FORM_MOMENTS:
            add_square(digits, squares, 2 * record.lowest, word, record.kind)


@kernel
def window_digits(state: int, summary: int, low: int, high: int) -> None:
    """The digits of the sums over entries ``low`` to ``high``, all covered, in ``digits``."""
    heap, digits = arrays.heap(state), arrays.digits(state)
    record = arrays.summaries(state)[summary]
    clear(digits, record.digits)
    first, last = (low + BLOCK - 1) >> BLOCK_BITS, high >> BLOCK_BITS
    if first >= last:
        add_values(heap, record, low, high, digits, SUM, SQUARES)
        return
    width = width_of(record.form, record.digits)
    mask = (record.capacity >> BLOCK_BITS) - 1
    until = record.blocks + (last & mask) * width
    since = record.blocks + (first & mask) * width
    for place in range(record.digits):
        digits[SUM + place] = wrapped_difference(heap[until + place], heap[since + place])
    for place in range(record.digits, width):
        digits[SQUARES + place - record.digits] = wrapped_difference(
            heap[until + place], heap[since + place]
        )
    add_values(heap, record, low, first << BLOCK_BITS, digits, SUM, SQUARES)
    add_values(heap, record, last << BLOCK_BITS, high, digits, SUM, SQUARES)


@kernel
def clear(digits, count: int) -> None:  # type: ignore[no-untyped-def]
    """Make ``count`` digits of a sum, and what a sum of squares needs beside them, zero; one digit
    more takes what they carry.
    """
    for place in range(count + 1):
        digits[SUM + place] = 0
    for place in range(2 * count + 2):
        digits[SQUARES + place] = 0


@kernel
def word_digits(state: int, words, kind: int, squares: bool) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """The digits of the sums of words in ``digits``: the place of the first, and how many."""
    digits = arrays.digits(state)
    lowest, top = digits_needed(words, kind)
    clear(digits, top - lowest)
    for word in words:
        add(digits, SUM, lowest, word, kind)
        if squares:
            add_square(digits, SQUARES, 2 * lowest, word, kind)
    return lowest, top - lowest

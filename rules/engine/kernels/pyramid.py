"""Least and greatest values of blocks of blocks: what a pyramid over a ring of values knows.

Level 0 is the ring of values itself, level 1 has the least and the greatest of every 16 of them,
level 2 of every 256, and so on. Values are numbered from 0 and never renumbered while they stay;
value ``n`` stands at ``n & (capacity - 1)``. A block is written when its last value has come.

Values are compared as *keys*, ints whose order is theirs (strings by their text, tesla.md S10).

Law: a question about values ``low`` to ``high`` looks only at blocks that lie wholly between
them, so what stands in blocks before the first value, or after the last, does not matter. A
question costs O(log n) but for values that it enumerates.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.expressions import order_strings
from rules.engine.kernels.layout import KIND_FLOAT, KIND_STRING

FANOUT_BITS = 4
FANOUT = 1 << FANOUT_BITS
_INT_MAX = 2**63 - 1


@kernel
def key_of(word: int, kind: int) -> int:
    """A word as a key; the same again gives the word back. -0.0 comes just before 0.0."""
    return word ^ ((word >> 63) & _INT_MAX) if kind == KIND_FLOAT else word


@kernel
def words_of(capacity: int) -> int:
    """Words of all levels above the values of a ring."""
    words = np.int64(0)
    blocks = capacity >> FANOUT_BITS
    while blocks > 1:
        words += 2 * blocks
        blocks >>= FANOUT_BITS
    return max(np.int64(1), words)


@kernel
def is_before(state: int, kind: int, one: int, other: int) -> bool:
    """Whether one key is less than another."""
    if kind == KIND_STRING:
        return order_strings(state, one, other) < 0
    return one < other


@kernel
def complete(state: int, record, end: int) -> None:  # type: ignore[no-untyped-def]
    """Write the blocks that end with value ``end - 1``, when it has just been entered."""
    heap = arrays.heap(state)
    size, level, mask = np.int64(FANOUT), record.blocks, record.capacity - 1
    blocks = record.capacity >> FANOUT_BITS
    below, width = record.values, 1  # where the level below stands, and words of its items
    while blocks > 1 and end & (size - 1) == 0 and end - size >= record.begin:
        item = (end - size) // (size >> FANOUT_BITS)
        place = below + (item & mask) * width
        least, greatest = heap[place], heap[place + width - 1]
        for _ in range(FANOUT - 1):
            place += width
            if is_before(state, record.kind, heap[place], least):
                least = heap[place]
            if is_before(state, record.kind, greatest, heap[place + width - 1]):
                greatest = heap[place + width - 1]
        target = level + (((end - size) // size) & (blocks - 1)) * 2
        heap[target] = least
        heap[target + 1] = greatest
        below, width, mask = level, 2, blocks - 1
        level += 2 * blocks
        blocks >>= FANOUT_BITS
        size <<= FANOUT_BITS


@kernel
def block_place(record, bits: int, number: int) -> int:  # type: ignore[no-untyped-def]
    """Where the least and the greatest of the 2**bits values from ``number`` on stand."""
    level = record.blocks
    blocks = record.capacity >> FANOUT_BITS
    for _ in range(bits // FANOUT_BITS - 1):
        level += 2 * blocks
        blocks >>= FANOUT_BITS
    return level + ((number >> bits) & (blocks - 1)) * 2


@kernel
def has_level(record, bits: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether there are blocks of 2**bits values."""
    return record.capacity >> bits > 1


@kernel
def extreme_within(state: int, record, low: int, high: int, greatest: bool) -> int:  # type: ignore[no-untyped-def]
    """The least or greatest key of the values from ``low`` to ``high``, of which there are some."""
    heap = arrays.heap(state)
    best = heap[record.values + (low & (record.capacity - 1))]
    place, bits = low, 0
    while place < high:
        while (
            place & ((1 << (bits + FANOUT_BITS)) - 1) == 0
            and place + (1 << (bits + FANOUT_BITS)) <= high
            and has_level(record, bits + FANOUT_BITS)
        ):
            bits += FANOUT_BITS
        while place + (1 << bits) > high:
            bits -= FANOUT_BITS
        if bits == 0:
            key = heap[record.values + (place & (record.capacity - 1))]
        else:
            key = heap[block_place(record, bits, place) + (1 if greatest else 0)]
        if greatest:
            if is_before(state, record.kind, best, key):
                best = key
        elif is_before(state, record.kind, key, best):
            best = key
        place += 1 << bits
    return best


@kernel
def overlaps(heap, record, bits: int, place: int, least: int, greatest: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether the block of 2**bits values at ``place`` may hold a key from least to greatest."""
    if bits == 0:
        key = heap[record.values + (place & (record.capacity - 1))]
        return least <= key <= greatest
    block = block_place(record, bits, place)
    return heap[block] <= greatest and heap[block + 1] >= least


@kernel
def first_within(state: int, record, low: int, high: int, least: int, greatest: int) -> int:  # type: ignore[no-untyped-def]
    """The first of the values from ``low`` to ``high`` with a key from ``least`` to ``greatest``,
    both included; ``high`` when there is none. Keys are numbers.
    """
    heap = arrays.heap(state)
    place, bits = low, 0
    while place < high:
        if overlaps(heap, record, bits, place, least, greatest):
            if bits == 0:
                return place
            bits -= FANOUT_BITS
            continue  # the block begins here: do not rise to it again
        place += 1 << bits
        while (
            place & ((1 << (bits + FANOUT_BITS)) - 1) == 0
            and place + (1 << (bits + FANOUT_BITS)) <= high
            and has_level(record, bits + FANOUT_BITS)
        ):
            bits += FANOUT_BITS
        while bits > 0 and place + (1 << bits) > high:
            bits -= FANOUT_BITS
    return high


@kernel
def last_within(state: int, record, low: int, high: int, least: int, greatest: int) -> int:  # type: ignore[no-untyped-def]
    """The last such value; ``low - 1`` when there is none."""
    heap = arrays.heap(state)
    place, bits = high, 0  # values from ``place`` on are done with
    while place > low:
        if overlaps(heap, record, bits, place - (1 << bits), least, greatest):
            if bits == 0:
                return place - 1
            bits -= FANOUT_BITS
            continue
        place -= 1 << bits
        while (
            place & ((1 << (bits + FANOUT_BITS)) - 1) == 0
            and place - (1 << (bits + FANOUT_BITS)) >= low
            and has_level(record, bits + FANOUT_BITS)
        ):
            bits += FANOUT_BITS
        while bits > 0 and place - (1 << bits) < low:
            bits -= FANOUT_BITS
    return low - 1

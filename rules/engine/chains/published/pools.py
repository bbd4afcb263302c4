"""Pools: the sequences of one model that wait in one state (thesis 5.6: Sequences, State Index).

A sequence is a time, that of its last event, and the numbers of the rows of its events, the
earliest event first. The events themselves stand once, in the rings of their types (Stored
Events).

Law: a pool is in the order in which its sequences came to the state, so by the time of their last
event; those that have expired stand first.
"""

from __future__ import annotations

import numpy as np

from rules.engine.chains.published.compiled import kernel
from rules.engine.kernels import arrays
from rules.engine.kernels.arena import allocate, logarithm, release

FIRST_CAPACITY = 8
"""Sequences of a pool's first segment."""


@kernel
def place_of(state: int, pool: int, number: int) -> int:
    """Where in the heap a sequence of a pool stands."""
    record = arrays.pools(state)[pool]
    place: int = record.offset + (record.head + number) * record.width
    return place


@kernel
def next_place(state: int, pool: int) -> int:
    """Where in the heap the next sequence of a pool goes; -1 when the heap has no room."""
    record = arrays.pools(state)[pool]
    if record.head + record.count == record.capacity:
        if record.capacity > 0 and 2 * record.head >= record.capacity:
            move(state, record, record.offset)
        elif not resize(state, pool):
            return -1
    return place_of(state, pool, arrays.pools(state)[pool].count)


@kernel
def move(state: int, record, offset: int) -> None:  # type: ignore[no-untyped-def]
    """Copy the sequences of a pool to the beginning of a segment."""
    heap = arrays.heap(state)
    start = record.offset + record.head * record.width
    for word in range(record.count * record.width):
        heap[offset + word] = heap[start + word]
    record.head = 0


@kernel
def resize(state: int, pool: int) -> bool:
    """Give a pool twice the room; False when the heap has none."""
    record = arrays.pools(state)[pool]
    capacity = max(FIRST_CAPACITY, 2 * record.capacity)
    offset = allocate(state, logarithm(capacity * record.width))
    if offset < 0:
        return False
    old, words = record.offset, record.capacity * record.width
    move(state, record, offset)
    if words > 0:
        release(state, old, logarithm(words))
    record.offset = offset
    record.capacity = capacity
    return True


@kernel
def discard(state: int, pool: int, before: int) -> None:
    """Delete the sequences whose last event is earlier: they can go no further."""
    record, heap = arrays.pools(state)[pool], arrays.heap(state)
    while record.count > 0 and heap[record.offset + record.head * record.width] < before:
        record.head += 1
        record.count -= 1


@kernel
def keep(state: int, pool: int, number: int, kept: int) -> int:
    """Keep a sequence while others are deleted, of which ``kept`` were kept before: one more."""
    if number != kept:
        heap, width = arrays.heap(state), arrays.pools(state)[pool].width
        source, target = place_of(state, pool, number), place_of(state, pool, kept)
        for word in range(width):
            heap[target + word] = heap[source + word]
    return kept + 1


@kernel
def forget(state: int, pool: int) -> None:
    """Delete all sequences of a pool, and give its memory back."""
    record = arrays.pools(state)[pool]
    if record.capacity > 0:
        release(state, record.offset, logarithm(record.capacity * record.width))
    record.offset = np.int64(0)
    record.capacity = np.int64(0)
    record.head = np.int64(0)
    record.count = np.int64(0)

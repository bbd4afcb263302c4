"""Numbers of sources that have come: a table of blocks, each of 64 numbers of a source.

The table is open-addressed and never more than half full. A block without a bit is an empty place.
The last record is no block: its ``source`` says how many of the others are in use.

Explicit numbers are in a journal too, with what their events hold, in the order that they came:
writing on costs little, and nobody reads it until a number repeats. Then all of it moves to a
second table, whose blocks are of eight numbers each, and what their events hold stands beside it.
The last record of a journal is no number's: its ``number`` says how many of the others are in use.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels.compiled import kernel, part

REPEAT, NEW, CONFLICT = 0, 1, 2
"""Verdicts on an event: one that came before, one that did not, or another of the same id."""


@part
def hash_of(source: int, block: int) -> np.uint64:
    """The hash by which a block is looked for; eight blocks that follow one another have hashes
    that do: they share what the processor's cache fetches.
    """
    mixed = np.uint64(block >> 3) * np.uint64(0x9E3779B97F4A7C15)
    mixed = ((mixed ^ (mixed >> np.uint64(32))) + np.uint64(source)) * np.uint64(0xC2B2AE3D27D4EB4F)
    return (mixed ^ (mixed >> np.uint64(29))) + np.uint64(block & 7)


@part
def place_of(blocks, source: int, block: int) -> np.int64:  # type: ignore[no-untyped-def]
    """Where the table has, or would have, a block."""
    mask = np.uint64(len(blocks) - 2)
    place = hash_of(source, block) & mask
    while blocks[place].bits != 0 and (
        blocks[place].source != source or blocks[place].block != block
    ):
        place = (place + np.uint64(1)) & mask
    return np.int64(place)


@part
def is_full(blocks) -> bool:  # type: ignore[no-untyped-def]
    """Whether the table must grow before another block is entered."""
    last = len(blocks) - 1
    return 2 * (blocks[last].source + 1) > last


@part
def enter_block(blocks, source: int, block: int, time: int) -> np.int64:  # type: ignore[no-untyped-def]
    """The place of a block that is about to get a bit; -1 when the table must grow for it."""
    place = place_of(blocks, source, block)
    if blocks[place].bits == 0:
        if is_full(blocks):
            return np.int64(-1)
        blocks[len(blocks) - 1].source += 1
        blocks[place].source = source
        blocks[place].block = block
        blocks[place].newest = time
    return place


@part
def enter_number(blocks, place: int, number: int, time: int) -> bool:  # type: ignore[no-untyped-def]
    """Enter a number into its block; whether it is new."""
    bit = np.uint64(1) << np.uint64(number & 63)
    is_new = blocks[place].bits & bit == 0
    blocks[place].bits |= bit
    blocks[place].newest = max(blocks[place].newest, time)
    return is_new


@kernel
def accept(blocks, sources, numbers, times, fresh, first: int) -> int:  # type: ignore[no-untyped-def]
    """Enter events from the ``first`` on, int64[n] each, and write which are new into ``fresh``.

    Gives how far it came: less than n when the table must grow.
    """
    last_source, last_block, place = np.int64(-1), np.int64(0), np.int64(0)
    for event in range(first, len(numbers)):
        source, number = sources[event], numbers[event]
        block = number >> 6
        if source != last_source or block != last_block:
            place = enter_block(blocks, source, block, times[event])
            if place < 0:
                return event
            last_source, last_block = source, block
        fresh[event] = enter_number(blocks, place, number, times[event])
    return len(numbers)


@kernel
def move(blocks, target) -> None:  # type: ignore[no-untyped-def]
    """Enter blocks, of either kind, into another table, which is empty and has room."""
    for number in range(len(blocks)):
        place = place_of(target, blocks[number].source, blocks[number].block)
        target[place] = blocks[number]
    target[len(target) - 1].source = len(blocks)


@part
def begin_held(held, place: int, known, source: int, block: int, time: int) -> None:  # type: ignore[no-untyped-def]
    """Begin a block of explicit numbers, of which nothing is known yet."""
    enter_block(held, source, block, time)
    held[place].place = 8 * (held[len(held) - 1].source - 1)
    for slot in range(8):
        known[held[place].place + slot].contents = np.uint64(0)


@kernel
def settle(held, known, journal, first: int) -> int:  # type: ignore[no-untyped-def]
    """Enter what a journal has from the ``first`` on into the table of explicit numbers.

    Gives how far it came: less than all when the table must grow. ``known`` has eight records for
    each block that ``held`` can have.
    """
    count = journal[len(journal) - 1].number
    for entry in range(first, count):
        source, number, time = journal[entry].source, journal[entry].number, journal[entry].time
        own = place_of(held, source, number >> 3)
        if held[own].bits == 0:
            if is_full(held):
                return entry
            begin_held(held, own, known, source, number >> 3, time)
        enter_number(held, own, number, time)
        slot = held[own].place + (number & 7)
        known[slot].time = time
        known[slot].contents = journal[entry].contents
    return np.int64(count)


@kernel
def compare(held, known, sources, numbers, contents, verdicts, before) -> None:  # type: ignore[no-untyped-def]
    """Write what events are whose explicit numbers came before: REPEAT, or CONFLICT and when the
    other event was.

    ``contents`` are their digests, uint64[n], or 0. Of two that bear one id and of which one has no
    digest, the second is a REPEAT.
    """
    for event in range(len(numbers)):
        number, digest = numbers[event], contents[event]
        own = place_of(held, sources[event], number >> 3)
        verdicts[event] = REPEAT
        if digest != 0 and held[own].bits != 0:
            other = known[held[own].place + (number & 7)]
            if other.contents != 0 and other.contents != digest:
                verdicts[event] = CONFLICT
                before[event] = other.time

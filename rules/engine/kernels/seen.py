"""Which numbers of which sources have come: a table of blocks, each of 64 numbers of a source.

The table is open-addressed and never more than half full. A block without a bit is an empty place.
The last record is no block: its ``source`` says how many of the others are in use.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels.compiled import kernel, part


@part
def place_of(blocks, source: int, block: int) -> np.int64:  # type: ignore[no-untyped-def]
    """Where the table has, or would have, a block."""
    mask = np.uint64(len(blocks) - 2)
    mixed = np.uint64(block) * np.uint64(0x9E3779B97F4A7C15)
    mixed = ((mixed ^ (mixed >> np.uint64(32))) + np.uint64(source)) * np.uint64(0xC2B2AE3D27D4EB4F)
    place = (mixed ^ (mixed >> np.uint64(29))) & mask
    while blocks[place].bits != 0 and (
        blocks[place].source != source or blocks[place].block != block
    ):
        place = (place + np.uint64(1)) & mask
    return np.int64(place)


@part
def enter_block(blocks, source: int, block: int, time: int) -> np.int64:  # type: ignore[no-untyped-def]
    """The place of a block that is about to get a bit; -1 when the table must grow for it."""
    place = place_of(blocks, source, block)
    if blocks[place].bits == 0:
        last = len(blocks) - 1
        if 2 * (blocks[last].source + 1) > last:
            return np.int64(-1)
        blocks[last].source += 1
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
    """Enter blocks into another table, which is empty and has room."""
    for number in range(len(blocks)):
        place = place_of(target, blocks[number].source, blocks[number].block)
        target[place].source = blocks[number].source
        target[place].block = blocks[number].block
        target[place].bits = blocks[number].bits
        target[place].newest = blocks[number].newest
    target[len(target) - 1].source = len(blocks)

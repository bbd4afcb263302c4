"""Which numbers of which sources have come: a table of blocks, each of 64 numbers of a source.

The table is open-addressed and never more than half full. A block without a bit is an empty place.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels.compiled import kernel, part

BLOCK = np.dtype(
    [
        ("source", np.int64),
        ("block", np.int64),  # its numbers by 64
        ("bits", np.uint64),
        ("newest", np.int64),  # the greatest time of its events
    ]
)


@part
def place_of(blocks, source: int, block: int) -> np.int64:  # type: ignore[no-untyped-def]
    """Where the table has, or would have, a block."""
    mask = np.uint64(len(blocks) - 1)
    mixed = np.uint64(block) * np.uint64(0x9E3779B97F4A7C15)
    mixed = ((mixed ^ (mixed >> np.uint64(32))) + np.uint64(source)) * np.uint64(0xC2B2AE3D27D4EB4F)
    place = (mixed ^ (mixed >> np.uint64(29))) & mask
    while blocks[place].bits != 0 and (
        blocks[place].source != source or blocks[place].block != block
    ):
        place = (place + np.uint64(1)) & mask
    return np.int64(place)


@kernel
def accept(  # type: ignore[no-untyped-def]
    blocks, used: int, sources, numbers, times, fresh, first: int
) -> tuple[int, int]:
    """Enter events from the ``first`` on, int64[n] each, and write which are new into ``fresh``.

    Gives how far it came, less than n when the table must grow, and the blocks in use.
    """
    last_source, last_block, place = np.int64(-1), np.int64(0), np.int64(0)
    for event in range(first, len(numbers)):
        source, number = sources[event], numbers[event]
        block = number >> 6
        if source != last_source or block != last_block:
            place = place_of(blocks, source, block)
            if blocks[place].bits == 0:
                if 2 * (used + 1) > len(blocks):
                    return event, used
                blocks[place].source = source
                blocks[place].block = block
                blocks[place].newest = times[event]
                used += 1
            last_source, last_block = source, block
        bit = np.uint64(1) << np.uint64(number & 63)
        fresh[event] = blocks[place].bits & bit == 0
        blocks[place].bits |= bit
        blocks[place].newest = max(blocks[place].newest, times[event])
    return len(numbers), used


@kernel
def accept_one(blocks, used: int, source: int, number: int, time: int) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """Enter one event: 1 if it is new, 0 if not, -1 when the table must grow; and the blocks in
    use.
    """
    place = place_of(blocks, source, number >> 6)
    if blocks[place].bits == 0:
        if 2 * (used + 1) > len(blocks):
            return -1, used
        blocks[place].source = source
        blocks[place].block = number >> 6
        blocks[place].newest = time
        used += 1
    bit = np.uint64(1) << np.uint64(number & 63)
    fresh = 1 if blocks[place].bits & bit == 0 else 0
    blocks[place].bits |= bit
    blocks[place].newest = max(blocks[place].newest, time)
    return fresh, used


@kernel
def move(blocks, target) -> None:  # type: ignore[no-untyped-def]
    """Enter blocks into another table, which has room."""
    for number in range(len(blocks)):
        place = place_of(target, blocks[number].source, blocks[number].block)
        target[place].source = blocks[number].source
        target[place].block = blocks[number].block
        target[place].bits = blocks[number].bits
        target[place].newest = blocks[number].newest

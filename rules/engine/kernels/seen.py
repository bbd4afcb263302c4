"""Which numbers of which sources have come: a table of blocks, each of 64 numbers of a source.

The table is open-addressed and never more than half full. A block without a bit is an empty place.
The last record is no block: its ``source`` says how many of the others are in use.

Explicit numbers are in a second table too, of the same kind, with what their events hold: each in a
record of its own, those of a block next to one another.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels.compiled import kernel, part

REPEAT, NEW, CONFLICT = 0, 1, 2
"""What an event is: one that came before, one that did not, or another of the same id."""


@part
def hash_of(source: int, block: int) -> np.uint64:
    """The hash of a block: where it is looked for, and from where on the table of explicit numbers
    has those of the block, next to one another.
    """
    mixed = np.uint64(block) * np.uint64(0x9E3779B97F4A7C15)
    mixed = ((mixed ^ (mixed >> np.uint64(32))) + np.uint64(source)) * np.uint64(0xC2B2AE3D27D4EB4F)
    return mixed ^ (mixed >> np.uint64(29))


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


@part
def place_of_held(held, start, source: int, number: int) -> np.int64:  # type: ignore[no-untyped-def]
    """Where the table has, or would have, an explicit number of the block that starts there."""
    mask = np.uint64(len(held) - 2)
    place = (start + np.uint64(number & 63)) & mask
    while held[place].contents != 0 and (
        held[place].source != source or held[place].number != number
    ):
        place = (place + np.uint64(1)) & mask
    return np.int64(place)


@kernel
def accept_explicit(  # type: ignore[no-untyped-def]
    blocks, held, sources, numbers, contents, times, verdicts, before, first: int
) -> int:
    """Enter events from the ``first`` on, as ``accept`` does, and write what each is into
    ``verdicts``, int8[n]; of a CONFLICT, into ``before``, when the other event was.

    ``contents`` are the digests, uint64[n], none of them 0. Of one that came before without a
    digest nothing is known: it is a REPEAT.
    """
    last, count = len(held) - 1, held[len(held) - 1].source
    last_source, last_block = np.int64(-1), np.int64(0)
    block_place, start = np.int64(0), np.uint64(0)
    for event in range(first, len(numbers)):
        source, number = sources[event], numbers[event]
        if 2 * (count + 1) > last:
            return event
        block = number >> 6
        if source != last_source or block != last_block:
            block_place = enter_block(blocks, source, block, times[event])
            if block_place < 0:
                return event
            last_source, last_block = source, block
            start = hash_of(source, block)
        is_new = enter_number(blocks, block_place, number, times[event])
        place = place_of_held(held, start, source, number)
        verdicts[event] = REPEAT
        if is_new:
            verdicts[event] = NEW
            count += 1
            held[last].source = count
            held[place].source = source
            held[place].number = number
            held[place].contents = contents[event]
            held[place].time = times[event]
        elif held[place].contents != 0 and held[place].contents != contents[event]:
            verdicts[event] = CONFLICT
            before[event] = held[place].time
    return len(numbers)


@kernel
def move_held(held, since: int, target) -> None:  # type: ignore[no-untyped-def]
    """Enter the explicit numbers of events from ``since`` on into another table, which has room and
    is emptied first.
    """
    for place in range(len(target)):
        target[place].contents = np.uint64(0)
    count = 0
    for number in range(len(held)):
        if held[number].contents != 0 and held[number].time >= since:
            start = hash_of(held[number].source, held[number].number >> 6)
            place = place_of_held(target, start, held[number].source, held[number].number)
            target[place].source = held[number].source
            target[place].number = held[number].number
            target[place].contents = held[number].contents
            target[place].time = held[number].time
            count += 1
    target[len(target) - 1].source = count

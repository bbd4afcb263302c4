"""Sequential counting: each distinct constraint once, found through an index, and pruning.

``known`` int64[places, 3] is an open-addressed table of constraints: word, operand, and the
number plus one; 0 marks a place never used, -1 one that was left. ``lists`` int64[numbers, 4]
has for each constraint the slots that ask for it, ``scans`` int64[terms, 4] for each term the
numbers of the constraints that no value leads to: order, ``!=``, and types.
"""

from __future__ import annotations

from matcher.kernels.compiled import inlined, kernel
from matcher.kernels.hashing import key_of
from matcher.kernels.layout import (
    BY_FLOAT,
    BY_INT,
    BY_TEST,
    COUNT,
    FLOAT_FLAG,
    HASH,
    ROOM,
    SAME,
    START,
    TERM_MASK,
    TOP,
)
from matcher.kernels.relations import holds
from matcher.kernels.results import hit
from matcher.kernels.rows import copy_row
from matcher.kernels.segments import append, take_out

PLACES, NUMBERS, LEFT, PLAIN = 1, 2, 3, 4
"""Places of the state: of ``known`` ever used, numbers ever used, the last number left, and whether
it is plain: no index leads to constraints, and no filter is pruned."""


@kernel
def place_of_constraint(known, word, operand):
    """Where a constraint is in ``known``, or the place never used where it would be."""
    mask = len(known) - 1
    place = key_of(word, operand, 0) & mask
    while known[place, 2] and (
        known[place, 0] != word or known[place, 1] != operand or known[place, 2] < 0
    ):
        place = (place + 1) & mask
    return place


@inlined
def is_probed(word, state):
    """Whether values lead to a constraint: an equality, or a test that texts pass."""
    return (word >> 32) & 15 == SAME and word >> 36 <= BY_TEST and not state[PLAIN]


@kernel
def counting_insert(known, words, lists, scans, arena, state, rows, filters, slots, done):
    """Enter filters; ``done`` int64[2]: the filter and row to begin with and, after, to go on with.

    False when some array has no more room.
    """
    while done[0] < len(slots):
        slot = slots[done[0]]
        start, count = filters[slot, 0], filters[slot, 1]
        while done[1] < count:
            word, operand = rows[start + done[1], 0], rows[start + done[1], 1]
            term = word & TERM_MASK
            if 2 * (state[PLACES] + 1) > len(known) or state[NUMBERS] == len(lists):
                return False
            place = place_of_constraint(known, word, operand)
            number = known[place, 2] - 1
            room = scans[term, ROOM] + (lists[number, ROOM] if number >= 0 else 0)
            if state[TOP] + 2 * room + 2 > len(arena):
                return False
            if number < 0:
                number = state[LEFT]
                if number >= 0:
                    state[LEFT] = lists[number, HASH]
                else:
                    number = state[NUMBERS]
                    state[NUMBERS] += 1
                    lists[number, START] = -1
                lists[number, COUNT] = 0
                words[number, 0], words[number, 1] = word, operand
                known[place, 0], known[place, 1], known[place, 2] = word, operand, number + 1
                state[PLACES] += 1
                if not is_probed(word, state):
                    arena[append(scans, term, arena, state), 0] = number
            arena[append(lists, number, arena, state), 0] = slot
            done[1] += 1
        done[0] += 1
        done[1] = 0
    return True


@kernel
def counting_remove(known, lists, scans, arena, state, rows, slot):
    """Take a filter out; a constraint that none asks for any more goes."""
    for row in range(len(rows)):
        word = rows[row, 0]
        place = place_of_constraint(known, word, rows[row, 1])
        number = known[place, 2] - 1
        take_out(lists, number, arena, 0, slot)
        if lists[number, COUNT] == 0:
            known[place, 2] = -1
            lists[number, HASH] = state[LEFT]
            state[LEFT] = number
            if not is_probed(word, state):
                take_out(scans, word & TERM_MASK, arena, 0, number)


@kernel
def counting_rehash(known, larger, state):
    """Enter what is known into another table."""
    state[PLACES] = 0
    for old in range(len(known)):
        if known[old, 2] > 0:
            place = place_of_constraint(larger, known[old, 0], known[old, 1])
            copy_row(known, old, larger, place)
            state[PLACES] += 1


@kernel
def count_one(
    event, number, lists, arena, state, filters, epoch, bits, found, size, wanted, left
):  # fmt: skip
    """Count a constraint that holds; pruned filters are not counted.

    Gives the numbers in ``found`` wanted so far, and how many interfaces are left.
    """
    start = lists[number, START]
    for entry in range(start, start + lists[number, COUNT]):
        slot = arena[entry, 0]
        place = filters[slot, 2]
        known = bits[event, place >> 6] >> (place & 63) & 1
        if known and not wanted and not state[PLAIN]:
            continue
        count = filters[slot, 0]
        count = count + 1 if count >> 32 == epoch else epoch << 32 | 1
        filters[slot, 0] = count
        if count & TERM_MASK == filters[slot, 1]:
            left -= 1 - known
            size = hit(event, slot, place, bits, found, size, wanted)
    return size, left


@kernel
def counting_match(
    offsets,
    cells,
    begin,
    known,
    words,
    lists,
    scans,
    arena,
    state,
    filters,
    always,
    epoch,
    sorts,
    texts,
    bits,
    found,
    ends,
    wanted,
    interfaces,
):
    """Count the constraints that hold, each distinct one once, until all interfaces are selected.

    ``filters`` int64[slots, 3]: epoch and count, SizeF, the interface's place; ``epoch`` int64[1]
    numbers the events, so that counts need no reset. The rest as in ``pcm_match``.
    """
    hit_offsets, hits, ranks, test_ranks = texts
    size = 0
    for event in range(begin, len(offsets) - 1):
        kept, left = size, interfaces
        epoch[0] += 1
        now = epoch[0]
        for slot in always:
            place = filters[slot, 2]
            left -= 1 - (bits[event, place >> 6] >> (place & 63) & 1)
            size = hit(event, slot, place, bits, found, size, wanted)
        for cell in range(offsets[event], offsets[event + 1]):
            if left == 0 and not wanted and not state[PLAIN]:
                break
            term, value = cells[cell, 0], cells[cell, 1]
            own = term & TERM_MASK
            first, last, how = 0, 1, BY_FLOAT if term >= FLOAT_FLAG else BY_INT
            if sorts[own] == 1:
                first, last, how = hit_offsets[value], hit_offsets[value + 1], BY_TEST
            if state[PLAIN]:
                last = first
            for one in range(first, last):
                operand = hits[one] if how == BY_TEST else value
                place = place_of_constraint(known, own | SAME << 32 | how << 36, operand)
                if known[place, 2]:
                    size, left = count_one(
                        event, known[place, 2] - 1, lists, arena, state, filters, now,
                        bits, found, size, wanted, left,
                    )  # fmt: skip
            start = scans[own, START]
            for entry in range(start, start + scans[own, COUNT]):
                number = arena[entry, 0]
                if holds(
                    words[number, 0], words[number, 1], term, value,
                    hit_offsets, hits, ranks, test_ranks,
                ):  # fmt: skip
                    size, left = count_one(
                        event, number, lists, arena, state, filters, now,
                        bits, found, size, wanted, left,
                    )  # fmt: skip
        if size > len(found):
            return event, kept
        if wanted:
            ends[event] = size
    return len(offsets) - 1, size

"""How filters enter and leave the index (:mod:`matcher.methods.indexed`), and under which keys."""

from __future__ import annotations

import numpy as np

from matcher.kernels.buckets import (
    bit_of,
    count_of,
    entry_for,
    log_of_span,
    part_of,
    place_of,
    take_entry,
)
from matcher.kernels.compiled import inlined, kernel, making
from matcher.kernels.grouping import groupable, type_hash
from matcher.kernels.hashing import key_of
from matcher.kernels.layout import (
    BLOOM_BITS,
    BY_PRESENCE,
    BY_RANK,
    BY_TEST,
    CROWDED,
    FULL,
    HASH,
    KEYS,
    LAST,
    LEARNT,
    LONGEST,
    PROBING,
    SAME,
    SIGNATURE_MAX,
    SIGNED,
    SPAN,
    TERM_MASK,
    TYPED,
    UNTYPED,
    WAITING,
)
from matcher.kernels.signatures import signature_key


@kernel
def access_key(table, parts, rows, typed):
    """The key of the filter's access predicate, or 0 when nothing in it can be one.

    Of its equalities and tests that which the fewest filters have so far; an equality counts
    half, because it is satisfied by fewer values than a test. Gives its row, too.
    """
    best, best_cost, best_row = 0, 1 << 62, -1
    for row in range(len(rows)):
        word = rows[row, 0]
        how = word >> 36
        if (word >> 32) & 15 != SAME or how > BY_TEST:
            continue
        key = key_of(word & TERM_MASK, rows[row, 1], how) ^ typed
        place = place_of(table, parts, key)
        cost = (count_of(table[place, SPAN]) + 1) * (2 if how == BY_TEST else 1)
        if cost < best_cost:
            best, best_cost, best_row = key, cost, row
    return best, best_row


@inlined
def chance_of(word):
    """How many values satisfy a row, roughly: the fewer, the sooner it is worth testing."""
    relations, how = (word >> 32) & 15, word >> 36
    if relations == SAME:
        return 1 if how < BY_TEST else 2 if how <= BY_RANK else 9
    return 5 if relations & ~SAME in (1, 4) else 8


@kernel
def by_chance(rows):
    """Bring a filter's rows in the order in which they are worth testing."""
    for row in range(1, len(rows)):
        word, operand = rows[row, 0], rows[row, 1]
        place = row
        while place > 0 and chance_of(rows[place - 1, 0]) > chance_of(word):
            rows[place, 0], rows[place, 1] = rows[place - 1, 0], rows[place - 1, 1]
            place -= 1
        rows[place, 0], rows[place, 1] = word, operand


@kernel
def longest_signature(signed, terms):
    """The terms of a signature that tell so many filters apart, on average."""
    longest, sets = 1, terms
    while sets < signed and longest < SIGNATURE_MAX:
        longest += 1
        sets = sets * max(terms - longest + 1, 1) // longest
    return longest


@making
def index_insert_all(
    table, parts, masks, arena, bloom, state, rows, filters, keys, slots, ranks, by_access, longest,
    begin,
):  # fmt: skip
    """Put filters into the index, from number ``begin`` on, noting the key of each.

    ``longest``: how many terms a signature has at most. Returns how many are in:
    fewer than there are when a part of the table (``state[CROWDED]``), arena or Bloom filter
    are full. ``state[FULL]`` is the last
    bucket, plus one, whose segment was full then.
    """
    order = np.empty(SIGNATURE_MAX + 1, np.int64)
    state[FULL] = state[CROWDED] = 0
    for number in range(begin, len(slots)):
        slot = slots[number]
        start, count = np.int64(filters[slot, 0]), np.int64(filters[slot, 1])
        if state[LEARNT] * BLOOM_BITS >= 64 * len(bloom):
            return number
        own = rows[start : start + count]
        by_chance(own)
        typed = type_hash(own)
        key, access = access_key(table, parts, own, typed) if by_access else (0, -1)
        is_access, waits, learnt = key != 0, False, 0
        if not is_access and typed != 0 and groupable(own):
            key, waits = typed, True
        elif not is_access:
            state[LONGEST] = max(state[LONGEST], longest)
            key, learnt = signature_key(own, ranks, order, bloom, longest, True)
        part = part_of(key)
        if 2 * (parts[part, KEYS] + 1) > parts[part, LAST] + 1:
            state[CROWDED] = part + 1
            return number
        place = place_of(table, parts, key)
        is_new = table[place, HASH] == 0 and table[place, SPAN] == 0
        table[place, HASH] = key
        entry = entry_for(table, masks, arena, state, place)
        if entry < 0:
            if is_new:
                table[place, HASH] = 0
            return number
        parts[part, KEYS] += is_new
        state[LEARNT] += learnt
        if is_access:
            state[PROBING] |= TYPED if typed else UNTYPED
        elif waits:
            state[PROBING] |= WAITING
        else:
            state[SIGNED] += 1
        mask = np.int64(0)
        for row in range(count):
            mask |= bit_of(own[row, 0] & TERM_MASK)
        masks[entry] = mask
        if count:
            tested = 1 if access == 0 and count > 1 else 0
            arena[entry, 0], arena[entry, 1] = own[tested, 0], own[tested, 1]
        arena[entry, 2] = start << 32 | count
        arena[entry, 3] = slot << 32 | filters[slot, 2]
        keys[slot] = key
        span = table[place, SPAN]
        if count_of(span) == 1 << (log_of_span(span) - 1):
            state[FULL] = place + 1
    return len(slots)


@making
def waiting_types(slots, rows, filters, by_access):
    """By filter: the term of the type that it waits under, or -1 if it goes elsewhere."""
    types = np.full(len(slots), -1, np.int64)
    for number in range(len(slots)):
        start, count = filters[slots[number], 0], filters[slots[number], 1]
        own = rows[start : start + count]
        accessible, term = False, -1
        for row in range(count):
            how = own[row, 0] >> 36
            accessible |= (own[row, 0] >> 32) & 15 == SAME and how <= BY_TEST
            if how == BY_PRESENCE:
                term = own[row, 0] & TERM_MASK
        if term >= 0 and not (by_access and accessible) and groupable(own):
            types[number] = term
    return types


@kernel
def index_remove(table, parts, masks, arena, keys, slot):
    """Take a filter out of its bucket; the bucket stays, for filters to come."""
    take_entry(table, masks, arena, place_of(table, parts, keys[slot]), slot)

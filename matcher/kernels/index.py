"""The index: signatures and access predicates in one table of buckets."""

from __future__ import annotations

import numpy as np

from matcher.kernels.compiled import kernel
from matcher.kernels.hashing import bit_of, in_bloom, key_of, mix, to_bloom
from matcher.kernels.layout import (
    ACCESSES,
    BLOOM_BITS,
    BY_FLOAT,
    BY_INT,
    BY_PRESENCE,
    BY_TEST,
    COUNT,
    END,
    FLOAT_FLAG,
    FREE,
    HASH,
    KEYS,
    LEARNT,
    PROBED,
    PROBES,
    ROOM,
    SAME,
    SIGNATURE_MAX,
    SIGNED,
    START,
    TERM_MASK,
    TYPED,
    UNTYPED,
    VERIFIED,
    VISITED,
    WALK_MAX,
)
from matcher.kernels.relations import holds
from matcher.kernels.results import hit
from matcher.kernels.segments import append, log_of, take_out


@kernel
def place_of(table, key):
    """The place of a key in the table, or of the gap where it would stand."""
    mask = len(table) - 1
    place = key & mask
    while table[place, ROOM] and table[place, HASH] != key:
        place = (place + 1) & mask
    return place


@kernel
def type_hash(rows):
    """What a filter's type adds to its keys; 0 for one without type."""
    for row in range(len(rows)):
        if rows[row, 0] >> 36 == BY_PRESENCE:
            return mix(~(rows[row, 0] & TERM_MASK))
    return 0


@kernel
def access_key(table, rows, typed):
    """The key of the filter's access predicate, or 0 when nothing in it can be one.

    Of its equalities and tests that which the fewest filters have so far; an equality counts
    half, because it is satisfied by fewer values than a test.
    """
    best, best_cost = 0, 1 << 62
    for row in range(len(rows)):
        word = rows[row, 0]
        how = word >> 36
        if (word >> 32) & 15 != SAME or how > BY_TEST:
            continue
        key = key_of(word & TERM_MASK, rows[row, 1], how) ^ typed
        place = place_of(table, key)
        cost = (table[place, COUNT] + 1) * (2 if how == BY_TEST else 1)
        if cost < best_cost:
            best, best_cost = key, cost
    return best


@kernel
def signature_key(rows, ranks, order, bloom, learn):
    """The hash of the filter's rarest terms, and how many they are.

    With ``learn``, all prefixes of them go to ``bloom``. ``order`` is scratch of SIGNATURE_MAX + 1.
    """
    count = 0
    for row in range(len(rows)):
        term = rows[row, 0] & TERM_MASK
        place = count
        while place > 0 and ranks[order[place - 1]] > ranks[term]:
            place -= 1
        if (place > 0 and order[place - 1] == term) or place == SIGNATURE_MAX:
            continue
        for other in range(count, place, -1):
            order[other] = order[other - 1]
        order[place] = term
        count = min(count + 1, SIGNATURE_MAX)
    key = 1
    for place in range(count):
        key += mix(order[place])
        if learn:
            to_bloom(bloom, key)
    if learn:
        to_bloom(bloom, key ^ END)
    return key, count + 1


@kernel
def index_insert_all(
    table, masks, arena, bloom, state, rows, filters, keys, slots, ranks, by_access, begin
):
    """Put filters into the index, from number ``begin`` on, noting the key of each.

    ``masks`` int64[entries], apart from the rest of the entries because most are dismissed by it.
    Returns how many are in: fewer than there are when table, arena or Bloom filter are full.
    """
    order = np.empty(SIGNATURE_MAX + 1, np.int64)
    for number in range(begin, len(slots)):
        slot = slots[number]
        start, count = filters[slot, 0], filters[slot, 1]
        if 2 * (state[KEYS] + 1) > len(table) or state[LEARNT] * BLOOM_BITS >= 64 * len(bloom):
            return number
        own = rows[start : start + count]
        typed = type_hash(own)
        key = access_key(table, own, typed) if by_access else 0
        is_access, learnt = key != 0, 0
        if not is_access:
            key, learnt = signature_key(own, ranks, order, bloom, True)
        place = place_of(table, key)
        is_new = table[place, ROOM] == 0
        if is_new:
            table[place, HASH] = key
            table[place, START] = -1
            table[place, COUNT] = 0
        old = table[place, START]
        entry = append(table, place, arena, state)
        if entry < 0:
            return number
        new = table[place, START]
        if new != old:
            for moved in range(entry - new):
                masks[new + moved] = masks[old + moved]
        state[KEYS] += is_new
        state[LEARNT] += learnt
        if not is_access:
            state[SIGNED] += 1
        else:
            state[ACCESSES] |= TYPED if typed else UNTYPED
        mask = 0
        for row in range(count):
            mask |= bit_of(own[row, 0] & TERM_MASK)
        masks[entry] = mask
        arena[entry, 0] = start
        arena[entry, 1] = count << 32 | filters[slot, 2]
        arena[entry, 2] = slot
        keys[slot] = key
    return len(slots)


@kernel
def learn_all(bloom, state, table, arena, rows, ranks):
    """Teach a new Bloom filter the prefixes of all filters that stand under their signatures."""
    state[LEARNT] = 0
    order = np.empty(SIGNATURE_MAX + 1, np.int64)
    for place in range(len(table)):
        first = table[place, START]
        for entry in range(first, first + table[place, COUNT]):
            start, count = arena[entry, 0], arena[entry, 1] >> 32
            own = rows[start : start + count]
            if signature_key(own, ranks, order, bloom, False)[0] == table[place, HASH]:
                state[LEARNT] += signature_key(own, ranks, order, bloom, True)[1]


@kernel
def index_remove(table, masks, arena, keys, slot):
    """Take a filter out of its bucket; the bucket stays, for filters to come."""
    place = place_of(table, keys[slot])
    row = take_out(table, place, arena, 2, slot)
    masks[row] = masks[table[place, START] + table[place, COUNT]]


@kernel
def rehash(table, larger, arena, state):
    """Move all buckets that hold something to a larger table; the others' segments go free."""
    state[KEYS] = 0
    for old in range(len(table)):
        if table[old, ROOM] == 0:
            continue
        if table[old, COUNT] == 0:
            log = log_of(table[old, ROOM])
            arena[table[old, START], 0] = state[FREE + log]
            state[FREE + log] = table[old, START]
            continue
        larger[place_of(larger, table[old, HASH])] = table[old]
        state[KEYS] += 1


@kernel
def signature_probes(cells, first, last, bloom, probes, depths, keys, counts):
    """The signatures that filters may have among the subsets of an event's terms.

    How many there are, or -1 when that would take too long to say.
    """
    probes[0] = key = 1
    count, depth, cell = int(in_bloom(bloom, key ^ END)), 0, first
    for visited in range(WALK_MAX):
        while cell == last or depth == SIGNATURE_MAX:
            if depth == 0:
                counts[VISITED] += visited
                return count
            depth -= 1
            cell, key = depths[depth] + 1, keys[depth]
        longer = key + mix(cells[cell, 0] & TERM_MASK)
        if in_bloom(bloom, longer):
            depths[depth], keys[depth] = cell, key
            depth += 1
            key = longer
            if in_bloom(bloom, key ^ END):
                if count == len(probes):
                    break
                probes[count] = key
                count += 1
        cell += 1
    return -1


@kernel
def access_probes(cells, first, last, sorts, typed, accesses, hit_offsets, hits, probes, count):
    """The keys of an event's values and of the tests that its texts pass, after ``count`` others.

    How many there are then, or -1 when there is no room for them.
    """
    for cell in range(first, last):
        term, value = cells[cell, 0] & TERM_MASK, cells[cell, 1]
        sort = sorts[term]
        if sort == 3:
            continue
        begin, end = 0, 1
        how = BY_FLOAT if cells[cell, 0] >= FLOAT_FLAG else BY_INT
        if sort == 1:
            begin, end, how = hit_offsets[value], hit_offsets[value + 1], BY_TEST
        if count + 2 * (end - begin) > len(probes):
            return -1
        for place in range(begin, end):
            key = key_of(term, hits[place] if sort == 1 else value, how)
            if accesses & UNTYPED:
                probes[count] = key
                count += 1
            if accesses & TYPED and typed:
                probes[count] = key ^ typed
                count += 1
    return count


@kernel
def index_match(
    offsets,
    cells,
    begin,
    table,
    masks,
    arena,
    bloom,
    state,
    rows,
    sorts,
    at,
    texts,
    bits,
    found,
    wanted,
    interfaces,
    counts,
):
    """Look the events' signatures and values up, and verify what stands in the buckets.

    ``sorts`` int64[terms]: 1 where values are texts, 3 for types; ``at``: scratch of -1, as long.
    Gives the event where ``found`` had no more room, and its rows.
    """
    hit_offsets, hits, ranks, test_ranks = texts
    size = 0
    probes = np.empty(PROBES, np.int64)
    depths = np.empty(SIGNATURE_MAX, np.int64)
    keys = np.empty(SIGNATURE_MAX, np.int64)
    for event in range(begin, len(offsets) - 1):
        kept, left = size, interfaces
        first, last = offsets[event], offsets[event + 1]
        mask = typed = 0
        for cell in range(first, last):
            term = cells[cell, 0] & TERM_MASK
            at[term] = cell
            mask |= bit_of(term)
            if sorts[term] == 3:
                typed = mix(~term)
        count = signature_probes(cells, first, last, bloom, probes, depths, keys, counts)
        if count >= 0 and state[ACCESSES]:
            count = access_probes(
                cells, first, last, sorts, typed, state[ACCESSES], hit_offsets, hits, probes, count
            )
        counts[PROBED] += max(count, 0)
        for number in range(count):
            probes[number] = place_of(table, probes[number])
        absent = ~mask
        for number in range(len(table) if count < 0 else count):
            place = number if count < 0 else probes[number]
            start = table[place, START]
            for entry in range(start, start + table[place, COUNT]):
                if masks[entry] & absent:
                    continue
                packed = arena[entry, 1]
                interface = packed & TERM_MASK
                known = bits[event, interface >> 6] & (np.int64(1) << (interface & 63))
                if known and not wanted:
                    continue
                counts[VERIFIED] += 1
                row = arena[entry, 0]
                end = row + (packed >> 32)
                while row < end:
                    word = rows[row, 0]
                    cell = at[word & TERM_MASK]
                    if cell < 0 or not holds(
                        word,
                        rows[row, 1],
                        cells[cell, 0],
                        cells[cell, 1],
                        hit_offsets,
                        hits,
                        ranks,
                        test_ranks,
                    ):
                        break
                    row += 1
                if row == end:
                    left -= known == 0
                    size = hit(event, arena[entry, 2], interface, bits, found, size, wanted)
            if left == 0 and not wanted:
                break
        for cell in range(first, last):
            at[cells[cell, 0] & TERM_MASK] = -1
        if size > len(found):
            return event, kept
    return len(offsets) - 1, size

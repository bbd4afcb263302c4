"""The loops of matching, compiled once: filters are data to them.

Numba's cache does not notice that a called kernel in another file has changed, so all kernels
that call each other stand in this one.

A filter is a run of *rows*, int64[2] each: a word that says what is asked, and the operand. The
word is ``term | relations << 32 | how << 36``: ``relations`` are those of value to operand
(LESS, SAME, GREATER, APART) that satisfy the constraint, ``how`` says how the relation is found.
An event is a run of cells (:class:`matcher.vocabulary.EncodedEvents`).

Lists that grow are *segments* of an arena, of a power of two of rows each; a segment that is left
goes to a list of free ones of its size, linked through the first number of each.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LESS, SAME, GREATER, APART = 1, 2, 4, 8
"""The relations; APART is that of NaN to all, and of a text to a test that it fails."""
BY_INT, BY_FLOAT, BY_TEST, BY_RANK, BY_PRESENCE = 0, 1, 2, 3, 4
"""How a relation is found: against an int, a float, a test, a test of order, or not at all."""
TERM_MASK = 0xFFFFFFFF
FLOAT_FLAG = 1 << 32
"""Set in a cell's first word when its value is a float."""

TOP, KEYS, LEARNT, ACCESSES, SIGNED = 0, 1, 2, 3, 4
FREE = 8
STATE = FREE + 40
"""Places of an index's state: arena rows in use, keys in the table, prefixes in the Bloom filter,
which access predicates there are (UNTYPED, TYPED), filters ever put under their signatures, and
the first free segments by size."""
UNTYPED, TYPED = 1, 2
HASH, START, COUNT, ROOM = 0, 1, 2, 3
"""Columns of a table of buckets; ROOM 0 marks an unused place."""
VISITED, PROBED, VERIFIED = 0, 1, 2
"""Places of the counts that a call of ``match`` gives: subsets, probes and candidates."""
BLOOM_BITS = 8
"""Bits of the Bloom filter, at least, for each prefix of a signature that it learns."""
SIGNATURE_MAX = 8
"""Terms of a filter, the rarest ones, that its signature is made of: it bounds the walk's depth."""
WALK_MAX = 2**16
"""Subsets of an event's terms that may be visited; beyond them it costs less to verify every
filter, and so beyond PROBES keys."""
END = 0x5851F42D4C957F2D
"""What tells the hash of a whole signature from that of a prefix, in the Bloom filter."""
PROBES = 4_096
"""Keys that an event may look up. All are hashed before the first is, so that misses overlap."""


@njit(cache=True, nogil=True, inline="always")
def mix(number):
    """The finishing step of SplitMix64 (public domain, S. Vigna)."""
    word = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(word ^ (word >> np.uint64(31)))


@njit(cache=True, nogil=True, inline="always")
def key_of(term, value, how):
    """The hash of an equality or a test on a term."""
    return mix(mix(term * 8 + how + 1) ^ value)


@njit(cache=True, nogil=True, inline="always")
def bit_of(term):
    """The bit of a term in masks of terms."""
    return np.int64(1) << (mix(term) & 63)


# --- events and constraints ---------------------------------------------------------------------


@njit(cache=True, nogil=True)
def encode(offsets, names, kinds, values, terms, texts, types, ranks):
    """Events in a vocabulary's numbers, cells in the order of ranks."""
    count = len(offsets) - 1
    floats = values.view(np.float64)
    encoded = np.empty((len(names) + count, 2), np.int64)
    encoded_offsets = np.zeros(count + 1, np.int64)
    end = 0
    for event in range(count):
        first = end
        if types[event] >= 0:
            end = placed(encoded, first, end, types[event], 0, ranks)
        for cell in range(offsets[event], offsets[event + 1]):
            kind = kinds[cell]
            term = terms[names[cell], 1 if kind == 3 else 2 if kind == 2 else 0]
            if term < 0:
                continue
            value = values[cell]
            if kind == 3:
                value = texts[value]
            elif kind == 1:
                number = floats[cell]
                if -9223372036854775808.0 <= number < 9223372036854775808.0:
                    whole = np.int64(number)
                    if np.float64(whole) == number:
                        value = whole
                    else:
                        term |= FLOAT_FLAG
                else:
                    term |= FLOAT_FLAG
            end = placed(encoded, first, end, term, value, ranks)
        encoded_offsets[event + 1] = end
    return encoded_offsets, encoded[:end].copy()


@njit(cache=True, nogil=True, inline="always")
def placed(encoded, first, end, term, value, ranks):
    """Insert a cell at its rank among those of its event."""
    rank = ranks[term & TERM_MASK]
    place = end
    while place > first and ranks[encoded[place - 1, 0] & TERM_MASK] > rank:
        encoded[place, 0] = encoded[place - 1, 0]
        encoded[place, 1] = encoded[place - 1, 1]
        place -= 1
    encoded[place, 0] = term
    encoded[place, 1] = value
    return end + 1


@njit(cache=True, nogil=True, inline="always")
def order_of(left, right):
    """The relation of two numbers of one kind."""
    if left < right:
        return LESS
    if left > right:
        return GREATER
    return SAME if left == right else APART


@njit(cache=True, nogil=True)
def order_of_float(number, whole):
    """The relation of a fraction, or of what is beyond 64 bits, or NaN, to an int; exact."""
    if np.isnan(number):
        return APART
    if number >= 9223372036854775808.0:
        return GREATER
    if number < -9223372036854775808.0:
        return LESS
    # A fraction lies within 2**52, where its floor is an exact int.
    return GREATER if np.int64(np.floor(number)) >= whole else LESS


@njit(cache=True, nogil=True)
def order_of_numbers(is_float, value, operand_is_float, operand):
    """The relation of two numbers of which one at least is a float."""
    if is_float and operand_is_float:
        return order_of(np.int64(value).view(np.float64), np.int64(operand).view(np.float64))
    if is_float:
        return order_of_float(np.int64(value).view(np.float64), operand)
    order = order_of_float(np.int64(operand).view(np.float64), value)
    return LESS if order == GREATER else GREATER


@njit(cache=True, nogil=True)
def passes(hits, first, last, test):
    """Whether a test is among the ascending ones at ``first:last``."""
    while last - first > 8:
        middle = (first + last) >> 1
        if hits[middle] <= test:
            first = middle
        else:
            last = middle
    while first < last and hits[first] != test:
        first += 1
    return first < last


@njit(cache=True, nogil=True, inline="always")
def holds(word, operand, term, value, hit_offsets, hits, ranks, test_ranks):
    """Whether a cell of the row's own term satisfies the row."""
    how = word >> 36
    if how == BY_INT and term < FLOAT_FLAG:
        relation = order_of(value, operand)
    elif how <= BY_FLOAT:
        relation = order_of_numbers(term >= FLOAT_FLAG, value, how == BY_FLOAT, operand)
    elif how == BY_TEST:
        hit = passes(hits, hit_offsets[value], hit_offsets[value + 1], operand)
        relation = SAME if hit else APART
    elif how == BY_RANK:
        relation = order_of(ranks[value], test_ranks[operand])
    else:
        relation = SAME
    return (word >> 32) & relation != 0


# --- segments of an arena -----------------------------------------------------------------------


@njit(cache=True, nogil=True)
def segment(arena, state, log_room):
    """The start of a free segment of ``2**log_room`` rows, or -1 when the arena is too small."""
    start = state[FREE + log_room]
    if start >= 0:
        state[FREE + log_room] = arena[start, 0]
        return start
    start = state[TOP]
    if start + (1 << log_room) > len(arena):
        return -1
    state[TOP] += 1 << log_room
    return start


@njit(cache=True, nogil=True)
def log_of(room):
    """The exponent of a power of two."""
    log = 0
    while 1 << log < room:
        log += 1
    return log


@njit(cache=True, nogil=True)
def append(table, place, arena, state):
    """Room for one more row in a list; its place in the arena, or -1 when that is too small."""
    count, room = table[place, COUNT], table[place, ROOM]
    if count == room or table[place, START] < 0:
        log = 0 if table[place, START] < 0 else log_of(room) + 1
        start = segment(arena, state, log)
        if start < 0:
            return -1
        if table[place, START] >= 0:
            old = table[place, START]
            for row in range(count):
                arena[start + row] = arena[old + row]
            arena[old, 0] = state[FREE + log - 1]
            state[FREE + log - 1] = old
        table[place, START] = start
        table[place, ROOM] = 1 << log
    table[place, COUNT] = count + 1
    return table[place, START] + count


@njit(cache=True, nogil=True)
def take_out(table, place, arena, column, slot):
    """Remove from a list the row that has ``slot`` in a column; the last row takes its place.

    Gives that place, or -1 where there is no such row.
    """
    start, last = table[place, START], table[place, COUNT] - 1
    for row in range(start, start + last + 1):
        if arena[row, column] == slot:
            arena[row] = arena[start + last]
            table[place, COUNT] = last
            return row
    return -1


# --- PCM, as published (thesis 4.4) -------------------------------------------------------------


@njit(cache=True, nogil=True)
def pcm_insert(lists, list_of_term, arena, state, rows, slot, first):
    """Append a filter's rows, from the ``first`` on, to the lists of their names.

    Returns the number of rows done: fewer than there are when the arena is too small.
    """
    for row in range(first, len(rows)):
        place = append(lists, list_of_term[rows[row, 0] & TERM_MASK], arena, state)
        if place < 0:
            return row
        arena[place, 0] = rows[row, 0]
        arena[place, 1] = rows[row, 1]
        arena[place, 2] = slot
    return len(rows)


@njit(cache=True, nogil=True)
def pcm_insert_all(lists, list_of_term, arena, state, rows, offsets, slots, done):
    """The same for many filters; ``done`` int64[2]: where to begin and, after, where it ended."""
    while done[0] < len(slots):
        first, last = offsets[done[0]], offsets[done[0] + 1]
        done[1] = pcm_insert(
            lists, list_of_term, arena, state, rows[first:last], slots[done[0]], done[1]
        )
        if done[1] < last - first:
            return False
        done[0] += 1
        done[1] = 0
    return True


@njit(cache=True, nogil=True)
def pcm_remove(lists, list_of_term, arena, rows, slot):
    """Take a filter's rows out of the lists of their names."""
    for row in range(len(rows)):
        take_out(lists, list_of_term[rows[row, 0] & TERM_MASK], arena, 2, slot)


@njit(cache=True, nogil=True)
def pcm_match(
    offsets, cells, begin, lists, list_of_term, arena, filters, always, texts, bits, found, wanted
):
    """Select constraints by name, evaluate and count them, event by event.

    ``filters`` int64[slots, 3]: Count, SizeF and the interface's place; ``always``: the slots of
    filters without constraints. Gives the event where ``found`` had no more room, and its rows.
    """
    hit_offsets, hits, ranks, test_ranks = texts
    size = 0
    for event in range(begin, len(offsets) - 1):
        kept = size
        for slot in range(len(filters)):
            filters[slot, 0] = 0
        for slot in always:
            size = hit(event, slot, filters[slot, 2], bits, found, size, wanted)
        for cell in range(offsets[event], offsets[event + 1]):
            term, value = cells[cell, 0], cells[cell, 1]
            name = list_of_term[term & TERM_MASK]
            start = lists[name, START]
            for row in range(start, start + lists[name, COUNT]):
                word = arena[row, 0]
                if word & TERM_MASK != term & TERM_MASK:
                    continue  # the same name, another kind
                if holds(word, arena[row, 1], term, value, hit_offsets, hits, ranks, test_ranks):
                    slot = arena[row, 2]
                    filters[slot, 0] += 1
                    if filters[slot, 0] == filters[slot, 1]:
                        size = hit(event, slot, filters[slot, 2], bits, found, size, wanted)
        if size > len(found):
            return event, kept
    return len(offsets) - 1, size


@njit(cache=True, nogil=True, inline="always")
def hit(event, slot, interface, bits, found, size, wanted):
    """Note that a filter matches an event; the rows of ``found`` wanted so far."""
    bits[event, interface >> 6] |= np.int64(1) << (interface & 63)
    if not wanted:
        return size
    if size < len(found):
        found[size, 0] = event
        found[size, 1] = slot
    return size + 1


# --- the index: signatures and access predicates in one table of buckets ------------------------


@njit(cache=True, nogil=True)
def place_of(table, key):
    """The place of a key in the table, or of the gap where it would stand."""
    mask = len(table) - 1
    place = key & mask
    while table[place, ROOM] and table[place, HASH] != key:
        place = (place + 1) & mask
    return place


@njit(cache=True, nogil=True, inline="always")
def in_bloom(bloom, number):
    """Whether a hash may have been given to a Bloom filter; its length is a power of two."""
    word = bloom[(number >> 6) & (len(bloom) - 1)]
    bits = (np.int64(1) << (number & 63)) | (np.int64(1) << ((number >> 40) & 63))
    return word & bits == bits


@njit(cache=True, nogil=True)
def to_bloom(bloom, number):
    """Give a hash to a Bloom filter."""
    bits = (np.int64(1) << (number & 63)) | (np.int64(1) << ((number >> 40) & 63))
    bloom[(number >> 6) & (len(bloom) - 1)] |= bits


@njit(cache=True, nogil=True)
def type_hash(rows):
    """What a filter's type adds to its keys; 0 for one without type."""
    for row in range(len(rows)):
        if rows[row, 0] >> 36 == BY_PRESENCE:
            return mix(~(rows[row, 0] & TERM_MASK))
    return 0


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def index_remove(table, masks, arena, keys, slot):
    """Take a filter out of its bucket; the bucket stays, for filters to come."""
    place = place_of(table, keys[slot])
    row = take_out(table, place, arena, 2, slot)
    masks[row] = masks[table[place, START] + table[place, COUNT]]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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

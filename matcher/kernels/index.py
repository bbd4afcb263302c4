"""The index: how filters enter and leave it, and how events are looked up (matcher.indexed)."""

from __future__ import annotations

import numpy as np

from matcher.kernels.buckets import (
    bit_of,
    count_of,
    entry_for,
    first_of,
    log_of_span,
    place_of,
    take_entry,
)
from matcher.kernels.compiled import inlined, kernel, making
from matcher.kernels.grouping import groupable, type_hash
from matcher.kernels.groups import group_match
from matcher.kernels.hashing import key_of, mix
from matcher.kernels.layout import (
    BATCH,
    BLOOM_BITS,
    BY_FLOAT,
    BY_INT,
    BY_RANK,
    BY_TEST,
    CANDIDATES,
    FLOAT_FLAG,
    FULL,
    GROUP_MAX,
    HAS_GROUPS,
    HASH,
    KEYS,
    LEARNT,
    LONGEST,
    MASK,
    NEXT,
    PROBED,
    PROBES,
    PROBING,
    SAME,
    SIGNATURE_MAX,
    SIGNED,
    SPAN,
    TERM_MASK,
    TEXT_SORT,
    TYPE_SORT,
    TYPED,
    UNTYPED,
    VERIFIED,
    WAITING,
)
from matcher.kernels.prefetch import prefetch
from matcher.kernels.relations import holds
from matcher.kernels.results import hit
from matcher.kernels.signatures import signature_key, signature_probes

_DEPTHS = 2 * PROBES + CANDIDATES
_KEYS = _DEPTHS + SIGNATURE_MAX
_PLAY = _KEYS + SIGNATURE_MAX
_OWN = _PLAY + GROUP_MAX // 64
WORK = _OWN + GROUP_MAX // 64
"""Words of scratch that matching needs."""


@kernel
def access_key(table, rows, typed):
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
        place = place_of(table, key)
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
    table, masks, arena, bloom, state, rows, filters, keys, slots, ranks, by_access, longest, begin
):
    """Put filters into the index, from number ``begin`` on, noting the key of each.

    ``longest``: how many terms a signature has at most. Returns how many are in:
    fewer than there are when table, arena or Bloom filter are full. ``state[FULL]`` is the last
    bucket, plus one, whose segment was full then.
    """
    order = np.empty(SIGNATURE_MAX + 1, np.int64)
    state[FULL] = 0
    for number in range(begin, len(slots)):
        slot = slots[number]
        start, count = filters[slot, 0], filters[slot, 1]
        if 2 * (state[KEYS] + 1) > len(table) or state[LEARNT] * BLOOM_BITS >= 64 * len(bloom):
            return number
        own = rows[start : start + count]
        by_chance(own)
        typed = type_hash(own)
        key, access = access_key(table, own, typed) if by_access else (0, -1)
        is_access, waits, learnt = key != 0, False, 0
        if not is_access and typed != 0 and groupable(own):
            key, waits = typed, True
        elif not is_access:
            state[LONGEST] = max(state[LONGEST], longest)
            key, learnt = signature_key(own, ranks, order, bloom, longest, True)
        place = place_of(table, key)
        is_new = table[place, HASH] == 0 and table[place, SPAN] == 0
        table[place, HASH] = key
        entry = entry_for(table, masks, arena, state, place)
        if entry < 0:
            if is_new:
                table[place, HASH] = 0
            return number
        state[KEYS] += is_new
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


@kernel
def index_remove(table, masks, arena, keys, slot):
    """Take a filter out of its bucket; the bucket stays, for filters to come."""
    take_entry(table, masks, arena, place_of(table, keys[slot]), slot)


@inlined
def access_probes(cells, first, last, sorts, typed, probing, hit_offsets, hits, probes, count):
    """The keys of an event's values and of the tests that its texts pass, after ``count`` others.

    How many there are then, or -1 when there is no room for them.
    """
    for cell in range(first, last):
        term, value = cells[cell, 0] & TERM_MASK, cells[cell, 1]
        sort = sorts[term]
        if sort == TYPE_SORT:
            continue
        begin, end = 0, 1
        how = BY_FLOAT if cells[cell, 0] >= FLOAT_FLAG else BY_INT
        if sort == TEXT_SORT:
            begin, end, how = hit_offsets[value], hit_offsets[value + 1], BY_TEST
        if count + 2 * (end - begin) > len(probes):
            return -1
        for place in range(begin, end):
            key = key_of(term, hits[place] if sort == TEXT_SORT else value, how)
            if probing & UNTYPED:
                probes[count] = key
                count += 1
            if probing & TYPED and typed:
                probes[count] = key ^ typed
                count += 1
    return count


@inlined
def head_of(heads, key):
    """The place of a key among the heads of chains of groups, or of the gap for it."""
    mask = len(heads) - 1
    place = key & mask
    while heads[place, 0] != key and (heads[place, 0] or heads[place, 1]):
        place = (place + 1) & mask
    return place


@inlined
def sieve(candidates, count, arena, rows, event, cells, at, texts, bits, wanted, counts):
    """Keep the candidates whose own row holds and whose interface is not selected yet.

    Their other rows are asked for. Gives how many there are.
    """
    hit_offsets, hits, ranks, test_ranks = texts
    kept = 0
    counts[VERIFIED] += count
    for number in range(count):
        entry = candidates[number]
        interface = arena[entry, 3] & TERM_MASK
        if not wanted and bits[event, interface >> 6] >> (interface & 63) & 1:
            continue
        run = arena[entry, 2]
        if run & TERM_MASK:
            word, operand = arena[entry, 0], arena[entry, 1]
            cell = at[word & TERM_MASK]
            if cell < 0 or not holds(
                word, operand, cells[cell, 0], cells[cell, 1], hit_offsets, hits, ranks, test_ranks
            ):
                continue
            prefetch(rows, 2 * (run >> 32))
            prefetch(rows, 2 * (run >> 32) + 8)
        candidates[kept] = entry
        kept += 1
    return kept


@inlined
def verify(
    candidates, count, arena, rows, event, cells, at, texts, bits, found, size, wanted, left
):  # fmt: skip
    """Test whole the filters whose entries are candidates.

    Gives the numbers in ``found`` wanted so far, and how many interfaces are left.
    """
    hit_offsets, hits, ranks, test_ranks = texts
    for number in range(count):
        entry = candidates[number]
        packed = arena[entry, 3]
        interface = packed & TERM_MASK
        known = bits[event, interface >> 6] >> (interface & 63) & 1
        if known and not wanted:
            continue
        run = arena[entry, 2]
        row, end = run >> 32, (run >> 32) + (run & TERM_MASK)
        while row < end:
            word = rows[row, 0]
            cell = at[word & TERM_MASK]
            if cell < 0 or not holds(
                word, rows[row, 1], cells[cell, 0], cells[cell, 1],
                hit_offsets, hits, ranks, test_ranks,
            ):  # fmt: skip
                break
            row += 1
        if row == end:
            left -= 1 - known
            size = hit(event, packed >> 32, interface, bits, found, size, wanted)
    return size, left


@inlined
def match_groups(
    probes, spans, count, heads, blocks, small, wide, groups, absent, event, cells, at,
    texts, play, own, bits, found, size, wanted, left, counts,
):  # fmt: skip
    """Match the groups of keys; gives the same as ``verify``."""
    for number in range(count):
        if not spans[number] & HAS_GROUPS or (left == 0 and not wanted):
            continue
        group = heads[head_of(heads, probes[number]), 1] - 1
        while group >= 0:
            if not groups[group, MASK] & absent:
                size, left = group_match(
                    blocks, small, wide, groups, group, event, cells, at, texts, play, own,
                    bits, found, size, wanted, left, counts,
                )  # fmt: skip
            group = groups[group, NEXT]
    return size, left


@inlined
def match_buckets(
    spans, count, candidates, masks, absent, arena, rows, event, cells, at, texts,
    bits, found, size, wanted, left, counts,
):  # fmt: skip
    """Gather from buckets what the masks leave, and verify it; gives the same as ``verify``."""
    gathered = number = entry = end = 0
    while left or wanted:
        while entry == end and number < count:
            entry = first_of(spans[number])
            end = entry + count_of(spans[number])
            number += 1
        stop = min(end, entry + CANDIDATES - gathered)
        for one in range(entry, stop):
            candidates[gathered] = one
            gathered += masks[one] & absent == 0
        entry = stop
        if gathered >= BATCH or (entry == end and number == count):
            for candidate in range(gathered):
                prefetch(arena, 4 * candidates[candidate])
            kept = sieve(
                candidates, gathered, arena, rows, event, cells, at, texts, bits, wanted, counts
            )
            size, left = verify(
                candidates, kept, arena, rows, event, cells, at, texts,
                bits, found, size, wanted, left,
            )  # fmt: skip
            gathered = 0
            if entry == end and number == count:
                break
    return size, left


@kernel
def index_match(
    offsets, cells, begin, texts, table, masks, arena, bloom, state, rows, sorts, at, work,
    blocks, groups, heads, bits, found, ends, wanted, interfaces, counts,
):  # fmt: skip
    """Look the events' signatures and values up, and verify what stands in the buckets.

    ``at``: scratch of -1 by term; ``work``: scratch of WORK. Gives the event where
    ``found`` had no more room, and how many numbers are in it; ``ends`` says up to where they are
    of each event.
    """
    size = 0
    probes, spans = work[:PROBES], work[PROBES : 2 * PROBES]
    candidates, depths, keys = work[2 * PROBES : _DEPTHS], work[_DEPTHS:_KEYS], work[_KEYS:_PLAY]
    play, own = work[_PLAY:_OWN], work[_OWN:WORK]
    small, wide = blocks.view(np.uint16), blocks.view(np.uint32)
    for event in range(begin, len(offsets) - 1):
        kept, left = size, interfaces
        first, last = offsets[event], offsets[event + 1]
        mask = typed = np.int64(0)
        for cell in range(first, last):
            term = cells[cell, 0] & TERM_MASK
            at[term] = cell
            mask |= bit_of(term)
            if sorts[term] == TYPE_SORT:
                typed = mix(~term)
        absent = ~mask
        # An event's type first, and groups before buckets: what they select need not be looked
        # for any more.
        for stage in range(2):
            every = False
            if stage == 0:
                if not (typed and state[PROBING] & WAITING):
                    continue
                probes[0], count = typed, 1
            else:
                if left == 0 and not wanted:
                    break
                count = signature_probes(
                    cells, first, last, bloom, state[LONGEST], probes, depths, keys, counts
                )
                if count >= 0 and state[PROBING]:
                    count = access_probes(
                        cells, first, last, sorts, typed, state[PROBING], texts[0], texts[1],
                        probes, count,
                    )  # fmt: skip
                every = count < 0
                if every:
                    count = len(table)
            counts[PROBED] += count
            for start in range(0, count, PROBES):
                part = min(count - start, PROBES)
                if not every:
                    for number in range(part):
                        prefetch(table, 2 * (probes[number] & (len(table) - 1)))
                for number in range(part):
                    place = start + number
                    if every:
                        probes[number] = table[place, HASH]
                    else:
                        place = place_of(table, probes[number])
                    spans[number] = table[place, SPAN]
                    prefetch(masks, first_of(spans[number]))
                    if every and probes[number] == typed:
                        spans[number] = 0  # was looked up
                size, left = match_groups(
                    probes, spans, part, heads, blocks, small, wide, groups, absent, event, cells,
                    at, texts, play, own, bits, found, size, wanted, left, counts,
                )  # fmt: skip
                size, left = match_buckets(
                    spans, part, candidates, masks, absent, arena, rows, event, cells, at, texts,
                    bits, found, size, wanted, left, counts,
                )  # fmt: skip
        for cell in range(first, last):
            at[cells[cell, 0] & TERM_MASK] = -1
        if size > len(found):
            return event, kept
        if wanted:
            ends[event] = size
    return len(offsets) - 1, size

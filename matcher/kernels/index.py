"""The index: how events are looked up in it (:mod:`matcher.methods.indexed`)."""

from __future__ import annotations

import numpy as np

from matcher.kernels.buckets import (
    bit_of,
    count_of,
    first_of,
    home_of,
    place_of,
)
from matcher.kernels.compiled import inlined, kernel
from matcher.kernels.groups import group_match
from matcher.kernels.hashing import key_of, mix
from matcher.kernels.layout import (
    BATCH,
    BY_FLOAT,
    BY_INT,
    BY_TEST,
    CANDIDATES,
    FLOAT_FLAG,
    GROUP_BITS_MAX,
    GROUP_TERMS_MAX,
    HAS_GROUPS,
    HASH,
    LONGEST,
    MASK,
    NEXT,
    PROBED,
    PROBES,
    PROBING,
    SIGNATURE_MAX,
    SPAN,
    TERM_MASK,
    TEXT_SORT,
    TYPE_SORT,
    TYPED,
    UNTYPED,
    VERIFIED,
    WAITING,
)
from matcher.kernels.relations import holds
from matcher.kernels.results import hit
from matcher.kernels.rows import copy_row
from matcher.kernels.signatures import signature_probes
from matcher.kernels.views import (
    arena_in,
    blocks_in,
    bloom_in,
    groups_in,
    heads_in,
    identifiers_in,
    masks_in,
    parts_in,
    rows_in,
    sorts_in,
    state_in,
    table_in,
)
from runtime.instructions.prefetch import prefetch

_DEPTHS = 2 * PROBES + CANDIDATES
_KEYS = _DEPTHS + SIGNATURE_MAX
_PLAY = _KEYS + SIGNATURE_MAX
_OWN = _PLAY + GROUP_BITS_MAX // 64
_REACHED = _OWN + GROUP_BITS_MAX // 64
WORK = _REACHED + GROUP_TERMS_MAX
"""Words of scratch that matching needs."""


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


@kernel
def move_heads(heads, larger):
    """Move the heads of chains that have groups to a larger table; how many there are."""
    moved = 0
    for place in range(len(heads)):
        if heads[place, 1]:
            copy_row(heads, place, larger, head_of(larger, heads[place, 0]))
            moved += 1
    return moved


@inlined
def sieve(
    candidates, count, arena, rows, identifiers, event, cells, at, texts, bits, wanted, counts
):  # fmt: skip
    """Keep the candidates whose own row holds and whose interface is not selected yet.

    Their other rows are asked for, and their identifiers, if ``wanted``. Gives how many there are.
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
            prefetch(
                rows, 2 * ((run >> 32) + (run & TERM_MASK)) - 1
            )  # few take more than two lines
        if wanted:
            prefetch(identifiers, arena[entry, 3] >> 32)
        candidates[kept] = entry
        kept += 1
    return kept


@inlined
def verify(
    candidates, count, arena, rows, identifiers, event, cells, at, texts, bits, found, size,
    wanted, left,
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
            identifier = identifiers[packed >> 32] if wanted else 0
            size = hit(event, identifier, interface, bits, found, size, wanted)
    return size, left


@inlined
def match_groups(
    probes, spans, count, heads, blocks, small, wide, groups, absent, event, cells, at,
    texts, play, own, reached, bits, found, size, wanted, left, counts,
):  # fmt: skip
    """Match the groups of keys; gives the same as ``verify``."""
    for number in range(count):
        if not spans[number] & HAS_GROUPS or (left == 0 and not wanted):
            continue
        group = heads[head_of(heads, probes[number]), 1] - 1
        while group >= 0 and (left or wanted):
            if not groups[group, MASK] & absent:
                size, left = group_match(
                    blocks, small, wide, groups, group, event, cells, at, texts, play, own,
                    reached, bits, found, size, wanted, left, counts,
                )  # fmt: skip
            group = groups[group, NEXT]
    return size, left


@inlined
def match_buckets(
    spans, count, candidates, masks, absent, arena, rows, identifiers, event, cells, at, texts,
    bits, found, size, wanted, left, counts,
):  # fmt: skip
    """Gather from buckets what the masks leave, and verify it; gives the same as ``verify``."""
    gathered = number = entry = end = 0
    enough = CANDIDATES if wanted else BATCH  # none that is wanted can be spared
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
        if gathered >= enough or (entry == end and number == count):
            for candidate in range(gathered):
                prefetch(arena, 4 * candidates[candidate])
            kept = sieve(
                candidates, gathered, arena, rows, identifiers, event, cells, at, texts, bits,
                wanted, counts,
            )  # fmt: skip
            size, left = verify(
                candidates, kept, arena, rows, identifiers, event, cells, at, texts,
                bits, found, size, wanted, left,
            )  # fmt: skip
            gathered = 0
            if entry == end and number == count:
                break
    return size, left


@kernel
def index_match(
    words, interfaces, offsets, cells, begin, hit_offsets, hits, ranks, test_ranks, scratch, bits,
    found, ends, wanted, counts,
):  # fmt: skip
    """Look the events' signatures and values up, and verify what stands in the buckets.

    ``words``: of the index's arrays (:mod:`matcher.kernels.views`); ``offsets`` to ``test_ranks``:
    the events; ``scratch``: of WORK, and behind it -1 by term. Gives the event where ``found`` had
    no more room, and how many numbers are in it; ``ends`` says up to where they are of each event.
    """
    texts = (hit_offsets, hits, ranks, test_ranks)
    table, parts, masks, arena = table_in(words), parts_in(words), masks_in(words), arena_in(words)
    bloom, state, rows, sorts = bloom_in(words), state_in(words), rows_in(words), sorts_in(words)
    blocks, groups, heads = blocks_in(words), groups_in(words), heads_in(words)
    identifiers = identifiers_in(words)
    work, at = scratch[:WORK], scratch[WORK:]
    size = 0
    probes, spans = work[:PROBES], work[PROBES : 2 * PROBES]
    candidates, depths, keys = work[2 * PROBES : _DEPTHS], work[_DEPTHS:_KEYS], work[_KEYS:_PLAY]
    play, own, reached = work[_PLAY:_OWN], work[_OWN:_REACHED], work[_REACHED:WORK]
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
                        prefetch(table, 2 * home_of(parts, probes[number]))
                for number in range(part):
                    place = start + number
                    if every:
                        probes[number] = table[place, HASH]
                    else:
                        place = place_of(table, parts, probes[number])
                    spans[number] = table[place, SPAN]
                    if stage == 0:
                        spans[number] |= HAS_GROUPS  # it may have no bucket
                    prefetch(masks, first_of(spans[number]))
                    if wanted:
                        prefetch(arena, 4 * first_of(spans[number]))
                    if every and probes[number] == typed:
                        spans[number] = 0  # was looked up
                size, left = match_groups(
                    probes, spans, part, heads, blocks, small, wide, groups, absent, event, cells,
                    at, texts, play, own, reached, bits, found, size, wanted, left, counts,
                )  # fmt: skip
                size, left = match_buckets(
                    spans, part, candidates, masks, absent, arena, rows, identifiers, event,
                    cells, at, texts, bits, found, size, wanted, left, counts,
                )  # fmt: skip
        for cell in range(first, last):
            at[cells[cell, 0] & TERM_MASK] = -1
        if size > len(found):
            return event, kept
        if wanted:
            ends[event] = size
    return len(offsets) - 1, size

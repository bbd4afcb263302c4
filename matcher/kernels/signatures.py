"""Signatures: the hash of a filter's rarest terms, and the subsets of an event's terms.

A set's hash is the sum of its terms' hashes, so that it grows with the walk: terms are added in
the order of their ranks, rarest first, in filters and in events alike. A Bloom filter knows the
prefixes of all signatures, and tells whole ones from others.
"""

from __future__ import annotations

import numpy as np

from matcher.kernels.buckets import count_of, first_of
from matcher.kernels.compiled import inlined, kernel, making
from matcher.kernels.hashing import in_bloom, mix, to_bloom
from matcher.kernels.layout import (
    END,
    HASH,
    LEARNT,
    PAIRS_OF,
    SIGNATURE_MAX,
    SPAN,
    TERM_MASK,
    VISITED,
    WALK_MAX,
)
from matcher.kernels.prefetch import prefetch


@kernel
def signature_key(rows, ranks, order, bloom, longest, learn):
    """The hash of the filter's rarest terms, ``longest`` at most, and how many prefixes it has.

    With ``learn``, all of these go to ``bloom``. ``order`` is scratch of SIGNATURE_MAX + 1.
    """
    count = 0
    for row in range(len(rows)):
        term = rows[row, 0] & TERM_MASK
        place = count
        while place > 0 and ranks[order[place - 1]] > ranks[term]:
            place -= 1
        if (place > 0 and order[place - 1] == term) or place == longest:
            continue
        for other in range(count, place, -1):
            order[other] = order[other - 1]
        order[place] = term
        count = min(count + 1, longest)
    key = 1
    for place in range(count):
        key += mix(order[place])
        if learn:
            to_bloom(bloom, key)
    if learn:
        to_bloom(bloom, key ^ END)
    return key, count + 1


@making
def learn_all(bloom, state, table, arena, rows, ranks):
    """Teach a new Bloom filter the prefixes of all filters that stand under their signatures."""
    state[LEARNT] = 0
    order = np.empty(SIGNATURE_MAX + 1, np.int64)
    for place in range(len(table)):
        span = table[place, SPAN]
        for entry in range(first_of(span), first_of(span) + count_of(span)):
            learn_one(bloom, state, table[place, HASH], arena[entry, 2], rows, ranks, order)


@kernel
def learn_one(bloom, state, key, run, rows, ranks, order):
    """Teach it the prefixes of one filter, if its signature, of any length, is its key."""
    own = rows[run >> 32 : (run >> 32) + (run & TERM_MASK)]
    for longest in range(SIGNATURE_MAX + 1):
        if signature_key(own, ranks, order, bloom, longest, False)[0] == key:
            state[LEARNT] += signature_key(own, ranks, order, bloom, longest, True)[1]
            return


@inlined
def signature_probes(cells, first, last, bloom, longest, probes, depths, keys, counts):
    """The signatures that filters may have among the subsets of an event's terms.

    How many there are, or -1 when that would take too long to say.
    """
    for one in range(first, min(last, first + PAIRS_OF)):
        hashed = 1 + mix(cells[one, 0] & TERM_MASK)
        for other in range(one + 1, min(last, first + PAIRS_OF)):
            pair = hashed + mix(cells[other, 0] & TERM_MASK)
            prefetch(bloom, (pair >> 6) & (len(bloom) - 1))
    probes[0] = key = 1
    count, depth, cell = int(in_bloom(bloom, key ^ END)), 0, first
    for visited in range(WALK_MAX):
        while cell == last or depth == longest:
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

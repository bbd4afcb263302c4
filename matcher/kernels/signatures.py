"""Signatures: the hash of a filter's rarest terms, and the subsets of an event's terms.

A set's hash is the sum of its terms' hashes, so that it grows with the walk: terms are added in
the order of their ranks, rarest first, in filters and in events alike. A Bloom filter knows the
prefixes of all signatures, and tells whole ones from others.
"""

from __future__ import annotations

import numpy as np

from matcher.kernels.compiled import inlined, kernel, making
from matcher.kernels.hashing import in_bloom, mix, to_bloom
from matcher.kernels.layout import (
    END,
    PAIRS_OF,
    SIGNATURE_MAX,
    TERM_MASK,
    VISITED,
    WALK_MAX,
)
from runtime.instructions.prefetch import prefetch


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
def learn_some(bloom, keys, filters, rows, ranks, begin, end):
    """Teach a Bloom filter the prefixes of the filters in slots ``begin`` to ``end``, where their
    signatures, of any length, are their keys; how many prefixes these are.
    """
    order = np.empty(SIGNATURE_MAX + 1, np.int64)
    learnt = 0
    for slot in range(begin, end):
        start, count = filters[slot, 0], filters[slot, 1]
        if count < 0 or keys[slot] == 0:
            continue  # there is no filter now, or it is not in the index
        own = rows[start : start + count]
        for longest in range(SIGNATURE_MAX + 1):
            key, prefixes = signature_key(own, ranks, order, bloom, longest, False)
            if key == keys[slot]:
                learnt += signature_key(own, ranks, order, bloom, longest, True)[1]
                break
            if prefixes <= longest:
                break  # it has no more terms
    return learnt


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

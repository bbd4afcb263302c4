"""PCM on several threads as published (thesis 4.4.2): they share out constraints, and count by
atomic operations.
"""

from __future__ import annotations

from matcher.kernels.barrier import wait_for_all
from matcher.kernels.compiled import inlined, kernel
from matcher.kernels.layout import COUNT, START, TERM_MASK
from matcher.kernels.relations import holds
from runtime.instructions.atomics import add, load, place_of

WORD = 64


@inlined
def share(count, thread, threads):
    """Where a thread's part of so many begins, as a static *parallel for* has it."""
    return count * thread // threads


@inlined
def select(slot, interface, interfaces, found, total, wanted):
    """Note that a filter matches."""
    interfaces[interface] = 1
    if wanted:
        place = add(place_of(total, 0), 1)
        if place < len(found):
            found[place] = slot


@kernel
def ocm_match(
    thread,
    threads,
    barrier,
    total,
    offsets,
    cells,
    begin,
    lists,
    list_of_term,
    arena,
    filters,
    always,
    texts,
    interfaces,
    bits,
    found,
    ends,
    wanted,
):
    """Match as one of the threads; all call it at once, and give the same as ``pcm_match``.

    Event by event: each resets its part of Count and Interfaces; evaluates its part of each row of
    constraints; and, when all have done so, packs its part of Interfaces (bytes, WORD for each
    word of ``bits``). ``total`` int64[1]: how many filters were found.
    """
    hit_offsets, hits, ranks, test_ranks = texts
    words, width = bits.shape[1], filters.shape[1]
    first_word, last_word = share(words, thread, threads), share(words, thread + 1, threads)
    first_slot = share(len(filters), thread, threads)
    last_slot = share(len(filters), thread + 1, threads)
    size = 0
    for event in range(begin, len(offsets) - 1):
        kept = size
        for slot in range(first_slot, last_slot):
            filters[slot, 0] = 0
        for place in range(first_word * WORD, last_word * WORD):
            interfaces[place] = 0
        wait_for_all(barrier, threads)
        if thread == 0:
            for slot in always:
                select(slot, filters[slot, 2], interfaces, found, total, wanted)
        for cell in range(offsets[event], offsets[event + 1]):
            term, value = cells[cell, 0], cells[cell, 1]
            name = list_of_term[term & TERM_MASK]
            start, count = lists[name, START], lists[name, COUNT]
            last = start + share(count, thread + 1, threads)
            for row in range(start + share(count, thread, threads), last):
                word = arena[row, 0]
                if word & TERM_MASK != term & TERM_MASK:
                    continue  # the same name, another kind
                if holds(word, arena[row, 1], term, value, hit_offsets, hits, ranks, test_ranks):
                    slot = arena[row, 2]
                    if add(place_of(filters, slot * width), 1) + 1 == filters[slot, 1]:
                        select(slot, filters[slot, 2], interfaces, found, total, wanted)
        wait_for_all(barrier, threads)
        size = load(place_of(total, 0))
        if size > len(found):
            return event, kept
        for word in range(first_word, last_word):
            packed = 0
            for bit in range(WORD):
                packed |= (interfaces[word * WORD + bit] & 1) << bit
            bits[event, word] |= packed
        if wanted and thread == 0:
            ends[event] = size
    return len(offsets) - 1, size

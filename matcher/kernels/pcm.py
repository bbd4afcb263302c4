"""Parallel Content Matching as published (thesis 4.4): selection, then evaluation and counting."""

from __future__ import annotations

from matcher.kernels.compiled import kernel
from matcher.kernels.layout import COUNT, START, TERM_MASK
from matcher.kernels.relations import holds
from matcher.kernels.results import hit
from matcher.kernels.segments import append, take_out


@kernel
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


@kernel
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


@kernel
def pcm_remove(lists, list_of_term, arena, rows, slot):
    """Take a filter's rows out of the lists of their names."""
    for row in range(len(rows)):
        take_out(lists, list_of_term[rows[row, 0] & TERM_MASK], arena, 2, slot)


@kernel
def pcm_match(
    offsets,
    cells,
    begin,
    lists,
    list_of_term,
    arena,
    filters,
    always,
    texts,
    bits,
    found,
    ends,
    wanted,
):
    """Select constraints by name, evaluate and count them, event by event.

    ``filters`` int64[slots, 3]: Count, SizeF and the interface's place; ``always``: the slots of
    filters without constraints. Gives the event where ``found`` had no more room, and how
    many numbers are in it; ``ends`` says up to where they are of each event.
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
        if wanted:
            ends[event] = size
    return len(offsets) - 1, size

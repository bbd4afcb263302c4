"""The kernels that the host calls, or that others call by their addresses (``kernels.late``)."""

from __future__ import annotations

from rules.engine.chains.hybrid.chunks import SIZE, free_behind, place_at, share_at
from rules.engine.chains.hybrid.compiled import kernel
from rules.engine.chains.hybrid.layout import (
    CHUNK,
    COUNT,
    FOLLOWING,
    MASK,
    PLACES,
    RING,
    STORED,
    TYPE,
    WIDTH,
    WORKERS,
)
from rules.engine.chains.published import advancing
from rules.engine.chains.published.layout import NODE_TYPE, NODES
from rules.engine.kernels import arrays
from rules.engine.kernels.arena import first_entry
from rules.engine.kernels.arrays import words_at
from rules.engine.kernels.layout import (
    AUTOMATON_BEGINS_ANEW,
    DONE,
    ENTRY_WORDS,
    GROW_ACCEPTED,
    ROW_TIME,
)
from rules.engine.kernels.memory import find_time, row_offset
from runtime.instructions.ticks import ticks


@kernel
def now() -> int:
    """The processor's counter (:mod:`runtime.instructions.ticks`)."""
    return ticks()  # type: ignore[call-arg]


@kernel
def late_detect(state: int, rule: int, row: int, _3: int, _4: int, _5: int) -> int:
    """Note a terminator, with its rule, in ``accepted``, behind how many are noted."""
    noted = arrays.accepted(state)
    at = 1 + 2 * noted[0]
    if at + 2 > len(noted):
        return GROW_ACCEPTED
    noted[at], noted[at + 1] = rule, row
    noted[0] += 1
    return DONE


@kernel
def late_automata(state: int, asked: int, number: int, time: int, _4: int, _5: int) -> int:
    """Nothing, but where an event comes to an instant that workers have taken in: then sequences
    are made again from the stored events (``published.advancing``, Law 1).
    """
    if asked == AUTOMATON_BEGINS_ANEW:
        advancing.begin_anew(state, number, time)
    return DONE


@kernel
def entries_between(state: int, access: int, begin: int, until: int) -> tuple[int, int]:
    """The entries of an access's list that are of a span of time, its end excluded: the first, and
    the one behind the last.
    """
    record = arrays.accesses(state)[access]
    if record.list < 0:
        return 0, 0
    first = find_time(state, record.list, max(begin, record.horizon))
    return first, max(first, find_time(state, record.list, until))


@kernel
def copy_entries(state: int, access: int, first: int, end: int, times: int, rows: int) -> None:
    """Copy the times and the rows of entries to two addresses."""
    heap, to_times, to_rows = arrays.heap(state), words_at(times, SIZE), words_at(rows, SIZE)
    word = first_entry(arrays.lists(state)[arrays.accesses(state)[access].list])
    word += first * ENTRY_WORDS
    for place in range(end - first):
        to_times[place], to_rows[place] = heap[word], heap[word + 1]
        word += ENTRY_WORDS


@kernel
def copy_noted(state: int, rule: int, type_number: int, times: int, rows: int) -> int:
    """Copy the times and the rows of a rule's noted terminators to two addresses: how many."""
    noted, heap, count = arrays.accepted(state), arrays.heap(state), 0
    to_times, to_rows = words_at(times, SIZE), words_at(rows, SIZE)
    for number in range(noted[0]):
        if noted[1 + 2 * number] == rule:
            row = noted[2 + 2 * number]
            to_times[count] = heap[row_offset(state, type_number, row) + ROW_TIME]
            to_rows[count] = row
            count += 1
    return count


@kernel
def note_taken_in(state: int, automaton: int, until: int) -> None:
    """Remember that workers have taken in the events of a rule up to an instant."""
    record, words = arrays.automata(state)[automaton], arrays.published(state)
    record.taken_in = until + 1
    base = record.first_state
    for place in range(words[base + NODES]):
        node = advancing.node_at(state, base, place)
        advancing.note(state, words[node + NODE_TYPE], until)


@kernel
def follow_rings(state: int, block: int) -> None:
    """Tell a pipeline where the rows of its events stand now."""
    words = words_at(block, SIZE)
    for place in range(words[PLACES]):
        base = place_at(place)
        kind = arrays.types(state)[words[base + TYPE]]
        words[base + RING] = kind.offset
        words[base + MASK] = kind.capacity - 1
        words[base + WIDTH] = kind.width


@kernel
def count_complete(block: int) -> int:
    """How many complete sequences workers have."""
    words, count = words_at(block, SIZE), 0
    for worker in range(words[WORKERS]):
        chunk = words[share_at(words[PLACES], worker, words[PLACES]) + STORED]
        while chunk != 0:
            head = words_at(chunk, CHUNK)
            count += head[COUNT]
            chunk = head[FOLLOWING]
    return count


@kernel
def take_complete(block: int, target: int) -> None:
    """Copy the complete sequences that workers have to an address, and free their chunks."""
    words, to, at = words_at(block, SIZE), words_at(target, SIZE), 0
    places = words[PLACES]
    for worker in range(words[WORKERS]):
        share = share_at(places, worker, places)
        chunk = words[share + STORED]
        while chunk != 0:
            head = words_at(chunk, SIZE)
            for word in range(head[COUNT] * places):
                to[at] = head[CHUNK + word]
                at += 1
            chunk = head[FOLLOWING]
        free_behind(block, places, words[share + STORED], 0)
        words[share + STORED] = 0

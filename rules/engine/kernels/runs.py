"""Aggregates over the events of a run (tesla.md X4).

A run is known by its last event, which is bound when the step is taken. So it is found in the list
of what may repeat by walking: one entry on, to see whether it goes on there, then back from its end
as long as neighbours are linked. A walk of the candidates of an iteration asks each pair of
neighbours twice at most, for of the events of one run all but the last are let go at once.

Law: entries count that fit the step, whatever else the match has selected; their order is the
list's, which is that of (time, E4).
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.aggregates import FUNCTIONS, aggregate
from rules.engine.kernels.arena import first_entry
from rules.engine.kernels.compiled import kernel, making
from rules.engine.kernels.emission import note_gone, search, write_cause
from rules.engine.kernels.expressions import run
from rules.engine.kernels.far import is_far, last_in_range, next_in_range
from rules.engine.kernels.layout import ENTRY_WORDS, ROW_TIME
from rules.engine.kernels.memory import find_time, row_offset
from rules.terms import Function

COUNT, FIRST = FUNCTIONS[Function.COUNT], FUNCTIONS[Function.FIRST]


@making
def evaluate_run(state: int, step, number: int, low: int, high: int) -> tuple[int, bool]:  # type: ignore[no-untyped-def]
    """The aggregate of a step over the run that its event ends, in the entries of a list from
    ``low`` to ``high``, the second excluded: a word, and whether it is defined.
    """
    place = end_of_run(state, step, number, low, high)
    if step.function == COUNT and step.program < 0:
        return length_of_run(state, step, number, low, place), True
    words = gather_run(state, step, number, low, place)
    if step.function == FIRST:
        return (words[len(words) - 1] if len(words) else 0), len(words) > 0
    return aggregate(state, step.function, step.kind_of_value, words)


@kernel
def length_of_run(state: int, step, number: int, low: int, place: int) -> int:  # type: ignore[no-untyped-def]
    """How many events the run has that ends at a place, at most as many as are asked for."""
    count = 0
    while place >= low:
        count += 1
        if count == step.most:
            break
        place = before(state, step, number, low, place)
    return count


@making
def gather_run(state: int, step, number: int, low: int, place: int):  # type: ignore[no-untyped-def]
    """The words of what is aggregated of the run that ends at a place, from its end on; those that
    are undefined are left out.
    """
    words = arrays.gathered(state)[:]  # an array like the other one
    if place + 1 - low > len(words):
        words = np.empty(place + 1 - low, np.int64)
    count, values = 0, 0
    while place >= low:
        row = row_at(state, step, number, place)
        count += 1
        arrays.frame(state)[0] = row
        if step.program < 0:
            words[values] = arrays.heap(state)[row + step.offset]
            values += 1
        elif run(state, step.program):
            words[values] = arrays.stack(state)[0]
            values += 1
        if count == step.most:
            break
        place = before(state, step, number, low, place)
    return words[:values]


@kernel
def write_run(state: int, step, rule_number: int, number: int, low: int, high: int) -> None:  # type: ignore[no-untyped-def]
    """Let a rule consume the run that the step's event ends (S11): all but this event, which is a
    cause, become further causes of the composite event that was written last. There is room.
    """
    outlet = arrays.outlets(state)[arrays.rules(state)[rule_number].type]
    heap, count = arrays.heap(state), 0
    start = first_entry(arrays.lists(state)[number])
    place = end_of_run(state, step, number, low, high)
    while place >= low:
        note_gone(state, rule_number, step.type, heap[start + place * ENTRY_WORDS + 1])
        if count > 0:
            write_cause(outlet, outlet.causes, heap, row_at(state, step, number, place))
            outlet.causes += 1
        count += 1
        if count == step.most:
            break
        place = before(state, step, number, low, place)
    offset = outlet.count + outlet.advances
    arrays.words_at(outlet.offsets, offset + 1)[offset] = outlet.causes - outlet.first_cause


@kernel
def end_of_run(state: int, step, number: int, low: int, high: int) -> int:  # type: ignore[no-untyped-def]
    """The place of the entry of the step's event; ``low - 1`` where a run goes on behind it, or it
    is of none. Without entries there may be no list, and ``number`` be of none.
    """
    row = arrays.frame(state)[step.run + 1]
    if low >= high or not is_of_runs(state, step, row):
        return low - 1
    place = max(low, find_time(state, number, arrays.heap(state)[row + ROW_TIME]))
    while place < high and row_at(state, step, number, place) != row:
        place += 1
    if place >= high:
        return low - 1
    behind = next_of_runs(state, step, number, place + 1, high)
    if behind < high and are_linked(state, step, row, row_at(state, step, number, behind)):
        return low - 1
    return place


@kernel
def before(state: int, step, number: int, low: int, place: int) -> int:  # type: ignore[no-untyped-def]
    """The place of the event before that at a place, if it is of its run; else ``low - 1``."""
    row = row_at(state, step, number, place)
    place = last_of_runs(state, step, number, low, place - 1)
    if place >= low and are_linked(state, step, row_at(state, step, number, place), row):
        return place
    return low - 1


@kernel
def next_of_runs(state: int, step, number: int, place: int, high: int) -> int:  # type: ignore[no-untyped-def]
    """The first entry from a place on whose event is of some run; ``high`` if there is none."""
    failed = 0
    while place < high and not is_of_runs(state, step, row_at(state, step, number, place)):
        place += 1
        failed += 1
        if step.ordered >= 0 and is_far(state, failed, high - place):
            place = next_in_range(state, step, number, place, high)
    return place


@kernel
def last_of_runs(state: int, step, number: int, low: int, place: int) -> int:  # type: ignore[no-untyped-def]
    """The last entry up to a place whose event is of some run; ``low - 1`` if there is none."""
    failed = 0
    while place >= low and not is_of_runs(state, step, row_at(state, step, number, place)):
        place -= 1
        failed += 1
        if step.ordered >= 0 and is_far(state, failed, place + 1 - low):
            place = last_in_range(state, step, number, low, place + 1)
    return place


@kernel
def is_of_runs(state: int, step, row: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether an event is of some run: it fits."""
    search(state)
    arrays.frame(state)[0] = row
    return step.residue < 0 or run(state, step.residue)


@kernel
def are_linked(state: int, step, first: int, second: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether two neighbours are of one run."""
    if step.links < 0:
        return True
    arrays.frame(state)[0] = second
    arrays.frame(state)[step.neighbour] = first
    return run(state, step.links)


@kernel
def row_at(state: int, step, number: int, place: int) -> int:  # type: ignore[no-untyped-def]
    """Where the row of an entry of a list stands."""
    entry = first_entry(arrays.lists(state)[number]) + place * ENTRY_WORDS
    return row_offset(state, step.type, arrays.heap(state)[entry + 1])

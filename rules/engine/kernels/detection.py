"""Detection of one rule at one terminator: the walk over its steps (thesis 5.4.2).

The steps stand in the order of the text, each needing only what earlier ones have bound, so the
partial sequences of the thesis need not be stored: the walk goes depth first. A step that fails
sends it back to the nearest earlier multiple selection with a candidate left. Candidates of
``each`` are tried in ascending order, so matches come out in the order of their causes (E4).

Evaluation changes nothing but the scratch and the end of the output. One that the output lacks room
for halts at that match, and goes on there: nothing else runs in between, so the scratch still says
which candidates are bound and which come next.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import first_entry
from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.emission import emit, emit_each, has_room, may_yield, note_run, search
from rules.engine.kernels.expressions import run
from rules.engine.kernels.far import is_far, last_in_range, next_in_range
from rules.engine.kernels.layout import (
    DONE,
    ENTRY_WORDS,
    GROW_OUT,
    GROW_RUNS,
    HALTED,
    LAST_OF_RUN,
    LATE_AGGREGATES,
    LATE_RUNS,
    PASSED,
    POLICY_EACH,
    POLICY_FIRST,
    ROW_TIME,
    RUNS,
    SEARCHES_LEFT,
    TOO_MANY,
)
from rules.engine.kernels.memory import comes_before, find_time, row_offset
from rules.engine.kernels.spans import bounds, earliest, end_of, end_of_span, list_of
from rules.planning.plan import StepKind
from rules.terms import Function

SELECT, NEGATE, TIMED = int(StepKind.SELECT), int(StepKind.NEGATE), int(StepKind.TIMED)
TEST, LET, AGGREGATE = int(StepKind.TEST), int(StepKind.LET), int(StepKind.AGGREGATE)
COUNT = list(Function).index(Function.COUNT)


@part
def is_chosen(state: int, type_number: int, row: int, events: int) -> bool:
    """Whether a row is one of the first ``events`` numbered events."""
    for event in range(events):
        if arrays.chosen(state)[event] == row and arrays.chosen_types(state)[event] == type_number:
            return True
    return False


@kernel
def fits(state: int, step, row: int, since: int) -> bool:  # type: ignore[no-untyped-def]
    """Bind a candidate to the step's event; whether it may be selected."""
    if not search(state):
        return False
    if step.run == 0 and is_chosen(state, step.type, row, step.event):
        return False  # all events of one match are distinct (S1)
    arrays.frame(state)[step.event + 1] = row_offset(state, step.type, row)
    arrays.chosen(state)[step.event] = row
    arrays.chosen_types(state)[step.event] = step.type if step.run == 0 else LAST_OF_RUN
    for inner in range(step.inner, step.inner_end):
        fill_slot(state, arrays.steps(state)[inner], since, 0)
    return step.residue < 0 or run(state, step.residue)


@kernel
def next_candidate(state: int, place: int, since: int) -> bool:
    """Bind the next candidate of the multiple selection at ``place``, if one is left."""
    step = arrays.steps(state)[place]
    candidate, end = arrays.cursors(state)[place], arrays.cursor_ends(state)[place]
    found = bind_first(state, step, arrays.cursor_lists(state)[place], candidate, end, 1, since)
    arrays.cursors(state)[place] = min(end, found + 1)
    return found < end


@kernel
def select(state: int, place: int, since: int) -> bool:
    """Begin a selection: bind its first candidate, or its only one (S1, S2)."""
    step = arrays.steps(state)[place]
    number = list_of(state, step)
    if number < 0:
        return False
    if step.policy == POLICY_EACH:
        low, high = bounds(state, step, number, since)
        arrays.cursors(state)[place] = low
        arrays.cursor_ends(state)[place] = high
        arrays.cursor_lists(state)[place] = number
        return next_candidate(state, place, since)
    if step.rivals_end > step.rivals:
        return select_among(state, step, number, since)
    if step.policy == POLICY_FIRST:
        low, high = bounds(state, step, number, since)
        return bind_first(state, step, number, low, high, step.rank, since) < high
    return select_last(state, step, number, since)


@kernel
def bind_first(  # type: ignore[no-untyped-def]
    state: int, step, number: int, low: int, high: int, rank: int, since: int
) -> int:
    """Bind the candidate that is number ``rank`` of those of a list's entries from ``low`` to
    ``high`` that fit: its place, or ``high``, which is excluded.
    """
    heap, record = arrays.heap(state), arrays.lists(state)[number]
    start = first_entry(record)
    candidate, failed = low, 0
    while candidate < high:
        if fits(state, step, heap[start + candidate * ENTRY_WORDS + 1], since):
            rank -= 1
            if rank == 0:
                return candidate
        candidate += 1
        if step.ordered >= 0:
            failed += 1
            if is_far(state, failed, high - candidate):
                candidate = next_in_range(state, step, number, candidate, high)
    return high


@kernel
def select_last(state: int, step, number: int, since: int) -> bool:  # type: ignore[no-untyped-def]
    """Bind the latest candidate, or the k-th from the late end."""
    heap, record = arrays.heap(state), arrays.lists(state)[number]
    early, left = earliest(state, step, since), step.rank
    start = first_entry(record)
    place = start + (end_of_span(state, step, number) - 1) * ENTRY_WORDS
    failed = 0
    while place >= start and heap[place] >= early:
        if fits(state, step, heap[place + 1], since):
            left -= 1
            if left == 0:
                return True
        place -= ENTRY_WORDS
        if step.ordered >= 0:
            failed += 1
            place = pass_over(state, step, number, place, early, failed)
    return False


@kernel
def select_among(state: int, step, number: int, since: int) -> bool:  # type: ignore[no-untyped-def]
    """Bind the k-th of all candidates, rivals included, if the step's own."""
    heap, record = arrays.heap(state), arrays.lists(state)[number]
    start = first_entry(record)
    low, high = bounds(state, step, number, since)
    left = step.rank
    for turn in range(high - low):
        place = low + turn if step.policy == POLICY_FIRST else high - 1 - turn
        row = heap[start + place * ENTRY_WORDS + 1]
        if fits(state, step, row, since):
            left -= 1
            rivals = rivals_before(state, step, row, left, since)
            if rivals > left:
                return False
            if rivals == left:
                return fits(state, step, row, since)  # again: rivals were bound meanwhile
    return False


@kernel
def rivals_before(state: int, step, row: int, most: int, since: int) -> int:  # type: ignore[no-untyped-def]
    """How many candidates of a step's rivals would be chosen before a row; counted to beyond
    ``most``.
    """
    heap, count = arrays.heap(state), 0
    own = row_offset(state, step.type, row)
    for one in range(step.rivals, step.rivals_end):
        rival = arrays.steps(state)[one]
        number = list_of(state, rival)
        if number < 0:
            continue
        record = arrays.lists(state)[number]
        start = first_entry(record)
        low, high = bounds(state, rival, number, since)
        for turn in range(high - low):
            place = low + turn if step.policy == POLICY_FIRST else high - 1 - turn
            other = heap[start + place * ENTRY_WORDS + 1]
            offset = row_offset(state, rival.type, other)
            first, second = (offset, own) if step.policy == POLICY_FIRST else (own, offset)
            if heap[first + ROW_TIME] > heap[second + ROW_TIME]:
                break
            is_tied = heap[first + ROW_TIME] == heap[second + ROW_TIME]
            if is_tied and not comes_before(state, first, second):
                break
            if fits(state, rival, other, since):
                count += 1
                if count > most:
                    return count
    return count


@kernel
def pass_over(state: int, step, number: int, place: int, early: int, failed: int) -> int:  # type: ignore[no-untyped-def]
    """From the heap's word ``place`` back to the next entry worth trying, once many failed."""
    record = arrays.lists(state)[number]
    start = first_entry(record)
    left = (place - start) // ENTRY_WORDS + 1
    if not is_far(state, failed, left):
        return place
    low = find_time(state, number, early)
    if low >= left:
        return start - ENTRY_WORDS
    return start + last_in_range(state, step, number, low, left) * ENTRY_WORDS


@kernel
def is_absent(state: int, step, since: int, events: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether a negation holds; the match's own events do not count (S6)."""
    number = list_of(state, step)
    if number < 0:
        return True
    heap, record = arrays.heap(state), arrays.lists(state)[number]
    early, failed = earliest(state, step, since), 0
    start = first_entry(record)
    place = start + (end_of_span(state, step, number) - 1) * ENTRY_WORDS
    while place >= start and heap[place] >= early:
        row = heap[place + 1]
        search(state)
        if not is_chosen(state, step.type, row, events):
            arrays.frame(state)[0] = row_offset(state, step.type, row)
            if step.residue < 0 or run(state, step.residue):
                return False
        place -= ENTRY_WORDS
        if step.ordered >= 0:
            failed += 1
            place = pass_over(state, step, number, place, early, failed)
    return True


@kernel
def fill_slot(state: int, step, since: int, consumer: int) -> None:  # type: ignore[no-untyped-def]
    """Compute an aggregate into its slot (S8); or let the rule before ``consumer``, if that is not
    0, consume the run of the step.
    """
    number = list_of(state, step)
    low, high = np.int64(0), np.int64(0)
    if number >= 0:
        low, high = bounds(state, step, number, since)
    is_count = step.function == COUNT and step.residue < 0 and step.program < 0
    if is_count and step.run == 0:
        arrays.slots(state)[step.slot] = max(0, high - low)
        arrays.slots_defined(state)[step.slot] = True
        return
    late = arrays.late(state)[LATE_RUNS if step.run > 0 else LATE_AGGREGATES]
    arrays.call(late, state, arrays.address_of(step), number, low, high, consumer)


@kernel
def consume_runs(state: int, rule_number: int) -> None:
    """Let a rule consume the runs of the match that was written last, as far as it does."""
    rule = arrays.rules(state)[rule_number]
    for place in range(rule.last_step - rule.runs, rule.last_step):
        fill_slot(state, arrays.steps(state)[place], rule.since, rule_number + 1)


@kernel
def perform(state: int, place: int, since: int, events: int) -> bool:
    """Take one step forward; whether the match may go on."""
    step = arrays.steps(state)[place]
    kind = step.kind
    if kind == SELECT:
        return select(state, place, since)
    if kind == NEGATE:
        return is_absent(state, step, since, events)
    if kind == TEST:
        return run(state, step.residue)
    if kind == AGGREGATE:
        fill_slot(state, step, since, 0)
        return True
    if kind == LET:
        if not run(state, step.program):
            return False
        arrays.slots(state)[step.slot] = arrays.stack(state)[0]
        arrays.slots_defined(state)[step.slot] = True
        return True
    time = arrays.heap(state)[arrays.frame(state)[step.event + 1] + ROW_TIME]
    return earliest(state, step, since) <= time < end_of(state, step)


@kernel
def emit_final(state: int, rule_number: int, place: int, limit: int) -> int:
    """Emit every candidate of the last step, a multiple selection without further conditions, from
    that on at which the evaluation has halted.
    """
    rule, step = arrays.rules(state)[rule_number], arrays.steps(state)[place]
    counters, outlet = arrays.counters(state), arrays.outlets(state)[rule.type]
    number = list_of(state, step)
    if number < 0:
        return DONE
    begin, high = bounds(state, step, number, rule.since)
    low, status = begin + counters[PASSED], DONE
    while low < high and status == DONE:
        room = high - low
        if not has_room(state, rule.type, room, room * rule.events):
            room = (outlet.cause_capacity - outlet.causes) // rule.events
            room = min(room, outlet.capacity - outlet.count)
            if room == 0:
                counters[PASSED] = low - begin
                return GROW_OUT
        status = emit_each(state, rule, number, low, low + room, limit)
        low += room
    counters[PASSED] = 0
    return status


@kernel
def bind_terminator(state: int, rule, row: int) -> None:  # type: ignore[no-untyped-def]
    """Bind a terminator, and nothing else."""
    terminator = arrays.columns(state)[rule.column].type
    for event in range(rule.events):
        arrays.chosen(state)[event] = -1  # what another rule left there is no event of this match
    arrays.frame(state)[1] = row_offset(state, terminator, row)
    arrays.chosen(state)[0] = row
    arrays.chosen_types(state)[0] = terminator


@kernel
def detect(state: int, rule_number: int, row: int) -> int:
    """Evaluate a rule at a terminator, from its beginning or from where it has halted, and write
    every match: DONE, TOO_MANY when the rule may yield or search no more, or what must grow before
    it can go on.
    """
    rule = arrays.rules(state)[rule_number]
    counters = arrays.counters(state)
    if counters[RUNS] == len(arrays.runs(state)):
        return GROW_RUNS
    if counters[HALTED]:
        place = counters[HALTED] - 1
        counters[HALTED] = 0
    else:
        place = rule.first_step
        bind_terminator(state, rule, row)
    time = arrays.heap(state)[arrays.frame(state)[1] + ROW_TIME]
    outlet = arrays.outlets(state)[rule.type]
    count = outlet.count
    limit = count + may_yield(state, rule.source, time)
    counters[SEARCHES_LEFT] = ~counters[SEARCHES_LEFT]
    final = rule.last_step - 1 if rule.final_each else -1
    forward = True
    status = DONE
    while True:
        if counters[SEARCHES_LEFT] == -1:
            status = TOO_MANY
            break
        if forward and (place == rule.last_step or place == final):
            if place == final:
                status = emit_final(state, rule_number, place, limit)
            else:
                written = outlet.count
                status = emit(state, rule_number, limit)
                if outlet.count > written:
                    consume_runs(state, rule_number)
            if status != DONE:
                break
            place = rule.previous if place != final else arrays.steps(state)[place].previous
            forward = False
        elif forward:
            if perform(state, place, rule.since, rule.events):
                place += 1
            else:
                forward = False
                place = arrays.steps(state)[place].previous
        elif place < 0:
            break
        elif next_candidate(state, place, rule.since):
            forward = True
            place += 1
        else:
            place = arrays.steps(state)[place].previous
    counters[SEARCHES_LEFT] = ~counters[SEARCHES_LEFT]
    if status != DONE and status != TOO_MANY:
        counters[HALTED] = place + 1
    note_run(state, rule.type, rule.source, time, count)
    return status

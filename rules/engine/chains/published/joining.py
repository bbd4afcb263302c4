"""Sequences meet in the terminator, and become composite events (thesis 5.3.2: complete rules).

Of each model the sequences are found that the terminator completes; if there are none of one
model, that is all. Else every combination that agrees on the events which models share is a match,
if the steps of the rule's plan find it to be one: parameters between sequences, negations that
nothing has decided before, aggregates over stored events, values.

Combinations are made event by event, in the order of the text, so that matches come out in the
order of their causes (E4). The sequences of a model are sorted in that way: by the event next to
the terminator, then by the one before it, and so on. For each event that is bound there is a
*range* of each model's sequences, those that agree with all that is bound so far.
"""

from __future__ import annotations

from rules.engine.chains.published import pools
from rules.engine.chains.published.advancing import bind, holds, listed_at, model_at
from rules.engine.chains.published.compiled import kernel
from rules.engine.chains.published.layout import (
    CHECKED,
    DURATIONS_AT,
    MEMBERS_AT,
    MODEL_LENGTH,
    MODEL_PATH,
    MODEL_POOL,
    MODEL_STEP,
    MODELS,
    ROWS,
    TYPES_AT,
)
from rules.engine.kernels import arrays
from rules.engine.kernels.detection import bind_terminator, fits, perform, select
from rules.engine.kernels.emission import emit, may_yield, note_run
from rules.engine.kernels.expressions import run
from rules.engine.kernels.layout import (
    DONE,
    GROW_ACCEPTED,
    GROW_RUNS,
    HALTED,
    POLICY_EACH,
    ROW_TIME,
    RUNS,
    TOO_MANY,
)
from rules.engine.kernels.memory import row_offset
from rules.engine.kernels.spans import back_from
from rules.planning.plan import StepKind

SELECT, NEGATE = int(StepKind.SELECT), int(StepKind.NEGATE)
NOTHING = -1


@kernel
def detect(state: int, rule_number: int, row: int) -> int:
    """Evaluate a rule at a terminator, from its beginning or from where it has halted: see
    ``kernels.detection.detect``, which this is but for selections.
    """
    rule = arrays.rules(state)[rule_number]
    counters = arrays.counters(state)
    base = arrays.automata(state)[rule.automaton].first_state
    if counters[RUNS] == len(arrays.runs(state)):
        return GROW_RUNS
    if counters[HALTED]:
        place = counters[HALTED] - 1
        counters[HALTED] = 0
    else:
        place = rule.first_step
        bind_terminator(state, rule, row)
        status = accept_all(state, base, rule.events, row)
        if status != DONE:
            return DONE if status == NOTHING else status
    time = arrays.heap(state)[arrays.frame(state)[1] + ROW_TIME]
    outlet = arrays.outlets(state)[rule.type]
    count = outlet.count
    limit = count + may_yield(state, rule.source, time)
    forward = True
    status = DONE
    while True:
        if forward and place == rule.last_step:
            status = emit(state, rule_number, limit)
            if status != DONE:
                break
            place = rule.previous
            forward = False
        elif forward:
            if go_on(state, base, place, rule.since, rule.events):
                place += 1
            else:
                forward = False
                place = arrays.steps(state)[place].previous
        elif place < 0:
            break
        elif next_event(state, base, place, rule.since):
            forward = True
            place += 1
        else:
            place = arrays.steps(state)[place].previous
    if status != DONE and status != TOO_MANY:
        counters[HALTED] = place + 1
    note_run(state, rule.type, rule.source, time, count)
    return status


@kernel
def accept_all(state: int, base: int, events: int, row: int) -> int:
    """Write the sequences that the bound terminator completes, model by model, into ``accepted``,
    behind the ranges: DONE, NOTHING where a model has none, or GROW_ACCEPTED.
    """
    words = arrays.published(state)
    models = words[base + MODELS]
    top = 2 * events * models
    for number in range(models):
        first = top
        top = accept(state, base, model_at(state, base, number), row, top)
        if top < 0:
            return GROW_ACCEPTED
        if top == first:
            return NOTHING
        arrays.accepted(state)[2 * number] = first
        arrays.accepted(state)[2 * number + 1] = top
    return DONE


@kernel
def accept(state: int, base: int, model: int, row: int, top: int) -> int:
    """Write the sequences of one model: the end of all; -1 when there is no room."""
    words, accepted = arrays.published(state), arrays.accepted(state)
    length = words[model + MODEL_LENGTH]
    pool = words[model + MODEL_POOL] + length - 1
    test = arrays.steps(state)[words[model + MODEL_STEP]].residue
    last = words[model + MODEL_PATH + length - 1]
    time = arrays.heap(state)[arrays.frame(state)[1] + ROW_TIME]
    pools.discard(state, pool, back_from(time, words[base + words[base + DURATIONS_AT] + last]))
    type_number = words[base + words[base + TYPES_AT]]
    for number in range(arrays.pools(state)[pool].count):
        place = pools.place_of(state, pool, number)
        if holds(state, base, model, length, place, type_number, row):
            continue
        if test >= 0:
            bind(state, base, model, length, place)
            if not run(state, test):
                continue
        if top >= len(accepted):
            return -1
        accepted[top] = place
        top += 1
    return top if top <= len(accepted) else -1


@kernel
def go_on(state: int, base: int, place: int, since: int, events: int) -> bool:
    """Take one step forward; whether the match may go on."""
    step = arrays.steps(state)[place]
    if step.kind == SELECT:
        return select_sequences(state, base, place, since)
    if step.kind == NEGATE and step.rank == CHECKED and not step.strict:
        return True
    return perform(state, place, since, events)


@kernel
def spot_of(state: int, base: int, event: int) -> int:
    """Where the words of an event's spots stand."""
    return listed_at(state, base, MEMBERS_AT, event)


@kernel
def select_sequences(state: int, base: int, place: int, since: int) -> bool:
    """Begin a selection: bind the first event that sequences have for it, or the chosen one."""
    words, accepted = arrays.published(state), arrays.accepted(state)
    step = arrays.steps(state)[place]
    spots = spot_of(state, base, step.event)
    ranges = 2 * ((step.event - 1) * words[base + MODELS] + words[spots + 1])
    low, high = accepted[ranges], accepted[ranges + 1]
    if step.policy == POLICY_EACH:
        arrays.cursors(state)[place] = low
        arrays.cursor_ends(state)[place] = high
        return next_event(state, base, place, since)
    if not select(state, place, since):
        return False
    return narrow(state, base, step.event, arrays.chosen(state)[step.event])


@kernel
def next_event(state: int, base: int, place: int, since: int) -> bool:
    """Bind the next event that sequences have for a multiple selection, if one is left."""
    words, accepted, heap = arrays.published(state), arrays.accepted(state), arrays.heap(state)
    step = arrays.steps(state)[place]
    word = ROWS + words[spot_of(state, base, step.event) + 2]
    low, high = arrays.cursors(state)[place], arrays.cursor_ends(state)[place]
    while low < high:
        row = heap[accepted[low] + word]
        while low < high and heap[accepted[low] + word] == row:
            low += 1
        arrays.cursors(state)[place] = low
        is_fit = is_early(state, step, row) and fits(state, step, row, since)
        if is_fit and narrow(state, base, step.event, row):
            return True
    return False


@kernel
def is_early(state: int, step, row: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether an event is earlier than the terminator, if its rule is part of a cycle (S12)."""
    if not step.strict:
        return True
    heap = arrays.heap(state)
    time: int = heap[row_offset(state, step.type, row) + ROW_TIME]
    end: int = heap[arrays.frame(state)[1] + ROW_TIME]
    return time < end


@kernel
def narrow(state: int, base: int, event: int, row: int) -> bool:
    """Leave only the sequences that have a row for an event; whether each model has some."""
    words, accepted, heap = arrays.published(state), arrays.accepted(state), arrays.heap(state)
    models = words[base + MODELS]
    before, after = 2 * (event - 1) * models, 2 * event * models
    for number in range(2 * models):
        accepted[after + number] = accepted[before + number]
    spots = spot_of(state, base, event)
    for spot in range(words[spots]):
        number, word = words[spots + 1 + 2 * spot], ROWS + words[spots + 2 + 2 * spot]
        low, high = accepted[before + 2 * number], accepted[before + 2 * number + 1]
        while low < high and heap[accepted[low] + word] != row:
            low += 1
        end = low
        while end < high and heap[accepted[end] + word] == row:
            end += 1
        if low == end:
            return False
        accepted[after + 2 * number] = low
        accepted[after + 2 * number + 1] = end
    return True

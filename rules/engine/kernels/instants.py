"""Whole instants, one after another (tesla.md S12, S14; thesis 5.4.2).

An instant goes through the phases below: its events enter their columns, the rules whose
terminators came run in order of priority (rank, then place), their composite events enter
columns in turn, and at the end what was consumed leaves the columns of its rule, so that all
matches of the instant saw the same history (S11).

A call that lacks room returns a status and has changed nothing since its last complete step, or
composite event; the host grows what is named and calls again. Where to go on is kept in
``counters``.
"""

from __future__ import annotations

from rules.engine.kernels import arrays
from rules.engine.kernels.buckets import find_list
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.emission import take
from rules.engine.kernels.entering import enter
from rules.engine.kernels.expressions import run
from rules.engine.kernels.intake import take_in_staged
from rules.engine.kernels.layout import (
    ARRIVAL,
    ARRIVALS,
    AUTOMATON_CATCHES_UP,
    AUTOMATON_FORGETS,
    COMPOSITE,
    COMPOSITE_END,
    COMPOSITE_RULE,
    CONSUMED,
    DONE,
    ENDED_RULE,
    EVALUATED,
    GROW_TAKEN,
    GROW_TRIGGERS,
    HALTED,
    HEADER,
    ID_IS_DIGEST,
    INBOX_TOP,
    INSTANT,
    LATE_AHEAD,
    LATE_AUTOMATA,
    LATE_DETECT,
    LATE_STRAIGHT,
    LEVEL,
    LISTS_TOP,
    LOAD_AHEAD,
    LOOK_MIN,
    LOOKED,
    ORDERING,
    PHASE,
    PIECE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROW_ID,
    ROW_KEY_HIGH,
    ROW_KEY_LOW,
    ROW_SEQUENCE,
    ROW_SOURCE,
    ROW_TIME,
    STAGED,
    STORED,
    TAKING,
    TIMED_OF,
    TOO_MANY,
    TRIGGERS,
    WAITING_FIRST,
    WAITING_TOP,
    WISH,
)
from rules.engine.kernels.memory import remove_entry, row_key, row_offset
from rules.engine.kernels.ordering import order
from rules.engine.kernels.terminators import pop_trigger, push_trigger, queue_is_next
from runtime.instructions.ticks import ticks

CHOOSE, ARRIVE, RUN, STORE, CONSUME = 0, 1, 2, 3, 4
"""The phases of an instant."""
TIME_LEAST, TIME_GREATEST = -(2**63), 2**63 - 1


@kernel
def process(state: int) -> int:
    """Take in what comes alone, let what marks have passed arrive, and go on until all of it and
    of ``stored`` is done, and taken if that is asked for, or until something must grow or is told.
    """
    counters = arrays.counters(state)
    if counters[PIECE]:
        if not take(state):
            return GROW_TAKEN
        counters[PIECE] = 0
        return DONE
    status = let_arrive(state)
    if status != DONE:
        return status
    if counters[LEVEL] != TIME_LEAST:
        raise_marks(state, counters[LEVEL])
        counters[LEVEL] = TIME_LEAST
    arrivals, stored = arrays.arrivals(state), arrays.stored(state)
    while True:
        phase = counters[PHASE]
        if phase == CHOOSE:
            if counters[WISH] != DONE:
                status = counters[WISH]
                counters[WISH] = DONE
                return status
            time = TIME_GREATEST
            if counters[ARRIVAL] < counters[ARRIVALS]:
                time = arrivals[counters[ARRIVAL]].time
            if counters[STORED] < len(stored):
                time = min(time, stored[counters[STORED]].time)
            elif counters[ARRIVAL] == counters[ARRIVALS]:
                if counters[WAITING_FIRST] == counters[WAITING_TOP]:
                    counters[INBOX_TOP] = 0
                return DONE if not counters[TAKING] or take(state) else GROW_TAKEN
            counters[INSTANT] = time
            counters[PHASE] = ARRIVE
        elif phase == ARRIVE:
            status = arrive(state)
            if status != DONE:
                return status
            counters[PHASE] = RUN
        elif phase == RUN:
            if counters[TRIGGERS] == 0 and counters[QUEUE_HEAD] == counters[QUEUE_TAIL]:
                counters[PHASE] = CONSUME
                continue
            queued = queue_is_next(state)
            if queued:
                trigger_ = arrays.queue(state)[counters[QUEUE_HEAD]]
            else:
                trigger_ = arrays.triggers(state)[0]
            rule = trigger_.rule
            record = arrays.rules(state)[rule]
            outlet = arrays.outlets(state)[record.type]
            if counters[HALTED] == 0:
                counters[COMPOSITE] = outlet.count - outlet.first
            is_timed = record.evaluated % TIMED_OF == 1
            begun = ticks() if is_timed else 0
            arrays.evaluating(state)[0] = record.name
            if record.floor == TIME_GREATEST:
                status = DONE  # it has ended at an earlier terminator of this instant
            elif record.straight >= 0:
                straight = arrays.late(state)[LATE_STRAIGHT]
                status = arrays.call(straight, state, record.straight, trigger_.row, 0, 0, 0)
            else:
                status = detect_any(state, rule, trigger_.row)
            arrays.evaluating(state)[0] = 0
            if is_timed:
                record.ticks += ticks() - begun
            if status != DONE and status != TOO_MANY:
                return status
            counters[EVALUATED] += 1
            record.evaluated += 1
            record.timed += is_timed
            if queued:
                counters[QUEUE_HEAD] += 1
            else:
                pop_trigger(state)
            if record.stores and outlet.count - outlet.first > counters[COMPOSITE]:
                counters[COMPOSITE_END] = outlet.count - outlet.first
                counters[COMPOSITE_RULE] = rule
                counters[PHASE] = STORE
            if status == TOO_MANY:
                counters[ENDED_RULE] = rule
                return status
        elif phase == STORE:
            status = store_composites(state)
            if status != DONE:
                return status
            counters[PHASE] = RUN
        else:
            if counters[CONSUMED]:
                consume(state)
            counters[PHASE] = CHOOSE


@kernel
def let_arrive(state: int) -> int:
    """Take in the event that comes alone, if there is one, and let what is due arrive if that is
    asked for: DONE, or what must grow first.
    """
    counters = arrays.counters(state)
    if counters[STAGED]:
        status = take_in_staged(state)
        if status != DONE:
            return status
    if counters[ORDERING]:
        status = order(state)
        if status != DONE:
            return status
        counters[ORDERING] = 0
    return DONE


@kernel
def raise_marks(state: int, mark: int) -> None:
    """Have every group evaluated up to a mark, if it is not yet."""
    groups = arrays.groups(state)
    for number in range(len(groups)):
        groups[number].evaluated = groups[number].mark
        groups[number].mark = max(groups[number].mark, mark)


@kernel
def detect_any(state: int, rule: int, row: int) -> int:
    """Evaluate any rule at a terminator of the present instant."""
    # One that has halted has what its automaton took in, and the scratch is its own until it ends.
    if arrays.rules(state)[rule].automaton >= 0 and arrays.counters(state)[HALTED] == 0:
        automata, time = arrays.late(state)[LATE_AUTOMATA], arrays.counters(state)[INSTANT]
        status = arrays.call(automata, state, AUTOMATON_CATCHES_UP, rule, time, 0, 0)
        if status != DONE:
            return status
    return arrays.call(arrays.late(state)[LATE_DETECT], state, rule, row, 0, 0, 0)


@kernel
def arrive(state: int) -> int:
    """Take in the events of the present instant, and the terminators stored for it."""
    counters = arrays.counters(state)
    arrivals, inbox, stored = arrays.arrivals(state), arrays.inbox(state), arrays.stored(state)
    time = counters[INSTANT]
    while counters[ARRIVAL] < counters[ARRIVALS]:
        arriving = arrivals[counters[ARRIVAL]]
        if arriving.time != time:
            break
        if counters[ARRIVAL] >= counters[LOOKED]:
            ask_ahead(state)
        status = enter(state, arriving.type, inbox, arriving.offset)
        if status != DONE:
            return status
        counters[ARRIVAL] += 1
    while counters[STORED] < len(stored) and stored[counters[STORED]].time == time:
        terminator = stored[counters[STORED]]
        if not push_trigger(state, terminator.rule, terminator.row):
            return GROW_TRIGGERS
        counters[STORED] += 1
    return DONE


@kernel
def ask_ahead(state: int) -> None:
    """Ask for what the next of the events that arrive will touch, where that pays."""
    counters, ahead = arrays.counters(state), arrays.late(state)[LATE_AHEAD]
    if counters[LISTS_TOP] < counters[LOOK_MIN]:
        counters[LOOKED] = counters[ARRIVALS]
    elif ahead == 0:
        counters[WISH] = LOAD_AHEAD
        counters[LOOKED] = counters[ARRIVAL] + 1
    else:
        arrays.call(ahead, state, 0, 0, 0, 0, 0)


@kernel
def store_composites(state: int) -> int:
    """Enter the composite events of the last evaluation into columns (hierarchies, S12)."""
    counters = arrays.counters(state)
    rule = arrays.rules(state)[counters[COMPOSITE_RULE]]
    outlet = arrays.outlets(state)[rule.type]
    times = arrays.words_at(outlet.time, outlet.capacity)
    ids = arrays.words_at(outlet.digest, 2 * outlet.capacity)
    values = arrays.words_at(outlet.words, rule.value_count * outlet.capacity)
    words = arrays.composite(state)
    while counters[COMPOSITE] < counters[COMPOSITE_END]:
        place = outlet.first + counters[COMPOSITE]
        words[ROW_TIME] = times[place]
        words[ROW_KEY_HIGH] = ids[2 * place]
        words[ROW_KEY_LOW] = ids[2 * place + 1]
        words[ROW_SOURCE] = rule.source
        words[ROW_SEQUENCE] = 0
        words[ROW_ID] = ID_IS_DIGEST
        for value in range(rule.value_count):
            words[HEADER + value] = values[value * outlet.capacity + place]
        status = enter(state, rule.type, words, 0)
        if status != DONE:
            return status
        counters[COMPOSITE] += 1
    return DONE


@kernel
def consume(state: int) -> None:
    """Take what the instant's matches consumed out of the columns of its rules (S11)."""
    counters, heap = arrays.counters(state), arrays.heap(state)
    for place in range(counters[CONSUMED]):
        event = arrays.consumed(state)[place]
        rule, type_number, row = event.rule, event.type, event.row
        start = row_offset(state, type_number, row)
        arrays.frame(state)[0] = start
        private = arrays.rules(state)[rule].private
        while arrays.private(state)[private] >= 0:
            access = arrays.private(state)[private]
            private += 1
            record = arrays.accesses(state)[access]
            column = arrays.columns(state)[record.column]
            if column.type != type_number:
                continue
            if column.code >= 0 and not run(state, column.code):
                continue
            first, second = row_key(heap, record, start)
            number = find_list(state, access, first, second)
            if number >= 0:
                remove_entry(state, number, heap[start + ROW_TIME], row)
        automaton = arrays.rules(state)[rule].automaton
        if automaton >= 0:
            automata, time = arrays.late(state)[LATE_AUTOMATA], heap[start + ROW_TIME]
            arrays.call(automata, state, AUTOMATON_FORGETS, automaton, time, 0, 0)
    counters[CONSUMED] = 0

"""Terminators of the present instant, in the order in which their rules are to run.

Law: rules run by priority (rank, then place; S12), and the terminators of one rule in the order
of E4, although some may have waited and others have just come.
"""

from __future__ import annotations

from rules.engine.kernels import arrays
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.layout import (
    DEFERRED,
    DONE,
    GROW_DEFERRED,
    GROW_TRIGGERS,
    LINE_WORDS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    TRIGGER_SERIAL,
    TRIGGERS,
)
from rules.engine.kernels.memory import precedes


@kernel
def trigger(state: int, rule: int, time: int, row: int) -> int:
    """A terminator of a rule: run it at this instant, later, or never."""
    record = arrays.rules(state)[rule]
    group = arrays.groups(state)[record.group]
    if time < record.floor or time < group.evaluated:
        return DONE
    if time < group.mark:
        if record.straight >= 0:  # it is evaluated a few rules from now
            arrays.prefetch_straight(state, record.straight)
            arrays.prefetch_straight(state, record.straight + LINE_WORDS)
            arrays.prefetch_straight(state, record.straight + 2 * LINE_WORDS)
        return DONE if push_trigger(state, rule, row) else GROW_TRIGGERS
    if arrays.types(state)[arrays.columns(state)[record.column].type].ticks:
        return DONE
    counters = arrays.counters(state)
    place = counters[DEFERRED]
    if place == len(arrays.deferred(state)):
        return GROW_DEFERRED
    arrays.deferred(state)[place].time = time
    arrays.deferred(state)[place].rule = rule
    arrays.deferred(state)[place].row = row
    counters[DEFERRED] = place + 1
    return DONE


@kernel
def push_trigger(state: int, rule: int, row: int) -> bool:
    """Add a trigger; False when there is no room.

    Most come in the order in which they are to run, and queue up; the others go into a heap.
    """
    counters, triggers, queue = arrays.counters(state), arrays.triggers(state), arrays.queue(state)
    priority, serial = arrays.rules(state)[rule].priority, counters[TRIGGER_SERIAL]
    if counters[QUEUE_HEAD] == counters[QUEUE_TAIL]:
        counters[QUEUE_HEAD] = 0
        counters[QUEUE_TAIL] = 0
    tail = counters[QUEUE_TAIL]
    if tail == 0 or not is_before(state, priority, serial, rule, row, queue[tail - 1]):
        if tail == len(queue):
            return False
        counters[QUEUE_TAIL] = tail + 1
        counters[TRIGGER_SERIAL] = serial + 1
        set_trigger(queue, tail, priority, serial, rule, row)
        return True
    place = counters[TRIGGERS]
    if place == len(triggers):
        return False
    counters[TRIGGERS] = place + 1
    counters[TRIGGER_SERIAL] = serial + 1
    while place > 0:
        parent = (place - 1) >> 1
        if not is_before(state, priority, serial, rule, row, triggers[parent]):
            break
        copy_trigger(triggers, parent, place)
        place = parent
    set_trigger(triggers, place, priority, serial, rule, row)
    return True


@kernel
def set_trigger(  # type: ignore[no-untyped-def]
    triggers, place: int, priority: int, serial: int, rule: int, row: int
) -> None:
    """Write a trigger into a place of the heap or the queue."""
    triggers[place].priority = priority
    triggers[place].serial = serial
    triggers[place].rule = rule
    triggers[place].row = row


@kernel
def queue_is_next(state: int) -> bool:
    """Whether the next trigger, of which there is one, is the first that queues."""
    counters = arrays.counters(state)
    if counters[TRIGGERS] == 0:
        return True
    if counters[QUEUE_HEAD] == counters[QUEUE_TAIL]:
        return False
    return goes_before(state, arrays.queue(state)[counters[QUEUE_HEAD]], arrays.triggers(state)[0])


@kernel
def pop_trigger(state: int) -> None:
    """Remove the first of the heap of triggers."""
    counters, triggers = arrays.counters(state), arrays.triggers(state)
    last = counters[TRIGGERS] - 1
    counters[TRIGGERS] = last
    place = 0
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        if child + 1 < last and goes_before(state, triggers[child + 1], triggers[child]):
            child += 1
        if goes_before(state, triggers[last], triggers[child]):
            break
        copy_trigger(triggers, child, place)
        place = child
    copy_trigger(triggers, last, place)


@kernel
def goes_before(state: int, one, other) -> bool:  # type: ignore[no-untyped-def]
    """Whether one trigger comes before another."""
    return is_before(state, one.priority, one.serial, one.rule, one.row, other)


@kernel
def is_before(  # type: ignore[no-untyped-def]
    state: int, priority: int, serial: int, rule: int, row: int, other
) -> bool:
    """Whether a terminator comes before another trigger: rules by priority, and the terminators
    of one rule by E4, although some may have waited here and others have just come.
    """
    if priority != other.priority:
        return priority < other.priority
    type_number = arrays.columns(state)[arrays.rules(state)[rule].column].type
    if precedes(state, type_number, row, other.row):
        return True
    return serial < other.serial and not precedes(state, type_number, other.row, row)


@kernel
def copy_trigger(triggers, source: int, target: int) -> None:  # type: ignore[no-untyped-def]
    """Copy a trigger from one place of the heap to another."""
    triggers[target].priority = triggers[source].priority
    triggers[target].serial = triggers[source].serial
    triggers[target].rule = triggers[source].rule
    triggers[target].row = triggers[source].row

"""Whole instants, one after another (tesla.md S12, S14; thesis 5.4.2).

An instant goes through the phases below: its events enter their columns, the rules whose
terminators came run in order of priority (rank, then place), their composite events enter
columns in turn, and at the end what was consumed leaves the columns of its rule, so that all
matches of the instant saw the same history (S11).

A call that lacks room returns a status and has changed nothing since its last complete step; the
host grows what is named and calls again. Where to go on is kept in ``counters``.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.automata import begin_anew, catch_up, forget_from
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.detection import detect
from rules.engine.kernels.emission import take
from rules.engine.kernels.expressions import run
from rules.engine.kernels.intake import take_in_staged
from rules.engine.kernels.layout import (
    APPENDED,
    ARRIVAL,
    ARRIVALS,
    COMPOSITE,
    COMPOSITE_END,
    COMPOSITE_RULE,
    CONSUMED,
    DEFERRED,
    DONE,
    EVALUATED,
    GROW_DEFERRED,
    GROW_HEAP,
    GROW_TAKEN,
    GROW_TRIGGERS,
    HEADER,
    ID_IS_DIGEST,
    INBOX_TOP,
    INSTANT,
    LEVEL,
    LISTS_TOP,
    ORDERING,
    PHASE,
    PRESENT_ROW,
    QUEUE_HEAD,
    QUEUE_TAIL,
    ROW_ID,
    ROW_KEY_HIGH,
    ROW_KEY_LOW,
    ROW_SEQUENCE,
    ROW_SOURCE,
    ROW_TIME,
    ROW_WRITTEN,
    STAGED,
    STORED,
    TAKING,
    TRIGGER_SERIAL,
    TRIGGERS,
    WAITING_FIRST,
    WAITING_TOP,
    WISH,
)
from rules.engine.kernels.memory import (
    allocate,
    append,
    find_list,
    forget_list,
    logarithm,
    precedes,
    release,
    remove_entry,
    row_key,
    row_offset,
)
from rules.engine.kernels.ordering import order
from rules.engine.kernels.straight import detect_straight

CHOOSE, ARRIVE, RUN, STORE, CONSUME = 0, 1, 2, 3, 4
"""The phases of an instant."""

LINE_WORDS = 8
"""Words of a line of memory."""
FIRST_ROWS = 16
"""Rows of a type's first ring."""
TIME_LEAST, TIME_GREATEST = -(2**63), 2**63 - 1


@kernel
def process(state: int) -> int:
    """Take in what comes alone, let what marks have passed arrive, and go on until all of it and
    of ``stored`` is done, and taken if that is asked for, or until something must grow.
    """
    counters = arrays.counters(state)
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
            first = outlet.count
            if record.straight >= 0:
                status = detect_straight(state, record.straight, trigger_.row)
            else:
                status = detect_any(state, rule, trigger_.row)
            if status != DONE:
                return status
            counters[EVALUATED] += 1
            record.evaluated += 1
            if queued:
                counters[QUEUE_HEAD] += 1
            else:
                pop_trigger(state)
            if record.stores and outlet.count > first:
                counters[COMPOSITE] = first
                counters[COMPOSITE_END] = outlet.count
                counters[COMPOSITE_RULE] = rule
                counters[PHASE] = STORE
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
    if arrays.rules(state)[rule].automaton >= 0:
        status = catch_up(state, rule, arrays.counters(state)[INSTANT])
        if status != DONE:
            return status
    return detect(state, rule, row)


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


# --- events into columns -------------------------------------------------------------------------


@kernel
def enter(state: int, type_number: int, words, offset: int) -> int:  # type: ignore[no-untyped-def]
    """Put an event, given as the words of a row, into every column that it satisfies."""
    counters = arrays.counters(state)
    if not counters[ROW_WRITTEN]:
        if not make_room(state, type_number):
            return GROW_HEAP
        row = arrays.types(state)[type_number].tail
        start = row_offset(state, type_number, row)
        for word in range(arrays.types(state)[type_number].width):
            arrays.heap(state)[start + word] = words[offset + word]
        counters[PRESENT_ROW] = row
        counters[APPENDED] = 0
    row = counters[PRESENT_ROW]
    count = match_columns(state, type_number, row)
    if count == 0:
        return DONE
    if not counters[ROW_WRITTEN]:
        arrays.types(state)[type_number].tail = row + 1
        counters[ROW_WRITTEN] = 1
        # The next row comes where the oldest stands, which nobody has looked at for long.
        arrays.prefetch_heap(state, row_offset(state, type_number, row + 1))
    time = words[offset + ROW_TIME]
    step = 0
    for place in range(count):
        column = arrays.matched(state)[place]
        rule = arrays.columns(state)[column].first_rule
        if rule >= 0:
            arrays.prefetch_rule(state, rule)
        access = arrays.columns(state)[column].first_access
        while access >= 0:
            step += 1
            if step > counters[APPENDED]:
                status = append(state, access, type_number, time, row)
                if status != DONE:
                    return status
                counters[APPENDED] = step
            access = arrays.accesses(state)[access].next
        while rule >= 0:
            following = arrays.rules(state)[rule].next
            if following >= 0:
                arrays.prefetch_rule(state, following)
            step += 1
            if step > counters[APPENDED]:
                status = trigger(state, rule, time, row)
                if status != DONE:
                    return status
                counters[APPENDED] = step
            rule = following
    counters[ROW_WRITTEN] = 0
    if time < arrays.types(state)[type_number].taken_in:
        begin_anew(state, type_number, time)
    return DONE


@kernel
def make_room(state: int, type_number: int) -> bool:
    """Make sure that a type's ring has room for one more row; False when the heap has none."""
    types, heap = arrays.types(state), arrays.heap(state)
    kind = types[type_number]
    while kind.tail - kind.head >= kind.capacity and kind.head < kind.tail:
        oldest = row_offset(state, type_number, kind.head)
        if heap[oldest + ROW_TIME] >= kind.horizon:
            break
        types[type_number].head += 1
        kind = types[type_number]
    if kind.tail - kind.head < kind.capacity:
        return True
    capacity = max(FIRST_ROWS, 2 * kind.capacity)
    offset = allocate(state, logarithm(capacity * kind.width))
    if offset < 0:
        return False
    for row in range(kind.head, kind.tail):
        source = row_offset(state, type_number, row)
        target = offset + (row & (capacity - 1)) * kind.width
        for word in range(kind.width):
            heap[target + word] = heap[source + word]
    if kind.capacity:
        release(state, kind.offset, logarithm(kind.capacity * kind.width))
    types[type_number].offset = offset
    types[type_number].capacity = capacity
    return True


@kernel
def match_columns(state: int, type_number: int, row: int) -> int:
    """Write the columns that a row satisfies into ``matched``; gives how many (Static Index)."""
    kind = arrays.types(state)[type_number]
    start = row_offset(state, type_number, row)
    arrays.frame(state)[0] = start
    count = test_chain(state, kind.first_open, 0)
    dispatch = kind.first_dispatch
    while dispatch >= 0:
        word = arrays.heap(state)[start + arrays.dispatch(state)[dispatch].attribute]
        count = test_chain(state, dispatched(state, dispatch, word), count)
        dispatch = arrays.dispatch(state)[dispatch].next
    return count


@kernel
def test_chain(state: int, column: int, count: int) -> int:
    """Add those columns of a chain whose conditions the candidate satisfies to ``matched``."""
    while column >= 0:
        code = arrays.columns(state)[column].code
        if code < 0 or run(state, code):
            arrays.matched(state)[count] = column
            count += 1
        column = arrays.columns(state)[column].next
    return count


@kernel
def dispatch_place(keys, heads, dispatch: int, word: int) -> int:  # type: ignore[no-untyped-def]
    """Where the table of dispatched columns has, or would have, an attribute's value."""
    mask = len(heads) - 1
    mixed = (np.uint64(word) + np.uint64(dispatch)) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
    while heads[place] != -2 and (keys[place].dispatch != dispatch or keys[place].word != word):
        place = (place + 1) & mask
    return place


@kernel
def dispatched(state: int, dispatch: int, word: int) -> int:
    """The first column that asks for this value of the attribute, or -1."""
    place = dispatch_place(
        arrays.dispatch_keys(state), arrays.dispatch_heads(state), dispatch, word
    )
    return max(np.int64(-1), arrays.dispatch_heads(state)[place])


@kernel
def forget_access(state: int, access: int) -> None:
    """Forget every list of an access that is gone."""
    for number in range(arrays.counters(state)[LISTS_TOP]):
        if (
            arrays.lists(state)[number].capacity > 0
            and arrays.lists(state)[number].access == access
        ):
            forget_list(state, number)


@kernel
def forget_rows(state: int, type_number: int) -> None:
    """Give back the rows of a type that no rule uses any more."""
    types = arrays.types(state)
    kind = types[type_number]
    if kind.capacity:
        release(state, kind.offset, logarithm(kind.capacity * kind.width))
    types[type_number].capacity = 0
    types[type_number].head = 0
    types[type_number].tail = 0


# --- terminators ---------------------------------------------------------------------------------


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


# --- composite events ----------------------------------------------------------------------------


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
        place = counters[COMPOSITE]
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
        counters[COMPOSITE] = place + 1
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
        if arrays.rules(state)[rule].automaton >= 0:
            forget_from(state, arrays.rules(state)[rule].automaton, heap[start + ROW_TIME])
    counters[CONSUMED] = 0

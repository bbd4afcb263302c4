"""Whole instants, one after another (tesla.md S12, S14; thesis 5.4.2).

An instant goes through the phases below: its events enter their columns, the rules whose
terminators came run in order of priority (rank, then position), their composite events enter
columns in turn, and at the end what was consumed leaves the columns of its rule, so that all
matches of the instant saw the same history (S11).

A call that lacks room returns a status and has changed nothing since its last complete step; the
host grows what is named and calls again. Where to go on is kept in ``counters``.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.detection import detect
from rules.engine.kernels.expressions import INT_MIN, run
from rules.engine.kernels.layout import (
    APPENDED,
    ARRIVAL,
    COMPOSITE,
    COMPOSITE_END,
    CONSUMED,
    DEFERRED,
    DONE,
    EVALUATED,
    GROW_DEFERRED,
    GROW_HEAP,
    GROW_TRIGGERS,
    HEADER,
    ID_IS_DIGEST,
    INSTANT,
    LISTS_TOP,
    OUT_COUNT,
    OUT_HEADER,
    OUT_HIGH,
    OUT_LOW,
    OUT_RULE,
    OUT_TIME,
    PHASE,
    PRESENT_ROW,
    ROW_ID,
    ROW_KEY_HIGH,
    ROW_KEY_LOW,
    ROW_SEQUENCE,
    ROW_SOURCE,
    ROW_TIME,
    ROW_WRITTEN,
    STORED,
    TRIGGER_SERIAL,
    TRIGGERS,
    Memory,
    Tables,
)
from rules.engine.kernels.memory import (
    allocate,
    find_list,
    forget_list,
    insert_entry,
    logarithm,
    make_list,
    prune,
    release,
    remove_entry,
    row_offset,
    sweep,
)

CHOOSE, ARRIVE, RUN, STORE, CONSUME = 0, 1, 2, 3, 4
"""The phases of an instant."""

FIRST_ROWS = 16
"""Rows of a type's first ring."""
TIME_GREATEST = 2**63 - 1


@kernel
def process(tables: Tables, memory: Memory, arrivals, inbox, stored) -> int:  # type: ignore[no-untyped-def]
    """Go on until everything given is done, or until something must grow.

    ``arrivals`` int64[n, 2] are events, (type, offset in ``inbox``), in the order of (time, E4);
    ``stored`` int64[m, 3] terminators that entered earlier, (time, rule, row), by time.
    """
    counters = memory.counters
    while True:
        phase = counters[PHASE]
        if phase == CHOOSE:
            time = TIME_GREATEST
            if counters[ARRIVAL] < len(arrivals):
                time = inbox[arrivals[counters[ARRIVAL], 1] + ROW_TIME]
            if counters[STORED] < len(stored):
                time = min(time, stored[counters[STORED], 0])
            elif counters[ARRIVAL] == len(arrivals):
                return DONE
            counters[INSTANT] = time
            counters[PHASE] = ARRIVE
        elif phase == ARRIVE:
            status = arrive(tables, memory, arrivals, inbox, stored)
            if status != DONE:
                return status
            counters[PHASE] = RUN
        elif phase == RUN:
            if counters[TRIGGERS] == 0:
                counters[PHASE] = CONSUME
                continue
            rule = memory.trigger_items[0, 0]
            first = counters[OUT_COUNT]
            status = detect(tables, memory, rule, memory.trigger_items[0, 1])
            if status != DONE:
                return status
            counters[EVALUATED] += 1
            pop_trigger(memory)
            if tables.rules[rule].stores and counters[OUT_COUNT] > first:
                counters[COMPOSITE] = first
                counters[COMPOSITE_END] = counters[OUT_COUNT]
                counters[PHASE] = STORE
        elif phase == STORE:
            status = store_composites(tables, memory)
            if status != DONE:
                return status
            counters[PHASE] = RUN
        else:
            if counters[CONSUMED]:
                consume(tables, memory)
            counters[PHASE] = CHOOSE


@kernel
def arrive(tables: Tables, memory: Memory, arrivals, inbox, stored) -> int:  # type: ignore[no-untyped-def]
    """Take in the events of the present instant, and the terminators stored for it."""
    counters = memory.counters
    time = counters[INSTANT]
    while counters[ARRIVAL] < len(arrivals):
        offset = arrivals[counters[ARRIVAL], 1]
        if inbox[offset + ROW_TIME] != time:
            break
        status = enter(tables, memory, arrivals[counters[ARRIVAL], 0], inbox, offset)
        if status != DONE:
            return status
        counters[ARRIVAL] += 1
    while counters[STORED] < len(stored) and stored[counters[STORED], 0] == time:
        place = counters[STORED]
        if not push_trigger(tables, memory, stored[place, 1], stored[place, 2]):
            return GROW_TRIGGERS
        counters[STORED] += 1
    return DONE


# --- events into columns -------------------------------------------------------------------------


@kernel
def enter(tables: Tables, memory: Memory, type_number: int, words, offset: int) -> int:  # type: ignore[no-untyped-def]
    """Put an event, given as the words of a row, into every column that it satisfies."""
    counters = memory.counters
    if not counters[ROW_WRITTEN]:
        if not make_room(tables, memory, type_number):
            return GROW_HEAP
        row = tables.types[type_number].tail
        start = row_offset(tables.types, type_number, row)
        for word in range(tables.types[type_number].width):
            memory.heap[start + word] = words[offset + word]
        counters[PRESENT_ROW] = row
        counters[APPENDED] = 0
    row = counters[PRESENT_ROW]
    count = match_columns(tables, memory, type_number, row)
    if count == 0:
        return DONE
    if not counters[ROW_WRITTEN]:
        tables.types[type_number].tail = row + 1
        counters[ROW_WRITTEN] = 1
    time = words[offset + ROW_TIME]
    step = 0
    for place in range(count):
        column = memory.matched[place]
        access = tables.columns[column].first_access
        while access >= 0:
            step += 1
            if step > counters[APPENDED]:
                status = append(tables, memory, access, type_number, time, row)
                if status != DONE:
                    return status
                counters[APPENDED] = step
            access = tables.accesses[access].next
        rule = tables.columns[column].first_rule
        while rule >= 0:
            step += 1
            if step > counters[APPENDED]:
                status = trigger(tables, memory, rule, time, row)
                if status != DONE:
                    return status
                counters[APPENDED] = step
            rule = tables.rules[rule].next
    counters[ROW_WRITTEN] = 0
    return DONE


@kernel
def make_room(tables: Tables, memory: Memory, type_number: int) -> bool:
    """Make sure that a type's ring has room for one more row; False when the heap has none."""
    types, heap = tables.types, memory.heap
    kind = types[type_number]
    while kind.tail - kind.head >= kind.capacity and kind.head < kind.tail:
        oldest = row_offset(types, type_number, kind.head)
        if heap[oldest + ROW_TIME] >= kind.horizon:
            break
        types[type_number].head += 1
        kind = types[type_number]
    if kind.tail - kind.head < kind.capacity:
        return True
    capacity = max(FIRST_ROWS, 2 * kind.capacity)
    offset = allocate(memory, logarithm(capacity * kind.width))
    if offset < 0:
        return False
    for row in range(kind.head, kind.tail):
        source = row_offset(types, type_number, row)
        target = offset + (row & (capacity - 1)) * kind.width
        for word in range(kind.width):
            heap[target + word] = heap[source + word]
    if kind.capacity:
        release(memory, kind.offset, logarithm(kind.capacity * kind.width))
    types[type_number].offset = offset
    types[type_number].capacity = capacity
    return True


@kernel
def match_columns(tables: Tables, memory: Memory, type_number: int, row: int) -> int:
    """Write the columns that a row satisfies into ``matched``; gives how many (Static Index)."""
    kind = tables.types[type_number]
    start = row_offset(tables.types, type_number, row)
    memory.frame[0] = start
    count = test_chain(tables, memory, kind.first_open, 0)
    dispatch = kind.first_dispatch
    while dispatch >= 0:
        word = memory.heap[start + tables.dispatch[dispatch].attribute]
        count = test_chain(tables, memory, dispatched(tables, dispatch, word), count)
        dispatch = tables.dispatch[dispatch].next
    return count


@kernel
def test_chain(tables: Tables, memory: Memory, column: int, count: int) -> int:
    """Add those columns of a chain whose conditions the candidate satisfies to ``matched``."""
    while column >= 0:
        code = tables.columns[column].code
        if code < 0 or run(tables, memory, code):
            memory.matched[count] = column
            count += 1
        column = tables.columns[column].next
    return count


@kernel
def dispatch_place(keys, heads, dispatch: int, word: int) -> int:  # type: ignore[no-untyped-def]
    """Where the table of dispatched columns has, or would have, an attribute's value."""
    mask = len(heads) - 1
    mixed = (np.uint64(word) + np.uint64(dispatch)) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
    while heads[place] != -2 and (keys[place, 0] != dispatch or keys[place, 1] != word):
        place = (place + 1) & mask
    return place


@kernel
def dispatched(tables: Tables, dispatch: int, word: int) -> int:
    """The first column that asks for this value of the attribute, or -1."""
    place = dispatch_place(tables.dispatch_keys, tables.dispatch_heads, dispatch, word)
    return max(np.int64(-1), tables.dispatch_heads[place])


@kernel
def row_key(heap, access, start: int) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """A row's key words for an access; -0.0 counts as 0.0."""
    first, second = np.int64(0), np.int64(0)
    if access.keys > 0:
        first = heap[start + access.first_key]
        if access.float_keys & 1 and first == INT_MIN:
            first = np.int64(0)
    if access.keys > 1:
        second = heap[start + access.second_key]
        if access.float_keys & 2 and second == INT_MIN:
            second = np.int64(0)
    return first, second


@kernel
def append(
    tables: Tables, memory: Memory, access: int, type_number: int, time: int, row: int
) -> int:
    """Enter a row into its list of an access; sweep another list in passing."""
    record = tables.accesses[access]
    if time < record.horizon:
        return DONE
    start = row_offset(tables.types, type_number, row)
    first, second = row_key(memory.heap, record, start)
    number = find_list(memory, access, first, second)
    if number < 0:
        number = make_list(memory, access, first, second)
        if number < 0:
            return -number
    status = insert_entry(tables, memory, number, type_number, time, row)
    if status == DONE:
        prune(memory, number, record.horizon)
        sweep(tables, memory, 1)
    return status


@kernel
def forget_access(memory: Memory, access: int) -> None:
    """Forget every list of an access that is gone."""
    for number in range(memory.counters[LISTS_TOP]):
        if memory.lists[number].capacity > 0 and memory.lists[number].access == access:
            forget_list(memory, number)


# --- terminators ---------------------------------------------------------------------------------


@kernel
def trigger(tables: Tables, memory: Memory, rule: int, time: int, row: int) -> int:
    """A terminator of a rule: run it at this instant, later, or never."""
    record = tables.rules[rule]
    group = tables.groups[record.group]
    if time < record.floor or time < group.evaluated:
        return DONE
    if time < group.mark:
        return DONE if push_trigger(tables, memory, rule, row) else GROW_TRIGGERS
    if tables.types[tables.columns[record.column].type].ticks:
        return DONE
    counters = memory.counters
    place = counters[DEFERRED]
    if place == len(memory.deferred):
        return GROW_DEFERRED
    memory.deferred[place, 0] = time
    memory.deferred[place, 1] = rule
    memory.deferred[place, 2] = row
    counters[DEFERRED] = place + 1
    return DONE


@kernel
def push_trigger(tables: Tables, memory: Memory, rule: int, row: int) -> bool:
    """Add to the heap of triggers; False when it is full."""
    counters, keys, items = memory.counters, memory.trigger_keys, memory.trigger_items
    place = counters[TRIGGERS]
    if place == len(keys):
        return False
    priority, serial = tables.rules[rule].priority, counters[TRIGGER_SERIAL]
    counters[TRIGGERS] = place + 1
    counters[TRIGGER_SERIAL] = serial + 1
    while place > 0:
        parent = (place - 1) >> 1
        if keys[parent, 0] < priority or (keys[parent, 0] == priority and keys[parent, 1] < serial):
            break
        keys[place, 0], keys[place, 1] = keys[parent, 0], keys[parent, 1]
        items[place, 0], items[place, 1] = items[parent, 0], items[parent, 1]
        place = parent
    keys[place, 0], keys[place, 1] = priority, serial
    items[place, 0], items[place, 1] = rule, row
    return True


@kernel
def pop_trigger(memory: Memory) -> None:
    """Remove the first of the heap of triggers."""
    counters, keys, items = memory.counters, memory.trigger_keys, memory.trigger_items
    last = counters[TRIGGERS] - 1
    counters[TRIGGERS] = last
    priority, serial = keys[last, 0], keys[last, 1]
    rule, row = items[last, 0], items[last, 1]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        if child + 1 < last and (
            keys[child + 1, 0] < keys[child, 0]
            or (keys[child + 1, 0] == keys[child, 0] and keys[child + 1, 1] < keys[child, 1])
        ):
            child += 1
        if priority < keys[child, 0] or (priority == keys[child, 0] and serial < keys[child, 1]):
            break
        keys[place, 0], keys[place, 1] = keys[child, 0], keys[child, 1]
        items[place, 0], items[place, 1] = items[child, 0], items[child, 1]
        place = child
    keys[place, 0], keys[place, 1] = priority, serial
    items[place, 0], items[place, 1] = rule, row


# --- composite events ----------------------------------------------------------------------------


@kernel
def store_composites(tables: Tables, memory: Memory) -> int:
    """Enter the composite events of the last evaluation into columns (hierarchies, S12)."""
    counters, out = memory.counters, memory.out
    words = memory.composite
    while counters[COMPOSITE] < counters[COMPOSITE_END]:
        top = memory.out_offsets[counters[COMPOSITE]]
        rule = tables.rules[out[top + OUT_RULE]]
        words[ROW_TIME] = out[top + OUT_TIME]
        words[ROW_KEY_HIGH] = out[top + OUT_HIGH]
        words[ROW_KEY_LOW] = out[top + OUT_LOW]
        words[ROW_SOURCE] = rule.source
        words[ROW_SEQUENCE] = 0
        words[ROW_ID] = ID_IS_DIGEST
        for value in range(rule.value_count):
            words[HEADER + value] = out[top + OUT_HEADER + value]
        status = enter(tables, memory, rule.type, words, 0)
        if status != DONE:
            return status
        counters[COMPOSITE] += 1
    return DONE


@kernel
def consume(tables: Tables, memory: Memory) -> None:
    """Take what the instant's matches consumed out of the columns of its rules (S11)."""
    counters, heap = memory.counters, memory.heap
    for place in range(counters[CONSUMED]):
        rule = memory.consumed[place, 0]
        type_number, row = memory.consumed[place, 1], memory.consumed[place, 2]
        start = row_offset(tables.types, type_number, row)
        memory.frame[0] = start
        private = tables.rules[rule].private
        while tables.private[private] >= 0:
            access = tables.private[private]
            private += 1
            record = tables.accesses[access]
            column = tables.columns[record.column]
            if column.type != type_number:
                continue
            if column.code >= 0 and not run(tables, memory, column.code):
                continue
            first, second = row_key(heap, record, start)
            number = find_list(memory, access, first, second)
            if number >= 0:
                remove_entry(memory, number, heap[start + ROW_TIME], row)
    counters[CONSUMED] = 0

"""Events into columns: a row in the ring of its type, and an entry in each list it belongs to.

Which columns an event satisfies is looked up by the attributes that conditions are equal to, and
tested for the rest (the thesis's Static Index).

Law: an event enters whole. A call that lacks room has counted the lists that it entered, and goes
on behind them when it is called again.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import allocate, logarithm, release
from rules.engine.kernels.buckets import forget_list
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.expressions import run
from rules.engine.kernels.layout import (
    APPENDED,
    AUTOMATON_BEGINS_ANEW,
    DONE,
    GROW_HEAP,
    LATE_AUTOMATA,
    LISTS_TOP,
    NEVER_USED,
    NO_COLUMN,
    PRESENT_ROW,
    ROW_TIME,
    ROW_WRITTEN,
)
from rules.engine.kernels.memory import append, row_offset
from rules.engine.kernels.terminators import trigger

FIRST_ROWS = 16
"""Rows of a type's first ring."""


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
        automata = arrays.late(state)[LATE_AUTOMATA]
        arrays.call(automata, state, AUTOMATON_BEGINS_ANEW, type_number, time, 0, 0)
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
def dispatch_start(table, dispatch: int, word: int) -> int:  # type: ignore[no-untyped-def]
    """The first place to try for an attribute's value in the table of dispatched columns."""
    mixed = (np.uint64(word) + np.uint64(dispatch)) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(len(table) - 1))


@kernel
def dispatch_place(table, dispatch: int, word: int) -> int:  # type: ignore[no-untyped-def]
    """Where the table of dispatched columns has, or would have, an attribute's value."""
    place = dispatch_start(table, dispatch, word)
    while table[place].head != NEVER_USED and (
        table[place].dispatch != dispatch or table[place].word != word
    ):
        place = (place + 1) & (len(table) - 1)
    return place


@kernel
def dispatched(state: int, dispatch: int, word: int) -> int:
    """The first column that asks for this value of the attribute, or -1."""
    table = arrays.dispatched(state)
    return max(np.int64(NO_COLUMN), table[dispatch_place(table, dispatch, word)].head)


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

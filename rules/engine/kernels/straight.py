"""Evaluation of straight rules (``rules.engine.linking.straight``): one last event after another.

The same match as ``detection`` finds, and written as there; but nothing is stacked, tried again
or looked up, and the events of a match are told apart by where their rows stand.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import first_entry
from rules.engine.kernels.buckets import find_list
from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.emission import has_room, may_yield, note_run, write_match
from rules.engine.kernels.layout import (
    DONE,
    ENTRY_WORDS,
    GROW_OUT,
    GROW_RUNS,
    ROW_TIME,
    RUNS,
    STRAIGHT_HEADER,
    STRAIGHT_KEY_HIGH,
    STRAIGHT_KEY_LOW,
    STRAIGHT_SINCE,
    STRAIGHT_SOURCE,
    STRAIGHT_STEP,
    STRAIGHT_STEPS,
    STRAIGHT_TERMINATOR,
    STRAIGHT_TYPE,
    STRAIGHT_VALUE,
    STRAIGHT_VALUES,
    TOO_MANY,
)
from rules.engine.kernels.memory import find_time, row_offset
from rules.engine.kernels.spans import back_from

NEAR = 4
"""So many entries are looked at one by one before a binary search."""


@kernel
def detect_straight(state: int, rule: int, row: int) -> int:
    """Evaluate the straight rule whose words begin at ``rule`` at a terminator, and write its
    match, if any; unless DONE, nothing is written. TOO_MANY when the rule may yield no more.
    """
    words, heap, frame = arrays.straight(state), arrays.heap(state), arrays.frame(state)
    frame[1] = row_offset(state, words[rule + STRAIGHT_TERMINATOR], row)
    steps, values = words[rule + STRAIGHT_STEPS], words[rule + STRAIGHT_VALUES]
    place = rule + STRAIGHT_HEADER + STRAIGHT_VALUE * values
    for event in range(2, steps + 2):
        start = last_event(state, words, place, event, words[rule + STRAIGHT_SINCE])
        if start < 0:
            return DONE
        frame[event] = start
        place += STRAIGHT_STEP
    type_number, events = words[rule + STRAIGHT_TYPE], steps + 1
    if arrays.counters(state)[RUNS] == len(arrays.runs(state)):
        return GROW_RUNS
    if not has_room(state, type_number, 1, events):
        return GROW_OUT
    source, time = words[rule + STRAIGHT_SOURCE], heap[frame[1] + ROW_TIME]
    if may_yield(state, source, time) == 0:
        return TOO_MANY
    outlet = arrays.outlets(state)[type_number]
    count, capacity = outlet.count, outlet.capacity
    columns = arrays.words_at(outlet.words, values * capacity)
    place = rule + STRAIGHT_HEADER
    for number in range(values):
        columns[number * capacity + count] = heap[frame[words[place]] + words[place + 1]]
        place += STRAIGHT_VALUE
    upper = np.uint64(words[rule + STRAIGHT_KEY_HIGH])
    lower = np.uint64(words[rule + STRAIGHT_KEY_LOW])
    write_match(outlet, heap, frame, events, 0, upper, lower, source)
    note_run(state, type_number, source, time, count)
    return DONE


@part
def last_event(state: int, words, place: int, event: int, since: int) -> int:  # type: ignore[no-untyped-def]
    """Where the row of the event stands that a step, whose words begin at ``place``, selects for
    the frame's place ``event``; -1 for none.
    """
    heap, frame = arrays.heap(state), arrays.frame(state)
    access, key_event = words[place], words[place + 4]
    if key_event < 0:
        number = arrays.accesses(state)[access].list
    else:
        number = find_list(state, access, heap[frame[key_event] + words[place + 5]], 0)
    if number < 0:
        return -1
    late = heap[frame[words[place + 2]] + ROW_TIME]
    early = max(back_from(late, words[place + 3]), since)
    entries = arrays.lists(state)[number]
    if entries.length == 0:
        return -1
    if entries.last_time <= late:
        if entries.last_time < early:
            return -1
        start = row_offset(state, words[place + 1], entries.last_row)
        if not is_taken(frame, event, start):
            return start
    first = first_entry(entries)
    entry = first + (entries.length - 1) * ENTRY_WORDS
    near = entry - NEAR * ENTRY_WORDS
    while entry >= first and heap[entry] > late:
        if entry == near:
            entry = first + (find_time(state, number, late + 1) - 1) * ENTRY_WORDS
            break
        entry -= ENTRY_WORDS
    while entry >= first and heap[entry] >= early:
        start = row_offset(state, words[place + 1], heap[entry + 1])
        if not is_taken(frame, event, start):
            return start
        entry -= ENTRY_WORDS
    return -1


@part
def is_taken(frame, event: int, start: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether a row is one of the match's first: all events of one match are distinct (S1)."""
    taken = False
    for other in range(1, event):
        taken |= frame[other] == start
    return taken

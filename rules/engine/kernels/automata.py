"""Sequence instances: what automata take in between two terminators (thesis 5.3.2, 5.6).

``rules.planning.sequences`` says what states, instances and links are. Here they are lists like
those of columns: the links of an event are the list that its identity names, the instances of a
state the lists of an access that only this module enters events into. So windows prune them, sweeps
give their memory back, and the evaluation of a terminator finds them as it finds anything else.

Law 1: an automaton takes in every instant once, in order of time, and in an instant the earlier
states first; so what it has taken in is what it would take in if it began anew. It does so when
a terminator needs it and no earlier: what no terminator asks for within its window is never made.

Law 2: whatever changes an instant that was taken in (an event that comes late, one of a cycle of
rules that comes after the rule has run, one that is consumed) makes the automaton forget that
instant and all after it; earlier ones do not depend on it.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import first_entry
from rules.engine.kernels.buckets import find_list, forget_list, make_list
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.detection import bind_first, fits
from rules.engine.kernels.layout import (
    DONE,
    ENTRY_WORDS,
    POLICY_FIRST,
    ROW_KEY_HIGH,
    ROW_KEY_LOW,
)
from rules.engine.kernels.memory import (
    append,
    find_time,
    insert_entry,
    remove_entry,
    row_key,
    row_offset,
    sweep,
)
from rules.engine.kernels.spans import back_from, bounds, list_of

TIME_GREATEST = 2**63 - 1


@kernel
def catch_up(state: int, rule_number: int, until: int) -> int:
    """Take in every instant of a rule's automaton up to one, included.

    When there is no room, what the present instant brought is forgotten before the status is
    given: the next call takes it in anew.
    """
    rule = arrays.rules(state)[rule_number]
    record = arrays.automata(state)[rule.automaton]
    time = max(record.taken_in, rule.since)
    while time <= until:
        time = next_instant(state, record, time, until)
        if time > until:
            break
        for place in range(record.first_state, record.last_state):
            status = take_in(state, rule_number, place, time)
            if status != DONE:
                arrays.automata(state)[rule.automaton].taken_in = time + 1
                forget_from(state, rule.automaton, time)
                return status
        time += 1
    if record.taken_in <= until:
        arrays.automata(state)[rule.automaton].taken_in = until + 1
        for place in range(record.first_state, record.last_state):
            note_taken_in(state, arrays.states(state)[place].type, until + 1)
            one = arrays.states(state)[place]
            for link in range(one.first_link, one.last_link):
                step = arrays.links(state)[link].step
                note_taken_in(state, arrays.steps(state)[step].type, until + 1)
    return DONE


@kernel
def note_taken_in(state: int, type_number: int, time: int) -> None:
    """Remember that an automaton has taken in events of a type before ``time``."""
    types = arrays.types(state)
    types[type_number].taken_in = max(types[type_number].taken_in, time)


@kernel
def next_instant(state: int, record, time: int, until: int) -> int:  # type: ignore[no-untyped-def]
    """The first instant, from ``time`` on, at which an event reached a state; or beyond ``until``.

    Events that are out of a terminator's reach at ``until`` are passed over.
    """
    found = TIME_GREATEST
    for place in range(record.first_state, record.last_state):
        one = arrays.states(state)[place]
        number = find_list(state, one.arrivals, 0, 0)
        if number < 0:
            continue
        entry = find_time(state, number, max(time, back_from(until, one.reach)))
        arrivals = arrays.lists(state)[number]
        if entry < arrivals.length:
            word = first_entry(arrivals) + entry * ENTRY_WORDS
            found = min(found, arrays.heap(state)[word])
    return found


@kernel
def take_in(state: int, rule_number: int, place: int, time: int) -> int:
    """Make the instances of the events that reach a state at one instant, and their links."""
    one = arrays.states(state)[place]
    number = find_list(state, one.arrivals, 0, 0)
    if number < 0:
        return DONE
    # Sweeps drop entries at the early end, so places are counted from the late one.
    left = arrays.lists(state)[number].length - find_time(state, number, time)
    while left > 0:
        arrivals = arrays.lists(state)[number]
        word = first_entry(arrivals) + (arrivals.length - left) * ENTRY_WORDS
        if arrays.heap(state)[word] != time:
            break
        status = link_event(state, rule_number, place, time, arrays.heap(state)[word + 1])
        if status != DONE:
            return status
        left -= 1
    return DONE


@kernel
def link_event(state: int, rule_number: int, place: int, time: int, row: int) -> int:
    """Link an event that reaches a state; it is an instance of it if it has the links it needs."""
    one = arrays.states(state)[place]
    rule = arrays.rules(state)[rule_number]
    for event in range(rule.events):
        arrays.chosen(state)[event] = -1
    start = row_offset(state, one.type, row)
    arrays.frame(state)[one.event + 1] = start
    arrays.chosen(state)[one.event] = row
    arrays.chosen_types(state)[one.event] = one.told_by
    is_instance = True
    for link in range(one.first_link, one.last_link):
        made = make_links(state, link, time, rule.since)
        if made < 0:
            return -made
        if made == 0 and one.waits:
            is_instance = False
            break
    if is_instance:
        return append(state, one.instances, one.type, time, row)
    forget_links(state, place, start)
    return DONE


@kernel
def make_links(state: int, link_number: int, time: int, since: int) -> int:
    """Enter the links of one kind of the event in the frame: how many, or minus a status.

    They are entered in ascending order: that of composite events of one rule and instant is
    known by it alone.
    """
    link = arrays.links(state)[link_number]
    step = arrays.steps(state)[link.step]
    source = list_of(state, step)
    if source < 0:
        return 0
    low, high = bounds(state, step, source, since)
    most = high - low
    if link.kept > 0:
        if step.policy == POLICY_FIRST:
            most = link.kept
        else:
            low = first_kept(state, link, source, low, high, time, since)
    target, made = np.int64(-1), 0
    while made < most:
        low = bind_first(state, step, source, low, high, 1, since)
        if low == high:
            break
        record = arrays.lists(state)[source]
        word = first_entry(record) + low * ENTRY_WORDS
        entered, row = arrays.heap(state)[word], arrays.heap(state)[word + 1]
        low += 1
        if target < 0:
            target = list_of_links(state, link.links, arrays.frame(state)[step.anchor + 1])
            if target < 0:
                return target
        status = insert_entry(state, target, step.type, entered, row)
        if status != DONE:
            return -status
        made += 1
    arrays.chosen(state)[step.event] = -1
    sweep(state, 2)
    return made


@kernel
def first_kept(  # type: ignore[no-untyped-def]
    state: int, link, source: int, low: int, high: int, time: int, since: int
) -> int:
    """The first of a list's entries to be linked when only the last ones are kept, and on top of
    them those simultaneous with the event in the frame.
    """
    step, left = arrays.steps(state)[link.step], link.kept
    for place in range(high - 1, low - 1, -1):
        record = arrays.lists(state)[source]
        word = first_entry(record) + place * ENTRY_WORDS
        if not fits(state, step, arrays.heap(state)[word + 1], since):
            continue
        if arrays.heap(state)[word] < time:
            left -= 1
            if left == 0:
                return place
    return low


@kernel
def list_of_links(state: int, access: int, start: int) -> int:
    """The list, made if need be, of the links of the event whose row starts there; or minus a
    status.
    """
    heap = arrays.heap(state)
    high, low = heap[start + ROW_KEY_HIGH], heap[start + ROW_KEY_LOW]
    number = find_list(state, access, high, low)
    return number if number >= 0 else make_list(state, access, high, low)


@kernel
def forget_links(state: int, place: int, start: int) -> None:
    """Forget the links that an event, whose row starts there, has in a state."""
    one, heap = arrays.states(state)[place], arrays.heap(state)
    for link in range(one.first_link, one.last_link):
        access = arrays.links(state)[link].links
        number = find_list(state, access, heap[start + ROW_KEY_HIGH], heap[start + ROW_KEY_LOW])
        if number >= 0:
            forget_list(state, number)


@kernel
def forget_from(state: int, number: int, time: int) -> None:
    """Make an automaton forget what it took in from an instant on."""
    record = arrays.automata(state)[number]
    if record.taken_in <= time:
        return
    for place in range(record.first_state, record.last_state):
        one = arrays.states(state)[place]
        arrivals = find_list(state, one.arrivals, 0, 0)
        if arrivals < 0:
            continue
        for entry in range(find_time(state, arrivals, time), arrays.lists(state)[arrivals].length):
            listed = arrays.lists(state)[arrivals]
            word = first_entry(listed) + entry * ENTRY_WORDS
            entered, row = arrays.heap(state)[word], arrays.heap(state)[word + 1]
            if entered >= record.taken_in:
                break
            forget_instance(state, place, entered, row)
    arrays.automata(state)[number].taken_in = time


@kernel
def forget_instance(state: int, place: int, time: int, row: int) -> None:
    """Forget that an event reached a state."""
    one, heap = arrays.states(state)[place], arrays.heap(state)
    start = row_offset(state, one.type, row)
    forget_links(state, place, start)
    first, second = row_key(heap, arrays.accesses(state)[one.instances], start)
    instances = find_list(state, one.instances, first, second)
    if instances >= 0:
        remove_entry(state, instances, time, row)


@kernel
def begin_anew(state: int, type_number: int, time: int) -> None:
    """An event of a type entered columns at an instant that automata have taken in (Law 2)."""
    automata = arrays.automata(state)
    for number in range(len(automata)):
        record = automata[number]
        if record.taken_in > time and takes_in(state, record, type_number):
            forget_from(state, number, time)


@kernel
def takes_in(state: int, record, type_number: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether events of a type reach states, or are linked, in an automaton."""
    for place in range(record.first_state, record.last_state):
        one = arrays.states(state)[place]
        if one.type == type_number:
            return True
        for link in range(one.first_link, one.last_link):
            if arrays.steps(state)[arrays.links(state)[link].step].type == type_number:
                return True
    return False

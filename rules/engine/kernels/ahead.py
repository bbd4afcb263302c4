"""Asking memory for what the next events will touch, before their turn comes.

From the word of an event it is five to fifteen reads, one after the other, to its columns, their
lists, the rules that it ends and what these look at: with many rules each of them waits for
memory. Which events come next is known, so the ways of some dozen of them are walked side by side,
a step of all before the next step of any. What a step reads was asked for by the one before, and
the waits of many events become one.

Law: nothing is changed, and nothing kept but what has been asked for, so no result depends on it.
What is found may be another's by the time it is needed, and it is not the whole: a chain is walked
up to the first column that asks for more than its place in the chain says, a list is taken to be
in the first bucket of its key, and rows that follow from other rows are not asked for.
"""

from __future__ import annotations

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import first_entry
from rules.engine.kernels.buckets import bucket_of
from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.entering import dispatch_start, dispatched
from rules.engine.kernels.layout import (
    ARRIVAL,
    ARRIVALS,
    ENTRY_WORDS,
    LINE_WORDS,
    LISTS_TOP,
    LOOK_MIN,
    LOOKED,
    STRAIGHT_HEADER,
    STRAIGHT_SOURCE,
    STRAIGHT_STEP,
    STRAIGHT_STEPS,
    STRAIGHT_VALUE,
    STRAIGHT_VALUES,
)
from rules.engine.kernels.memory import row_key, row_offset

BLOCK = 32
"""Events that are walked side by side: what they touch has room in the nearest cache."""
WALKED_KINDS, WALKED_MAX = 8, 4 * BLOCK
"""Room for so many of each kind of what is walked."""
FEW = 4
"""Of fewer events there is nothing to gain."""

PLACES, COLUMNS, RULES, ENTERED, STEPS, ASKED, BUCKETS, LISTS = range(WALKED_KINDS)
"""Kinds of what is walked, in this order. Places are those of words in the static index; accesses
are entered by events or asked by rules.
"""
GROWS = -1
"""Beside a list that an event enters, where one that is read has the type of its rows."""


@kernel
def look_ahead(state: int) -> None:
    """Ask for what the next of the events that arrive will touch."""
    counters, counts = arrays.counters(state), arrays.walked_counts(state)
    first, end = counters[ARRIVAL], counters[ARRIVALS]
    if counters[LISTS_TOP] < counters[LOOK_MIN] or end - first < FEW:
        counters[LOOKED] = end
        return
    end = min(end, first + BLOCK)
    counters[LOOKED] = end
    for kind in range(WALKED_KINDS):
        counts[kind] = 0
    walk_events(state, first, end)
    walk_places(state)
    walk_columns(state)
    walk_rules(state)
    walk_entered(state)
    walk_steps(state)
    walk_asked(state)
    walk_buckets(state)
    walk_lists(state)


@part
def note(state: int, kind: int, number: int, offset: int, more: int) -> None:
    """Let something of a kind be walked: its number, where the words of its event begin, if they
    are needed, and what else is; nothing when there is no room.
    """
    counts = arrays.walked_counts(state)
    count = counts[kind]
    if count < WALKED_MAX:
        walked = arrays.walked(state)[kind * WALKED_MAX + count]
        walked.number, walked.offset, walked.more = number, offset, more
        counts[kind] = count + 1


@part
def walked_at(state: int, kind: int, place: int):  # type: ignore[no-untyped-def]
    """The thing noted as so manieth of its kind."""
    return arrays.walked(state)[kind * WALKED_MAX + place]


@kernel
def walk_events(state: int, first: int, end: int) -> None:
    """From events to places in the static index, and to the columns that are open to all."""
    arrivals, inbox, table = arrays.arrivals(state), arrays.inbox(state), arrays.dispatched(state)
    for place in range(first, end):
        arriving = arrivals[place]
        kind = arrays.types(state)[arriving.type]
        if kind.first_open >= 0 and arrays.columns(state)[kind.first_open].code < 0:
            note(state, COLUMNS, kind.first_open, arriving.offset, 0)
        dispatch = kind.first_dispatch
        while dispatch >= 0:
            record = arrays.dispatch(state)[dispatch]
            word = inbox[arriving.offset + record.attribute]
            arrays.prefetch_dispatched(state, dispatch_start(table, dispatch, word))
            note(state, PLACES, dispatch, arriving.offset, word)
            dispatch = record.next


@kernel
def walk_places(state: int) -> None:
    """From places in the static index to columns."""
    for place in range(arrays.walked_counts(state)[PLACES]):
        walked = walked_at(state, PLACES, place)
        column = dispatched(state, walked.number, walked.more)
        if column >= 0:
            arrays.prefetch_column(state, column)
            note(state, COLUMNS, column, walked.offset, 0)


@kernel
def walk_columns(state: int) -> None:
    """From columns to accesses, to the rules that their events end, and to the next columns."""
    place = 0
    while place < arrays.walked_counts(state)[COLUMNS]:
        walked = walked_at(state, COLUMNS, place)
        column = arrays.columns(state)[walked.number]
        if column.next >= 0 and column.code < 0:
            arrays.prefetch_column(state, column.next)
            note(state, COLUMNS, column.next, walked.offset, 0)
        if column.first_access >= 0:
            arrays.prefetch_access(state, column.first_access)
            note(state, ENTERED, column.first_access, walked.offset, 0)
        if column.first_rule >= 0:
            arrays.prefetch_rule(state, column.first_rule)
            note(state, RULES, column.first_rule, walked.offset, 0)
        place += 1


@kernel
def walk_rules(state: int) -> None:
    """From rules to the words of straight ones, and to the next rules of their columns."""
    place = 0
    while place < arrays.walked_counts(state)[RULES]:
        walked = walked_at(state, RULES, place)
        rule = arrays.rules(state)[walked.number]
        if rule.next >= 0:
            arrays.prefetch_rule(state, rule.next)
            note(state, RULES, rule.next, walked.offset, 0)
        if rule.straight >= 0:
            arrays.prefetch_straight(state, rule.straight)
            arrays.prefetch_straight(state, rule.straight + LINE_WORDS)
            arrays.prefetch_straight(state, rule.straight + 2 * LINE_WORDS)
            note(state, STEPS, rule.straight, walked.offset, 0)
        place += 1


@kernel
def walk_entered(state: int) -> None:
    """From accesses that events enter to lists, or to buckets that say which."""
    inbox, buckets = arrays.inbox(state), arrays.buckets(state)
    place = 0
    while place < arrays.walked_counts(state)[ENTERED]:
        walked = walked_at(state, ENTERED, place)
        access = arrays.accesses(state)[walked.number]
        if access.next >= 0:
            arrays.prefetch_access(state, access.next)
            note(state, ENTERED, access.next, walked.offset, 0)
        if access.keys > 0:
            first, second = row_key(inbox, access, walked.offset)
            bucket = bucket_of(buckets, walked.number, first, second)
            arrays.prefetch_bucket(state, bucket)
            note(state, BUCKETS, bucket, 0, GROWS)
        else:
            ask_list(state, access.list, GROWS)
        place += 1


@kernel
def walk_steps(state: int) -> None:
    """From the words of rules to the accesses that they ask, if their key is the terminator's."""
    words = arrays.straight(state)
    for place in range(arrays.walked_counts(state)[STEPS]):
        walked = walked_at(state, STEPS, place)
        rule = walked.number
        arrays.prefetch_rank(state, words[rule + STRAIGHT_SOURCE])
        step = rule + STRAIGHT_HEADER + STRAIGHT_VALUE * words[rule + STRAIGHT_VALUES]
        for _ in range(words[rule + STRAIGHT_STEPS]):
            if words[step + 4] <= 1:
                arrays.prefetch_access(state, words[step])
                note(state, ASKED, words[step], walked.offset + words[step + 5], words[step + 1])
            step += STRAIGHT_STEP


@kernel
def walk_asked(state: int) -> None:
    """From accesses that rules ask to lists, or to buckets that say which."""
    inbox, buckets = arrays.inbox(state), arrays.buckets(state)
    for place in range(arrays.walked_counts(state)[ASKED]):
        walked = walked_at(state, ASKED, place)
        access = arrays.accesses(state)[walked.number]
        if access.keys > 0:
            bucket = bucket_of(buckets, walked.number, inbox[walked.offset], 0)
            arrays.prefetch_bucket(state, bucket)
            note(state, BUCKETS, bucket, 0, walked.more)
        else:
            ask_list(state, access.list, walked.more)


@kernel
def walk_buckets(state: int) -> None:
    """From buckets to lists."""
    for place in range(arrays.walked_counts(state)[BUCKETS]):
        walked = walked_at(state, BUCKETS, place)
        ask_list(state, arrays.buckets(state)[walked.number], walked.more)


@part
def ask_list(state: int, number: int, type_number: int) -> None:
    """Ask for a list, if there is one, whose last row of a type is read; or which GROWS."""
    if number >= 0:
        arrays.prefetch_list(state, number)
        note(state, LISTS, number, 0, type_number)


@kernel
def walk_lists(state: int) -> None:
    """From lists to where the next entry comes, and to the row of the last one."""
    for place in range(arrays.walked_counts(state)[LISTS]):
        walked = walked_at(state, LISTS, place)
        entries = arrays.lists(state)[walked.number]
        if walked.more == GROWS:
            arrays.prefetch_heap(state, first_entry(entries) + entries.length * ENTRY_WORDS)
        elif entries.length > 0:
            arrays.prefetch_heap(state, row_offset(state, walked.more, entries.last_row))

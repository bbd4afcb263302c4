"""Summaries of lists, by which an aggregate of a long window costs no more than of a short one.

A *summary* stands beside a list of entries and holds one attribute of them: its words in a ring,
and above them either prefix sums at every 16th entry (``exact``) or a ``pyramid``. It is made
when a window is asked for that is too long to be scanned, covers the entries of the windows that
were asked for, and is brought up to date by the next question; so events that no aggregate asks
about cost nothing, and others once.

Entries are numbered from the first that the list ever had, so neither moving a list nor dropping
its oldest entries touches a summary. An entry that is put among older ones, or taken out, changes
the numbers of those behind it: the summary forgets these, and no others.

Law 1: a summary never decides a result: what it says is what a scan would say, bit for bit.

Law 2: evaluation never waits for memory. Where there is no room for a summary the window is
scanned, and what was lacking is left in ``WISH`` for the host to grow before the next instant.
"""

from __future__ import annotations

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import logarithm, release
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.exact import INT_DIGITS
from rules.engine.kernels.layout import (
    GROW_SUMMARIES,
    KIND_FLOAT,
    SUMMARIES_FREE,
    SUMMARIES_TOP,
    WISH,
)

FIRST_VALUES = 64
"""The ring of a new summary holds at least so many values."""


@kernel
def find_summary(state: int, number: int, form: int, attribute: int) -> int:
    """The summary of a list in a form and of an attribute, or -1."""
    summary = arrays.lists(state)[number].summary
    while summary >= 0:
        record = arrays.summaries(state)[summary]
        if record.form == form and record.attribute == attribute:
            return summary
        summary = record.next
    return -1


@kernel
def make_summary(state: int, number: int, form: int, attribute: int, kind: int) -> int:
    """A new summary that covers nothing yet; -1 and a wish when there is no record left."""
    counters, summaries = arrays.counters(state), arrays.summaries(state)
    summary = counters[SUMMARIES_FREE]
    if summary >= 0:
        counters[SUMMARIES_FREE] = summaries[summary].next
    elif counters[SUMMARIES_TOP] < len(summaries):
        summary = counters[SUMMARIES_TOP]
        counters[SUMMARIES_TOP] += 1
    else:
        counters[WISH] = GROW_SUMMARIES
        return -1
    summaries[summary].form = form
    summaries[summary].attribute = attribute
    summaries[summary].kind = kind
    summaries[summary].begin = 0
    summaries[summary].end = 0
    summaries[summary].capacity = 0
    summaries[summary].lowest = 0
    summaries[summary].digits = 0 if kind == KIND_FLOAT else INT_DIGITS
    summaries[summary].next = arrays.lists(state)[number].summary
    arrays.lists(state)[number].summary = summary
    return summary


@kernel
def empty(state: int, summary: int) -> None:
    """Give the segments of a summary back."""
    summaries = arrays.summaries(state)
    record = summaries[summary]
    if record.capacity:
        release(state, record.values, logarithm(record.capacity))
        release(state, record.blocks, record.block_class)
    summaries[summary].capacity = 0
    summaries[summary].begin = 0
    summaries[summary].end = 0


@kernel
def forget_summaries(state: int, number: int) -> None:
    """Give back all summaries of a list."""
    counters, summaries = arrays.counters(state), arrays.summaries(state)
    summary = arrays.lists(state)[number].summary
    while summary >= 0:
        following = summaries[summary].next
        empty(state, summary)
        summaries[summary].next = counters[SUMMARIES_FREE]
        counters[SUMMARIES_FREE] = summary
        summary = following
    arrays.lists(state)[number].summary = -1


@kernel
def forget_from(state: int, number: int, entry: int) -> None:
    """The entries of a list from number ``entry`` on are no longer what they were.

    A summary that began behind it covers nothing, and so begins there: never beyond the last entry,
    where old ones would be read that have been taken out.
    """
    summaries = arrays.summaries(state)
    summary = arrays.lists(state)[number].summary
    while summary >= 0:
        record = summaries[summary]
        summaries[summary].end = min(record.end, entry)
        summaries[summary].begin = min(record.begin, entry)
        summary = record.next


@kernel
def forget_stale(state: int, number: int) -> None:
    """Give back the summaries of a list that cover none of its entries, or are far too large."""
    record = arrays.lists(state)[number]
    summary = record.summary
    while summary >= 0:
        one = arrays.summaries(state)[summary]
        if one.end <= record.first or one.capacity > max(FIRST_VALUES, 16 * record.length):
            empty(state, summary)
        summary = one.next

"""The work of one thread of each kernel of operators.

Tables are flat: a *batch* of events has column ``c`` of event ``t`` at ``c * step + t``; a *ring*,
what a window keeps, has its event number ``p`` at ``c * capacity + (p & capacity - 1)``, the
capacity being a power of two. Events of a stream are numbered from 0 for ever; column 0 is time.
Lists of programs (``values``, ``conditions``), of what is ``compared`` (an op and the relations
wanted) and of ``kinds`` say first how many there are.

What a window is after a batch is written by a kernel of its own, ``append``: a ring has room for
the batch beside all that is read of the window before, so it may run before the outputs are told.

Law: each thread writes words of its own, so that no order of the threads matters.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels.words import (
    COMPARE_F,
    COMPARE_I,
    COMPARE_S,
    GREATER,
    LESS,
    SAME,
    relation,
)
from studies.operators.kernels.compiled import kernel
from studies.operators.kernels.machine import run

COUNT, LOW, HIGH, LEAST, GREATEST = 0, 1, 2, 3, 4
"""Parts that are kept of an aggregate: how many values, their sum in two digits of 32 bits (the
exact digits of ints, rules.engine.kernels.exact), the least and the greatest of them.
"""
PARTS = 5
IS_FLOAT = 1
"""The kind of what is aggregated, where it is not an int."""
LOW_BITS = 0xFFFFFFFF
LEAVES = 1 << 62
"""Taken from the number of an event that leaves a window."""
ANY = LESS | SAME | GREATER


@kernel
def bound(ring, capacity, begin, end, time, after):
    """The first event of ``begin`` to ``end`` whose time is at least ``time``, or with ``after``
    beyond it; ``end`` where there is none.
    """
    while begin < end:
        middle = (begin + end) >> 1
        found = ring[middle & (capacity - 1)]
        if found < time or (after and found == time):
            begin = middle + 1
        else:
            end = middle
    return begin


# --- filters -------------------------------------------------------------------------------------


@kernel
def flag(t, batch, step, code, first, results, width, counts, stack):
    """Whether event ``t`` satisfies the condition: 1 or 0."""
    _, is_so = run(code, first, results, width, batch, step, t, batch, step, t, stack)
    counts[t] = 1 if is_so else 0


@kernel
def gather(t, offsets, batch, step, columns, places, out, out_step):
    """Put event ``t``, if it is flagged, where the scan of the flags says: its number, and so many
    of its columns.
    """
    at = offsets[t]
    if offsets[t + 1] > at:
        places[at] = t
        for column in range(columns):
            out[column * out_step + at] = batch[column * step + t]


# --- windows -------------------------------------------------------------------------------------


@kernel
def append(
    t,
    batch,
    step,
    raw,
    ring,
    capacity,
    end,
    code,
    first,
    values,
    results,
    width,
    stack,
):
    """Put event ``t`` into a ring: its columns, whether it can count at all, and what the programs
    ``values`` make of it. It counts where the condition at ``first`` holds, if that is not
    negative, and where all these are defined.
    """
    at = (end + t) & (capacity - 1)
    for column in range(raw):
        ring[column * capacity + at] = batch[column * step + t]
    is_so = True
    if first >= 0:
        _, is_so = run(code, first, results, width, batch, step, t, batch, step, t, stack)
    for k in range(values[0]):
        word, is_known = run(
            code, values[1 + k], results, width, batch, step, t, batch, step, t, stack
        )
        ring[(raw + 1 + k) * capacity + at] = word
        is_so = is_so and is_known
    ring[raw * capacity + at] = 1 if is_so else 0


@kernel
def move(t, old, old_capacity, new, new_capacity, columns, start):
    """Put event ``start + t`` of one ring into another, of another capacity."""
    at, to = (start + t) & (old_capacity - 1), (start + t) & (new_capacity - 1)
    for column in range(columns):
        new[column * new_capacity + to] = old[column * old_capacity + at]


@kernel
def oldest(t, ring, capacity, start, end, length, duration, lows):
    """The first event of the window right behind the arrival of event ``end + t``.

    ``length`` and ``duration`` (in microseconds) bound the window where they are not negative.
    """
    low = start
    if duration >= 0:
        time = ring[(end + t) & (capacity - 1)] - duration
        low = bound(ring, capacity, start, end + t, time, 0)
    if length >= 0 and end + t + 1 - length > low:
        low = end + t + 1 - length
    lows[t] = low


@kernel
def arrange(t, lows, count, start, end, turns):
    """Put one event where it stands among the window's changes: the arrivals, each behind the
    events that it drives out. The first ``count`` threads are arrivals, the others those in the
    window before, and then those that came now, as they leave.

    ``turns`` has the number of an event that arrives, and of one that leaves that less LEAVES.
    """
    if t < count:
        turns[t + lows[t] - start] = end + t
        return
    leaving = start + t - count
    if leaving >= lows[count - 1]:
        return
    begin, last = 0, count - 1
    while begin < last:  # the first arrival that finds it gone
        middle = (begin + last) >> 1
        if lows[middle] > leaving:
            last = middle
        else:
            begin = middle + 1
    turns[begin + leaving - start] = leaving - LEAVES


# --- joins ---------------------------------------------------------------------------------------


@kernel
def span(
    t,
    mine,
    my_capacity,
    my_end,
    theirs,
    their_capacity,
    their_start,
    their_end,
    their_new_end,
    length,
    duration,
    ties,
    snapshot,
    spans,
):
    """The events of the other window that event ``my_end + t`` of this side meets: from, and to.

    Of the other side's new events it meets those that came before it: of an earlier time, and with
    ``ties`` of the same. ``length`` and ``duration`` bound the window where they are not negative;
    its length is counted back from what the event meets, or from ``snapshot`` if that is not
    negative.
    """
    time = mine[(my_end + t) & (my_capacity - 1)]
    high = bound(theirs, their_capacity, their_end, their_new_end, time, ties)
    low = their_start
    if duration >= 0:
        low = bound(theirs, their_capacity, their_start, high, time - duration, 0)
    last = high if snapshot < 0 else snapshot
    if length >= 0 and last - length > low:
        low = last - length
    spans[2 * t] = low
    spans[2 * t + 1] = high


@kernel
def common(t, one, other, spans):
    """The overlap of two spans of event ``t``."""
    spans[2 * t] = max(one[2 * t], other[2 * t])
    spans[2 * t + 1] = min(one[2 * t + 1], other[2 * t + 1])


@kernel
def meets(
    at,
    to,
    mine,
    my_capacity,
    theirs,
    their_capacity,
    flipped,
    my_raw,
    their_raw,
    compared,
    begin,
    code,
    rest,
    results,
    width,
    stack,
):
    """Whether two events that count satisfy the comparisons from ``begin`` on, and the rest of the
    condition. ``flipped``: mine is the right one.
    """
    for k in range(begin, compared[0, 0]):
        one = mine[(my_raw + 1 + k) * my_capacity + at]
        other = theirs[(their_raw + 1 + k) * their_capacity + to]
        left, right = (other, one) if flipped else (one, other)
        if relation(compared[1 + k, 0], left, right) & compared[1 + k, 1] == 0:
            return False
    if rest < 0:
        return True
    if flipped:
        _, is_so = run(
            code, rest, results, width, theirs, their_capacity, to, mine, my_capacity, at, stack
        )
    else:
        _, is_so = run(
            code, rest, results, width, mine, my_capacity, at, theirs, their_capacity, to, stack
        )
    return is_so


@kernel
def pair(
    t,
    count,
    slices,
    size,
    spans,
    mine,
    my_capacity,
    my_end,
    theirs,
    their_capacity,
    flipped,
    my_raw,
    their_raw,
    compared,
    code,
    rest,
    results,
    width,
    counts,
    totals,
    pairs,
    skip,
    room,
    stack,
):
    """Join one event with one slice of the other window.

    Threads side by side take events side by side and the same slice, so that all of them read one
    word of the window at a time. With ``room`` negative the matches are counted, in ``counts`` by
    thread; else these are what :func:`total` made of them, and ``totals`` its scan, and the matches
    go to ``pairs``, mine and theirs, ``room`` of them behind the first ``skip``.
    """
    event, slice_ = t % count, t // count
    begin = spans[0] + slice_ * size  # both ends of spans only ever grow
    end = min(begin + size, spans[2 * event + 1])
    begin = max(begin, spans[2 * event])
    at = (my_end + event) & (my_capacity - 1)
    found = 0
    if room >= 0:
        last = totals[event + 1] - totals[event]
        if slice_ + 1 < slices:
            last = counts[t + count]
        if counts[t] == last:
            return
        found = totals[event] + counts[t]
    if mine[my_raw * my_capacity + at] != 0:
        # What is compared first is at hand for all events of the slice.
        op, wanted, first = 0, ANY, 0
        if compared[0, 0] > 0:
            op, wanted = compared[1, 0], compared[1, 1]
            first = mine[(my_raw + 1) * my_capacity + at]
        is_equality = wanted == SAME and op in (COMPARE_I, COMPARE_S)
        mask, counted = their_capacity - 1, their_raw * their_capacity
        words = counted + their_capacity
        for position in range(begin, end):
            to = position & mask
            if is_equality:  # as most are: no more than a load and a comparison
                if theirs[words + to] != first:
                    continue
            elif wanted != ANY:
                one, other = first, theirs[words + to]
                if flipped:
                    one, other = other, one
                if relation(op, one, other) & wanted == 0:
                    continue
            if theirs[counted + to] == 0:
                continue
            if meets(
                at,
                to,
                mine,
                my_capacity,
                theirs,
                their_capacity,
                flipped,
                my_raw,
                their_raw,
                compared,
                1,
                code,
                rest,
                results,
                width,
                stack,
            ):
                row = found - skip
                if 0 <= row < room:
                    pairs[2 * row] = my_end + event
                    pairs[2 * row + 1] = position
                found += 1
    if room < 0:
        counts[t] = found


@kernel
def total(t, count, slices, counts, totals):
    """How many matches event ``t`` has; in place of the count of each slice those before it."""
    found = 0
    for slice_ in range(slices):
        place = slice_ * count + t
        here = counts[place]
        counts[place] = found
        found += here
    totals[t] = found


@kernel
def select(
    t,
    pairs,
    flipped,
    mine,
    my_capacity,
    theirs,
    their_capacity,
    code,
    values,
    results,
    width,
    out,
    step,
    stack,
):
    """The results of the programs ``values`` for pair ``t``: the later of its times, a column for
    each, and whether all of them are defined.
    """
    at, to = pairs[2 * t] & (my_capacity - 1), pairs[2 * t + 1] & (their_capacity - 1)
    out[t] = max(mine[at], theirs[to])
    is_so = True
    for k in range(values[0]):
        if flipped:
            word, is_known = run(
                code,
                values[1 + k],
                results,
                width,
                theirs,
                their_capacity,
                to,
                mine,
                my_capacity,
                at,
                stack,
            )
        else:
            word, is_known = run(
                code,
                values[1 + k],
                results,
                width,
                mine,
                my_capacity,
                at,
                theirs,
                their_capacity,
                to,
                stack,
            )
        out[(1 + k) * step + t] = word
        is_so = is_so and is_known
    out[(1 + values[0]) * step + t] = 1 if is_so else 0


# --- aggregates ----------------------------------------------------------------------------------


@kernel
def append_values(
    t, batch, step, raw, ring, capacity, end, code, conditions, values, results, width, stack
):
    """Put event ``t`` into a ring: its columns, and then two for each aggregate, whether the event
    counts for it, and its value. It counts where the condition holds, if its program is not
    negative, and where the value is defined; one without a program is 0.
    """
    at = (end + t) & (capacity - 1)
    for column in range(raw):
        ring[column * capacity + at] = batch[column * step + t]
    for k in range(values[0]):
        is_so, word = True, np.int64(0)
        if conditions[1 + k] >= 0:
            _, is_so = run(
                code, conditions[1 + k], results, width, batch, step, t, batch, step, t, stack
            )
        if is_so and values[1 + k] >= 0:
            word, is_so = run(
                code, values[1 + k], results, width, batch, step, t, batch, step, t, stack
            )
        ring[(raw + 2 * k) * capacity + at] = 1 if is_so else 0
        ring[(raw + 2 * k + 1) * capacity + at] = word


@kernel
def relation_in(kind, one, other):
    """The relation of two values that are aggregated."""
    if kind == IS_FLOAT:
        return relation(COMPARE_F, one, other)
    return LESS if one < other else (GREATER if one > other else SAME)


@kernel
def aggregate(
    t, count, slices, size, lows, ring, capacity, end, keys, kinds, first, threads, parts
):
    """One aggregate over one slice of the window of one event, its group alone.

    Columns 1 to ``keys`` of the ring are the group's; from ``first`` on there are two for each
    aggregate: whether an event counts, and its value. ``parts`` has what is kept in rows of
    ``threads``.
    """
    cell, which = t % (count * slices), t // (count * slices)
    event, slice_ = cell % count, cell // count
    begin = lows[0] + slice_ * size  # lows only ever grow
    last = min(begin + size, end + event + 1)
    begin = max(begin, lows[event])
    at, mask, kind = (end + event) & (capacity - 1), capacity - 1, kinds[1 + which]
    counted = (first + 2 * which) * capacity
    number, low, high, least, greatest = 0, 0, 0, 0, 0
    for position in range(begin, last):
        to = position & mask
        if ring[counted + to] == 0:
            continue
        is_mine = True
        for key in range(1, keys + 1):
            if ring[key * capacity + at] != ring[key * capacity + to]:
                is_mine = False
        if not is_mine:
            continue
        value = ring[counted + capacity + to]
        low += value & LOW_BITS
        high += value >> 32
        if number == 0 or relation_in(kind, value, least) == LESS:
            least = value
        if number == 0 or relation_in(kind, value, greatest) == GREATER:
            greatest = value
        number += 1
    parts[COUNT * threads + t] = number
    parts[LOW * threads + t] = low
    parts[HIGH * threads + t] = high
    parts[LEAST * threads + t] = least
    parts[GREATEST * threads + t] = greatest


@kernel
def combine(t, count, slices, kinds, threads, parts, out, step):
    """The slices of one event and one aggregate as one: rows of ``out`` as of ``parts``."""
    event, which = t % count, t // count
    kind = kinds[1 + which]
    number, low, high, least, greatest = 0, 0, 0, 0, 0
    for slice_ in range(slices):
        place = (which * slices + slice_) * count + event
        some = parts[COUNT * threads + place]
        if some == 0:
            continue
        low += parts[LOW * threads + place]
        high += parts[HIGH * threads + place]
        value = parts[LEAST * threads + place]
        if number == 0 or relation_in(kind, value, least) == LESS:
            least = value
        value = parts[GREATEST * threads + place]
        if number == 0 or relation_in(kind, value, greatest) == GREATER:
            greatest = value
        number += some
    out[COUNT * step + t] = number
    out[LOW * step + t] = low
    out[HIGH * step + t] = high
    out[LEAST * step + t] = least
    out[GREATEST * step + t] = greatest

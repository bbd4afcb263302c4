"""The kernels of operators on a processor: each body in a loop over its threads."""

from __future__ import annotations

import numpy as np

from studies.operators.kernels import bodies
from studies.operators.kernels.compiled import kernel
from studies.operators.kernels.machine import STACK


@kernel
def flag(threads, batch, step, code, first, results, width, counts):
    """Flag the events that satisfy a condition."""
    stack = np.empty(STACK, np.int64)
    for t in range(threads):
        bodies.flag(t, batch, step, code, first, results, width, counts, stack)


@kernel
def gather(threads, offsets, batch, step, columns, places, out, out_step):
    """The events that are flagged, one behind the other."""
    for t in range(threads):
        bodies.gather(t, offsets, batch, step, columns, places, out, out_step)


@kernel
def scan(threads, counts):
    """The sum of all counts before each, in their place, and of all behind the last."""
    total = 0
    for t in range(threads):
        count = counts[t]
        counts[t] = total
        total += count
    counts[threads] = total


@kernel
def append(threads, batch, step, raw, ring, capacity, end, code, first, values, results, width):
    """Events into a ring, with what is worked out of each."""
    stack = np.empty(STACK, np.int64)
    for t in range(threads):
        bodies.append(
            t, batch, step, raw, ring, capacity, end, code, first, values, results, width, stack
        )


@kernel
def move(threads, old, old_capacity, new, new_capacity, columns, start):
    """A ring into another."""
    for t in range(threads):
        bodies.move(t, old, old_capacity, new, new_capacity, columns, start)


@kernel
def oldest(threads, ring, capacity, start, end, length, duration, lows):
    """Where the window begins behind each arrival."""
    for t in range(threads):
        bodies.oldest(t, ring, capacity, start, end, length, duration, lows)


@kernel
def arrange(threads, lows, count, start, end, turns):
    """Arrivals and the events that they drive out, in order."""
    for t in range(threads):
        bodies.arrange(t, lows, count, start, end, turns)


@kernel
def span(
    threads,
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
    """The span of the other window that each event of one side meets."""
    for t in range(threads):
        bodies.span(
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
        )


@kernel
def common(threads, one, other, spans):
    """The overlap of two spans."""
    for t in range(threads):
        bodies.common(t, one, other, spans)


@kernel
def pair(
    threads,
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
):
    """Events of one side with slices of the other window: counted, or put into ``pairs``."""
    stack = np.empty(STACK, np.int64)
    for t in range(threads):
        bodies.pair(
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
        )


@kernel
def total(threads, count, slices, counts, totals):
    """How many matches each event has."""
    for t in range(threads):
        bodies.total(t, count, slices, counts, totals)


@kernel
def select(
    threads,
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
):
    """Select from each pair."""
    stack = np.empty(STACK, np.int64)
    for t in range(threads):
        bodies.select(
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
        )


@kernel
def append_values(
    threads, batch, step, raw, ring, capacity, end, code, conditions, values, results, width
):
    """Events into a ring, with what each gives to each aggregate."""
    stack = np.empty(STACK, np.int64)
    for t in range(threads):
        bodies.append_values(
            t,
            batch,
            step,
            raw,
            ring,
            capacity,
            end,
            code,
            conditions,
            values,
            results,
            width,
            stack,
        )

"""The bodies of :mod:`studies.operators.kernels.bodies` on a device, a thread each.

Law: nothing is written twice. A body's device function is the code of the body itself, in which
the names of other bodies stand for their device functions; plain functions of numbers are taken as
they are.
"""

from __future__ import annotations

from numba import cuda, int64

from rules.engine.gpu.words import on_device, step
from studies.operators.kernels import bodies, machine
from studies.operators.kernels.machine import STACK

_run = on_device(machine.run, step=step)
_bound = on_device(bodies.bound)
_flag = on_device(bodies.flag, run=_run)
_gather = on_device(bodies.gather)
_append = on_device(bodies.append, run=_run)
_move = on_device(bodies.move)
_oldest = on_device(bodies.oldest, bound=_bound)
_arrange = on_device(bodies.arrange)
_span = on_device(bodies.span, bound=_bound)
_common = on_device(bodies.common)
_meets = on_device(bodies.meets, run=_run)
_pair = on_device(bodies.pair, meets=_meets)
_total = on_device(bodies.total)
_select = on_device(bodies.select, run=_run)
_append_values = on_device(bodies.append_values, run=_run)
_aggregate = on_device(bodies.aggregate)
_combine = on_device(bodies.combine)


@cuda.jit
def flag(grid_threads, batch, step, code, first, results, width, counts):
    """As ``bodies.flag``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        stack = cuda.local.array(STACK, int64)
        _flag(t, batch, step, code, first, results, width, counts, stack)


@cuda.jit
def gather(grid_threads, offsets, batch, step, columns, places, out, out_step):
    """As ``bodies.gather``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        _gather(t, offsets, batch, step, columns, places, out, out_step)


@cuda.jit
def append(
    grid_threads, batch, step, raw, ring, capacity, end, code, first, values, results, width
):
    """As ``bodies.append``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        stack = cuda.local.array(STACK, int64)
        _append(
            t, batch, step, raw, ring, capacity, end, code, first, values, results, width, stack
        )


@cuda.jit
def move(grid_threads, old, old_capacity, new, new_capacity, columns, start):
    """As ``bodies.move``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        _move(t, old, old_capacity, new, new_capacity, columns, start)


@cuda.jit
def oldest(grid_threads, ring, capacity, start, end, length, duration, lows):
    """As ``bodies.oldest``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        _oldest(t, ring, capacity, start, end, length, duration, lows)


@cuda.jit
def arrange(grid_threads, lows, count, start, end, turns):
    """As ``bodies.arrange``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        _arrange(t, lows, count, start, end, turns)


@cuda.jit
def span(
    grid_threads,
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
    """As ``bodies.span``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        _span(
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


@cuda.jit
def common(grid_threads, one, other, spans):
    """As ``bodies.common``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        _common(t, one, other, spans)


@cuda.jit
def pair(
    grid_threads,
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
    """As ``bodies.pair``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        stack = cuda.local.array(STACK, int64)
        _pair(
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


@cuda.jit
def total(grid_threads, count, slices, counts, totals):
    """As ``bodies.total``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        _total(t, count, slices, counts, totals)


@cuda.jit
def select(
    grid_threads,
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
    """As ``bodies.select``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        stack = cuda.local.array(STACK, int64)
        _select(
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


@cuda.jit
def append_values(
    grid_threads, batch, step, raw, ring, capacity, end, code, conditions, values, results, width
):
    """As ``bodies.append_values``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        stack = cuda.local.array(STACK, int64)
        _append_values(
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


@cuda.jit
def aggregate(
    grid_threads, count, slices, size, lows, ring, capacity, end, keys, kinds, first, threads, parts
):
    """As ``bodies.aggregate``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        _aggregate(
            t, count, slices, size, lows, ring, capacity, end, keys, kinds, first, threads, parts
        )


@cuda.jit
def combine(grid_threads, count, slices, kinds, threads, parts, out, step):
    """As ``bodies.combine``, a thread each."""
    t = cuda.grid(1)
    if t < grid_threads:
        _combine(t, count, slices, kinds, threads, parts, out, step)

"""The kernels of CDP on CUDA as published: multiple and single selection, tests, aggregates.

What the arguments that they share mean: ``arena`` and ``code`` see ``layout``; ``steps`` int64[n,
STEP] and ``step`` the row at hand; the events of the step's column to look at are ``count`` from
place ``first`` of its ring on, which the host has found; ``sequences`` int64[room, words], of which
the first ``total`` are the partial sequences so far. Blocks of x cover the events, so that threads
side by side read rows side by side; blocks of y share out the partial sequences.
"""

from __future__ import annotations

import math

from numba import cuda, int64

from rules.engine.kernels.words import as_float, as_word
from studies.cdp_on_cuda.layout import (
    AGGREGATED,
    ANCHOR,
    AVG_FLOAT,
    AVG_INT,
    BASE,
    CANDIDATE,
    CAPACITY,
    COUNTED,
    DEFINED,
    DEPTH,
    DISTINCT,
    DURATION,
    EARLIER,
    HOW,
    MAX_INT,
    MIN_FLOAT,
    MIN_INT,
    OPENING,
    PARTIAL,
    PROGRAM,
    ROW,
    SELECTED,
    SERIAL,
    SLOT,
    SUM_FLOAT,
    SUM_INT,
    TIME,
)
from studies.cdp_on_cuda.machine import run_on

TIME_LEAST = -(2**63)
HALF = 32
LOW = 2**HALF - 1
HALF_MAX = 2**31


@cuda.jit(device=True)
def run(code, first, arena, sequences, row, candidate, address):
    """Run a program on a stack of the thread's own, see ``machine.run_on``."""
    stack = cuda.local.array(DEPTH, int64)
    return run_on(stack, code, first, arena, sequences, row, candidate, address)


@cuda.jit(device=True)
def in_window(arena, steps, step, sequences, row, time):
    """Whether a time is within the step's window for a partial sequence (S1, S6, S8)."""
    late = arena[sequences[row, steps[step, ANCHOR]] + TIME]
    if time > late:
        return False
    earlier = steps[step, EARLIER]
    if earlier >= 0:
        early = arena[sequences[row, earlier] + TIME]
        return time > early or (time == early and steps[step, OPENING] == 0)
    least = TIME_LEAST + steps[step, DURATION]
    return late <= least or time >= late - steps[step, DURATION]


@cuda.jit(device=True)
def accepted(arena, code, steps, step, sequences, row, address):
    """Whether an event of the step's column fits a partial sequence: window, parameters, and that
    it is not one of its events (S1, S3).
    """
    if not in_window(arena, steps, step, sequences, row, arena[address + TIME]):
        return False
    for event in range(steps[step, DISTINCT]):
        if arena[sequences[row, event] + SERIAL] == arena[address + SERIAL]:
            return False
    program = steps[step, PROGRAM]
    if program < 0:
        return True
    return run(code, program, arena, sequences, row, steps[step, CANDIDATE], address)[1]


@cuda.jit(device=True)
def address_of(steps, step, first, place):
    """The address of an event by its place in the window."""
    slot = first + place
    if slot >= steps[step, CAPACITY]:
        slot -= steps[step, CAPACITY]
    return steps[step, BASE] + slot * steps[step, ROW]


@cuda.jit(device=True)
def copied(sequences, row, out, room, index):
    """Copy a partial sequence to the next free place, which is taken atomically: the place."""
    place = cuda.atomic.add(index, 0, 1)
    if place < room:
        for word in range(sequences.shape[1]):
            out[place, word] = sequences[row, word]
    return place


# --- selection ---------------------------------------------------------------------------------


@cuda.jit
def combine(arena, code, steps, step, first, count, sequences, total, out, room, index):
    """Multiple selection (6.3.1): each event that fits a partial sequence makes a longer one.

    ``index`` int64[1] counts them, be there ``room`` for them in ``out`` or not.
    """
    place = cuda.grid(1)
    if place >= count:
        return
    address = address_of(steps, step, first, place)
    for row in range(cuda.blockIdx.y, total, cuda.gridDim.y):
        if accepted(arena, code, steps, step, sequences, row, address):
            found = copied(sequences, row, out, room, index)
            if found < room:
                out[found, steps[step, SELECTED]] = address


@cuda.jit
def choose_last(arena, code, steps, step, first, count, sequences, total, bounds, turn, indexes):
    """Single selection (6.3.2): for each partial sequence the greatest place in the window of an
    event that fits it, NO_LAST for none; from the second ``turn`` on, one below its bound.
    """
    place = cuda.grid(1)
    if place >= count:
        return
    address = address_of(steps, step, first, place)
    for row in range(cuda.blockIdx.y, total, cuda.gridDim.y):
        if turn > 0 and place >= bounds[row]:
            continue
        if accepted(arena, code, steps, step, sequences, row, address):
            cuda.atomic.max(indexes, row, place)


@cuda.jit
def choose_first(arena, code, steps, step, first, count, sequences, total, bounds, turn, indexes):
    """The same for the least place, above the bound; NO_FIRST for none."""
    place = cuda.grid(1)
    if place >= count:
        return
    address = address_of(steps, step, first, place)
    for row in range(cuda.blockIdx.y, total, cuda.gridDim.y):
        if turn > 0 and place <= bounds[row]:
            continue
        if accepted(arena, code, steps, step, sequences, row, address):
            cuda.atomic.min(indexes, row, place)


@cuda.jit
def extend(steps, step, first, sequences, total, indexes, none, out, room, index):
    """Add the chosen events to their partial sequences, and leave out those that have none."""
    row = cuda.grid(1)
    if row < total and indexes[row] != none:
        found = copied(sequences, row, out, room, index)
        if found < room:
            out[found, steps[step, SELECTED]] = address_of(steps, step, first, indexes[row])


@cuda.jit
def spare(sequences, total, indexes, none, out, room, index):
    """Leave out the partial sequences for which there is an event (S6)."""
    row = cuda.grid(1)
    if row < total and indexes[row] == none:
        copied(sequences, row, out, room, index)


# --- tests, parameters and values --------------------------------------------------------------


@cuda.jit
def test(arena, code, steps, step, sequences, total, out, room, index):
    """Leave out the partial sequences that do not satisfy a constraint (S9)."""
    row = cuda.grid(1)
    if row < total and run(code, steps[step, PROGRAM], arena, sequences, row, -1, 0)[1]:
        copied(sequences, row, out, room, index)


@cuda.jit
def test_time(arena, steps, step, sequences, total, out, room, index):
    """Leave out the partial sequences one of whose events is not in a window (S7)."""
    row = cuda.grid(1)
    if row < total:
        time = arena[sequences[row, steps[step, SELECTED]] + TIME]
        if in_window(arena, steps, step, sequences, row, time):
            copied(sequences, row, out, room, index)


@cuda.jit
def bind(arena, code, steps, step, sequences, total, out, room, index):
    """Fill a slot; partial sequences without a value are left out (S9)."""
    row = cuda.grid(1)
    if row < total:
        word, known = run(code, steps[step, PROGRAM], arena, sequences, row, -1, 0)
        if known:
            found = copied(sequences, row, out, room, index)
            if found < room:
                settle(out, found, steps, step, word, True)


@cuda.jit
def evaluate(arena, code, values, count, first, sequences, total, out, room, index):
    """Compute the values of the composite events, into the words from ``first`` on. The first
    ``count`` of ``values`` are the first instructions; a sequence with an undefined one is left
    out (S9).
    """
    row = cuda.grid(1)
    if row >= total:
        return
    known = True
    for place in range(count):
        word, defined = run(code, values[place], arena, sequences, row, -1, 0)
        sequences[row, first + place] = word
        known = known and defined
    if known:
        copied(sequences, row, out, room, index)


@cuda.jit(device=True)
def settle(sequences, row, steps, step, word, known):
    """Fill the step's slot of a partial sequence."""
    slot, place = steps[step, SLOT], steps[step, DEFINED]
    sequences[row, place + 1 + slot] = word
    bit = int64(1) << slot
    sequences[row, place] = sequences[row, place] | bit if known else sequences[row, place] & ~bit


# --- aggregates --------------------------------------------------------------------------------


@cuda.jit(device=True)
def is_less(how, one, other):
    """Whether a word is less than another; of two equal floats, -0.0 is (S14)."""
    if how in (MIN_INT, MAX_INT):
        return one < other
    left, right = as_float(one), as_float(other)
    return left < right or (left == right and one < 0 <= other)


@cuda.jit(device=True)
def merged(how, count, first, second, other_count, other_first, other_second):
    """Two partial aggregates together."""
    if other_count == 0:
        return count, first, second
    if count == 0:
        return other_count, other_first, other_second
    count += other_count
    if how in (SUM_FLOAT, AVG_FLOAT):
        return count, as_word(as_float(first) + as_float(other_first)), second
    if how <= AVG_INT:
        return count, first + other_first, second + other_second
    if is_less(how, first, other_first) == (how <= MIN_FLOAT):
        return count, first, second
    return count, other_first, other_second


@cuda.jit(device=True)
def of_event(arena, code, steps, step, first, place, count, sequences, row):
    """The partial aggregate of one event of the window: nothing where it does not fit."""
    if place < count:
        address = address_of(steps, step, first, place)
        if accepted(arena, code, steps, step, sequences, row, address):
            program = steps[step, AGGREGATED]
            if program < 0:
                return int64(1), int64(0), int64(0)
            candidate = steps[step, CANDIDATE]
            word, known = run(code, program, arena, sequences, row, candidate, address)
            if known:
                how = steps[step, HOW]
                if how in (SUM_INT, AVG_INT):
                    return int64(1), word >> HALF, word & LOW
                return int64(1), word, int64(0)
    return int64(0), int64(0), int64(0)


@cuda.jit(device=True)
def reduced(how, count, first, second):
    """The partial aggregates of a block's threads together, for its first thread.

    They are halved in shared memory, int64[PARTIAL * threads], until one is left. The number of
    threads is a power of two.
    """
    words = cuda.shared.array(0, int64)
    threads, own = cuda.blockDim.x, cuda.threadIdx.x
    words[own], words[threads + own], words[2 * threads + own] = count, first, second
    cuda.syncthreads()
    half = threads >> 1
    while half > 0:
        if own < half:
            other = own + half
            count, first, second = merged(
                how,
                *(count, first, second),
                *(words[other], words[threads + other], words[2 * threads + other]),
            )
            words[own], words[threads + own], words[2 * threads + own] = count, first, second
        cuda.syncthreads()
        half >>= 1
    return count, first, second


@cuda.jit(device=True)
def told(steps, step, sequences, row, partials, count, first, second):
    """Keep what a block has come to; if it is the only one, as the value of the slot."""
    if cuda.threadIdx.x > 0:
        return
    if cuda.gridDim.x > 1:
        block = cuda.blockIdx.x
        partials[block, 0], partials[block, 1], partials[block, 2] = count, first, second
        return
    how = steps[step, HOW]
    if how == COUNTED:
        settle(sequences, row, steps, step, count, True)
    elif how == SUM_INT:
        high = first + (second >> HALF)
        fits = -HALF_MAX <= high < HALF_MAX
        settle(sequences, row, steps, step, (high << HALF) | (second & LOW), fits)
    elif how == SUM_FLOAT:
        # What nothing comes to is 0.0, and so is a sum of -0.0.
        number = as_float(first) + 0.0
        settle(sequences, row, steps, step, as_word(number), math.isfinite(number))
    elif how in (AVG_INT, AVG_FLOAT):
        number = as_float(first) + 0.0
        if how == AVG_INT:
            number = float(first) * 4294967296.0 + float(second)
            high = first + (second >> HALF)
            if -HALF_MAX <= high < HALF_MAX:
                number = float((high << HALF) | (second & LOW))
        if count > 0:
            number = number / float(count)
        settle(sequences, row, steps, step, as_word(number), count > 0 and math.isfinite(number))
    else:
        settle(sequences, row, steps, step, first, count > 0)


@cuda.jit
def aggregate(arena, code, steps, step, first, count, sequences, row, partials):
    """Aggregate the events of the window that fit one partial sequence (6.3.3): each thread takes
    two, each block as many as it has threads twice. ``partials`` int64[blocks, PARTIAL].
    """
    place = 2 * cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    one = of_event(arena, code, steps, step, first, place, count, sequences, row)
    place += cuda.blockDim.x
    other = of_event(arena, code, steps, step, first, place, count, sequences, row)
    how = steps[step, HOW]
    done = reduced(how, *merged(how, *one, *other))
    told(steps, step, sequences, row, partials, *done)


@cuda.jit
def aggregate_again(steps, step, given, count, sequences, row, partials):
    """The same over the partial aggregates of the launch before, of which there are ``count``."""
    place = 2 * cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    how = steps[step, HOW]
    done = int64(0), int64(0), int64(0)
    for _ in range(2):
        if place < count:
            done = merged(how, *done, given[place, 0], given[place, 1], given[place, 2])
        place += cuda.blockDim.x
    done = reduced(how, *done)
    told(steps, step, sequences, row, partials, *done)


PARTIAL_BYTES = 8 * PARTIAL
"""Of shared memory for each thread of an aggregate."""

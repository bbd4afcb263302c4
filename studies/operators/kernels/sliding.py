"""Aggregates on a processor: what arrives is added to its group, what leaves is taken away.

Each aggregate of each group has a number of values and, by its function, their exact sum in digits
(rules.engine.kernels.exact), from which a value is taken away without a trace, or a list of the
events that may yet be its least or greatest: each event drives out those behind it that it beats.

The columns of the ring are those of ``bodies.aggregate``, and one more: the event's group.
"""

from __future__ import annotations

import math

import numpy as np

from rules.engine.kernels import exact
from rules.engine.kernels.layout import KIND_FLOAT, KIND_INT
from rules.engine.kernels.words import GREATER, LESS, as_float, as_word
from studies.operators.kernels.bodies import (
    COUNT,
    GREATEST,
    HIGH,
    IS_FLOAT,
    LEAST,
    LOW,
    LOW_BITS,
    relation_in,
)
from studies.operators.kernels.compiled import kernel

OF_COUNT, OF_SUM, OF_AVG, OF_MIN, OF_MAX = 0, 1, 2, 3, 4
"""Functions."""
DIGITS = 68
"""Digits of a sum of floats: those that any may touch, and one for what they carry."""
NONE = -1
_SIGN = -(2**63)


@kernel
def group_of(ring, capacity, at, keys, table, group_keys, groups):
    """The group of the event in a place of the ring, a new one where there is none of its keys.

    ``groups`` int64[1]: how many there are; ``table`` has them by hash, and room for all.
    """
    digest = np.uint64(0x9E3779B97F4A7C15)
    for key in range(keys):
        digest ^= np.uint64(ring[(1 + key) * capacity + at])
        digest *= np.uint64(0xFF51AFD7ED558CCD)
        digest ^= digest >> np.uint64(32)
    place = np.int64(digest & np.uint64(len(table) - 1))
    while table[place] != NONE:
        group, is_same = table[place], True
        for key in range(keys):
            if group_keys[group, key] != ring[(1 + key) * capacity + at]:
                is_same = False
        if is_same:
            return group
        place = (place + 1) & (len(table) - 1)
    group = groups[0]
    groups[0] = group + 1
    table[place] = group
    for key in range(keys):
        group_keys[group, key] = ring[(1 + key) * capacity + at]
    return group


@kernel
def add(
    position,
    at,
    capacity,
    ring,
    value_at,
    group,
    which,
    function,
    kind,
    numbers,
    sums,
    digits,
    links,
    ends,
):
    """Add an event to an aggregate of its group."""
    value = ring[value_at + at]
    numbers[which, group] += 1
    if function >= OF_MIN:
        wanted = LESS if function == OF_MIN else GREATER
        last = ends[which, group, 1]
        # Those that are worse, and leave before, can never be the result again; of equal ones the
        # first is, as 0.0 and -0.0 are equal and not the same.
        while last != NONE:
            known = ring[value_at + (last & (capacity - 1))]
            if relation_in(kind, value, known) != wanted:
                break
            last = links[which, last & (capacity - 1), 0]
        links[which, at, 0] = last
        links[which, at, 1] = NONE
        if last == NONE:
            ends[which, group, 0] = position
        else:
            links[which, last & (capacity - 1), 1] = position
        ends[which, group, 1] = position
    elif function != OF_COUNT:
        change(value, group, which, kind, sums, digits)


@kernel
def change(value, group, which, kind, sums, digits):
    """Add a value to a sum."""
    if kind == IS_FLOAT:
        exact.add(digits[which, group], 0, 0, value, KIND_FLOAT)
    else:
        exact.add(sums[which, group], 0, 0, value, KIND_INT)


@kernel
def remove(
    position,
    at,
    capacity,
    ring,
    value_at,
    group,
    which,
    function,
    kind,
    numbers,
    sums,
    digits,
    links,
    ends,
):
    """Take an event away from an aggregate of its group."""
    value = ring[value_at + at]
    numbers[which, group] -= 1
    if function >= OF_MIN:
        if ends[which, group, 0] == position:
            following = links[which, at, 1]
            ends[which, group, 0] = following
            if following == NONE:
                ends[which, group, 1] = NONE
            else:
                links[which, following & (capacity - 1), 0] = NONE
    elif function != OF_COUNT:
        if kind == IS_FLOAT:
            exact.add(digits[which, group], 0, 0, value ^ _SIGN, KIND_FLOAT)
        else:
            own = sums[which, group]
            own[0] = exact.wrapped_difference(own[0], value & LOW_BITS)
            own[1] = exact.wrapped_difference(own[1], value >> 32)


@kernel
def slide(
    count,
    lows,
    gone,
    ring,
    capacity,
    end,
    keys,
    first,
    functions,
    kinds,
    table,
    group_keys,
    groups,
    numbers,
    sums,
    digits,
    links,
    ends,
    out,
    step,
    spare,
):
    """Let ``count`` events arrive at a window that has those from ``gone`` on; ``lows`` says where
    it begins behind each. ``out`` has rows as ``bodies.combine`` makes them, but that the sum, or
    the average, of floats is there as such; with ``step`` 0 nothing is told.
    """
    which_group = (first + 2 * functions[0]) * capacity
    for t in range(count):
        position, at = end + t, (end + t) & (capacity - 1)
        group = group_of(ring, capacity, at, keys, table, group_keys, groups)
        ring[which_group + at] = group
        for which in range(functions[0]):
            counted = (first + 2 * which) * capacity
            if ring[counted + at] != 0:
                add(
                    position,
                    at,
                    capacity,
                    ring,
                    counted + capacity,
                    group,
                    which,
                    functions[1 + which],
                    kinds[1 + which],
                    numbers,
                    sums,
                    digits,
                    links,
                    ends,
                )
        while gone < lows[t]:
            leaving = gone & (capacity - 1)
            for which in range(functions[0]):
                counted = (first + 2 * which) * capacity
                if ring[counted + leaving] != 0:
                    remove(
                        gone,
                        leaving,
                        capacity,
                        ring,
                        counted + capacity,
                        ring[which_group + leaving],
                        which,
                        functions[1 + which],
                        kinds[1 + which],
                        numbers,
                        sums,
                        digits,
                        links,
                        ends,
                    )
            gone += 1
        if step == 0:
            continue
        for which in range(functions[0]):
            place, function = which * count + t, functions[1 + which]
            out[COUNT * step + place] = numbers[which, group]
            if function >= OF_MIN:
                best = ends[which, group, 0]
                if best != NONE:
                    word = ring[(first + 2 * which + 1) * capacity + (best & (capacity - 1))]
                    out[LEAST * step + place] = word
                    out[GREATEST * step + place] = word
            elif function != OF_COUNT and kinds[1 + which] == IS_FLOAT:
                divisor = numbers[which, group] if function == OF_AVG else 1
                out[LOW * step + place] = float_of(digits[which, group], max(divisor, 1), spare)
            else:
                out[LOW * step + place] = sums[which, group, 0]
                out[HIGH * step + place] = sums[which, group, 1]


@kernel
def float_of(digits, divisor, spare):
    """A sum of floats, divided, as the bits of the nearest float."""
    for place in range(DIGITS):
        spare[place] = digits[place]
    is_negative = exact.carry_over(spare, 0, DIGITS)
    number = exact.rounded(spare, 0, DIGITS, exact.FLOAT_UNIT, divisor, DIGITS)
    return as_word(-number if is_negative else number)


@kernel
def finish(count, functions, kinds, made, step, out, out_step, spare):
    """The value of each aggregate behind each event, and whether all of an event's are defined
    (tesla.md S8, S9): ``out`` has a column for each aggregate from 1 on, and then that.
    """
    last = (1 + functions[0]) * out_step
    for t in range(count):
        out[last + t] = 1
        for which in range(functions[0]):
            place, function, kind = which * count + t, functions[1 + which], kinds[1 + which]
            number = made[COUNT * step + place]
            low, high = made[LOW * step + place], made[HIGH * step + place]
            word, is_known = np.int64(0), True
            if function == OF_COUNT:
                word = number
            elif function >= OF_MIN:
                word = made[(LEAST if function == OF_MIN else GREATEST) * step + place]
                is_known = number > 0
            elif kind == IS_FLOAT:
                word = low
                is_known = (number > 0 or function == OF_SUM) and math.isfinite(as_float(low))
            elif function == OF_SUM:
                high += low >> 32
                word = (high << 32) | (low & LOW_BITS)
                is_known = -(1 << 31) <= high < 1 << 31
            else:
                is_known = number > 0
                if is_known:
                    spare[0], spare[1], spare[2] = low, high, 0
                    is_negative = exact.carry_over(spare, 0, 3)
                    mean = exact.rounded(spare, 0, 3, 0, number, 3)
                    word = as_word(-mean if is_negative else mean)
            out[(1 + which) * out_step + t] = word
            if not is_known:
                out[last + t] = 0

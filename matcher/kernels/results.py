"""How a match is noted."""

from __future__ import annotations

import numpy as np

from matcher.kernels.compiled import inlined, kernel


@inlined
def hit(event, number, interface, bits, found, size, wanted):
    """Note that a filter, known by a number, matches an event; the numbers in ``found`` wanted so
    far.
    """
    bits[event, interface >> 6] |= np.int64(1) << (interface & 63)
    if not wanted:
        return size
    if size < len(found):
        found[size] = number
    return size + 1


@kernel
def look_up(numbers, table):
    """Replace numbers by what a table has for them: numpy takes twice as long."""
    for place in range(len(numbers)):
        numbers[place] = table[numbers[place]]


@kernel
def in_order(offsets, numbers, rows, begins, ordered):
    """Bring runs of numbers in order: run ``n`` becomes the run ``rows[n]`` of ``ordered``.

    ``begins``: zeros; where each begins, after.
    """
    for run in range(len(rows)):
        begins[rows[run] + 1] = offsets[run + 1] - offsets[run]
    for run in range(len(rows)):
        begins[run + 1] += begins[run]
    for run in range(len(rows)):
        own = numbers[offsets[run] : offsets[run + 1]]
        target = ordered[begins[rows[run]] : begins[rows[run] + 1]]
        for place in range(len(own)):
            target[place] = own[place]

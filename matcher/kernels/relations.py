"""Whether a value satisfies a constraint: numbers exactly by value, texts by their tests.

A value and an operand are brought into a *relation* (LESS, SAME, GREATER, APART), and a row's
word says which relations satisfy it.
"""

from __future__ import annotations

import math

import numpy as np

from matcher.kernels.compiled import inlined
from matcher.kernels.layout import (
    APART,
    BY_FLOAT,
    BY_INT,
    BY_RANK,
    BY_TEST,
    FLOAT_FLAG,
    GREATER,
    LESS,
    SAME,
)


@inlined
def order_of(left, right):
    """The relation of two numbers of one kind."""
    if left < right:
        return LESS
    if left > right:
        return GREATER
    return SAME if left == right else APART


@inlined
def order_of_float(number, whole):
    """The relation of a fraction, or of what is beyond 64 bits, or NaN, to an int; exact."""
    if math.isnan(number):
        return APART
    if number >= 9223372036854775808.0:
        return GREATER
    if number < -9223372036854775808.0:
        return LESS
    # A fraction lies within 2**52, where its floor is an exact int.
    return GREATER if np.int64(math.floor(number)) >= whole else LESS


@inlined
def order_of_numbers(is_float, value, operand_is_float, operand):
    """The relation of two numbers of which one at least is a float."""
    if is_float and operand_is_float:
        return order_of(np.int64(value).view(np.float64), np.int64(operand).view(np.float64))
    if is_float:
        return order_of_float(np.int64(value).view(np.float64), operand)
    order = order_of_float(np.int64(operand).view(np.float64), value)
    return LESS if order == GREATER else GREATER


@inlined
def passes(hits, first, last, test):
    """Whether a test is among the ascending ones at ``first:last``."""
    while last - first > 8:
        middle = (first + last) >> 1
        if hits[middle] <= test:
            first = middle
        else:
            last = middle
    while first < last and hits[first] != test:
        first += 1
    return first < last


@inlined
def holds(word, operand, term, value, hit_offsets, hits, ranks, test_ranks):
    """Whether a cell of the row's own term satisfies the row."""
    how = word >> 36
    if how == BY_INT and term < FLOAT_FLAG:
        relation = order_of(value, operand)
    elif how <= BY_FLOAT:
        relation = order_of_numbers(term >= FLOAT_FLAG, value, how == BY_FLOAT, operand)
    elif how == BY_TEST:
        hit = passes(hits, hit_offsets[value], hit_offsets[value + 1], operand)
        relation = SAME if hit else APART
    elif how == BY_RANK:
        relation = order_of(ranks[value], test_ranks[operand])
    else:
        relation = SAME
    return (word >> 32) & relation != 0

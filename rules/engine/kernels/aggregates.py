"""Aggregates over a window (tesla.md S8).

Law: int sums are exact; a float result is the exact value, rounded, except for cancellation so
extreme that it must be, and is, computed again without any rounding error.
"""

from __future__ import annotations

import math

import numpy as np

from matcher.model import Int64s
from rules.engine.kernels import arrays
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.expressions import as_float, as_word, order_strings, run
from rules.engine.kernels.layout import (
    ENTRY_WORDS,
    KIND_FLOAT,
    KIND_STRING,
)
from rules.engine.kernels.memory import row_offset
from rules.pattern import Function

FUNCTIONS = {function: number for number, function in enumerate(Function)}
"""The functions' numbers, in their order of declaration."""
AVG, SUM, COUNT = FUNCTIONS[Function.AVG], FUNCTIONS[Function.SUM], FUNCTIONS[Function.COUNT]
MIN, MAX, STDDEV = FUNCTIONS[Function.MIN], FUNCTIONS[Function.MAX], FUNCTIONS[Function.STDDEV]

CANCELLATION = 1e-12
"""A sum this much smaller than the sum of magnitudes is computed again, exactly."""
HUGE = 2.0**64
"""Where a sum of floats overflows, that of floats so much smaller does not."""
_LOW = 0xFFFFFFFF


@kernel
def gather(state: Int64s, step, number: int, low: int, high: int):  # type: ignore[no-untyped-def]
    """The words of the aggregated attribute of the entries low to high that fit."""
    heap = arrays.heap(state)
    record = arrays.lists(state)[number]
    start = record.offset + record.head * ENTRY_WORDS
    words = np.empty(high - low, np.int64)
    count = 0
    for place in range(low, high):
        row = row_offset(state, step.type, heap[start + place * ENTRY_WORDS + 1])
        arrays.frame(state)[0] = row
        if step.residue >= 0 and not run(state, step.residue):
            continue
        words[count] = heap[row + step.offset] if step.offset >= 0 else 0
        count += 1
    return words[:count]


@kernel
def aggregate(state: Int64s, function: int, kind: int, words) -> tuple[int, bool]:  # type: ignore[no-untyped-def]
    """The aggregate of words: a word, and whether it is defined."""
    count = len(words)
    if function == COUNT:
        return count, True
    if count == 0:
        return 0, function == SUM  # 0 and 0.0 are the same word
    if function in (MIN, MAX):
        return extreme(state, words, kind, function == MAX), True
    if function == STDDEV:
        number = deviation(words, kind)
        return as_word(number), np.isfinite(number)
    if kind == KIND_FLOAT:
        number, scale = sum_floats(words)
        if function == AVG:
            number /= count
        number *= scale
        return as_word(number), np.isfinite(number)
    high, low = sum_ints(words)
    if function == AVG:
        return as_word((np.float64(high) * 4294967296.0 + np.float64(low)) / count), True
    return (high << 32) + low, -(2**31) <= high < 2**31


@kernel
def sum_ints(words) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """The exact sum of ints as ``high * 2**32 + low``."""
    high, low = np.int64(0), np.int64(0)
    for word in words:
        high += word >> 32
        low += word & _LOW
    return high + (low >> 32), low & _LOW


@kernel
def extreme(state: Int64s, words, kind: int, greatest: bool) -> int:  # type: ignore[no-untyped-def]
    """The least or greatest of words of a kind."""
    best = words[0]
    for word in words[1:]:
        if kind == KIND_FLOAT:
            order = as_float(word) > as_float(best)
            reverse = as_float(word) < as_float(best)
        elif kind == KIND_STRING:
            sign = order_strings(state, word, best)
            order, reverse = sign > 0, sign < 0
        else:
            order, reverse = word > best, word < best
        if (greatest and order) or (not greatest and reverse):
            best = word
    return best


@kernel
def two_sum(one: float, other: float) -> tuple[float, float]:
    """A float sum and its rounding error (Knuth)."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)


@kernel
def two_product(one: float, other: float) -> tuple[float, float]:
    """A float product and its rounding error (Dekker)."""
    product = one * other
    scaled = 134217729.0 * one
    one_high = scaled - (scaled - one)
    one_low = one - one_high
    scaled = 134217729.0 * other
    other_high = scaled - (scaled - other)
    other_low = other - other_high
    error = one_high * other_high - product
    error += one_high * other_low
    error += one_low * other_high
    return product, error + one_low * other_low


@kernel
def sum_floats(words) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """The sum of floats, rounded once, as a product: it may be beyond the greatest float."""
    high, low, magnitude = 0.0, 0.0, 0.0
    for word in words:
        number = as_float(word)
        high, error = two_sum(high, number)
        low += error
        magnitude += abs(number)
    total = high + low
    if not np.isfinite(magnitude):
        return sum_exactly(words, 1.0 / HUGE), HUGE
    if abs(total) < CANCELLATION * magnitude:
        return sum_exactly(words, 1.0), 1.0
    return total, 1.0


@kernel
def sum_exactly(words, scale: float) -> float:  # type: ignore[no-untyped-def]
    """The sum of floats times ``scale`` by partial sums that do not overlap (Shewchuk)."""
    partials = np.empty(len(words) + 1)
    used = 0
    for word in words:
        number = as_float(word) * scale
        kept = 0
        for place in range(used):
            number, error = two_sum(number, partials[place])
            if error != 0.0:
                partials[kept] = error
                kept += 1
        partials[kept] = number
        used = kept + 1
    total = 0.0
    for place in range(used - 1, -1, -1):
        total += partials[place]
    return total


@kernel
def deviation(words, kind: int) -> float:  # type: ignore[no-untyped-def]
    """The population standard deviation.

    Deviations from the first value, not from the mean, are exact as pairs of floats and exactly
    zero for equal values; they are scaled so that no square overflows.
    """
    count = np.float64(len(words))
    shrink = 1.0
    largest = largest_difference(words, kind, shrink)
    if largest == 0.0:
        return 0.0
    if not np.isfinite(largest):
        shrink = 0.25
        largest = largest_difference(words, kind, shrink)
    _mantissa, exponent = math.frexp(largest)
    scale = math.ldexp(1.0, -max(exponent, -1000))
    sum_high, sum_low, square_high, square_low = 0.0, 0.0, 0.0, 0.0
    for word in words:
        high, low = difference(word, words[0], kind, shrink)
        high, low = high * scale, low * scale
        sum_high, error = two_sum(sum_high, high)
        sum_low += error + low
        product, error = two_product(high, high)
        square_high, rest = two_sum(square_high, product)
        square_low += rest + error + 2.0 * high * low
    product, error = two_product(sum_high, sum_high)
    error += 2.0 * sum_high * sum_low
    mean_high = product / count
    back_high, back_low = two_product(mean_high, count)
    mean_low = ((product - back_high) - back_low + error) / count
    variance_high, rest = two_sum(square_high, -mean_high)
    variance = variance_high + (rest + square_low - mean_low)
    return math.sqrt(max(0.0, variance / count)) / scale / shrink


@kernel
def largest_difference(words, kind: int, shrink: float) -> float:  # type: ignore[no-untyped-def]
    """The greatest distance of a word from the first; infinite where it is beyond floats."""
    largest = 0.0
    for word in words:
        high, _low = difference(word, words[0], kind, shrink)
        largest = max(largest, abs(high))
    return largest


@kernel
def difference(word: int, origin: int, kind: int, shrink: float) -> tuple[float, float]:
    """``word - origin`` as a pair of floats whose sum is exact; floats times ``shrink`` first."""
    if kind == KIND_FLOAT:
        return two_sum(as_float(word) * shrink, -as_float(origin) * shrink)
    high = np.float64(word >> 32) - np.float64(origin >> 32)
    low = np.float64(word & _LOW) - np.float64(origin & _LOW)
    return two_sum(high * 4294967296.0, low)

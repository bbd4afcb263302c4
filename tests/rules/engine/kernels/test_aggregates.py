"""Compiled aggregates against exact arithmetic (tesla.md S8)."""

import math
import random
import struct
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from pairs import seeds

from rules.engine.kernels import layout
from rules.engine.kernels.aggregates import FUNCTIONS, aggregate
from rules.engine.kernels.arrays import Arrays
from rules.engine.linking.interner import Interner
from rules.engine.oracle.values import _FUNCTIONS
from rules.terms import Function

Number = int | float
OF_WINDOWS = [one for one in Function if one is not Function.FIRST]
"""FIRST is of runs, which have an order."""
EXTREMES = (1e308, -1e308, sys.float_info.max, -sys.float_info.max, 1.0, 5e-324, -5e-324, 0.0, -0.0)


def aggregated(
    function: Function, values: list[Number] | list[str], strings: Interner | None = None
) -> Number | None:
    """The compiled aggregate of values of one kind; None where it is undefined."""
    arrays = Arrays()
    if strings is not None:
        words = strings.codes(values)
        arrays["strings"], arrays["string_bytes"] = strings.extents, strings.data
        kind = layout.KIND_STRING
    elif values and isinstance(values[0], float):
        words, kind = np.array(values, np.float64).view(np.int64), layout.KIND_FLOAT
    else:
        words, kind = np.array(values, np.int64), layout.KIND_INT
    word, defined = aggregate(arrays.state, FUNCTIONS[function], kind, words)
    if not defined:
        return None
    is_float = function in (Function.AVG, Function.STDDEV) or kind == layout.KIND_FLOAT
    if is_float and function is not Function.COUNT:
        return struct.unpack("<d", struct.pack("<q", word))[0]
    return word


def exactly(function: Function, values: list[Number]) -> Number | None:
    """The oracle's result, rounded to a float only at the end."""
    result = _FUNCTIONS[function](values)
    if isinstance(result, Fraction):
        try:
            return float(result)
        except OverflowError:
            return None
    if function is Function.SUM and not -(2**63) <= result < 2**63:
        return None  # S9
    return result


def assert_same(function: Function, values: list[Number]) -> None:
    """Texts tell floats apart to the last bit, and the two zeros."""
    ours, exact = aggregated(function, values), exactly(function, values)
    assert repr(ours) == repr(exact), (function, values)


def windows(random_: random.Random) -> Iterator[list[Number]]:
    """Values of every kind and size, as one sees them and as they hurt."""
    while True:
        count = random_.choice((1, 2, 3, 7, 10, 40))
        bits = random_.choice((2, 31, 33, 53, 63))
        yield [random_.randint(-(2**bits), 2**bits - 1) for _ in range(count)]
        yield [random_.randint(0, 1000) / 10 for _ in range(count)]
        yield [1e9 + random_.randint(-9, 9) / 10 for _ in range(count)]
        yield [math.ldexp(random_.randint(-9, 9), -1074) for _ in range(count)]
        yield [random_.choice(EXTREMES) for _ in range(count)]
        low, high = random_.choice(((-10, 10), (-1000, -830), (330, 465), (-66, 66), (-1074, 1023)))
        yield [math.ldexp(random_.uniform(-1, 1), random_.randint(low, high)) for _ in range(count)]
        half = [random_.uniform(-1, 1) * 10.0 ** random_.randint(-9, 16) for _ in range(count)]
        cancelling = [*half, *(-value for value in half), random_.uniform(-1, 1)]
        yield random_.sample(cancelling, len(cancelling))


@pytest.mark.parametrize("function", OF_WINDOWS)
@pytest.mark.parametrize("seed", seeds(2, 4))
def test_aggregates_are_those_of_exact_arithmetic_to_the_last_bit(function: Function, seed: int):
    for values in islice(windows(random.Random(seed)), len(seeds(250, 700))):
        assert_same(function, values)


@pytest.mark.parametrize("function", OF_WINDOWS)
def test_the_order_of_values_does_not_matter(function: Function):
    random_ = random.Random(7)
    for values in islice(windows(random_), 140):
        shuffled = random_.sample(values, len(values))
        assert repr(aggregated(function, shuffled)) == repr(aggregated(function, values)), values


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([1e16, 1.0, -1e16], 1.0),
        ([1.0, 1e100, 1.0, -1e100], 2.0),
        ([0.1] * 10, 1.0),
        ([1e308, 1e308, -1e308], 1e308),
        ([-0.0], 0.0),
        ([5e-324, 5e-324], 1e-323),
    ],
)
def test_sums_are_rounded_once(values: list[float], total: float):
    assert aggregated(Function.SUM, values) == total


def test_a_sum_beyond_the_greatest_float_is_undefined():
    assert aggregated(Function.SUM, [1e308, 1e308]) is None


def test_an_average_is_defined_where_its_sum_is_not():
    assert aggregated(Function.AVG, [1e308, 1e308]) == 1e308
    assert aggregated(Function.SUM, [2**63 - 1, 2**63 - 1]) is None
    assert aggregated(Function.AVG, [2**63 - 1, 2**63 - 1]) == 2.0**63


@pytest.mark.parametrize(
    ("values", "average"),
    [
        ([0.1, 0.2, 0.3], 0.2),  # the float nearest to the sum is less than it
        ([2**53 + 1, 2**53 + 1, 2**53 + 2], 2.0**53 + 2),  # 4/3 above 2**53: nearer to 2 than to 0
        ([2**53, 2**53 + 2], 2.0**53),  # halfway: the even one
        ([2**53 + 2, 2**53 + 4], 2.0**53 + 4),
        ([5e-324, 0.0], 0.0),  # halfway to the least float
        ([5e-324, 1e-323], 1e-323),
        ([-5e-324, 0.0], -0.0),  # what is too small for a float keeps its sign
        ([-0.0], 0.0),
        ([1.0, -1.0], 0.0),
    ],
)
def test_averages_are_rounded_once(values: list[Number], average: float):
    assert repr(aggregated(Function.AVG, values)) == repr(average)


@pytest.mark.parametrize(
    ("values", "deviation"),
    [
        ([6.4, 67.3, 45.8], 25.21776269924744),
        ([-sys.float_info.max, sys.float_info.max], sys.float_info.max),
        ([2**53 + 1, -(2**53) - 1], 2.0**53),  # halfway: the even one
        ([2**53 + 3, -(2**53) - 3], 2.0**53 + 4),
        ([5e-324, 0.0], 0.0),
        ([1.5e-323, 0.0], 1e-323),
    ],
)
def test_deviations_are_rounded_once(values: list[Number], deviation: float):
    assert aggregated(Function.STDDEV, values) == deviation


@pytest.mark.parametrize("value", [0.1, 1e300, 5e-324, -7.7, 2**62 + 1, -(2**63)])
def test_the_deviation_of_equal_values_is_exactly_zero(value: Number):
    assert aggregated(Function.STDDEV, [value] * 7) == 0.0


@pytest.mark.parametrize(
    "values",
    [
        [1e16, 1e16 + 2],
        [1e9 + 1e-6, 1e9, 1e9 - 1e-6],
        [1e308, -1e308],
        [5e-324, 0.0, 0.0, 1e-320],
        [2**63 - 1, -(2**63)],
        [2**62, 2**62 + 1],
        [1e200, 1.0, 2.0],
    ],
)
def test_deviations_of_huge_tiny_and_near_values(values: list[Number]):
    assert_same(Function.STDDEV, values)


@pytest.mark.parametrize("function", OF_WINDOWS)
def test_nothing_at_all(function: Function):
    expected = {Function.SUM: 0, Function.COUNT: 0}.get(function)
    assert aggregated(function, []) == expected


def test_strings_are_ordered_by_code_point():
    texts = ["b", "a\u0301", "\ue000", "\U0001f600", "", "ab"]
    assert texts[aggregated_place(Function.MIN, texts)] == min(texts)
    assert texts[aggregated_place(Function.MAX, texts)] == max(texts)


def aggregated_place(function: Function, texts: list[str]) -> int:
    strings = Interner()
    strings.codes(texts)
    code = aggregated(function, texts, strings)
    return texts.index(strings.text(code))

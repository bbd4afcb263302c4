"""Compiled aggregates against exact arithmetic (tesla.md S8)."""

import math
import random
import struct
from fractions import Fraction

import numpy as np
import pytest

from rules.engine.interner import Interner
from rules.engine.kernels import layout
from rules.engine.kernels.aggregates import FUNCTIONS, aggregate
from rules.engine.kernels.arrays import Arrays
from rules.engine.naive_values import _FUNCTIONS
from rules.terms import Function

Number = int | float


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
    return result


def assert_close(function: Function, values: list[Number]) -> None:
    ours, exact = aggregated(function, values), exactly(function, values)
    if exact is None or ours is None:
        assert ours is exact, (function, values)
    else:
        assert math.isclose(ours, exact, rel_tol=1e-9), (function, values, ours, exact)


@pytest.mark.parametrize("function", list(Function))
@pytest.mark.parametrize("seed", range(8))
def test_floats_of_every_size_are_within_the_tolerance(function: Function, seed: int):
    random_ = random.Random(f"{seed} {function}")
    for _ in range(40):
        exponents = random_.choice(((-3, 3), (-300, -250), (100, 140), (-20, 20), (-320, 300)))
        values = [
            math.ldexp(random_.uniform(-1, 1), int(random_.uniform(*exponents) * 3.3))
            for _ in range(random_.randint(1, 40))
        ]
        assert_close(function, values)


@pytest.mark.parametrize("function", list(Function))
def test_sums_that_cancel_are_within_the_tolerance(function: Function):
    random_ = random.Random(5)
    for _ in range(60):
        half = [random_.uniform(-1, 1) * 10.0 ** random_.randint(-9, 16) for _ in range(12)]
        values = [*half, *(-value for value in half), random_.uniform(-1, 1)]
        random_.shuffle(values)
        assert_close(function, values)


@pytest.mark.parametrize("function", list(Function))
def test_ints_of_every_size(function: Function):
    random_ = random.Random(6)
    for _ in range(200):
        bits = random_.choice((4, 31, 33, 53, 63))
        count = random_.randint(1, 30)
        values = [random_.randint(-(2**bits), 2**bits - 1) for _ in range(count)]
        exact = exactly(function, values)
        if function is Function.SUM and not -(2**63) <= exact < 2**63:
            assert aggregated(function, values) is None  # S9
        elif function in (Function.AVG, Function.STDDEV):
            assert_close(function, values)
        else:
            assert aggregated(function, values) == exact


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
    assert_close(Function.STDDEV, values)


@pytest.mark.parametrize("function", list(Function))
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

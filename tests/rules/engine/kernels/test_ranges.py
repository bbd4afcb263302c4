"""Bounds as keys against Python's exact comparisons (tesla.md S10)."""

import math
import operator
import random
import struct

import pytest

from rules.engine.kernels import layout
from rules.engine.kernels.pyramid import key_of
from rules.engine.kernels.ranges import INT_MAX, lower_key, upper_key

INT_MIN = -(2**63)
INTS = [INT_MIN, INT_MIN + 1, -(2**53) - 1, -1, 0, 1, 2, 2**53, 2**53 + 1, INT_MAX - 1, INT_MAX]
FLOATS = [
    *(-1e300, -(2.0**63), -(2.0**53), -2.5, -1.0, -5e-324, -0.0),
    *(0.0, 5e-324, 0.5, 1.0, 2.0, 2.5, 2.0**53, 2.0**63 - 1024, 2.0**63, 1e300),
]
SIDES = {
    operator.lt: (upper_key, True),
    operator.le: (upper_key, False),
    operator.gt: (lower_key, True),
    operator.ge: (lower_key, False),
}
CONVERSIONS = {
    (int, int): layout.PROBE_SAME,
    (float, float): layout.PROBE_FLOAT,
    (float, int): layout.PROBE_FLOAT_TO_INT,
    (int, float): layout.PROBE_INT_TO_FLOAT,
}


def word_of(number: int | float) -> int:
    if isinstance(number, int):
        return number
    return struct.unpack("<q", struct.pack("<d", number))[0]


def admits(number: int | float, compare, bound: int | float) -> bool:
    """Whether the interval that a bound gives admits a number."""
    to_key, is_strict = SIDES[compare]
    key, exists = to_key(word_of(bound), CONVERSIONS[type(bound), type(number)], is_strict)
    kind = layout.KIND_FLOAT if isinstance(number, float) else layout.KIND_INT
    own = key_of(word_of(number), kind)
    return bool(exists) and (own <= key if to_key is upper_key else own >= key)


@pytest.mark.parametrize("compare", SIDES)
@pytest.mark.parametrize("numbers", [INTS, FLOATS])
@pytest.mark.parametrize("bounds", [INTS, FLOATS])
def test_an_interval_admits_what_the_comparison_does(numbers, bounds, compare):
    for number in numbers:
        for bound in bounds:
            is_exact = isinstance(number, int) or int(float(bound)) == bound
            if compare(number, bound):
                assert admits(number, compare, bound), (number, bound)
            elif is_exact:
                assert not admits(number, compare, bound), (number, bound)


@pytest.mark.parametrize("seed", range(3))
def test_random_bounds_of_floats(seed: int):
    random_ = random.Random(seed)
    for _ in range(300):
        number = random_.uniform(-1, 1) * 2.0 ** random_.randint(-1070, 1000)
        bound = random_.choice((number, -number, math.nextafter(number, 1), random_.uniform(-1, 1)))
        for compare in SIDES:
            assert admits(number, compare, bound) == compare(number, bound), f"seed {seed}"

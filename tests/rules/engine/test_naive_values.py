"""The oracle's arithmetic against Python's own (tesla.md S8 to S10)."""

import itertools
import math
import os
import random
import statistics
import struct
import sys
from fractions import Fraction

import pytest

from matcher.model import Kind, Value
from rules.engine.oracle.values import _FUNCTIONS, Scope, _square_root, value_of
from rules.terms import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Convert,
    Expression,
    Function,
    Literal,
    Negative,
    Not,
    Operator,
    Or,
)

COUNT = int(os.environ.get("REXMQ_CASES", "400"))
INT_MIN, INT_MAX = -(2**63), 2**63 - 1


class NoHistory:
    def events(self, name: str, *, strict: bool) -> list:
        raise AssertionError(name)


def literal(value: Value) -> Literal:
    kinds = {int: Kind.INT, float: Kind.FLOAT, bool: Kind.BOOL, str: Kind.STRING}
    return Literal(value, kinds[type(value)])


def value(expression: Expression) -> Value | None:
    return value_of(expression, Scope(NoHistory(), ()))


def calculated(left: Value, operation: Operator, right: Value, kind: Kind) -> Value | None:
    return value(Arithmetic(operation, literal(left), literal(right), kind))


@pytest.mark.parametrize(
    ("left", "operation", "right", "expected"),
    [
        (INT_MAX, Operator.ADD, 1, None),
        (INT_MIN, Operator.SUBTRACT, 1, None),
        (2**32, Operator.MULTIPLY, 2**31, None),
        (2**32, Operator.MULTIPLY, 2**30, 2**62),
        (INT_MIN, Operator.MODULO, -1, 0),
        (7, Operator.MODULO, 0, None),
        (-7, Operator.MODULO, 3, 2),
        (7, Operator.MODULO, -3, -2),
    ],
)
def test_integers(left: int, operation: Operator, right: int, expected: int | None):
    assert calculated(left, operation, right, Kind.INT) == expected


@pytest.mark.parametrize(
    ("left", "operation", "right", "expected"),
    [
        (1, Operator.DIVIDE, 4, 0.25),
        (1, Operator.DIVIDE, 0, None),
        (1.0, Operator.DIVIDE, -0.0, None),
        (1e308, Operator.MULTIPLY, 10, None),
        (-7.5, Operator.MODULO, 2, 0.5),
        # Both are converted first: as integers the quotient would be rounded otherwise.
        (INT_MAX, Operator.DIVIDE, INT_MAX - 1, 1.0),
    ],
)
def test_floats(left: Value, operation: Operator, right: Value, expected: float | None):
    assert calculated(left, operation, right, Kind.FLOAT) == expected


def test_negation_of_the_least_integer_is_undefined():
    assert value(Negative(literal(INT_MIN), Kind.INT)) is None
    assert value(Negative(literal(2.5), Kind.FLOAT)) == -2.5


def test_conversion_rounds_to_the_nearest_float():
    converted = value(Convert(literal(2**53 + 1)))
    assert converted == 2.0**53
    assert isinstance(converted, float)


def test_three_valued_logic():
    undefined = Compare(
        Comparison.EQUAL,
        Arithmetic(Operator.DIVIDE, literal(1), literal(0), Kind.FLOAT),
        literal(1),
    )
    terms = {True: literal(True), False: literal(False), None: undefined}
    for left, right in itertools.product(terms, repeat=2):
        both, either = (
            value(And((terms[left], terms[right]))),
            value(Or((terms[left], terms[right]))),
        )
        known = {left, right}
        assert both == (False if False in known else None if None in known else True)
        assert either == (True if True in known else None if None in known else False)
    assert value(Not(undefined)) is None
    assert value(Not(terms[False])) is True


@pytest.mark.parametrize("seed", range(50))
def test_aggregates_are_exact(seed: int):
    rng = random.Random(seed)
    numbers: list[float] = [rng.choice((rng.uniform(-1e6, 1e6), rng.random())) for _ in range(9)]
    assert float(_FUNCTIONS[Function.SUM](numbers)) == math.fsum(numbers), f"seed {seed}"
    mean = _FUNCTIONS[Function.AVG](numbers)
    assert float(mean) == statistics.mean(numbers), f"seed {seed}"
    deviation = _FUNCTIONS[Function.STDDEV](numbers)
    assert_nearest_root(deviation, statistics.pvariance(map(Fraction, numbers)))


def assert_nearest_root(root: float, number: Fraction) -> None:
    """That no float is nearer to the square root of a number, which is not worked out."""
    above = Fraction(math.nextafter(root, math.inf)) if root < sys.float_info.max else 2**1024
    below, middle = Fraction(math.nextafter(root, -1.0)), Fraction(root)
    low, high = (below + middle) / 2, (above + middle) / 2
    assert low < 0 or low**2 <= number, (root, number)
    assert number <= high**2, (root, number)
    if number in (low**2, high**2):
        assert struct.unpack("<q", struct.pack("<d", root))[0] % 2 == 0, (root, number)


@pytest.mark.parametrize("seed", range(4))
def test_square_roots_are_the_nearest_floats(seed: int):
    """In the middle between two floats, just beside it, of numbers of any size."""
    rng = random.Random(seed)
    for _ in range(COUNT // 4):
        middle = Fraction(2 * rng.randint(2**52, 2**53 - 1) + 1) * Fraction(2) ** rng.randint(
            -1100, 900
        )
        beside = middle**2 * (1 + Fraction(rng.choice((-1, 1)), 2 ** rng.randint(60, 400)))
        least = Fraction(2 * rng.randrange(2 ** rng.randint(1, 40)) + 1, 2**1075)
        anything = Fraction(rng.randint(0, 2**60), rng.randint(1, 2**60))
        for number in (middle**2, beside, least**2, anything):
            assert_nearest_root(_square_root(number), number)


@pytest.mark.parametrize(
    "root", [Fraction(0), Fraction(3, 7), Fraction(10) ** 200, Fraction(1, 10**200)]
)
def test_square_roots_of_any_size(root: Fraction):
    assert _square_root(root * root) == float(root)

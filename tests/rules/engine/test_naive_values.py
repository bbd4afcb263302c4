"""The oracle's arithmetic against Python's own (tesla.md S8 to S10)."""

import itertools
import math
import random
import statistics
from fractions import Fraction

import pytest

from matcher.model import Kind, Value
from rules.engine.naive_values import _FUNCTIONS, Scope, _square_root, value_of
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
    assert deviation == pytest.approx(statistics.pstdev(numbers), rel=1e-14), f"seed {seed}"


@pytest.mark.parametrize(
    "root", [Fraction(0), Fraction(3, 7), Fraction(10) ** 200, Fraction(1, 10**200)]
)
def test_square_roots_of_any_size(root: Fraction):
    assert _square_root(root * root) == pytest.approx(float(root), rel=1e-15)

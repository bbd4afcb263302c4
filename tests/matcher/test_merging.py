"""Merging says exactly what both filters say."""

import itertools
import math
import random

import pytest

from matcher.filters.constraint import Constraint, Filter, Operator
from matcher.filters.merging import merge, merged
from matcher.model import Value

NUMBERS: list[int | float] = [
    *(0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0.5, 2.5, 1e300, math.inf, -math.inf),
]
OPERATORS = sorted(set(Operator) - {Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS})


def values() -> list[Value | None]:
    """The operands, what is just beside them, and what is no number."""
    found: set[Value] = {math.nan, True, "a"}
    for number in NUMBERS:
        nearest = float(number)
        found |= {number, math.nextafter(nearest, math.inf), math.nextafter(nearest, -math.inf)}
        if math.isfinite(number):
            beside = (math.floor(number) - 1, math.floor(number) + 1)
            found |= {one for one in beside if -(2**63) <= one < 2**63}
    return [None, *sorted(found, key=repr)]


VALUES = values()


def random_filter(rng: random.Random) -> Filter:
    rows = [Constraint("x", rng.choice(OPERATORS), rng.choice(NUMBERS))]
    if rng.random() < 0.5:
        rows.append(Constraint("x", rng.choice(OPERATORS), rng.choice(NUMBERS)))
    if rng.random() < 0.5:
        rows.append(Constraint("y", Operator.EQUAL, rng.choice([1, 2])))
    return Filter(tuple(rows))


def event(x: Value | None, y: Value) -> dict[str, Value]:
    return {"y": y} if x is None else {"x": x, "y": y}


def test_a_merged_filter_matches_what_either_does():
    rng, count = random.Random(11), 0
    for number in range(4_000):
        first, second = random_filter(rng), random_filter(rng)
        both = merged(first, second)
        if both is None:
            continue
        count += 1
        for x, y in itertools.product(VALUES, [1, 2]):
            data = event(x, y)
            assert both.matches(data) == (first.matches(data) or second.matches(data)), (
                f"seed 11, pair {number}: {first} and {second} as {both} on {data}"
            )
    assert count > 400


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("x", ">", 3), ("x", ">", 1), [("x", ">", 1)]),
        (("x", "<", 3), ("x", ">", 2), [("x", ">=", -math.inf), ("x", "<=", math.inf)]),
        (("x", "<", 3), ("x", ">", 3), [("x", "!=", 3), ("x", ">=", -math.inf)]),
        (("x", "=", 3), ("x", "!=", 3), None),
        (("x", "<", 3), ("x", ">", 4), None),
        (("x", "<", 3), ("y", ">", 4), None),
        (("x", "=", True), ("x", "=", False), None),
        (("x", "prefix", "a"), ("x", "prefix", "b"), None),
    ],
)
def test_what_merges_and_what_does_not(first, second, expected):
    found = merged(Filter.of(first), Filter.of(second))
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert set(Filter.of(*expected).constraints) <= set(found.constraints)


def test_types_keep_filters_apart():
    assert merged(Filter.of(("x", "<", 3), type="T"), Filter.of(("x", ">", 2), type="U")) is None


def test_filters_in_a_row_become_one():
    rows = [Filter.of(("x", ">=", n), ("x", "<", n + 1)) for n in range(10)]
    random.Random(3).shuffle(rows)
    (whole,) = merge(rows)
    inside = [value for value in (-1, 0, 5.5, 9, 9.75, 10, math.nan) if whole.matches({"x": value})]
    assert inside == [0, 5.5, 9, 9.75]

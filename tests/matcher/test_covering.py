"""Covering: never said where a delivery would be lost, and always where numbers decide."""

import itertools
import math
import random

import pytest

from matcher.filters.constraint import OPERATORS, Constraint, Filter, Operator, Sort
from matcher.filters.covering import covers, maximal
from matcher.model import Value

NUMBERS: list[Value] = [
    *(0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63 - 2),
    *(0.5, 2.5, 2.0**53, 2.0**63, -(2.0**63), 1e300, 5e-324, math.inf, -math.inf, 1.5),
]
TEXTS: list[Value] = ["", "a", "ab", "abc", "b", "ba", "a\0", "\U0010ffff", "a\U0010ffff", "aba"]


def near_numbers() -> list[Value]:
    """The operands and the numbers just beside them: a witness is among them if there is one."""
    found: set[Value] = {math.nan}
    for number in NUMBERS:
        assert not isinstance(number, str)
        nearest = float(number)
        found |= {number, nearest, math.nextafter(nearest, math.inf)}
        found.add(math.nextafter(nearest, -math.inf))
        if math.isfinite(number):
            whole = (math.floor(number) - 1, math.floor(number) + 1)
            found |= {one for one in whole if -(2**63) <= one < 2**63}
    return sorted(found, key=repr)


def near_texts() -> list[Value]:
    ends = ["", "\0", "\0\0", "a", "b", "ab", "zz", "\U0010ffff"]
    return [str(text) + end for text in TEXTS for end in ends] + ["`", "c", "za", "zba"]


def random_filter(rng: random.Random, operands: list[Value], left_out: set[Operator]) -> Filter:
    constraints = []
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        operand = rng.choice(operands)
        sort = Constraint("x", Operator.EQUAL, operand).sort
        operator = rng.choice(sorted(OPERATORS[sort] - left_out))
        constraints.append(Constraint("x", operator, operand))
    return Filter(tuple(constraints), rng.choice([None, None, "T"]))


def counterexample(wide: Filter, narrow: Filter, values: list[Value]) -> object:
    for value, event_type in itertools.product([None, *values], ["T", "U"]):
        data = {} if value is None else {"x": value}
        if narrow.matches(data, event_type) and not wide.matches(data, event_type):
            return data, event_type
    return None


@pytest.mark.parametrize(
    ("operands", "values", "left_out"),
    [
        (NUMBERS, near_numbers(), set()),
        ([True, False], [True, False], set()),
        (TEXTS, near_texts(), {Operator.SUFFIX, Operator.CONTAINS}),
    ],
    ids=["numbers", "bools", "texts"],
)
def test_covering_is_exact(
    operands: list[Value], values: list[Value], left_out: set[Operator]
) -> None:
    rng = random.Random(11)
    for _ in range(6_000):
        wide, narrow = (random_filter(rng, operands, left_out) for _ in range(2))
        lost = counterexample(wide, narrow, values)
        assert covers(wide, narrow) == (lost is None), (wide, narrow, lost)


def test_covering_never_loses_a_delivery() -> None:
    rng = random.Random(12)
    values = [*near_texts(), *near_numbers(), True, False]
    said = 0
    for _ in range(6_000):
        wide, narrow = (random_filter(rng, [*TEXTS, 1, True], set()) for _ in range(2))
        if covers(wide, narrow):
            said += 1
            assert counterexample(wide, narrow, values) is None, (wide, narrow)
    assert said > 500


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (Filter.of(("x", ">", 1)), Filter.of(("x", ">", 2), ("y", "=", 1)), True),
        (Filter.of(("x", ">", 1), ("y", "=", 1)), Filter.of(("x", ">", 2)), False),
        (Filter.of(("x", "contains", "b")), Filter.of(("x", "prefix", "abc")), True),
        (Filter.of(("x", "suffix", "c")), Filter.of(("x", "suffix", "bc")), True),
        (Filter.of(("x", "contains", "b")), Filter.of(("x", "suffix", "bc")), True),
        (Filter.of(("x", "suffix", "c")), Filter.of(("x", "prefix", "c")), False),
        (Filter.of(("x", "!=", 1)), Filter(), False),
        (Filter(), Filter.of(type="T"), True),
        (Filter.of(type="T"), Filter(), False),
        (Filter.of(("x", "=", 1)), Filter.of(("y", "=", 1), ("y", "=", "a")), True),
    ],
)
def test_some_pairs(wide: Filter, narrow: Filter, expected: bool) -> None:
    assert covers(wide, narrow) is expected


def test_what_is_maximal_matches_what_all_match() -> None:
    rng = random.Random(13)
    values = near_numbers()
    for _ in range(60):
        filters = [random_filter(rng, NUMBERS, set()) for _ in range(12)]
        kept = [filters[place] for place in maximal(filters)]
        for value, event_type in itertools.product(values, ["T", "U"]):
            data = {"x": value}
            expected = any(one.matches(data, event_type) for one in filters)
            assert any(one.matches(data, event_type) for one in kept) == expected


def test_sorts_are_those_that_covering_knows() -> None:
    assert set(Sort) == {Sort.NUMBER, Sort.TEXT, Sort.BOOL}

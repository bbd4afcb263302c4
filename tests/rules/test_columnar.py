"""Whole columns against plain Python, value by value (S9, S10)."""

from random import Random
from typing import Any

import numpy as np
import pytest

from matcher.model import EventBatch, EventIds, EventType, Kind, StringColumn
from rules.planning.columnar import satisfied
from rules.planning.rowwise import evaluator
from rules.terms import (
    CANDIDATE,
    And,
    Arithmetic,
    AttributeOf,
    Compare,
    Comparison,
    Convert,
    Expression,
    Literal,
    Negative,
    Not,
    Operator,
    Or,
    Slot,
)

TYPE = EventType.of("T", i="int", j="int", f="float", g="float", s="string", t="string", b="bool")
INTS = (0, 1, -1, 2, 3, -3, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 3037000500)
FLOATS = (0.0, -0.0, 0.5, -1.0, 3.0, 2.0**53, 2.0**63, -(2.0**63), 1e308, -1e308, 5e-324, 1e19)
STRINGS = ("", "a", "b", "ab", "ba", "aba", "é", "\U0001f600", "\uffff")
ORDERINGS = [comparison for comparison in Comparison if len(comparison.value) <= 2]
TEXTUAL = [comparison for comparison in Comparison if len(comparison.value) > 2]
POOLS: dict[Kind, tuple[Any, ...]] = {
    Kind.INT: INTS,
    Kind.FLOAT: FLOATS,
    Kind.STRING: STRINGS,
    Kind.BOOL: (True, False),
}


# --- plain Python ----------------------------------------------------------------------------


def plain(node: Expression, row: tuple[Any, ...]) -> Any:
    """The value of an expression, or None: written from S9 and S10 without any array."""
    match node:
        case Literal():
            return node.value
        case AttributeOf():
            return row[node.attribute]
        case Compare():
            left, right = plain(node.left, row), plain(node.right, row)
            return None if left is None or right is None else plainly(node.comparison, left, right)
        case Arithmetic():
            left, right = plain(node.left, row), plain(node.right, row)
            return None if left is None or right is None else computed(node, left, right)
        case Negative():
            operand = plain(node.operand, row)
            return None if operand is None else fitting(-operand, node.kind)
        case Convert():
            operand = plain(node.operand, row)
            return None if operand is None else float(operand)
        case Not():
            operand = plain(node.operand, row)
            return None if operand is None else not operand
        case And() | Or():
            truths = [plain(operand, row) for operand in node.operands]
            decisive = isinstance(node, Or)
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
    raise AssertionError(node)


def plainly(comparison: Comparison, left: Any, right: Any) -> bool:
    return {
        Comparison.EQUAL: lambda: left == right,
        Comparison.UNEQUAL: lambda: left != right,
        Comparison.LESS: lambda: left < right,
        Comparison.LESS_EQUAL: lambda: left <= right,
        Comparison.GREATER: lambda: left > right,
        Comparison.GREATER_EQUAL: lambda: left >= right,
        Comparison.PREFIX: lambda: left[: len(right)] == right,
        Comparison.SUFFIX: lambda: right == "" or left[-len(right) :] == right,
        Comparison.CONTAINS: lambda: left.find(right) >= 0,
    }[comparison]()


def computed(node: Arithmetic, left: Any, right: Any) -> Any:
    if node.kind is Kind.FLOAT:
        left, right = float(left), float(right)
    if node.operator in (Operator.DIVIDE, Operator.MODULO) and right == 0:
        return None
    result = {
        Operator.ADD: lambda: left + right,
        Operator.SUBTRACT: lambda: left - right,
        Operator.MULTIPLY: lambda: left * right,
        Operator.DIVIDE: lambda: left / right,
        Operator.MODULO: lambda: left % right,
    }[node.operator]()
    return fitting(result, node.kind)


def fitting(number: Any, kind: Kind) -> Any:
    if kind is Kind.INT:
        return number if -(2**63) <= number < 2**63 else None
    return number if abs(number) < float("inf") else None


# --- random expressions ----------------------------------------------------------------------


def some_value(random: Random, kind: Kind, depth: int) -> Expression:
    if kind is Kind.BOOL:
        return some_truth(random, depth)
    if depth and kind.is_number and random.random() < 0.6:
        return some_number(random, kind, depth - 1)
    places = [place for place, one in enumerate(TYPE.attributes) if one.kind is kind]
    if random.random() < 0.7:
        return AttributeOf(CANDIDATE, random.choice(places), kind)
    return Literal(random.choice(POOLS[kind]), kind)


def some_number(random: Random, kind: Kind, depth: int) -> Expression:
    if random.random() < 0.2:
        return Negative(some_value(random, kind, depth), kind)
    if kind is Kind.INT:
        operators = [one for one in Operator if one is not Operator.DIVIDE]
        left, right = some_value(random, kind, depth), some_value(random, kind, depth)
        return Arithmetic(random.choice(operators), left, right, kind)
    if random.random() < 0.2:
        return Convert(some_value(random, Kind.INT, depth))
    operator = random.choice(list(Operator))
    kinds = random.choice([(kind, kind), (kind, Kind.INT), (Kind.INT, kind)])
    if operator is Operator.DIVIDE and random.random() < 0.3:
        kinds = (Kind.INT, Kind.INT)
    left, right = (some_value(random, one, depth) for one in kinds)
    return Arithmetic(operator, left, right, kind)


def some_truth(random: Random, depth: int) -> Expression:
    choice = random.random()
    if depth and choice < 0.3:
        kind = random.choice([And, Or])
        return kind(tuple(some_truth(random, depth - 1) for _ in range(random.randrange(2, 4))))
    if depth and choice < 0.4:
        return Not(some_truth(random, depth - 1))
    if choice < 0.45:
        return AttributeOf(CANDIDATE, 6, Kind.BOOL)
    kind = random.choice([Kind.INT, Kind.FLOAT, Kind.STRING, Kind.BOOL])
    other = random.choice([Kind.INT, Kind.FLOAT]) if kind.is_number else kind
    comparisons = {Kind.BOOL: ORDERINGS[:2], Kind.STRING: ORDERINGS + TEXTUAL}.get(kind, ORDERINGS)
    inner = max(0, depth - 1)
    left, right = some_value(random, kind, inner), some_value(random, other, inner)
    return Compare(random.choice(comparisons), left, right)


def some_batch(random: Random, length: int) -> tuple[EventBatch, list[tuple[Any, ...]]]:
    rows = [tuple(random.choice(POOLS[one.kind]) for one in TYPE.attributes) for _ in range(length)]
    return batch_of(rows), rows


def batch_of(rows: list[tuple[Any, ...]]) -> EventBatch:
    dtypes = {Kind.INT: np.int64, Kind.FLOAT: np.float64, Kind.BOOL: np.bool_}
    columns = tuple(
        StringColumn.from_strings([row[place] for row in rows])
        if one.kind is Kind.STRING
        else np.array([row[place] for row in rows], dtypes[one.kind])
        for place, one in enumerate(TYPE.attributes)
    )
    ids = EventIds(StringColumn.constant("s", len(rows)), np.arange(len(rows)))
    return EventBatch(TYPE, np.zeros(len(rows), np.int64), ids, columns)


@pytest.mark.parametrize("seed", range(20))
def test_columns_agree_with_plain_python(seed: int) -> None:
    random = Random(seed)
    seen = set()
    for _ in range(60):
        condition = some_truth(random, 3)
        batch, rows = some_batch(random, random.randrange(40))
        expected = [plain(condition, row) for row in rows]
        assert list(map(evaluator(condition), rows)) == expected, (seed, condition)
        seen.update(expected)
        assert satisfied([condition], batch).tolist() == [one is True for one in expected], (
            seed,
            condition,
        )
    assert seen == {True, False, None}  # or the comparison would show little


# --- single cases ----------------------------------------------------------------------------

INT, FLOAT, STRING = (
    AttributeOf(CANDIDATE, place, TYPE.attributes[place].kind) for place in (0, 2, 4)
)
ROW = (0, 0, 0.0, 0.0, "", "", False)


def holds(condition: Expression, **values: Any) -> bool:
    row = tuple(
        values.get(one.name, default) for one, default in zip(TYPE.attributes, ROW, strict=True)
    )
    [result] = satisfied([condition], batch_of([row])).tolist()
    return bool(result)


@pytest.mark.parametrize("i", INTS)
@pytest.mark.parametrize("f", FLOATS)
def test_an_int_and_a_float_compare_by_value(i: int, f: float) -> None:
    for comparison in ORDERINGS:
        assert holds(Compare(comparison, INT, FLOAT), i=i, f=f) == plainly(comparison, i, f)
        assert holds(Compare(comparison, FLOAT, INT), i=i, f=f) == plainly(comparison, f, i)


def test_an_undefined_operand_does_not_hide_a_deciding_one() -> None:
    undefined = Compare(
        Comparison.EQUAL,
        Arithmetic(Operator.DIVIDE, INT, Literal(0, Kind.INT), Kind.FLOAT),
        Literal(1, Kind.INT),
    )
    true, false = Literal(True, Kind.BOOL), Literal(False, Kind.BOOL)
    assert holds(Or((undefined, true)))
    assert not holds(Or((undefined, false)))
    assert not holds(Not(And((undefined, true))))
    assert holds(Not(And((undefined, false))))
    assert not holds(undefined)
    assert not holds(Not(undefined))


def test_strings_compare_by_code_point() -> None:
    assert holds(Compare(Comparison.LESS, STRING, Literal("\U0001f600", Kind.STRING)), s="\uffff")


def test_strings_are_compared_once_for_each_distinct_value() -> None:
    compared = []

    class Watched(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return str.__eq__(self, other)

    batch = batch_of([ROW]).take(np.zeros(10_000, np.int64))
    columns = list(batch.columns)
    columns[4] = StringColumn(np.zeros(10_000, np.int32), (Watched("abc"),))
    watched = EventBatch(TYPE, batch.time, batch.ids, tuple(columns))
    condition = Compare(Comparison.EQUAL, STRING, Literal("abc", Kind.STRING))
    assert satisfied([condition], watched).all()
    assert compared == ["abc"]


def test_no_condition_is_satisfied_by_every_event() -> None:
    assert satisfied([], batch_of([ROW, ROW])).tolist() == [True, True]
    assert satisfied([], batch_of([])).tolist() == []


def test_what_speaks_of_more_than_one_event_is_refused() -> None:
    with pytest.raises(ValueError, match="Slot speaks of more than one event"):
        satisfied([Slot(0, Kind.BOOL)], batch_of([ROW]))

"""The conditions on one event as far as the matcher's constraints can say them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from matcher.errors import FilterError
from matcher.filters.constraint import SYMBOLS, Constraint, Filter, Operator
from matcher.model import EventType, Kind, Value
from rules.terms import And, AttributeOf, Compare, Comparison, Expression, Literal, Not

_MIRRORED = {
    Comparison.EQUAL: Comparison.EQUAL,
    Comparison.UNEQUAL: Comparison.UNEQUAL,
    Comparison.LESS: Comparison.GREATER,
    Comparison.LESS_EQUAL: Comparison.GREATER_EQUAL,
    Comparison.GREATER: Comparison.LESS,
    Comparison.GREATER_EQUAL: Comparison.LESS_EQUAL,
}
"""``5 < value`` is ``value > 5``."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """Conditions as constraints say them; ``is_whole`` when they say all of it."""

    filter: Filter
    is_whole: bool


def sketch_of(conditions: Iterable[Expression], schema: EventType) -> Sketch:
    """The conditions on an event of a type, as far as constraints can say them. A condition becomes
    a constraint where it compares an attribute with a constant, and an attribute that is a truth
    value is one that it is true. Other conditions are left out, so the constraints may ask for
    less: ``is_whole`` tells.
    """
    parts = [part for one in conditions for part in _conjuncts(one)]
    constraints = [_constraint(part, schema) for part in parts]
    found = tuple(one for one in constraints if one is not None)
    return Sketch(Filter(found, schema.name), len(found) == len(parts))


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, And):
        for operand in condition.operands:
            yield from _conjuncts(operand)
    else:
        yield condition


def _constraint(condition: Expression, schema: EventType) -> Constraint | None:
    """The condition as a constraint; None for one that is no such comparison."""
    wanted = True
    if isinstance(condition, Not):
        wanted, condition = False, condition.operand
    if isinstance(condition, AttributeOf) and condition.kind is Kind.BOOL:
        return Constraint(schema.names[condition.attribute], Operator.EQUAL, wanted)
    if not isinstance(condition, Compare) or not wanted:
        return None
    comparison, left, right = condition.comparison, condition.left, condition.right
    if _constant(left) is not None and comparison in _MIRRORED:
        comparison, left, right = _MIRRORED[comparison], right, left
    value = _constant(right)
    if not isinstance(left, AttributeOf) or left.attribute < 0 or value is None:
        return None
    try:
        return Constraint(schema.names[left.attribute], SYMBOLS[comparison.value], value)
    except FilterError:
        return None


def _constant(expression: Expression) -> Value | None:
    return expression.value if isinstance(expression, Literal) else None

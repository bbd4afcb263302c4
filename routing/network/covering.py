"""Which filters need not be told, since others ask for all that they ask for (thesis 7.3.4).

Law 1: a filter is left out only when another one that is told covers it (matcher.covering), so
no event that somebody wants is missed.

Law 2: a subscription's conditions become constraints where they compare an attribute with a
constant. One that has others besides asks for less than its constraints say: it may be covered,
and covers nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from matcher.constraint import SYMBOLS, Constraint, Filter
from matcher.covering import covers
from matcher.errors import FilterError
from matcher.model import EventType, Value
from routing.network.branch import known_interest, type_named
from rules.pattern import And, AttributeOf, Compare, Comparison, Expression, Literal

FEW = 256
"""Filters of one type up to which they are compared with one another, which is quadratic."""

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
    """What constraints say of a filter; ``is_whole`` when they say all of it (Law 2)."""

    filter: Filter
    is_whole: bool


def maximal(filters: Iterable[str], schemas: Mapping[str, EventType]) -> tuple[str, ...]:
    """The filters, sorted, without those that others cover; of equal ones the first by text."""
    by_type: dict[str, list[str]] = {}
    for text in sorted(set(filters)):
        by_type.setdefault(type_named(text) or text, []).append(text)
    kept: list[str] = []
    for name, texts in by_type.items():
        schema = schemas.get(name)
        kept += texts if schema is None or len(texts) > FEW else _maximal(texts, schema)
    return tuple(sorted(kept))


def _maximal(texts: list[str], schema: EventType) -> list[str]:
    sketches = {text: sketch_of(text, schema) for text in texts}
    kept: list[str] = []
    for text in texts:
        if not any(_covers(sketches[other], sketches[text]) for other in kept):
            kept = [one for one in kept if not _covers(sketches[text], sketches[one])]
            kept.append(text)
    return kept


def _covers(wide: Sketch | None, narrow: Sketch | None) -> bool:
    if wide is None or narrow is None or not wide.is_whole:
        return False
    return covers(wide.filter, narrow.filter)


@lru_cache(maxsize=65_536)
def sketch_of(text: str, schema: EventType) -> Sketch | None:
    """What constraints say of a filter of this type; None when it does not fit the type."""
    interest = known_interest(text, schema)
    if interest is None or interest.filter is None:
        return None
    parts = [part for one in interest.filter.conditions for part in _conjuncts(one)]
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
    if not isinstance(condition, Compare):
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

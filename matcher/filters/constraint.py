"""Constraints and filters: what content-based matching asks of one event (thesis 4.2).

A *constraint* compares one named attribute with a constant, a *filter* is a conjunction of
constraints, a *predicate* the disjunction of the filters that one *interface* exposes.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

from matcher.errors import FilterError
from matcher.model import EventType, Kind, Value
from matcher.times import spoken

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


class Operator(enum.IntEnum):
    """Operators of constraints (docs/matching.md); the numbers stand for them in arrays."""

    EQUAL = 0
    UNEQUAL = 1
    LESS = 2
    LESS_EQUAL = 3
    GREATER = 4
    GREATER_EQUAL = 5
    PREFIX = 6
    SUFFIX = 7
    CONTAINS = 8


SYMBOLS: Mapping[str, Operator] = {
    "=": Operator.EQUAL,
    "!=": Operator.UNEQUAL,
    "<": Operator.LESS,
    "<=": Operator.LESS_EQUAL,
    ">": Operator.GREATER,
    ">=": Operator.GREATER_EQUAL,
    "prefix": Operator.PREFIX,
    "suffix": Operator.SUFFIX,
    "contains": Operator.CONTAINS,
}
SPELLING: Mapping[Operator, str] = {operator: symbol for symbol, operator in SYMBOLS.items()}


class Sort(enum.IntEnum):
    """Sorts of values that can be compared: numbers of either kind, texts, bools; the numbers as
    above.
    """

    NUMBER = 0
    TEXT = 1
    BOOL = 2


SORT_OF_KIND: Mapping[Kind, Sort] = {
    Kind.INT: Sort.NUMBER,
    Kind.FLOAT: Sort.NUMBER,
    Kind.STRING: Sort.TEXT,
    Kind.BOOL: Sort.BOOL,
}
_SORT_OF_TYPE: Mapping[type, Sort] = {
    int: Sort.NUMBER,
    float: Sort.NUMBER,
    str: Sort.TEXT,
    bool: Sort.BOOL,
}
_SPOKEN = {Sort.NUMBER: "a number", Sort.TEXT: "a text", Sort.BOOL: "a bool"}

_ORDERING = (Operator.LESS, Operator.LESS_EQUAL, Operator.GREATER, Operator.GREATER_EQUAL)
OPERATORS: Mapping[Sort, frozenset[Operator]] = {
    Sort.NUMBER: frozenset((Operator.EQUAL, Operator.UNEQUAL, *_ORDERING)),
    Sort.TEXT: frozenset(Operator),
    Sort.BOOL: frozenset((Operator.EQUAL, Operator.UNEQUAL)),
}
"""The operators that fit each sort of operand."""

HOLDS: Mapping[Operator, Callable[..., bool]] = {
    Operator.EQUAL: eq,
    Operator.UNEQUAL: ne,
    Operator.LESS: lt,
    Operator.LESS_EQUAL: le,
    Operator.GREATER: gt,
    Operator.GREATER_EQUAL: ge,
    Operator.PREFIX: str.startswith,
    Operator.SUFFIX: str.endswith,
    Operator.CONTAINS: str.__contains__,
}
"""The definition of each operator, for a value and an operand of one sort."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """``name operator operand``.

    Raises FilterError when the operand is no value that an event could have, as NaN is, or the
    operator does not fit it.
    """

    name: str
    operator: Operator
    operand: Value

    def __post_init__(self) -> None:
        problem = _problem(self.operator, self.operand)
        if problem:
            raise FilterError(f"{self.name} {SPELLING[self.operator]}: {problem}")

    @property
    def sort(self) -> Sort:
        """The sort of values that it can hold of."""
        return _SORT_OF_TYPE[type(self.operand)]

    def holds(self, value: Value | None) -> bool:
        """Whether an attribute's value satisfies it; None is an absent one. A constraint on an
        absent attribute, or on one of another kind, is false, ``!=`` included (docs/matching.md).
        Numbers compare exactly by value, an int with a float too, and texts by code point (tesla.md
        S10); NaN is a number that is unequal to all.
        """
        if _SORT_OF_TYPE.get(type(value)) is not self.sort:
            return False
        return HOLDS[self.operator](value, self.operand)

    def __str__(self) -> str:
        return f"{self.name} {SPELLING[self.operator]} {self.operand!r}"


@dataclass(frozen=True, slots=True)
class Filter:
    """A conjunction of constraints, on events of one type where ``type`` names it. One
    without constraints matches every event of its type, and without a type every event.
    """

    constraints: tuple[Constraint, ...] = ()
    type: str | None = None

    @classmethod
    def of(cls, *constraints: tuple[str, str, Value], type: str | None = None) -> Filter:  # noqa: A002
        """``Filter.of(("area", "prefix", "a"), ("value", ">", 45), type="Temp")``."""
        return cls(tuple(Constraint(name, SYMBOLS[by], to) for name, by, to in constraints), type)

    def matches(self, data: Mapping[str, Value], event_type: str | None = None) -> bool:
        """Whether an event with these attributes, of this type, satisfies it: the definition."""
        if self.type is not None and self.type != event_type:
            return False
        return all(constraint.holds(data.get(constraint.name)) for constraint in self.constraints)

    def check(self, event_type: EventType) -> None:
        """Raise FilterError for an attribute that a type lacks, or has of another kind."""
        for constraint in self.constraints:
            place = event_type.index(constraint.name)
            if place is None:
                raise FilterError(
                    f"{constraint}: {event_type.name} has no attribute {constraint.name}"
                )
            kind = event_type.attributes[place].kind
            if SORT_OF_KIND[kind] is not constraint.sort:
                raise FilterError(
                    f"{constraint}: {event_type.name}.{constraint.name} is of kind {kind.value}, "
                    f"the operand is {_SPOKEN[constraint.sort]}"
                )


def _problem(operator: Operator, operand: object) -> str | None:
    """Why an operand cannot stand behind an operator, or None."""
    sort = _SORT_OF_TYPE.get(type(operand))
    if sort is None:
        return f"expected a number, a text or a bool, found {spoken(operand)}"
    if operator not in OPERATORS[sort]:
        return f"this operator does not fit {_SPOKEN[sort]}"
    if type(operand) is int and not INT_MIN <= operand <= INT_MAX:
        return "an int beyond 64 bits"
    if type(operand) is float and math.isnan(operand):
        return "NaN compares with nothing"
    return None

"""A rule's conditions on each of its events apart, and on two of them together.

A condition is *static* when it speaks of one event alone: it can be tested where the event enters
the network. An equality of attributes of two events lets one be looked for by the other; such
equalities add up too, as when two events both have the ``area`` of a third. All else, and all that
needs an aggregate, is tested where the rule is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from matcher.model import EventType
from rules.pattern import Constraint, Rule, Selected
from rules.terms import (
    CANDIDATE,
    TIME,
    Aggregate,
    AttributeOf,
    Compare,
    Comparison,
    Expression,
    Slot,
    nodes_of,
    with_operands,
)

Place: TypeAlias = tuple[int, int]
"""An attribute of an event: both numbers."""
Keys: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of attributes, of the first and of the second of two events, that must be equal."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """Events of a type that satisfy static conditions, which speak of CANDIDATE."""

    type: EventType
    conditions: tuple[Expression, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Worked out once: predicates are looked up again whenever anything is arranged anew.
        object.__setattr__(self, "_hash", hash((self.type, self.conditions)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Predicate, (self.type, self.conditions)  # another process hashes otherwise

    @classmethod
    def of(cls, type_: EventType, conditions: Iterable[Expression], event: int) -> Predicate:
        """The events that satisfy those conditions that are static for ``event``."""
        static = {
            _as_candidate(condition)
            for condition in conditions
            if subjects(condition) in (frozenset(), frozenset({event}))
        }
        return cls(type_, tuple(sorted(static, key=repr)))


def subjects(expression: Expression) -> frozenset[int] | None:
    """The events that an expression speaks of; None when it needs more than their attributes."""
    nodes = list(nodes_of(expression))
    if any(isinstance(node, Slot | Aggregate) or is_time(node) for node in nodes):
        return None
    return frozenset(node.event for node in nodes if isinstance(node, AttributeOf))


def is_time(node: Expression) -> bool:
    """Whether an expression is the time of an event, which is none of its attributes (X3)."""
    return isinstance(node, AttributeOf) and node.attribute == TIME


def equality(condition: Expression) -> tuple[Place, Place] | None:
    """The attributes of two different events, of one kind, that a condition says are equal."""
    if not (isinstance(condition, Compare) and condition.comparison is Comparison.EQUAL):
        return None
    left, right = condition.left, condition.right
    if not (isinstance(left, AttributeOf) and isinstance(right, AttributeOf)):
        return None
    if left.kind is not right.kind or left.event == right.event:
        return None
    if is_time(left) or is_time(right):
        return None
    return (left.event, left.attribute), (right.event, right.attribute)


class Equalities:
    """The attributes of a rule's numbered events that are equal in every match."""

    def __init__(self, rule: Rule) -> None:
        self._classes: list[set[Place]] = []
        for clause in rule.clauses:
            conditions: tuple[Expression, ...] = ()
            if isinstance(clause, Selected):
                conditions = clause.conditions
            elif isinstance(clause, Constraint):
                conditions = (clause.condition,)
            for condition in conditions:
                pair = equality(condition)
                if pair is not None:
                    self._join(*pair)

    def attribute(self, place: Place, event: int) -> int | None:
        """The attribute of ``event`` that equals a given one in every match, the least of them."""
        if place[0] == event:
            return place[1]
        return min((one[1] for one in self._class(place) if one[0] == event), default=None)

    def keys(self, first: int, second: int) -> Keys:
        """The pairs of attributes of two events that are equal in every match."""
        pairs = [
            (
                min(attribute for event, attribute in places if event == first),
                min(attribute for event, attribute in places if event == second),
            )
            for places in self._classes
            if {first, second} <= {event for event, _ in places}
        ]
        return tuple(sorted(pairs))

    def _class(self, place: Place) -> set[Place]:
        return next((places for places in self._classes if place in places), {place})

    def _join(self, one: Place, other: Place) -> None:
        joined = self._class(one) | self._class(other)
        self._classes = [places for places in self._classes if not places & joined]
        self._classes.append(joined)


def _as_candidate(node: Expression) -> Expression:
    if isinstance(node, AttributeOf):
        return replace(node, event=CANDIDATE)
    return with_operands(node, _as_candidate)

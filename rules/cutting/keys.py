"""Attributes in which all events of a rule agree: the keys by which events can be parted.

A key of a rule is one attribute for each type that it reads, itself or through the rules below it,
such that every match has one and the same value in all of them, whatever other events there are.
What decides that before a choice is made are an event's own conditions; of ``each``, which chooses
nothing, constraints that follow count as well. A composite event bears the key when its rule
assigns it, unchanged, to the attribute that is its type's key. Equal means equal values of one
kind; floats are left out, for they are seldom meant to be names, and -0.0 equals 0.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from matcher.model import EventType, Kind
from rules.pattern import TIMER, Constraint, Let, Negated, Policy, Rule, Selected
from rules.planning.variants import variants
from rules.terms import (
    CANDIDATE,
    TERMINATOR,
    TIME,
    AttributeOf,
    Compare,
    Comparison,
    Expression,
    aggregates_in,
)

Key: TypeAlias = tuple[tuple[str, int], ...]
"""Types and the numbers of their attributes, in order of the names."""
KINDS = (Kind.INT, Kind.BOOL, Kind.STRING)
"""The kinds of attributes that can be keys."""
KEYS_MAX = 32
"""So many keys of a rule are looked at, at most."""

_Places: TypeAlias = dict[str, frozenset[int]]


def found_keys(rule: Rule, closure: Sequence[Rule]) -> tuple[tuple[Key, ...], str]:
    """The keys of a rule, at most KEYS_MAX; and, where there are none, why not.

    ``closure`` are the rule itself and those below it.
    """
    read = {type_.name for one in closure for type_ in one.used_types}
    found: list[dict[str, int]] = [{}]
    for one in closure:
        for ordinary in variants(one):
            own = list(_keys_of(ordinary, read))
            found = _joined(found, own)
            if not found:
                return (), _why_none(ordinary, own)
    keys = (tuple(sorted(places.items())) for places in found)
    return tuple(dict.fromkeys(keys)), ""


def _joined(
    first: Sequence[Mapping[str, int]], second: Sequence[Mapping[str, int]]
) -> list[dict[str, int]]:
    """Every pair that agrees on the types of both, as one."""
    joined = (
        {**one, **other}
        for one, other in itertools.product(first, second)
        if all(one.get(name, place) == place for name, place in other.items())
    )
    return list(itertools.islice(joined, KEYS_MAX))


def _why_none(rule: Rule, own: Sequence[Mapping[str, int]]) -> str:
    if rule.terminator.name == TIMER.name:
        return f"a Timer, which ends {rule.name}, has no key"
    if own:
        return f"{rule.name} and the rules with it have no key in common"
    return f"the events of {rule.name} are not all bound to one value"


# --- one ordinary rule -------------------------------------------------------------------------


def _keys_of(rule: Rule, read: Collection[str]) -> Iterator[dict[str, int]]:
    """The keys of one rule alone, its own type included where the rules together ``read`` it."""
    if rule.terminator.name == TIMER.name:
        return
    for start, attribute in enumerate(rule.terminator.attributes):
        if attribute.kind not in KINDS:
            continue
        walk = _Walk(rule, AttributeOf(TERMINATOR, start, attribute.kind))
        if rule.defines.name in read:
            walk.use(rule.defines, walk.bearing(rule.values))
        places = walk.places
        names = sorted(places)
        for chosen in itertools.product(*(sorted(places[name]) for name in names)):
            yield dict(zip(names, chosen, strict=True))


class _Walk:
    """A walk through a rule's clauses: where the key is ``known``, and each type's ``places``.

    The walk begins with one attribute of the terminator.
    """

    def __init__(self, rule: Rule, key: AttributeOf) -> None:
        self.known: set[Expression] = {key}
        self.places: _Places = {}
        constraints = [
            clause.condition for clause in rule.clauses if isinstance(clause, Constraint)
        ]
        self._number(rule.terminator, TERMINATOR, rule.conditions, {key.attribute})
        for clause in rule.clauses:
            match clause:
                case Selected(policy=Policy.EACH):
                    conditions = (*clause.conditions, *constraints)
                    self._number(clause.type, clause.event, conditions)
                case Selected():
                    # Rivals are candidates of the same choice: all of them must be at hand.
                    for rival in clause.rivals:
                        self.use(rival.type, _own(rival.conditions, rival.event, self.known))
                    self._number(clause.type, clause.event, clause.conditions)
                case Negated():
                    self.use(clause.type, _own(clause.conditions, CANDIDATE, self.known))
                case _:
                    pass
        for expression in _expressions(rule):
            for aggregate in aggregates_in(expression):
                self.use(aggregate.type, _own(aggregate.conditions, CANDIDATE, self.known))

    def _number(
        self,
        type_: EventType,
        event: int,
        conditions: Iterable[Expression],
        places: Collection[int] = (),
    ) -> None:
        """A numbered event, which bears the key from here on."""
        own = _own(conditions, event, self.known) | frozenset(places)
        self.known |= {AttributeOf(event, place, type_.attributes[place].kind) for place in own}
        self.use(type_, own)

    def bearing(self, values: Sequence[Expression]) -> frozenset[int]:
        """The places among a composite event's values that hold the key."""
        return frozenset(place for place, value in enumerate(values) if value in self.known)

    def use(self, type_: EventType, own: frozenset[int]) -> None:
        """One use of a type, whose events bear the key in their ``own`` attributes."""
        self.places[type_.name] = self.places.get(type_.name, own) & own


def _own(
    conditions: Iterable[Expression], event: int, known: Collection[Expression]
) -> frozenset[int]:
    """The attributes of an event that its conditions make equal to what is known."""
    pairs = [
        (condition.left, condition.right)
        for condition in conditions
        if isinstance(condition, Compare) and condition.comparison is Comparison.EQUAL
    ]
    own: set[Expression] = set()
    while True:
        reached = {
            one
            for first, second in pairs
            for one, other in ((first, second), (second, first))
            if _is_name(one, event) and one.kind is other.kind and (other in own or other in known)
        } - own
        if not reached:
            return frozenset(one.attribute for one in own if isinstance(one, AttributeOf))
        own |= reached


def _is_name(expression: Expression, event: int) -> bool:
    return (
        isinstance(expression, AttributeOf)
        and expression.event == event
        and expression.attribute != TIME
        and expression.kind in KINDS
    )


def _expressions(rule: Rule) -> Iterator[Expression]:
    """Every expression of a rule in which an aggregate can stand."""
    yield from rule.conditions
    for clause in rule.clauses:
        match clause:
            case Selected():
                for one in (clause, *clause.rivals):
                    yield from one.conditions
            case Negated():
                yield from clause.conditions
            case Constraint():
                yield clause.condition
            case Let():
                yield clause.value
            case _:
                pass
    yield from rule.values

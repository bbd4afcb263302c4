"""Negations and aggregates of a rule, and attributes that its own conditions make equal.

Law: a condition of a clause restricts what the clause looks at only where it says that an attribute
is equal to one of another event; what equals that in every match, by whatever clauses, restricts it
as well. What other clauses say of the clause's own event comes too late: it may have been chosen
before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from routing.partition.predicates import Equalities, Keys, Place, equality
from rules.pattern import Constraint, Let, Negated, Rule, Selected
from rules.terms import Aggregate, Expression, aggregates_in


@dataclass(frozen=True, slots=True)
class SideUse:
    """A negated or aggregated event. ``home`` is the selected event whose own conditions the
    aggregate is part of: inside, its number means each candidate in turn.
    """

    use: Negated | Aggregate
    home: int | None = None


def side_uses(rule: Rule) -> Iterator[SideUse]:
    """The negated and aggregated events of a rule."""
    for clause in rule.clauses:
        conditions: tuple[Expression, ...] = ()
        home = None
        match clause:
            case Selected():
                rivals = (one.conditions for one in clause.rivals)
                conditions = (*clause.conditions, *itertools.chain.from_iterable(rivals))
                home = clause.event
            case Negated():
                conditions = clause.conditions
                yield SideUse(clause)
            case Constraint():
                conditions = (clause.condition,)
            case Let():
                conditions = (clause.value,)
        yield from (SideUse(found, home) for item in conditions for found in aggregates_in(item))
    for expression in (*rule.conditions, *rule.values):
        yield from map(SideUse, aggregates_in(expression))


def own_keys(
    equalities: Equalities,
    conditions: tuple[Expression, ...],
    event: int,
    number: int,
    home: int | None = None,
) -> Keys:
    """The attributes of an event that its own conditions make equal to some of event ``number``.

    ``home``: see SideUse.
    """
    keys = []
    for condition in conditions:
        pair = equality(condition)
        if pair is None or event not in (pair[0][0], pair[1][0]):
            continue
        own, place = oriented(pair, event)
        if place[0] == home:
            continue
        other = equalities.attribute(place, number)
        if other is not None:
            keys.append((own, other))
    return tuple(sorted(set(keys)))


def oriented(pair: tuple[Place, Place], event: int) -> tuple[int, Place]:
    """The attribute of ``event`` in an equality, and what it equals."""
    one, other = pair
    return (one[1], other) if one[0] == event else (other[1], one)

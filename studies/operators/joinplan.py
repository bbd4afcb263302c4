"""Plan of a join: its condition in parts, and their programs.

A part that speaks of one event alone is worked out when the event enters its window, and so is each
side of a comparison of one event with the other: each pair is then compared by two words. Parts
that mix both events are run for the pairs that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from matcher.model import Kind
from rules.engine.kernels.words import SAME
from rules.terms import Compare, Expression
from studies.operators.conditions import LEFT, RIGHT
from studies.operators.linear import (
    MIRRORED,
    Columns,
    Linear,
    comparison_of,
    events_in,
    is_by_words,
)
from studies.operators.places import Place, Words
from studies.operators.texts import Texts


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """The programs of a join, on its place; of each side what is worked out when events enter."""

    code: Words
    alone: tuple[int, int]
    """The condition of one event."""
    hoisted: tuple[Words, Words]
    """Its sides of what is compared."""
    kinds: tuple[Sequence[Kind], Sequence[Kind]]
    """The kinds of these."""
    compared: Words
    rest: int
    selected: Words
    width: int
    """The number of values that are selected."""


def programs_of(
    place: Place,
    texts: Texts,
    columns: tuple[Columns, Columns],
    conditions: Sequence[Expression],
    values: Sequence[Expression],
) -> Programs:
    """The programs of conditions and values; ``columns`` get what these read."""
    linear, plan = Linear(texts, *columns), planned(conditions)
    compared = [comparison_of(one) for one in plan.compared]
    rest = linear.conjunction(plan.rest)
    alone = linear.conjunction(plan.alone[LEFT]), linear.conjunction(plan.alone[RIGHT])
    lefts, rights = ([getattr(one, side) for one in plan.compared] for side in ("left", "right"))
    hoisted = linear.values(lefts), linear.values(rights)
    selected = linear.values(values)
    texts.settle()
    return Programs(
        place.constant(linear.code),
        alone,
        (place.constant(hoisted[LEFT]), place.constant(hoisted[RIGHT])),
        ([one.kind for one in lefts], [one.kind for one in rights]),
        place.constant(np.array([(len(compared), 0), *compared], np.int64)),
        rest,
        place.constant(selected),
        len(values),
    )


@dataclass(slots=True)
class Plan:
    """A join's condition in its parts."""

    alone: tuple[list[Expression], list[Expression]] = field(default_factory=lambda: ([], []))
    compared: list[Compare] = field(default_factory=list)
    """Left of each the left event, right the right one; equalities first."""
    rest: list[Expression] = field(default_factory=list)


def planned(conditions: Sequence[Expression]) -> Plan:
    """The condition of a join, all of ``conditions``, in its parts."""
    plan = Plan()
    for condition in conditions:
        events = events_in(condition)
        compare = _apart(condition)
        if events <= {LEFT}:
            plan.alone[LEFT].append(condition)
        elif events <= {RIGHT}:
            plan.alone[RIGHT].append(condition)
        elif compare is not None:
            plan.compared.append(compare)
        else:
            plan.rest.append(condition)
    plan.compared.sort(key=lambda one: comparison_of(one)[1] != SAME)
    return plan


def _apart(condition: Expression) -> Compare | None:
    """A comparison of what the left event has with what the right one has; None for another."""
    if not isinstance(condition, Compare) or not is_by_words(condition):
        return None
    sides: Any = (events_in(condition.left), events_in(condition.right))
    if sides == ({LEFT}, {RIGHT}):
        return condition
    if sides == ({RIGHT}, {LEFT}):
        return replace(
            condition,
            comparison=MIRRORED[condition.comparison],
            left=condition.right,
            right=condition.left,
        )
    return None

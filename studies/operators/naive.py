"""The sequential definitions of the operators, event by event, without any cleverness.

They are what the operators are tested against: plain lists, and Python's own numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from matcher.model import EventBatch, EventType, Kind
from rules.planning.rowwise import Evaluate, evaluator, is_satisfied
from rules.terms import AttributeOf, Choice, Expression, Function, rewritten
from studies.operators.conditions import RIGHT, Named, aggregates_of, condition_of, join_of
from studies.operators.pairing import Stream
from studies.operators.windows import Extent, Length

Row: TypeAlias = tuple[Any, ...]
"""An event: its time, and the values of its columns."""


def rows_of(batch: EventBatch) -> list[Row]:
    """The events of a batch."""
    columns = [column.tolist() for column in batch.columns]
    return list(zip(batch.time.tolist(), *columns, strict=True))


class Filtered:
    """A filter: an event at a time."""

    def __init__(self, type_: EventType, condition: str) -> None:
        self._conditions = [_function(one) for one in condition_of(type_, condition)]

    def push(self, row: Row) -> bool:
        """Whether an event satisfies the condition."""
        return is_satisfied(self._conditions, row)


class Windowed:
    """A window: an event at a time."""

    def __init__(self, extent: Extent) -> None:
        self.extent = extent
        self.held: list[Row] = []

    def push(self, row: Row) -> list[tuple[Row, bool]]:
        """The changes that an event makes, and whether each is of one that leaves."""
        self.held.append(row)
        left = [(one, True) for one in self._leave(row[0])]
        return [*left, (row, False)]

    def _leave(self, now: int) -> list[Row]:
        held, count = self.held, len(self.held)
        if isinstance(self.extent, Length):
            kept = held[-self.extent.events :]
        else:
            kept = [one for one in held if one[0] >= now - self.extent.duration]
        self.held = kept
        return held[: count - len(kept)]

    def seen(self, now: int) -> list[Row]:
        """The events in the window at a time, before an event of that time enters."""
        if isinstance(self.extent, Length):
            return self.held[-self.extent.events :]
        return [one for one in self.held if one[0] >= now - self.extent.duration]


class Joined:
    """A join: the events of both streams one at a time."""

    def __init__(
        self,
        left: Stream,
        right: Stream,
        on: str,
        select: Mapping[str, str],
        *,
        within: int | None = None,
        trigger: str = "both",
    ) -> None:
        first, second = (Named(one.type, one.name) for one in (left, right))
        _, conditions, values = join_of("Joined", first, second, on, select)
        width = 1 + len(left.type.attributes)
        self._conditions = [_function(one, width) for one in conditions]
        self._values = [_function(one, width) for one in values]
        self._filters = [Filtered(one.type, one.where) for one in (left, right)]
        self._windows = [Windowed(left.window), Windowed(right.window)]
        self._within = within
        self._triggers = {"left": (0,), "right": (1,), "both": (0, 1)}[trigger]

    def push(self, left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
        """Time and values of what comes out, for new events of both streams."""
        coming = [(row[0], 0, RIGHT, row) for row in right] + [(row[0], 1, 0, row) for row in left]
        made: list[Row] = []
        for now, _, side, row in sorted(coming, key=lambda one: one[:2]):
            if not self._filters[side].push(row):
                continue
            if side in self._triggers:
                for other in self._windows[1 - side].seen(now):
                    if self._within is None or now - other[0] <= self._within:
                        both = other + row if side == RIGHT else row + other
                        made += self._made(now, both)
            self._windows[side].push(row)
        return made

    def _made(self, now: int, both: Row) -> list[Row]:
        if not is_satisfied(self._conditions, both):
            return []
        values = tuple(value(both) for value in self._values)
        return [] if None in values else [(now, *values)]


class Aggregated:
    """Aggregates over a window, by group: an event at a time."""

    def __init__(
        self,
        type_: EventType,
        extent: Extent,
        select: Mapping[str, str],
        *,
        by: Sequence[str] = (),
        where: str = "",
    ) -> None:
        _, self._keys, self._terms = aggregates_of("Aggregated", type_, by, select)
        self._filter, self._window = Filtered(type_, where), Windowed(extent)
        self._parts = [
            (
                [_function(one) for one in term.conditions],
                None if term.value is None else _function(term.value),
            )
            for term in self._terms
        ]

    def push(self, row: Row) -> list[Row]:
        """Time, group and aggregates for an event that comes; nothing where one is undefined."""
        if not self._filter.push(row):
            return []
        self._window.push(row)
        group = tuple(row[1 + key] for key in self._keys)
        rows = [
            one for one in self._window.held if tuple(one[1 + key] for key in self._keys) == group
        ]
        found: list[Any] = []
        for term, (conditions, value) in zip(self._terms, self._parts, strict=True):
            fitting = [one for one in rows if is_satisfied(conditions, one)]
            values = [one[0] if value is None else value(one) for one in fitting]
            of_floats = term.value is not None and term.value.kind is Kind.FLOAT
            known = [one for one in values if one is not None]
            found.append(_aggregate(term.function, known, of_floats))
        return [] if None in found else [(row[0], *group, *found)]


def _aggregate(function: Function, values: Sequence[Any], of_floats: bool) -> Any:
    if function is Function.COUNT:
        return len(values)
    total = sum(map(Fraction, values), Fraction(0))
    if function is Function.SUM:
        if of_floats:
            return _nearest(total)
        return int(total) if -(2**63) <= total < 2**63 else None
    if not values:
        return None
    if function is Function.AVG:
        return _nearest(total / len(values))
    return min(values) if function is Function.MIN else max(values)


def _nearest(number: Fraction) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def _function(expression: Expression, width: int = 0) -> Evaluate:
    """An expression as a function of a row, or of the left event's row and the right one's behind
    it, from place ``width`` on.
    """

    def placed(node: Expression) -> Expression | None:
        if not isinstance(node, AttributeOf):
            return None
        # TIME is -1: the first place of a row.
        return AttributeOf(0, 1 + node.attribute + (width if node.event == RIGHT else 0), node.kind)

    if isinstance(expression, Choice):  # of a null, which stands on top alone
        condition = _function(expression.condition, width)
        value, otherwise = _function(expression.value, width), expression.otherwise.value
        return lambda row: value(row) if condition(row) else otherwise
    return evaluator(rewritten(expression, placed))

"""Events published one at a time, gathered until they leave together as columns.

Law 1: an event is checked when it is given, so that the caller's mistake is raised at the
caller's line, and never costs an event given before.

Law 2: the order in which events were given is kept across types: every event bears its number,
and the session takes the batches in the order of those numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from matcher.model import (
    DTYPES,
    Attribute,
    Column,
    EventBatch,
    EventIds,
    EventType,
    Kind,
    StringColumn,
    Value,
)
from matcher.rows import INT_MAX, INT_MIN, filled, refuse_surplus, values_of
from matcher.single import Row, Single

_TYPES: Mapping[Kind, type] = {
    Kind.INT: int,
    Kind.FLOAT: float,
    Kind.BOOL: bool,
    Kind.STRING: str,
}


class Rows:
    """Events of one type, with text ids or without."""

    def __init__(self, event_type: EventType) -> None:
        self.type = event_type
        self._pick = _picker(event_type)
        self._declared = frozenset(one.name for one in event_type.declared)
        self._may_lack = event_type.has_optional
        self._kinds = tuple(attribute.kind for attribute in event_type.attributes)
        self._expected = tuple(map(_TYPES.__getitem__, self._kinds))
        self._ints = _places(event_type, Kind.INT)
        self._floats = _places(event_type, Kind.FLOAT)
        self._strings = _places(event_type, Kind.STRING)
        self._rows: list[tuple[int, int, tuple[Value, ...]]] = []
        self._ids: list[str] = []

    def __len__(self) -> int:
        return len(self._rows)

    def check(self, data: Mapping[str, Any]) -> tuple[Value, ...]:
        """The event's values in the schema's order; BadEvent for one that does not fit (E5), or has
        more.
        """
        try:
            values = self._pick(data)
        except KeyError:
            return values_of(self.type, data)
        if not self._declared.issuperset(data) if self._may_lack else len(data) > len(values):
            refuse_surplus(self.type, data)
        if tuple(map(type, values)) == self._expected and self._is_plain(values):
            return values
        return values_of(self.type, data)

    def add(self, number: int, time: int, values: tuple[Value, ...], text_id: str | None) -> None:
        """Add a checked event; either all have text ids or none has."""
        self._rows.append((number, time, values))
        if text_id is not None:
            self._ids.append(text_id)

    def take(self, source: str, first: int) -> EventBatch:
        """The events as a batch of ``source``, numbered from ``first``; none are left."""
        rows, ids = self._rows, self._ids
        self._rows, self._ids = [], []
        if len(rows) == 1:
            ((number, time, row),) = rows
            return Single(
                self.type, Row(time, source, first + number, ids[0] if ids else None, row)
            )
        numbers, times, lines = zip(*rows, strict=True)
        return EventBatch(
            self.type,
            np.array(times, np.int64),
            EventIds(
                StringColumn.constant(source, len(rows)),
                np.array(numbers, np.int64) + first,
                StringColumn.from_strings(ids) if ids else None,
            ),
            # The values were checked one by one, so they are put into columns as they are.
            tuple(map(_column, self._kinds, zip(*lines, strict=True))),
        )

    def _is_plain(self, values: tuple[Any, ...]) -> bool:
        """Whether values of the right types need no closer look."""
        for place in self._floats:
            if not math.isfinite(values[place]):
                return False
        for place in self._ints:
            if not INT_MIN <= values[place] <= INT_MAX:
                return False
        for place in self._strings:  # noqa: SIM110 - a generator would cost as much as the rest
            if not values[place].isascii():
                return False
        return True


class Outbox:
    """Events of ``source``, of several types, waiting to leave. ``types`` are those that may be."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.types: dict[str, EventType] = {}
        self._rows: dict[tuple[str, bool], Rows] = {}
        self._filled: dict[Rows, None] = {}  # those that have events
        self.count = 0
        """How many events wait."""

    def know(self, event_type: EventType) -> None:
        """Let events of this type be added."""
        self.types[event_type.name] = event_type
        for with_id in (False, True):
            self._rows[event_type.name, with_id] = Rows(event_type)

    def add(self, name: str, data: Mapping[str, Any], time: int, text_id: str | None) -> None:
        """Add an event; BadEvent when it does not fit, KeyError for a type that is not known."""
        rows = self._rows[name, text_id is not None]
        rows.add(self.count, time, rows.check(data), text_id)
        self._filled[rows] = None
        self.count += 1

    def single(
        self, name: str, data: Mapping[str, Any], time: int, text_id: str | None, number: int
    ) -> Single:
        """An event that waits for no others: what ``add`` and ``take`` would come to."""
        rows = self._rows[name, text_id is not None]
        return Single(rows.type, Row(time, self.source, number, text_id, rows.check(data)))

    def take(self, first: int) -> list[EventBatch]:
        """Everything, as batches that are numbered together from ``first``."""
        self.count = 0
        filled, self._filled = self._filled, {}
        return [rows.take(self.source, first) for rows in filled]


def _column(kind: Kind, values: Sequence[Any]) -> Column:
    if kind is Kind.STRING:
        return StringColumn.from_strings(values)
    return np.array(values, DTYPES[kind])


def _picker(event_type: EventType) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    names = event_type.names
    if event_type.has_optional:
        pick = itemgetter(*names)  # of two at least
        return lambda data: pick(filled(event_type, data))
    if not names:
        return lambda data: ()
    if len(names) == 1:
        (name,) = names
        return lambda data: (data[name],)
    return itemgetter(*names)


def _places(event_type: EventType, kind: Kind) -> tuple[int, ...]:
    def has_kind(numbered: tuple[int, Attribute]) -> bool:
        return numbered[1].kind is kind

    return tuple(place for place, _ in filter(has_kind, enumerate(event_type.attributes)))

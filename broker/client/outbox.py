"""Events published one at a time, gathered until they leave together as columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from matcher.errors import BadEvent
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
from routing.messages.values import ID_MAX
from routing.wire.extent import EXTENT_MAX

TEXTS_MAX = EXTENT_MAX - 2**16
"""Characters of an event's texts: with all else that it has, it has room in a message."""
_TYPES: Mapping[Kind, type] = {
    Kind.INT: int,
    Kind.FLOAT: float,
    Kind.BOOL: bool,
    Kind.STRING: str,
}


def checked_id(text: str) -> str:
    """An event's id; BadEvent for one that is too long."""
    if len(text) > ID_MAX:
        raise BadEvent(f"an id of {len(text)} characters: expected {ID_MAX} at most")
    return text


class Rows:
    """Events of one type, all with text ids or all without."""

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
        self._text_max = TEXTS_MAX // max(1, len(self._strings))

    def check(self, data: Mapping[str, Any]) -> tuple[Value, ...]:
        """The event's values in the schema's order; BadEvent for one that does not fit (E5), or has
        more.
        """
        try:
            values = self._pick(data)
        except KeyError:
            return self._checked(data)
        if not self._declared.issuperset(data) if self._may_lack else len(data) > len(values):
            refuse_surplus(self.type, data)
        if tuple(map(type, values)) == self._expected and self._is_plain(values):
            return values
        return self._checked(data)

    def _checked(self, data: Mapping[str, Any]) -> tuple[Value, ...]:
        """``check`` without haste."""
        values = values_of(self.type, data)
        size = sum([len(str(values[place])) for place in self._strings])
        if size > TEXTS_MAX:
            text = f"an event of {self.type.name} of {size:,} characters: at most {TEXTS_MAX:,}"
            raise BadEvent(text)
        return values

    def batch(self, source: str, events: Sequence[tuple[int, Checked]]) -> EventBatch:
        """Events, each with its number, as a batch of ``source``."""
        if len(events) == 1:
            ((number, event),) = events
            return single(event, source, number)
        numbers, waiting = zip(*events, strict=True)
        _, times, lines, ids = zip(*waiting, strict=True)
        return EventBatch(
            self.type,
            np.array(times, np.int64),
            EventIds(
                StringColumn.constant(source, len(events)),
                np.array(numbers, np.int64),
                None if ids[0] is None else StringColumn.from_strings(ids),
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
        for place in self._strings:
            text = values[place]
            if len(text) > self._text_max or not text.isascii():
                return False
        return True


Checked: TypeAlias = tuple[Rows, int, tuple[Value, ...], str | None]
"""A checked event: its type's rows, time, values and id."""


def single(event: Checked, source: str, number: int) -> Single:
    """A checked event as a batch of its own."""
    rows, time, values, text_id = event
    return Single(rows.type, Row(time, source, number, text_id, values))


class Outbox:
    """Events of ``source``, of several types, waiting to leave. ``types`` are those that may be.

    An event is checked when it is given, so the caller's mistake is raised at the caller's line,
    and never costs an event given before.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.types: dict[str, EventType] = {}
        self._rows: dict[tuple[str, bool], Rows] = {}
        self._waiting: list[Checked] = []

    @property
    def count(self) -> int:
        """How many events wait."""
        return len(self._waiting)

    def know(self, event_type: EventType) -> None:
        """Let events of this type be added."""
        self.types[event_type.name] = event_type
        for with_id in (False, True):
            self._rows[event_type.name, with_id] = Rows(event_type)

    def check(self, name: str, data: Mapping[str, Any], time: int, text_id: str | None) -> Checked:
        """Check an event; BadEvent when it does not fit, KeyError for a type that is not known."""
        rows = self._rows[name, text_id is not None]
        return rows, time, rows.check(data), text_id and checked_id(text_id)

    def add(self, event: Checked) -> None:
        """Add a checked event: in one step, for a signal handler may interrupt its caller."""
        self._waiting.append(event)

    def extend(self, events: Sequence[Checked]) -> None:
        """Add checked events, in one step, too."""
        self._waiting += events

    def batches(self, first: int) -> list[EventBatch]:
        """Everything, as batches that are numbered together from ``first``. Every event bears its
        number, by which the session keeps the order across types.
        """
        by_rows: dict[Rows, list[tuple[int, Checked]]] = {}
        for number, event in enumerate(self._waiting, first):
            by_rows.setdefault(event[0], []).append((number, event))
        return [rows.batch(self.source, events) for rows, events in by_rows.items()]

    def clear(self) -> None:
        """Forget everything: it has left."""
        self._waiting = []


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

"""A batch of one event, as plain values: what a live link mostly carries.

Law 1: a :class:`Single` is an EventBatch in every respect. Whoever asks for its columns gets
them, made then and kept; whoever does not, a broker that passes the event on or an application
that wants it as a row, never pays for arrays of length one, which cost more to make than all else
that is done with such an event.

Law 2: as a batch it is a value, and so is its row: values of the schema's kinds in the schema's
order, an int already a float where a float is declared (tesla.md E1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from matcher.model import (
    DTYPES,
    Column,
    Event,
    EventBatch,
    EventIds,
    EventType,
    Kind,
    StringColumn,
    Value,
)


class Row(Struct, frozen=True, gc=False):
    """One primitive event: ``time`` in microseconds since the epoch, ``text`` an id from outside.

    ``values`` has one value for each attribute of the type.
    """

    time: int
    source: str
    sequence: int
    text: str | None
    values: tuple[Value, ...]


class Single(EventBatch):
    """A batch of the one event ``row``, of ``event_type``."""

    # The columns are the slots of EventBatch, empty until ``__getattr__`` is asked for one.
    __slots__ = ("row",)
    row: Row

    def __init__(self, event_type: EventType, row: Row) -> None:
        _set(self, "type", event_type)
        _set(self, "row", row)

    def __len__(self) -> int:
        return 1

    def __getattr__(self, name: str) -> Any:
        columns = _columns(self.type, self.row) if name in _COLUMNS else {}
        if name not in columns:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        for own, column in columns.items():
            _set(self, own, column)
        return columns[name]

    @property
    def is_composite(self) -> bool:
        """Never: what an engine made has causes, and comes in columns."""
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        return Single, (self.type, self.row)

    def events(self) -> Iterator[Event]:
        """The event as a row of the event model."""
        row = self.row
        data = dict(zip(self.type.names, row.values, strict=True))
        own_id = str(row.sequence) if row.text is None else row.text
        yield Event(self.type.name, row.time, row.source, own_id, data, row.sequence)


def singles(batch: EventBatch) -> list[Single]:
    """The primitive events of a batch, each as a batch of its own, in its order."""
    ids = batch.ids
    texts = [None] * len(batch) if ids.text is None else ids.text.tolist()
    columns = [column.tolist() for column in batch.columns]
    values = zip(*columns, strict=True) if columns else [()] * len(batch)
    names = batch.time.tolist(), ids.source.tolist(), ids.sequence.tolist(), texts
    return [Single(batch.type, Row(*row)) for row in zip(*names, values, strict=True)]


_set = object.__setattr__
_COLUMNS = frozenset({"time", "ids", "columns", "causes"})


def _columns(event_type: EventType, row: Row) -> dict[str, Any]:
    text = None if row.text is None else StringColumn.constant(row.text, 1)
    source = StringColumn.constant(row.source, 1)
    return {
        "time": np.array([row.time], np.int64),
        "ids": EventIds(source, np.array([row.sequence], np.int64), text),
        "columns": tuple(
            _column(attribute.kind, value)
            for attribute, value in zip(event_type.attributes, row.values, strict=True)
        ),
        "causes": None,
    }


def _column(kind: Kind, value: Any) -> Column:
    if kind is Kind.STRING:
        return StringColumn.constant(value, 1)
    return np.array([value], DTYPES[kind])

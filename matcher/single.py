"""A batch of one event, as plain values: what a live link mostly carries."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from matcher.joining import concatenated
from matcher.lazy import Lazy
from matcher.model import (
    DTYPES,
    Column,
    Event,
    EventBatch,
    EventIds,
    EventType,
    Int32s,
    Int64s,
    Kind,
    StringColumn,
    Value,
)


class Row(Struct, frozen=True, gc=False):
    """One primitive event: ``time`` in microseconds since the epoch, ``text`` an id from outside.

    ``values`` has one value for each attribute of the type, presences included. Values are of the
    schema's kinds, an int already a float where a float is declared (tesla.md E1).
    """

    time: int
    source: str
    sequence: int
    text: str | None
    values: tuple[Value, ...]


class Single(Lazy):
    """A batch of the one event ``row``, of ``event_type``.

    It is an EventBatch in every respect: whoever asks for its columns gets them, made then and
    kept. Whoever does not never pays for arrays of length one, which cost more to make than all
    else that is done with such an event.
    """

    __slots__ = ("row",)
    row: Row

    def __init__(self, event_type: EventType, row: Row) -> None:
        _set(self, "type", event_type)
        _set(self, "row", row)

    @property
    def is_composite(self) -> bool:
        """Never: what an engine made has causes, and comes in columns."""
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        return Single, (self.type, self.row)

    def events(self) -> Iterator[Event]:
        """The event as a row of the event model."""
        row = self.row
        data = self.type.data(row.values)
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


def single_at(batch: EventBatch, place: int) -> Single:
    """One of the primitive events of a batch, without a look at the others."""
    ids = batch.ids
    text = None if ids.text is None else ids.text[place]
    values = tuple(
        [
            column[place] if isinstance(column, StringColumn) else column.item(place)
            for column in batch.columns
        ]
    )
    row = Row(batch.time.item(place), ids.source[place], ids.sequence.item(place), text, values)
    return Single(batch.type, row)


def packed(batches: Iterable[EventBatch]) -> list[EventBatch]:
    """The same events in fewer batches: those of one type and source as one, in their order; behind
    them composite events, and batches of several sources, as they are.
    """
    kinds: dict[Hashable, list[EventBatch]] = {}
    others = list[EventBatch]()
    for batch in batches:
        kind = _kind_of(batch)
        (others if kind is None else kinds.setdefault(kind, [])).append(batch)
    return [concatenated(list(_in_columns(alike))) for alike in kinds.values()] + others


def _kind_of(batch: EventBatch) -> Hashable | None:
    """A key that batches have which can stand in one; None for one that stays as it is."""
    if isinstance(batch, Single):
        return batch.type, batch.row.source, batch.row.text is None, False
    if batch.is_composite or len(batch.ids.source.values) > 1:
        return None
    ids = batch.ids
    return batch.type, ids.source.values[0], ids.text is None, ids.given


def _in_columns(batches: list[EventBatch]) -> Iterator[EventBatch]:
    """Batches of one type, those that are one behind the other singles as one."""
    rows = list[Row]()
    for batch in batches:
        if isinstance(batch, Single):
            rows.append(batch.row)
            continue
        if rows:
            yield _columns_of(batch.type, rows)
            rows = []
        yield batch
    if rows:
        yield _columns_of(batches[0].type, rows)


def _columns_of(event_type: EventType, rows: list[Row]) -> EventBatch:
    if len(rows) == 1:
        return Single(event_type, rows[0])
    first = rows[0]
    texts = [row.text for row in rows if row.text is not None]
    ids = EventIds(
        StringColumn.constant(first.source, len(rows)),
        np.array([row.sequence for row in rows], _NUMBERS[Kind.INT]),
        StringColumn.from_strings(texts) if texts else None,
    )
    values = zip(*(row.values for row in rows), strict=True)
    columns = tuple(
        StringColumn.from_strings(column)
        if one.kind is Kind.STRING
        else np.array(column, _NUMBERS[one.kind])
        for one, column in zip(event_type.attributes, values, strict=True)
    )
    return EventBatch(event_type, np.array([row.time for row in rows], np.int64), ids, columns)


_set = object.__setattr__
_CODES: Int32s = np.zeros(1, np.int32)  # of a column of one string; never written to
_NUMBERS = {kind: np.dtype(dtype) for kind, dtype in DTYPES.items() if kind is not Kind.STRING}


def _times(event: Single) -> Int64s:
    return np.array((event.row.time,), _NUMBERS[Kind.INT])


def _ids(event: Single) -> EventIds:
    row = event.row
    text = None if row.text is None else StringColumn(_CODES, (row.text,))
    number: Int64s = np.array((row.sequence,), _NUMBERS[Kind.INT])
    return EventIds(StringColumn(_CODES, (row.source,)), number, text)


def _values(event: Single) -> tuple[Column, ...]:
    attributes = zip(event.type.attributes, event.row.values, strict=True)
    return tuple([_column(attribute.kind, value) for attribute, value in attributes])


def _column(kind: Kind, value: Any) -> Column:
    if kind is Kind.STRING:
        return StringColumn(_CODES, (value,))
    return np.array((value,), _NUMBERS[kind])


Single.makers = {
    "time": _times,
    "ids": _ids,
    "columns": _values,
    "causes": lambda _: None,
}

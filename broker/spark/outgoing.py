"""From a writer's record batches to batches of events with ids.

Three forms come in: rows of one type as the user has them (:class:`PlainRows`), rows that name
their types themselves (:class:`TypedRows`), and the wide form of ``frames``, in which ``publish``
has put events of several types (:class:`WideRows`).

Law 1: an id follows from the row and its type alone. Where no column names it, it is a hash of the
type and of all columns, of 128 bits; rows that hold the same are then one event, wherever they
stand (``identity.identified`` tells them apart beforehand). Nothing is named by a null.

Law 2: rows of the wide form that bear sequence numbers are recorded events, which stay what they
are: of the source that the row names, with its number and its id (``routing.serving.parts``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from broker.spark.columns import column_of, strings_of
from broker.spark.frames import ID, SEQUENCE, SOURCE, TIME, TYPE, Form
from broker.spark.mixing import Words, spread
from matcher.errors import BadEvent, SchemaError
from matcher.formats.arrowcolumns import mask_of
from matcher.formats.intake import OTHER_REASONS, REASONS_MAX, Intake, Place
from matcher.formats.layout import NONE, PLAIN, Layout
from matcher.formats.tabular import from_arrow
from matcher.identity import hash_128
from matcher.model import (
    Causes,
    EventBatch,
    EventIds,
    EventType,
    StringColumn,
    digest_texts,
)

_SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_NULL = hash_128("null")


class Rows(Protocol):
    """Reads record batches; ``bad`` counts rows that are no events by reason."""

    bad: Counter[str]

    def read(self, batch: pa.RecordBatch) -> list[EventBatch]:
        """The events of a record batch, with text ids; BadEvent where they are to be refused."""
        ...


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column; of nulls where there is none, as of an optional attribute."""
    return batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows)


@dataclass
class PlainRows:
    """Rows of ``type``: a column of the ``time``, one for each attribute, those of the ``ids``."""

    type: EventType
    time: str
    ids: Sequence[str]
    skip_bad: bool
    layout: Layout = PLAIN

    def __post_init__(self) -> None:
        self._rows = 0
        renamed = self.layout.renamed
        names = [one.name for one in self.type.declared]
        columns = tuple((name, renamed.get(name, name)) for name in names)
        self._layout = Layout(self.time, NONE, NONE, NONE, columns, self.layout.times)
        self._needed = sorted({self.time, *(column for _, column in columns)})
        self._intake = Intake({self.type.name: self.type}, skip_bad=self.skip_bad)
        self.bad = self._intake.bad

    def count_in(self, bad: Counter[str]) -> None:
        """Count rows that are no events in ``bad``, together with others."""
        self.bad = self._intake.bad = bad

    def read(self, batch: pa.RecordBatch) -> list[EventBatch]:
        """See Rows."""
        texts = self._texts(batch)
        first, self._rows = self._rows + 1, self._rows + batch.num_rows
        chosen = pa.record_batch({name: _column(batch, name) for name in self._needed})
        place = replace(_place(), layout=self._layout)
        events = from_arrow(chosen, place, self._intake, self.type.name, first_row=first)
        if len(events) != len(texts):  # rows were left out; the others bear their numbers
            texts = [texts[number - first] for number in events.ids.sequence.tolist()]
        return [_named(events, texts)]

    def _texts(self, batch: pa.RecordBatch) -> list[str]:
        """The ids of the rows; one that no column names is named by all that it holds."""
        if not self.ids:
            return content_ids(batch.columns, self.type.name)
        named_by = [batch.column(name) for name in self.ids]
        if len(named_by) > 1:
            texts = content_ids(named_by)
            lacks = np.logical_and.reduce([mask_of(one.is_null()) for one in named_by])
        else:
            given = pc.fill_null(named_by[0].cast(pa.string()), "")
            texts, lacks = given.to_pylist(), mask_of(pc.equal(given, ""))
        rows = np.flatnonzero(lacks)
        made = content_ids(batch.take(pa.array(rows)).columns, self.type.name)
        for row, text in zip(rows.tolist(), made, strict=True):
            texts[row] = text
        return texts


@dataclass
class TypedRows:
    """Rows of several ``types``, each named by the row's ``column``; else as PlainRows."""

    types: Sequence[EventType]
    column: str
    time: str
    ids: Sequence[str]
    skip_bad: bool
    layout: Layout = PLAIN

    def __post_init__(self) -> None:
        self.bad: Counter[str] = Counter()
        self._readers = {
            one.name: PlainRows(one, self.time, self.ids, self.skip_bad, self.layout)
            for one in self.types
        }
        for reader in self._readers.values():
            reader.count_in(self.bad)

    def read(self, batch: pa.RecordBatch) -> list[EventBatch]:
        """See Rows."""
        types = strings_of(batch.column(batch.schema.get_field_index(self.column)))
        found = []
        for code, name in enumerate(types.values):
            rows = batch.filter(pa.array(types.codes == code))
            if rows.num_rows == 0:
                continue
            reader = self._readers.get(name)
            if reader is None:
                self._refuse(name, rows.num_rows)
            else:
                found += reader.read(rows)
        return found

    def _refuse(self, name: str, count: int) -> None:
        named = f"type {name!r}" if name else "no type"
        reason = f"{named} in column {self.column}: expected {', '.join(self._readers)}"
        if not self.skip_bad:
            raise BadEvent(f"{_place().file}: {count} rows of {reason}")
        self.bad[reason if len(self.bad) < REASONS_MAX else OTHER_REASONS] += count


@dataclass
class WideRows:
    """Rows of the wide form, sorted out beforehand, with an id each."""

    form: Form

    def __post_init__(self) -> None:
        self.bad: Counter[str] = Counter()

    def read(self, batch: pa.RecordBatch) -> list[EventBatch]:
        """See Rows."""
        types = strings_of(batch.column(TYPE))
        ids = self._ids(batch)
        time = batch.column(TIME).to_numpy()
        numbers, is_recorded = np.arange(batch.num_rows), self.form.has_sequence
        found = []
        for event_type in self.form.types:
            if event_type.name not in types.values:
                continue
            places = np.flatnonzero(types.codes == types.values.index(event_type.name))
            columns = tuple(
                column_of(batch.column(self.form.column(one)), one.kind, places)
                for one in event_type.attributes
            )
            given, nobody = ids.take(places), StringColumn.constant("", len(places))
            own = EventIds(nobody, numbers[places], None if is_recorded else given.text)
            causes = _recorded(given) if is_recorded else None
            found.append(EventBatch(event_type, time[places], own, columns, causes))
        return found

    def _ids(self, batch: pa.RecordBatch) -> EventIds:
        """The ids of the rows; without sequence numbers these alone count."""
        texts = StringColumn.from_strings(batch.column(ID).to_pylist())
        if not self.form.has_sequence:
            count = batch.num_rows
            return EventIds(StringColumn.constant("", count), np.zeros(count, np.int64), texts)
        sequence = batch.column(SEQUENCE)
        if sequence.null_count:
            raise BadEvent(f"the frame: {sequence.null_count} rows have no sequence number")
        return EventIds(strings_of(batch.column(SOURCE)), sequence.to_numpy(), texts)


def _recorded(ids: EventIds) -> Causes:
    """For each event, as its one cause, the recorded event that it is."""
    count = len(ids)
    of_texts = np.ones(count, np.bool_)
    return Causes(np.arange(count + 1), ids, ~of_texts, of_texts)


def _named(events: EventBatch, texts: Sequence[str]) -> EventBatch:
    ids = EventIds(events.ids.source, events.ids.sequence, StringColumn.from_strings(texts))
    return EventBatch(events.type, events.time, ids, events.columns)


def _place() -> Place:
    """Where a row that is no event stands: rows are counted from the beginning of their task, for
    a frame has no order that would number them.
    """
    context = TaskContext.get()
    return Place("the frame" if context is None else f"partition {context.partitionId()}", "")


def content_ids(columns: Sequence[pa.Array], of_type: str = "") -> list[str]:
    """32 hexadecimal digits for each row, of what it holds in these columns; of rows of one type
    others than of another.
    """
    count = len(columns[0])
    lanes: Words = np.empty((2, count), np.uint64)
    lanes[0], lanes[1] = _SEEDS
    if of_type:
        lanes ^= np.array(hash_128("type", of_type), np.uint64)[:, None]
    for column in columns:
        lanes = _mixed(lanes ^ _words(column))
    return digest_texts(np.ascontiguousarray(lanes.T))


def _words(column: pa.Array) -> Words:
    """Two words for each value; equal values have equal ones, whatever stands beside them."""
    kind = column.type
    words: Words = np.empty((2, len(column)), np.uint64)
    if pa.types.is_floating(kind):
        words[:] = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy().view(np.uint64)
    elif pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_boolean(kind):
        integers = column.cast(pa.int64()) if not pa.types.is_uint64(kind) else column
        words[:] = pc.fill_null(integers, 0).to_numpy(zero_copy_only=False).view(np.uint64)
    else:
        try:
            encoded = column.cast(pa.string()).dictionary_encode()
        except pa.ArrowException:
            raise SchemaError(
                f"a column of type {kind} cannot be part of an id; name those that are (option id)"
            ) from None
        of_values = [hash_128("value", text) for text in encoded.dictionary.to_pylist()]
        pairs: Words = np.array([*of_values, _NULL], np.uint64).T
        codes = pc.fill_null(encoded.indices, len(of_values)).to_numpy()
        return pairs[:, codes]
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        words[0, nulls], words[1, nulls] = _NULL
    return words


def _mixed(lanes: Words) -> Words:
    """The two words differently spread."""
    return spread(lanes + np.array(_SEEDS, np.uint64)[:, None])

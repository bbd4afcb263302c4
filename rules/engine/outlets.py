"""The columns that composite events leave the engine in.

Kernels write composite events where they stay: what :meth:`Outlets.take` gives are slices of the
columns that were lent, never copies. Only strings, and the names of sources, are translated, once
a distinct value.

Law 1: what was given is never written again. An outlet goes on behind it while there is room, so
that single events cost no allocation, and gets new columns when there is none.

Law 2: an outlet has room for about twice what an advance yields.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from matcher.model import (
    AnyArray,
    Bools,
    Causes,
    Column,
    EventBatch,
    EventIds,
    Int32s,
    Int64s,
    Kind,
    StringColumn,
    UInt64s,
)
from rules.engine.columns import ColumnTables
from rules.engine.engine import NOTHING, Detections
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.emission import renumber, spread_runs
from rules.engine.rows import RowWriter
from rules.engine.tables import grown

ROOM_MIN = 16
"""Composite events that the first columns of an outlet have room for."""
ROOM_SMALL = 1024
"""As long as advances yield little, columns are made anew so seldom as this many allow."""
FEW = 16
"""So few codes are looked up one by one."""
_ZEROS: Int32s = np.zeros(FEW, np.int32)  # codes of a column of one string; never written to


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """What one outlet was lent: see layout.OUTLET."""

    time: Int64s
    digest: UInt64s  # [capacity, 2]
    source: Int32s
    words: Int64s  # [attributes, capacity]
    floats: AnyArray  # the same memory
    offsets: Int64s
    cause_source: Int32s
    cause_sequence: Int64s
    cause_kind: AnyArray
    cause_name: Int64s  # [capacity, 2]

    @classmethod
    def empty(cls, attributes: int, capacity: int, causes: int) -> _Columns:
        words = np.empty((attributes, capacity), np.int64)
        return cls(
            np.empty(capacity, np.int64),
            np.empty((capacity, 2), np.uint64),
            np.empty(capacity, np.int32),
            words,
            words.view(np.float64),
            np.empty(2 * capacity + 2, np.int64),
            np.empty(causes, np.int32),
            np.empty(causes, np.int64),
            np.empty(causes, np.uint8),
            np.empty((causes, 2), np.int64),
        )

    def take_over(self, other: _Columns, events: slice, causes: slice, offsets: slice) -> None:
        """Copy what the present advance wrote elsewhere to the beginning."""
        for mine, theirs, part in (
            (self.time, other.time, events),
            (self.digest, other.digest, events),
            (self.source, other.source, events),
            (self.words.T, other.words.T, events),
            (self.offsets, other.offsets, offsets),
            (self.cause_source, other.cause_source, causes),
            (self.cause_sequence, other.cause_sequence, causes),
            (self.cause_kind, other.cause_kind, causes),
            (self.cause_name, other.cause_name, causes),
        ):
            mine[: part.stop - part.start] = theirs[part]

    def show(self, record: np.void) -> None:
        """Let the kernels see the columns."""
        for name in _ADDRESSES:
            record[name] = getattr(self, name).ctypes.data


_ADDRESSES = (
    "time",
    "digest",
    "source",
    "words",
    "offsets",
    "cause_source",
    "cause_sequence",
    "cause_kind",
    "cause_name",
)


class Outlets:
    """Owner of the columns of one engine's outlets."""

    def __init__(self, arrays: Arrays, tables: ColumnTables, writer: RowWriter) -> None:
        self._arrays = arrays
        self._tables = tables
        self._writer = writer
        self._columns: dict[int, _Columns] = {}
        self._expected: dict[int, int] = {}  # by type: a little more than it last yielded
        self._zeros: Int64s = np.zeros(64, np.int64)
        self._names = _Dictionary(writer.sources.names)
        self._texts = _Dictionary(writer.texts.texts)
        self._strings = _Dictionary(writer.strings.texts)

    def forget(self, type_number: int) -> None:
        """Take the columns of a type that no rule defines any more back."""
        self._expected.pop(type_number, None)
        if self._columns.pop(type_number, None) is not None:
            self._arrays["outlets"][type_number] = np.zeros((), layout.OUTLET)

    def grow(self) -> None:
        """Give the outlet that asks for it room, and what the advance wrote there so far."""
        counters = self._arrays["counters"]
        number = int(counters[layout.OUT_TYPE])
        need, need_causes = int(counters[layout.OUT_NEED]), int(counters[layout.OUT_CAUSES])
        record = self._arrays["outlets"][number]
        old = self._columns.get(number)
        first, count, first_cause, last_cause = (
            int(record[name]) for name in ("first", "count", "first_cause", "causes")
        )
        kept, kept_causes = count - first, last_cause - first_cause
        had, had_causes = int(record["capacity"]), int(record["cause_capacity"])
        # What is asked for would fit: the evaluation wrote more before it asked, and undid it.
        undone = count + need <= had and last_cause + need_causes <= had_causes
        capacity = max(
            ROOM_MIN,
            2 * (kept + need),
            self._expected.pop(number, 0),
            2 * had if undone else min(2 * had, ROOM_SMALL),
        )
        causes = max(2 * (kept_causes + need_causes), capacity * -(-need_causes // need))
        attributes = len(self._tables.event_types[number].attributes)
        new = _Columns.empty(attributes, capacity, causes)
        if old is not None and kept:
            start = first + int(record["advances"])
            new.take_over(
                old,
                slice(first, count),
                slice(first_cause, last_cause),
                slice(start, start + kept + 1),
            )
        self._columns[number] = new
        record["first"] = record["first_cause"] = record["advances"] = 0
        record["count"], record["causes"] = kept, kept_causes
        record["capacity"], record["cause_capacity"] = capacity, causes
        if not kept:
            record["kinds"] = 0
        new.show(record)

    def take(self) -> Detections:
        """All that the advance has written."""
        counters = self._arrays["counters"]
        touched = self._arrays["touched"][: counters[layout.TOUCHED]].tolist()
        if not touched:
            return NOTHING
        batches = tuple(map(self._batch, touched))
        return Detections(batches, self._order(touched, batches))

    def _order(self, touched: list[int], batches: Sequence[EventBatch]) -> Int64s:
        """The common order of the batches' events."""
        disorder = bool(self._arrays["counters"][layout.DISORDER])
        lengths = [len(batch) for batch in batches]
        if len(batches) == 1 and not disorder:
            return np.arange(lengths[0])
        runs = self._arrays["runs"][: self._arrays["counters"][layout.RUNS]]
        if disorder:
            runs = runs[np.lexsort((runs["place"], runs["time"]))]
        first = np.zeros(len(self._arrays["outlets"]), np.int64)
        first[touched] = np.cumsum([0, *lengths[:-1]])
        order = np.empty(sum(lengths), np.int64)
        spread_runs(runs, first, order)
        return order

    def _batch(self, number: int) -> EventBatch:
        """What the advance wrote into one outlet, as slices of its columns."""
        columns, type_ = self._columns[number], self._tables.event_types[number]
        record = self._arrays["outlets"][number].item()
        first, count, capacity, first_cause, last_cause, _, advances, kinds = record[:8]
        events, length = slice(first, count), count - first
        start = first + advances
        batch = EventBatch(
            type_,
            columns.time[events],
            EventIds(
                self._names.column(columns.source[events]),
                self._nothing(length),
                None,
                columns.digest[events],
            ),
            tuple(
                self._column(columns, place, events, attribute.kind)
                for place, attribute in enumerate(type_.attributes)
            ),
            Causes(
                columns.offsets[start : start + length + 1],
                *self._causes(columns, slice(first_cause, last_cause), kinds),
            ),
        )
        if capacity - count < length and capacity > ROOM_SMALL:
            self.forget(number)  # the next advance begins with columns of its own
            self._expected[number] = length + length // 4
        return batch

    def _column(self, columns: _Columns, place: int, events: slice, kind: Kind) -> Column:
        if kind is Kind.FLOAT:
            return columns.floats[place, events]
        words = columns.words[place, events]
        if kind is Kind.INT:
            return words
        if kind is Kind.BOOL:
            return words.astype(np.bool_)
        return self._strings.column(words.astype(np.int32))

    def _causes(
        self, columns: _Columns, causes: slice, kinds: int
    ) -> tuple[EventIds, Bools, Bools]:
        """The ids of the causes; which ones a digest names, and which ones a text."""
        source = self._names.column(columns.cause_source[causes])
        sequence = columns.cause_sequence[causes]
        if not kinds:
            none = self._nothing(len(sequence)).view(np.bool_)[: len(sequence)]
            return EventIds(source, sequence), none, none
        kind, name = columns.cause_kind[causes], columns.cause_name[causes]
        is_digest = kind == layout.CAUSE_IS_DIGEST
        has_text = kind == layout.CAUSE_IS_TEXT
        text, digest = None, None
        if has_text.any():
            column = self._texts.column(name[has_text, 1].astype(np.int32))
            codes = np.zeros(len(kind), np.int32)
            codes[has_text] = column.codes
            text = StringColumn(codes, column.values)
        if is_digest.any():
            digest = np.where(is_digest[:, None], name, 0).view(np.uint64)
        return EventIds(source, sequence, text, digest), is_digest, has_text

    def _nothing(self, length: int) -> Int64s:
        """So many zeros, which nobody may write to."""
        if len(self._zeros) < length:
            self._zeros = np.zeros(2 * length, np.int64)
        return self._zeros[:length]


class _Dictionary:
    """Codes of a growing list of strings into columns with dictionaries of their own."""

    def __init__(self, strings: Sequence[str | None]) -> None:
        self._strings = strings
        self._places: Int32s = np.full(16, -1, np.int32)
        self._used: Int64s = np.zeros(16, np.int64)

    def column(self, codes: Int32s) -> StringColumn:
        """The strings that n codes stand for; ``codes`` is written to, and kept."""
        if len(codes) <= FEW:
            return self._short(codes.tolist())
        if len(self._places) < len(self._strings):
            self._places = np.full(2 * len(self._strings), -1, np.int32)
            self._used = grown(self._used, 2 * len(self._strings))
        count = renumber(codes, self._places, self._used)
        return StringColumn(codes, self._values(self._used[:count].tolist()))

    def _short(self, codes: list[int]) -> StringColumn:
        if codes.count(codes[0]) == len(codes):
            return StringColumn(_ZEROS[: len(codes)], self._values(codes[:1]))
        places = {code: place for place, code in enumerate(dict.fromkeys(codes))}
        numbers = np.array([places[code] for code in codes], np.int32)
        return StringColumn(numbers, self._values(places))

    def _values(self, codes: Iterable[int]) -> tuple[str, ...]:
        values = tuple(map(self._strings.__getitem__, codes))
        assert None not in values, "a code in use was forgotten"
        return cast(tuple[str, ...], values)

"""The columns that composite events leave the engine in.

Kernels write composite events where they stay: what :meth:`Outlets.taken` gives stands in the
columns that were lent (:mod:`rules.engine.results.taken`), never in copies.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matcher.model import EventType
from rules.engine.engine import NOTHING, Detections
from rules.engine.intake.rows import RowWriter
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.emission import RUN_WORDS, TAKEN_WORDS
from rules.engine.linking.columns import ColumnTables
from rules.engine.results.pool import Pool
from rules.engine.results.taken import Columns, Dictionary, Names, Part, SourceNames, Taken

ROOM_MIN = 16
"""Composite events that the first columns of an outlet have room for."""
ROOM_SMALL = 1024
"""As long as advances yield little, columns are made anew so seldom as this many allow."""
ADVANCES, ROOM_LARGE = 6, 8192
"""Columns serve for about so many advances, unless that is more room than this."""
PIECE = 1 << 16
"""Composite events of a type that are a piece, where an advance may be given in several."""
TAKEN_MIN = 1 << 14
"""Words that there are at least for what advances say they took."""


class Outlets:
    """Owner of the columns of one engine's outlets.

    Columns that were given are not written again while anybody holds them. An outlet goes on behind
    them while there is room, so that single events cost no allocation, and gets other columns when
    there is none, in memory that a :class:`Pool` lends. It has room for about twice what an advance
    yields; for more only where that is little. Where advances are given in pieces, it has room for
    about one.
    """

    def __init__(self, arrays: Arrays, tables: ColumnTables, writer: RowWriter) -> None:
        self._arrays = arrays
        self._tables = tables
        self._writer = writer
        self._columns: dict[int, Columns] = {}
        self._expected: dict[int, int] = {}  # by type: a little more than it last yielded
        self._pool = Pool()
        self._taken = arrays["taken"]  # where kernels write what they took,
        self._words = self._taken.data  # whose items are read far sooner
        self._names = _names_of(writer)

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
        each = -(-need_causes // need)
        need = min(need, PIECE)  # what there is room for is written, and more asked for then
        record = self._arrays["outlets"][number]
        old = self._columns.get(number)
        first, count, first_cause, last_cause = (
            int(record[name]) for name in ("first", "count", "first_cause", "causes")
        )
        kept, kept_causes = count - first, last_cause - first_cause
        capacity = max(
            ROOM_MIN,
            2 * (kept + need),
            self._expected.pop(number, 0),
            min(2 * int(record["capacity"]), ROOM_SMALL),
        )
        causes = max(2 * (kept_causes + each * need), capacity * each)
        new = Columns.empty(self._tables.event_types[number], capacity, causes, self._pool)
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
        for name, address in new.addresses.items():
            record[name] = address

    @property
    def full(self) -> EventType | None:
        """The type whose outlet asks for room, if the advance has written a piece there."""
        number = self._arrays.counters[layout.OUT_TYPE]
        record = self._arrays["outlets"][number]
        is_piece = record["count"] - record["first"] >= PIECE
        return self._tables.event_types[number] if is_piece else None

    def begin_anew(self) -> None:
        """Give the kernels other memory to say what they took: this is full, and others hold it."""
        counters = self._arrays.counters
        need = TAKEN_WORDS * counters[layout.TOUCHED] + RUN_WORDS * counters[layout.RUNS]
        length = max(TAKEN_MIN, 1 << (ADVANCES * need).bit_length())
        self._taken = self._pool.lend(8 * length).view(np.int64)
        self._words = self._taken.data
        self._arrays["taken"] = self._taken
        counters[layout.TAKEN_TOP] = 0

    def taken(self) -> Detections:
        """All that the advance has written, once the kernels have taken it."""
        counters = self._arrays.counters
        count = counters[layout.TAKEN_OUTLETS]
        if not count:
            return NOTHING
        runs = counters[layout.TAKEN_TOP] - RUN_WORDS * counters[layout.TAKEN_RUNS]
        start, words, lent = runs - TAKEN_WORDS * count, self._words, self._columns
        written = (
            counters[layout.TAKEN_EVENTS],
            list(map(lent.__getitem__, words[start:runs:TAKEN_WORDS])),
            self._taken,
            start,
            counters[layout.TAKEN_TOP],
            self._named(),
            counters[layout.TAKEN_DISORDER] != 0,
        )
        taken = Taken(written)
        if counters[layout.TAKEN_FULL]:
            self._make_way(taken.parts())
        return taken

    def piece(self) -> Detections:
        """All that the advance has written so far; another piece is likely to follow."""
        found = self.taken()
        self._expected[self._arrays.counters[layout.OUT_TYPE]] = PIECE + PIECE // 4
        return found

    def _make_way(self, parts: Iterable[Part]) -> None:
        """Have the next advance begin with columns of its own where these are nearly full.

        One that found them full half-way would have to copy what it wrote so far.
        """
        for part in parts:
            likely = part.length + part.length // 4
            if part.capacity - part.end < likely and part.capacity > ROOM_SMALL:
                self.forget(part.number)
                self._expected[part.number] = max(likely, min(ADVANCES * likely, ROOM_LARGE))

    def _named(self) -> Names:
        """The names that codes stand for at present."""
        names, writer = self._names, self._writer
        if (
            names.texts is not writer.texts.texts
            or names.strings.strings is not writer.strings.texts
        ):
            names = self._names = _names_of(writer)
        return names


def _names_of(writer: RowWriter) -> Names:
    return Names(
        SourceNames(writer.sources.names),
        writer.texts.texts,
        Dictionary(writer.strings.texts),
    )

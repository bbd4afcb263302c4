"""One task: it runs an engine over the rows of one cell, which come in order of time.

Law: a row's name and its place among simultaneous ones (tesla.md E4) follow from the row and its
cell's rows of the same instant alone. Where rows bear sequence numbers these are taken; else they
come in the order of all that they hold, are counted as they come, and named after what they hold
and a number among those that hold the same.

Tasks are told by the rows themselves which cell they are at work on: in a union of passes, the
numbers of Spark's partitions are not ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.spark import composites
from broker.spark.blocks import EVENTS
from broker.spark.cells import CELL, Cell
from broker.spark.columns import column_of, from_bytes, in_order, strings_of
from broker.spark.errors import in_a_sentence
from broker.spark.frames import ID, SEQUENCE, SOURCE, TIME, TYPE, Form
from broker.spark.narrowing import widened
from broker.spark.settling import settle
from matcher.identity import RULE_SOURCE
from matcher.model import (
    TIME_MAX,
    TIME_MIN,
    AnyArray,
    Attribute,
    Column,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    Kind,
    StringColumn,
)
from rules.cutting.splitting import Pass
from rules.engine import Detections, Detector, make
from rules.engine.conflict import refuse

if TYPE_CHECKING:
    from rules.engine.memory.snapshots import Snapshot

DIGEST = "digest"
"""The column that holds what a row is named after when it has no name."""
ROWS_IN = 65_536
"""So many rows enter the engine before it goes on."""
ROWS_OUT = 16_384
"""Composite events leave in about so many rows at once."""
_MARKER = EventType.of("(the end of a piece)")
"""No rule can name such a type; its events tell the engine how far the input reaches (S13)."""
_DTYPES = {Kind.INT: np.int64, Kind.FLOAT: np.float64, Kind.BOOL: np.bool_}
_Marked: TypeAlias = tuple[int, pa.RecordBatch]
"""Rows, and the time before which no more will come."""


@dataclass(frozen=True)
class Task:
    """The rules of a pass, the cells that it is cut into, and what is wanted of it.

    ``least`` and ``greatest`` are the first and last time of all events, ``overlap`` how long
    before its slice a cell begins, ``wanted`` the types of composite events that are given.
    """

    part: Pass
    form: Form
    cells: tuple[Cell, ...]
    overlap: int
    least: int
    greatest: int
    wanted: tuple[EventType, ...]
    full_cause: bool

    def run(self, cell: Cell, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the rules over one cell's rows: batches of rows in order of time, in the order of
        their first rows, between which other batches' rows may lie.
        """
        engine = make("auto")
        engine.deploy(self.part.rules)
        self._mark_ends(engine, cell)
        reader = _Reader(self.form, self.part.used_types)
        out, count, waiting = list[pa.RecordBatch](), 0, 0
        for mark, batch in self._complete(self._within(cell, batches)):
            if waiting >= ROWS_IN:
                for found in self._owned(engine.advance(mark), cell):
                    out.append(found)
                    count += found.num_rows
                waiting = 0
            if count >= ROWS_OUT:
                yield from _together(out)
                out, count = [], 0
            for events in reader.read(batch):
                engine.push(events)
            refuse(engine.take_conflict())
            waiting += batch.num_rows
        out.extend(self._owned(engine.advance(TIME_MAX), cell))
        yield from _together(out)

    def _within(self, cell: Cell, batches: Iterable[pa.RecordBatch]) -> Iterator[_Marked]:
        """Of each batch, the rows that the cell needs, if there are any. It is the whole batch that
        is in order with the others, and tells how far these have come.
        """
        begin = cell.start if cell.start == TIME_MIN else cell.start - self.overlap
        for batch in batches:
            time: Int64s = batch.column(TIME).to_numpy()
            low, high = np.searchsorted(time, [begin, cell.end]).tolist()
            if low < high:
                yield max(begin, int(time[0])), batch.slice(low, high - low)

    def _complete(self, batches: Iterable[_Marked]) -> Iterator[_Marked]:
        """Rows with numbers, by which the engine orders simultaneous ones, as they come; others
        instant by instant, and in the order of all that they hold.
        """
        if self.form.has_sequence:
            yield from batches
            return
        order = self.form.contents
        held = list[pa.Table]()
        for mark, batch in batches:
            ends = [int(np.searchsorted(one.column(TIME).to_numpy(), mark)) for one in held]
            ripe = [one.slice(0, end) for one, end in zip(held, ends, strict=True)]
            yield from _marked(in_order(ripe, order))
            rest = [one.slice(end) for one, end in zip(held, ends, strict=True)]
            held = [*(one for one in rest if one.num_rows), pa.Table.from_batches([batch])]
        yield from _marked(in_order(held, order))

    def go_on(
        self, kept: Snapshot | None, batches: Iterable[pa.RecordBatch], end: int
    ) -> tuple[list[pa.RecordBatch], Snapshot]:
        """Run the rules over rows before ``end``, all that came since the engine's state was kept
        (None: it is new); gives what they find, and the state to be kept.
        """
        # Spark asks a process of its own what the state of a stream is like, which needs no engine.
        from rules.engine.cdp import CdpEngine

        engine = CdpEngine()
        engine.deploy(self.part.rules)
        if kept is not None:
            engine.resume(kept)
        self._mark_ends(engine, Cell())
        reader = _Reader(self.form, self.part.used_types)
        for batch in batches:
            for events in reader.read(batch):
                engine.push(events)
            refuse(engine.take_conflict())
        found = list(self._owned(engine.advance(end), Cell()))
        return [*_together(found)], engine.snapshot()

    def _mark_ends(self, engine: Detector, cell: Cell) -> None:
        if self.least > self.greatest:
            return  # there are no events at all
        first = self.least if cell.start == TIME_MIN else max(self.least, cell.start - self.overlap)
        last = min(self.greatest, cell.end - 1)
        times = np.array([first, last], np.int64)
        ids = EventIds(StringColumn.constant("", 2), np.arange(2))
        engine.push(EventBatch(_MARKER, times, ids, ()))

    def _owned(self, found: Detections, cell: Cell) -> Iterator[pa.RecordBatch]:
        """The results that count: of the pass's own rules, in the cell's own slice."""
        names = {type_.name for type_ in self.wanted}
        for batch in found.batches:
            if batch.type.name not in names:
                continue
            sources = batch.ids.source
            owned = np.array(
                [name.removeprefix(RULE_SOURCE) in self.part.owned for name in sources.values], bool
            )
            mine = owned[sources.codes] & (batch.time >= cell.start) & (batch.time < cell.end)
            if not mine.all():
                batch = batch.take(mine)
            if len(batch):
                yield composites.rows(batch, self.wanted, full_cause=self.full_cause)


@dataclass(frozen=True)
class Work:
    """For ``mapInArrow``: the blocks of one cell in, in order of their first events; composite
    events out. ``tasks``: each with the number of its first cell.

    Where Timers tick there is something to do in a cell without events too; there the caller
    adds a row without events to each cell.
    """

    tasks: Sequence[tuple[int, Task]]

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> Work:
        """The work of tasks whose cells are numbered one after another."""
        firsts = itertools.accumulate((len(task.cells) for task in tasks), initial=0)
        return cls(tuple(zip(firsts, tasks, strict=False)))

    @property
    def cells(self) -> int:
        """How many there are."""
        first, task = self.tasks[-1]
        return first + len(task.cells)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the rules of a cell's pass over its blocks."""
        with in_a_sentence():
            yield from self._found(batches)

    def _found(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (batch for batch in batches if batch.num_rows)
        first = next(rows, None)
        if first is None:
            return
        number = first.column(CELL)[0].as_py()
        first_cell, task = next(one for one in reversed(self.tasks) if one[0] <= number)
        blocks = (
            widened(from_bytes(block.as_buffer()))
            for batch in itertools.chain([first], rows)
            for block in batch.column(EVENTS)
            if block.is_valid
        )
        yield from task.run(task.cells[number - first_cell], blocks)
        settle("run")


class _Reader:
    """Rows of a wide frame, in order of time, as events; remembers what names depend on.

    A column that is not there is one that no rule looks at (``looks``): any values will do.
    """

    def __init__(self, form: Form, used: frozenset[str]) -> None:
        self._form = form
        self._types = [type_ for type_ in form.types if type_.name in used]
        self._rows = 0
        self._digest = ""
        self._repeats = 0

    def read(self, batch: pa.RecordBatch) -> Iterator[EventBatch]:
        """The events of a record batch, a batch a type."""
        ids = self._ids(batch)
        types = strings_of(batch.column(TYPE))
        time: Int64s = batch.column(TIME).to_numpy()
        for event_type in self._types:
            if event_type.name not in types.values:
                continue
            rows = types.codes == types.values.index(event_type.name)
            places = None if rows.all() else np.flatnonzero(rows)
            columns = tuple(
                self._column(batch, attribute, places) for attribute in event_type.attributes
            )
            if places is None:
                yield EventBatch(event_type, time, ids, columns)
            else:
                yield EventBatch(event_type, time[places], ids.take(places), columns)

    def _column(
        self, batch: pa.RecordBatch, attribute: Attribute, places: AnyArray | None
    ) -> Column:
        place = batch.schema.get_field_index(self._form.column(attribute))
        if place >= 0:
            return column_of(batch.column(place), attribute.kind, places)
        count = batch.num_rows if places is None else len(places)
        if attribute.kind is Kind.STRING:
            return StringColumn.constant("", count)
        nothing: Column = np.zeros(count, _DTYPES[attribute.kind])
        return nothing

    def _ids(self, batch: pa.RecordBatch) -> EventIds:
        source = strings_of(batch.column(SOURCE))
        given = batch.column(ID).cast(pa.string()) if self._form.has_id else None
        if self._form.has_sequence:
            sequence: Int64s = batch.column(SEQUENCE).to_numpy(zero_copy_only=False)
            if given is None:
                return EventIds(source, sequence, given=True)
            texts = _or_else(given, pa.array(sequence)).to_pylist()
            return EventIds(source, sequence, StringColumn.from_strings(texts))
        sequence = np.arange(self._rows + 1, self._rows + 1 + batch.num_rows, dtype=np.int64)
        self._rows += batch.num_rows
        made = self._made(batch.column(DIGEST).to_pylist())
        if given is not None:
            made = _or_else(given, pa.array(made)).to_pylist()
        return EventIds(source, sequence, StringColumn.from_strings(made))

    def _made(self, digests: list[str]) -> list[str]:
        """Names after digests; rows that hold the same follow one another."""
        names = []
        for digest in digests:
            self._repeats = self._repeats + 1 if digest == self._digest else 1
            self._digest = digest
            names.append(digest if self._repeats == 1 else f"{digest}-{self._repeats}")
        return names


def _or_else(given: pa.Array, own: pa.Array) -> pa.Array:
    """Ids as texts; those of rows that have none, or an empty one, are their own."""
    has_none = pc.equal(given, "").fill_null(True)
    return pc.if_else(has_none, own.cast(pa.string()), given) if pc.any(has_none).as_py() else given


def _marked(batches: Iterable[pa.RecordBatch]) -> Iterator[_Marked]:
    """Batches that are in order one after another, with how far that is."""
    for batch in batches:
        yield int(batch.column(TIME)[0].as_py()), batch


def _together(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in one batch, if there are any."""
    if batches:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()

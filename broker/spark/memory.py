"""The memory of a cell of a stream between micro-batches, and its detection in the next.

Law 1: a cell's events stand in pieces, a piece for what one micro-batch brought, until nothing
that is still to be evaluated can reach back to them (``rules.cutting.reach``). What is found up to
a watermark is what ``detect`` finds in the slice of time between the last one and this: the events
of the slice and of the reach before it are all at hand. So the memory is events alone, no state of
an engine, and a query that goes on from its checkpoint goes on with the same.

Law 2: of rules whose reach nothing bounds (consumption, recursion), and of others where that was
asked for, the memory is what events have made of their engine (``rules.engine.memory.snapshots``),
and the events that wait for the watermark.

Law 3: an instant is evaluated once, when the watermark is beyond it: like a promise, a watermark
says that nothing earlier will follow. What comes for an instant that was evaluated is late: it is
counted and left out.

Law 4: a checkpoint belongs to the rules, the columns and the number of cells it was made with, and
an engine's state to its version too; with others it is refused, and stays as it was. A cell has a
state from the first micro-batch on that comes to it, which tells what the query is. Cell 0 is part
of every micro-batch that brings rows (``packing``), and timers are those of cells with a state; so
a micro-batch of another query has a cell that refuses it, and Spark commits none of its states.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from broker.errors import BrokerError
from broker.spark.cells import Cell
from broker.spark.columns import from_bytes, in_order, to_bytes
from broker.spark.errors import in_a_sentence
from broker.spark.frames import TIME
from broker.spark.packing import DROPPED, EVENTS
from broker.spark.task import Task
from matcher.model import TIME_MAX, TIME_MIN

if TYPE_CHECKING:
    from rules.engine.memory.snapshots import Snapshot

MOVED = {
    "rules.engine.intake.duplicates": "rules.engine.intake.duplicates",
    "rules.engine.memory.snapshots": "rules.engine.memory.snapshots",
}
"""Where the modules now stand whose classes older checkpoints name."""
FOUND = "found binary, composites long, events long, late long, dropped long"
"""The columns of what comes out: composite events as Arrow's bytes, and counts: of these, and of
the events that were taken in, were late, and were none.
"""
HEAD, PIECES, ENGINE = "head", "pieces", "engine"
"""The names of a cell's states in a checkpoint."""
_MILLISECOND_US = 1_000
"""Spark's watermarks and timers are in milliseconds."""


class OtherCheckpoint(BrokerError, ValueError):
    """A checkpoint belongs to another query (Law 4)."""

    def __init__(self) -> None:
        super().__init__(
            "the checkpoint of this stream was made with other rules, columns or cells: "
            "give it those again, or begin with a new checkpointLocation"
        )


@dataclass(frozen=True, slots=True)
class Head:
    """How far a cell has come: times in microseconds.

    Everything up to ``mark`` was evaluated. ``first`` is the earliest event ever, ``pending`` the
    earliest that waits (TIME_MAX: there is none); the next piece is number ``pieces``.
    """

    mark: int = TIME_MIN
    first: int = TIME_MAX
    pending: int = TIME_MAX
    pieces: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """The events that one micro-batch brought to a cell, as Arrow's bytes; the number of the piece,
    and the times of its first and last event in microseconds.
    """

    number: int
    first: int
    last: int
    events: bytes


@dataclass(frozen=True, slots=True)
class Part:
    """One pass: its task, and the cells from ``first_cell`` on. ``order`` are the columns by which
    its rows are sorted; ``ticks`` whether its rules have Timers, which fire without events;
    ``keeps_engine`` whether an engine's state is kept, and not the events of the reach (Law 2).
    """

    task: Task
    first_cell: int
    order: tuple[str, ...]
    ticks: bool
    keeps_engine: bool


class Memory(StatefulProcessor):
    """For ``transformWithState``, keyed by the number of the cell; takes packed rows."""

    def __init__(self, parts: Sequence[Part], plan: str) -> None:
        self._parts = parts
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """The state of a cell: its head, its pieces by number, its engine's where that is kept."""
        self._handle = handle
        self._head = handle.getValueState(
            HEAD, "mark long, first long, pending long, pieces long, plan string"
        )
        self._pieces = handle.getMapState(
            PIECES, "number long", "first long, last long, events binary"
        )
        self._engine = handle.getValueState(ENGINE, "snapshot binary")

    def handleInputRows(self, key: Any, rows: Iterable[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Take in what a micro-batch brings, and evaluate what the watermark has passed."""
        before = self._known()
        head, dropped, batches = before or Head(), 0, list[pa.RecordBatch]()
        for row in rows:
            dropped += row[DROPPED]
            if row[EVENTS]:
                batches.append(from_bytes(bytes(row[EVENTS])))
        taken = late = 0
        if batches:
            given = pa.Table.from_batches(batches)
            fresh = given.filter(pc.field(TIME) > head.mark)
            taken, late = fresh.num_rows, given.num_rows - fresh.num_rows
            head = self._with_piece(head, fresh)
        found = self._go_on(key, before, head, timerValues.getCurrentWatermarkInMs())
        return iter([_row(events=taken, late=late, dropped=dropped), *found])

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Evaluate what the watermark has passed, where no events came."""
        head = self._known()
        return iter(self._go_on(key, head, head or Head(), timerValues.getCurrentWatermarkInMs()))

    def close(self) -> None:
        """Nothing is open."""

    def _known(self) -> Head | None:
        """How far the cell has come; None for a cell without a state."""
        kept = self._head.get()
        if kept is None:
            return None
        *numbers, plan = kept
        if plan != self._plan:
            with in_a_sentence():
                raise OtherCheckpoint
        return Head(*numbers)

    def _with_piece(self, head: Head, fresh: pa.Table) -> Head:
        if not fresh.num_rows:
            return head
        ends = pc.min_max(fresh.column(TIME)).as_py()
        first, last = ends["min"], ends["max"]
        (piece,) = fresh.combine_chunks().to_batches()
        self._pieces.updateValue((head.pieces,), (first, last, to_bytes(piece)))
        return replace(
            head,
            first=min(head.first, first),
            pending=min(head.pending, first),
            pieces=head.pieces + 1,
        )

    def _go_on(self, key: Any, before: Head | None, head: Head, watermark_ms: int) -> list[Row]:
        """Evaluate what is before the watermark, which is nought where there is none yet."""
        part = part_of(self._parts, key[0])
        found = list[Row]()
        mark = watermark_ms * _MILLISECOND_US - 1 if watermark_ms > 0 else TIME_MIN
        if mark > head.mark:
            if head.pending <= mark or (part.ticks and head.first <= mark):
                found, head = self._evaluated(part, head, mark)
            head = replace(head, mark=mark)
        if head != before:
            self._head.update((*astuple(head), self._plan))
        if part.ticks:
            self._handle.registerTimer(max(watermark_ms, 0) + 1)
        elif head.pending < TIME_MAX:
            self._handle.registerTimer(head.pending // _MILLISECOND_US + 1)
        return found

    def _evaluated(self, part: Part, head: Head, mark: int) -> tuple[list[Row], Head]:
        kept = self._engine.get()
        pieces = (Piece(*key, *value) for key, value in self._pieces.iterator())
        results = evaluated(part, head, pieces, None if kept is None else bytes(kept[0]), mark)
        if results.engine is not None:
            self._engine.update((results.engine,))
        for number in results.spent:
            self._pieces.removeKey((number,))
        packed = [_row(to_bytes(batch), batch.num_rows) for batch in results.found]
        return packed, replace(head, pending=results.pending)


@dataclass(frozen=True, slots=True)
class Slice:
    """The results of a slice of time up to a watermark: composite events, the time of the earliest
    event that still waits, the numbers of pieces that nothing needs any more, and the state of the
    engine in bytes (None: the events are kept).
    """

    found: list[pa.RecordBatch]
    pending: int
    spent: list[int]
    engine: bytes | None


def evaluated(
    part: Part, head: Head, pieces: Iterable[Piece], engine: bytes | None, mark: int
) -> Slice:
    """Evaluate a cell's events after those that were evaluated, up to ``mark``."""
    task = replace(part.task, least=head.first, greatest=mark)
    begins, ends = max(TIME_MIN, head.mark + 1 - task.overlap), mark + 1
    tables, pending, spent = [], TIME_MAX, []
    for piece in pieces:
        if piece.last < ends - task.overlap:
            spent.append(piece.number)
        if piece.first >= ends:
            pending = min(pending, piece.first)
            continue
        rows = pa.Table.from_batches([from_bytes(bytes(piece.events))])
        tables.append(rows.filter((pc.field(TIME) >= begins) & (pc.field(TIME) < ends)))
        if piece.last >= ends:
            waiting = rows.filter(pc.field(TIME) >= ends)
            pending = min(pending, pc.min(waiting.column(TIME)).as_py())
    ordered = in_order(tables, part.order)
    if part.keeps_engine:
        found, snapshot = task.go_on(None if engine is None else _unpickled(engine), ordered, ends)
        return Slice(found, pending, spent, _pickled(snapshot))
    start = TIME_MIN if head.mark == TIME_MIN else head.mark + 1
    return Slice(list(task.run(Cell(start, ends), ordered)), pending, spent, None)


def part_of(parts: Sequence[Part], cell: int) -> Part:
    """The pass to which a cell belongs."""
    return next(part for part in reversed(parts) if part.first_cell <= cell)


def _pickled(snapshot: Snapshot) -> bytes:
    """A snapshot in bytes: its length, and compressed."""
    data = pickle.dumps(snapshot, protocol=5)
    compressed: bytes = pa.compress(data, codec="lz4", asbytes=True)
    return len(data).to_bytes(8, "little") + compressed


def _unpickled(data: bytes) -> Snapshot:
    """The inverse of _pickled: of the query's own checkpoint, as all of Spark's state is."""
    length = int.from_bytes(data[:8], "little")
    data = pa.decompress(data[8:], length, codec="lz4", asbytes=True)
    snapshot: Snapshot = _Unpickler(io.BytesIO(data)).load()
    return snapshot


class _Unpickler(pickle.Unpickler):
    """Finds classes of older checkpoints where they stand now."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(MOVED.get(module, module), name)


def _row(
    found: bytes | None = None,
    composites: int = 0,
    events: int = 0,
    late: int = 0,
    dropped: int = 0,
) -> Row:
    return Row(found=found, composites=composites, events=events, late=late, dropped=dropped)

"""Events of a micro-batch as few rows: those that go to one cell as one value, Arrow's bytes.

A stateful operator of Spark hands its rows to Python one at a time, and takes results in the same
way; so that nothing is done per event there, events are packed before it and results after it are
unpacked (``unpacked``).

Law 1: a packed row's events are of one pass and one cell, and none of them is bad. Cells are
numbered through all passes, so that one operator serves every pass and the stream is read once.

Law 2: ``latest`` is the latest time of the rows that were packed together, of whatever type they
are: the watermark moves with everything that is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.spark.columns import from_bytes, strings_of, to_bytes
from broker.spark.errors import in_a_sentence
from broker.spark.frames import BAD, TIME, TYPE
from matcher.errors import BadEvent
from matcher.model import AnyArray

CELL, LATEST, EVENTS, DROPPED = "cell", "latest", "events", "dropped"
"""The columns of packed rows; ``dropped`` counts rows that are no events."""
PACKED = f"{CELL} int, {LATEST} timestamp, {EVENTS} binary, {DROPPED} long"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The rows that a pass wants: those of its ``types`` (None: every row), in ``cells`` cells
    whose numbers begin at ``first``; ``column`` tells a row's cell, counted from nought.
    """

    types: frozenset[str] | None
    column: str
    first: int
    cells: int


@dataclass(frozen=True)
class Packing:
    """For ``mapInArrow``: rows of a wide frame, with a column of cells for each pass, to packed
    ones. Raises BadEvent for a row that is no event, unless ``drops_bad``.
    """

    wanted: Sequence[Wanted]
    columns: Sequence[str]
    drops_bad: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack each record batch by itself."""
        with in_a_sentence():
            for batch in batches:
                if batch.num_rows:
                    yield self._packed(batch)

    def _packed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        good = self._good(batch)
        dropped = batch.num_rows - good.num_rows
        latest = pc.max(good.column(TIME)).as_py() or 0
        cells, events = [0], [b""]  # so that what was seen moves time where no rule wants it
        for cell, rows in self._pieces(good):
            cells.append(cell)
            events.append(to_bytes(rows.select(list(self.columns))))
        count = len(cells)
        return pa.record_batch(
            {
                CELL: pa.array(cells, pa.int32()),
                LATEST: pa.array([latest] * count, pa.int64()).view(pa.timestamp("us", "UTC")),
                EVENTS: pa.array(events, pa.binary()),
                DROPPED: pa.array([dropped] + [0] * (count - 1), pa.int64()),
            }
        )

    def _good(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        reasons = batch.column(BAD)
        if reasons.null_count == batch.num_rows:
            return batch
        if not self.drops_bad:
            counted = Counter(reasons.drop_null().to_pylist())
            told = "; ".join(f"{count}: {reason}" for reason, count in sorted(counted.items()))
            raise BadEvent(
                f"{sum(counted.values())} rows of a micro-batch are no events ({told}); "
                f"on_bad='drop' leaves such rows out"
            )
        return batch.filter(reasons.is_null())

    def _pieces(self, good: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        types = strings_of(good.column(TYPE))
        for one in self.wanted:
            if one.types is None:
                rows: AnyArray = np.arange(good.num_rows)
            else:
                chosen = np.array([name in one.types for name in types.values], bool)
                rows = np.flatnonzero(chosen[types.codes]) if len(chosen) else np.arange(0)
            cells = good.column(one.column).to_numpy(zero_copy_only=False)[rows]
            order = np.argsort(cells, kind="stable")
            ends = np.searchsorted(cells[order], np.arange(one.cells + 1))
            for cell in np.flatnonzero(np.diff(ends)).tolist():
                places = rows[order[ends[cell] : ends[cell + 1]]]
                yield one.first + cell, good.take(pa.array(places))


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: results that were packed in a column ``found``, as they were."""
    for batch in batches:
        for data in batch.column("found").to_pylist():
            if data:
                yield from_bytes(data)

"""Cells whose tasks read the files themselves: nothing is packed, shuffled or kept.

Where every frame is a scan (``scans``), a task may read what its cell needs: by time the row groups
that overlap its slice, by key all of them, of which it leaves out other buckets. That is less work
than packing and shuffling, and none of Java's, as long as rows are not read too often.

Law 1: a cell gets the rows that it would get in blocks: batches of events in order of time, those
that begin earlier first, of its types and its bucket, without those that are no events.

Law 2: it is done only where that is the better way (``cuts``), which a first look at the files
tells.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from broker.spark.blocks import Packed, Packing, Portion, chosen
from broker.spark.cuts import HELD_MAX, TIMES, Own, Span, cut, held
from broker.spark.errors import in_a_sentence
from broker.spark.frames import BAD, TIME, TYPE
from broker.spark.look import QUANTILES, Look, Share
from broker.spark.parquet import READ_TOGETHER, Piece, WideRows
from broker.spark.scans import Scan
from broker.spark.settling import settle
from broker.spark.task import Task
from matcher.model import Int64s
from rules.cutting.splitting import Pass

SEEN = (
    "piece int, rows long, in_order boolean, times array<long>, counts array<array<long>>, "
    "of_type string, reason string"
)


@dataclass(frozen=True)
class Files:
    """The row groups of all frames, each with the number of its frame, and how the rows of a frame
    are made and chosen.
    """

    rows: Sequence[WideRows]
    packings: Sequence[Packing]
    pieces: Sequence[tuple[int, Piece]]

    @classmethod
    def of(
        cls, scans: Sequence[Scan], packings: Sequence[Packing]
    ) -> tuple[Files, tuple[range, ...]]:
        """The files of all scans; and the numbers of row groups that are looked at together."""
        pieces, tasks = list[tuple[int, Piece]](), list[range]()
        for frame, scan in enumerate(scans):
            for task in scan.tasks:
                tasks.append(range(len(pieces), len(pieces) + len(task)))
                pieces += [(frame, piece) for piece in task]
        return cls([scan.rows for scan in scans], packings, pieces), tuple(tasks)

    def for_a_look(self) -> Files:
        """The same with just the columns that a first look looks at."""
        keys = [{key for one in own.portions for key in one.keys.values()} for own in self.packings]
        return self._with([{TYPE, *names} for names in keys])

    def for_pass(self, place: int) -> Files:
        """The same with just the columns that a pass wants."""
        portions = [own.portions[place] for own in self.packings]
        return self._with([{*one.columns, *one.keys.values()} for one in portions])

    def _with(self, wanted: Sequence[Collection[str]]) -> Files:
        """The same with just these columns of each frame, and those that every row must have."""
        kept = [
            replace(rows, columns=[one for one in rows.columns if one in {TIME, BAD, *names}])
            for rows, names in zip(self.rows, wanted, strict=True)
        ]
        return replace(self, rows=kept)

    def tallied(self, number: int) -> Iterator[tuple[pa.RecordBatch, list[Packed]]]:
        """The events of a row group, and the tallies of its rows (``blocks``)."""
        frame, piece = self.pieces[number]
        return map(self.packings[frame].tallied, self.rows[frame].read(piece))

    def portion(self, number: int, place: int) -> Portion:
        """The portion of a row group that a pass wants."""
        return self.packings[self.pieces[number][0]].portions[place]

    def may_want(self, number: int, place: int) -> bool:
        """Whether a pass may want any row of a row group, as far as its frame tells."""
        row_type = self.packings[self.pieces[number][0]].row_type
        return row_type is None or row_type in self.portion(number, place).types


# --- looking -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileLook:
    """For ``mapInArrow``: numbers of ``tasks``, which are numbers of row groups, in; SEEN out."""

    files: Files
    tasks: Sequence[Sequence[int]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Look at the row groups of each task."""
        for batch in batches:
            for task in batch.column(0).to_pylist():
                with in_a_sentence():
                    rows = [row for number in self.tasks[task] for row in self._seen(number)]
                names = [field.partition(" ")[0] for field in SEEN.split(", ")]
                yield (
                    pa.Table.from_pylist(rows, schema=_schema(names))
                    .combine_chunks()
                    .to_batches()[0]
                )
        settle("look")

    def _seen(self, number: int) -> list[dict[str, object]]:
        bad, times = Counter[tuple[str, str]](), list[Int64s]()
        portions = self.files.packings[self.files.pieces[number][0]].portions
        counts = [np.zeros(one.buckets, np.int64) for one in portions]
        for good, tallies in self.files.tallied(number):
            for tally in tallies:
                if tally.reason is not None:
                    bad[tally.of_type or "", tally.reason] += tally.rows
            times.append(good.column(TIME).to_numpy())
            for portion, count in zip(portions, counts, strict=True):
                if portion.buckets > 1:
                    _, bucket = chosen(portion, good)
                    count += np.bincount(bucket, minlength=portion.buckets)
        found: list[dict[str, object]] = [
            {"piece": number, "rows": rows, "of_type": name, "reason": reason}
            for (name, reason), rows in bad.items()
        ]
        time = np.concatenate(times) if times else np.zeros(0, np.int64)
        if not len(time):
            return found
        in_order = bool((time[1:] >= time[:-1]).all())
        ordered = time if in_order else np.sort(time)
        at = np.linspace(0, len(time) - 1, TIMES + 1).astype(np.int64)
        span = {"piece": number, "rows": len(time), "in_order": in_order}
        quantiles, held = ordered[at].tolist(), [one.tolist() for one in counts]
        return [*found, {**span, "times": quantiles, "counts": held}]


def _schema(names: Sequence[str]) -> pa.Schema:
    longs = pa.list_(pa.int64())
    kinds = (pa.int32(), pa.int64(), pa.bool_(), longs, pa.list_(longs), pa.string(), pa.string())
    return pa.schema(zip(names, kinds, strict=True))


def look_at_files(session: SparkSession, look: FileLook) -> tuple[Look, list[Span]]:
    """Look at all the row groups: at all events together, and at each row group that has some, in
    order of their first times.
    """
    count = len(look.tasks)
    rows = session.range(0, count, 1, count).mapInArrow(look, SEEN).collect()
    return seen_of([row.asDict() for row in rows])


def seen_of(rows: Iterable[Mapping[str, Any]]) -> tuple[Look, list[Span]]:
    """The look and the spans that rows of SEEN tell."""
    bad, spans = Counter[tuple[str, str]](), list[Span]()
    for row in rows:
        if row["reason"] is not None:
            bad[row["of_type"], row["reason"]] += row["rows"]
        else:
            counts = tuple(map(tuple, row["counts"]))
            times = tuple(row["times"])
            spans.append(Span(row["piece"], row["rows"], row["in_order"], times, counts))
    spans.sort(key=lambda span: (span.times[0], span.piece))
    return Look(share_of(spans), bad), spans


def share_of(spans: Sequence[Span]) -> Share:
    """All the events of row groups together: of the quantiles of each, all with their parts of the
    rows.
    """
    if not spans:
        return Share(0, ())
    times = np.concatenate([np.array(span.times, np.int64) for span in spans])
    parts = np.concatenate([np.full(TIMES + 1, span.rows / (TIMES + 1)) for span in spans])
    order = np.argsort(times, kind="stable")
    times, reached = times[order], np.cumsum(parts[order])
    at = np.searchsorted(reached, np.linspace(0, reached[-1], QUANTILES + 1)[1:-1])
    inner = times[np.minimum(at, len(times) - 1)].tolist()
    return Share(sum(span.rows for span in spans), (int(times[0]), *inner, int(times[-1])))


# --- running -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileWork:
    """For ``mapInArrow``: numbers of cells in, composite events out."""

    files: Files
    tasks: Sequence[Task]
    cells: Sequence[Own]

    def found(self, session: SparkSession, schema: StructType) -> DataFrame:
        """The results of all cells."""
        count = len(self.cells)
        return session.range(0, count, 1, count).mapInArrow(self, schema)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the rules of a cell's pass over its rows."""
        with in_a_sentence():
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    own = self.cells[number]
                    yield from self.tasks[own.part].run(own.cell, self._rows(own))
        settle("run")

    def _rows(self, own: Own) -> Iterator[pa.RecordBatch]:
        """The batches of the row groups, by their first times."""
        files = self.files.for_pass(own.part)
        waiting = [(first, place) for place, (_, first, _) in enumerate(own.spans)]
        heapq.heapify(waiting)
        streams = dict[int, tuple[pa.RecordBatch, Iterator[pa.RecordBatch]]]()
        while waiting:
            time, place = heapq.heappop(waiting)
            if time >= own.cell.end:
                return  # whatever follows is later still
            if place in streams:
                batch, stream = streams.pop(place)
                yield batch
            else:
                stream = _ordered(files, own, place)
            following = next(stream, None)
            if following is not None:
                streams[place] = following, stream
                heapq.heappush(waiting, (following.column(TIME)[0].as_py(), place))


def _ordered(files: Files, own: Own, place: int) -> Iterator[pa.RecordBatch]:
    """The rows of a row group that are the cell's, in order of time."""
    number, _, in_order = own.spans[place]
    portion = files.portion(number, own.part)
    if own.bucket is None:
        portion = replace(portion, buckets=1)
    mine = (_of_bucket(portion, good, own.bucket) for good, _ in files.tallied(number))
    if in_order:
        yield from (one for one in mine if one.num_rows)
        return
    held = [one for one in mine if one.num_rows]
    if held:
        (rows,) = pa.Table.from_batches(held).combine_chunks().to_batches()
        order = np.argsort(rows.column(TIME).to_numpy(), kind="stable")
        rows = rows.take(pa.array(order))
        for start in range(0, rows.num_rows, READ_TOGETHER):
            yield rows.slice(start, READ_TOGETHER)


def _of_bucket(portion: Portion, good: pa.RecordBatch, number: int | None) -> pa.RecordBatch:
    places, bucket = chosen(portion, good)
    if portion.buckets > 1:
        places = places[bucket == number]
    rows = good.select([name for name in portion.columns if name in good.schema.names])
    return rows if len(places) == good.num_rows else rows.take(pa.array(places))


def work_of(
    files: Files,
    tasks: Sequence[tuple[Pass, Task]],
    portions: Sequence[Portion],
    spans: Sequence[Span],
    count: int,
    *,
    exactly: bool,
) -> FileWork | None:
    """The work of cells that read files, ``count`` slices where time cuts; None where it is better
    to pack what is read (law 2). ``tasks`` are still without cells.
    """
    if not spans or held(spans) > HELD_MAX:
        return None
    made, cells = list[Task](), list[Own]()
    for place, ((part, task), portion) in enumerate(zip(tasks, portions, strict=True)):
        # Timers tick where there are no events of a pass too, so that one has cells all the same.
        wanted = [span for span in spans if files.may_want(span.piece, place)] or spans
        own = cut(part, place, portion, share_of(wanted), wanted, count, exactly=exactly)
        if own is None:
            return None
        made.append(replace(task, cells=tuple(one.cell for one in own)))
        cells += own
    # Spark begins with the first, and what takes longest is not to be the last.
    return FileWork(files, made, sorted(cells, key=lambda own: -own.rows))

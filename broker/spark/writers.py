"""The writers of the data source: what a task writes, and what a commit does.

Law 1: events take effect once, though Spark writes a batch again when a commit has failed. They
are known by ids that follow from the rows (``outgoing``), each task is a part of one source, and
the broker drops what it has (``routing.serving.parts``).

Law 2: with ``order`` ``held`` a part of the source that only holds its promise stands until the
commit, so nothing is late, in whatever order tasks run and rows come; rules find what they find
then. With ``time`` each task promises as it goes, and must have its rows in order; ``publish`` has
made the parts beforehand.

Spark's progress reports have no place for the numbers of a sink written in Python: its table does
not report metrics of its own, and what a commit gives back is a status alone. So the numbers of a
batch go to a file (option ``metrics``).
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from broker.errors import LateEvents
from broker.pace import Pace, cuts_of
from broker.spark.delivery import Delivery
from broker.spark.errors import in_a_sentence
from broker.spark.options import WriteOptions
from broker.spark.outgoing import Rows
from broker.spark.rowwise import batches_of
from broker.spark.target import Target
from matcher.errors import EventError
from matcher.model import MICROSECONDS, EventBatch

_MENDED = {
    "none": (
        "; option order 'none' is for networks whose ordering is arrival: in this one rules go on "
        "without the tasks that come later, unless they are held (option order 'held') or the "
        "frame is published in order of time (broker.spark.publish)"
    ),
    "held": (
        "; rules were no longer held under this source: another write under it has ended meanwhile "
        "(name each by an option source of its own), or the broker left it out for its silence "
        "(source_silence_max_s), or events of these times had been evaluated before"
    ),
    "time": "",
}
"""Words about late events, by order."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """The result of one task's writing: ``rows`` and ``bytes`` of its record batches, events
    ``resent`` to another broker, rows left out as ``bad``, and the ``latest`` event time (None: no
    event).
    """

    rows: int = 0
    bytes: int = 0
    resent: int = 0
    bad: int = 0
    latest: int | None = None


class Writing:
    """The base of all writers. The driver makes one, tasks and the commit get copies."""

    def __init__(self, target: Target, schema: StructType) -> None:
        self.target = target
        self.schema = schema
        if target.options.order == "held":
            target.hold(None)

    def publish(self, batches: Iterable[pa.RecordBatch]) -> Written:
        """One task: publish its rows as one part of the source."""
        with in_a_sentence():
            return self._publish(batches)

    def _publish(self, batches: Iterable[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        assert context is not None
        options = self.target.options
        rows = self.target.rows()
        delivery = self.target.delivery(context.partitionId(), context.attemptNumber())
        pace = None if options.speed is None else Pace(options.speed, origin_of(options), time.time)
        try:
            written = _write(batches, rows, delivery, pace, in_order=options.order == "time")
            if options.order == "held":
                delivery.confirm()
                # Once this part is over, rules may go on, and other tasks be late, where nobody
                # holds them: a broker that was started again has forgotten who did.
                self.target.hold_again(delivery.endpoint)
            delivery.finish()
        except LateEvents as error:
            delivery.give_up()
            told = f"source {options.source!r}: {error}{_MENDED[options.order]}"
            raise LateEvents(told) from error
        except BaseException:
            delivery.give_up()
            raise
        return written

    def settle(self, messages: Sequence[WriterCommitMessage | None], batch: int | None) -> None:
        """Let rules go on: to the end for a frame, and of a stream (its ``batch`` has a number) up
        to what later batches may still bring.
        """
        written = [one for one in messages if isinstance(one, Written)]
        options = self.target.options
        with in_a_sentence():
            if options.order == "held" and batch is None:
                self.target.hold(None, ends=True)
            elif options.order == "held" and (promise := self._promise(written)) is not None:
                self.target.hold(None, promise)
        if options.metrics:
            with open(options.metrics, "a", encoding="utf-8") as file:
                file.write(json.dumps(numbers_of(written, batch)) + "\n")

    def _promise(self, written: Sequence[Written]) -> int | None:
        """Up to where a stream is complete, by what this batch has brought."""
        disorder_s = self.target.options.disorder_s
        latest = [one.latest for one in written if one.latest is not None]
        if disorder_s is None or not latest:
            return None
        return max(latest) - round(disorder_s * MICROSECONDS)


def numbers_of(written: Sequence[Written], batch: int | None) -> dict[str, int | None]:
    """The numbers of a batch, summed over its tasks; ``batch`` is null for a frame."""
    names = ("rows", "bytes", "resent", "bad")
    return {"batch": batch} | {name: sum(getattr(one, name) for one in written) for name in names}


def origin_of(options: WriteOptions) -> tuple[int, float] | None:
    """The origin of a pace that several tasks share: ``MICROSECONDS@SECONDS``, both since 1970."""
    if not options.origin:
        return None
    event_time, begun = options.origin.split("@")
    return int(event_time), float(begun)


# --- a task ------------------------------------------------------------------------------------


def _write(
    batches: Iterable[pa.RecordBatch],
    rows: Rows,
    delivery: Delivery,
    pace: Pace | None,
    *,
    in_order: bool,
) -> Written:
    count = size = 0
    latest: int | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        events = [one for one in rows.read(batch) if len(one)]
        count += batch.num_rows
        size += batch.nbytes
        if not events:
            continue
        if in_order:
            _check_order(events, latest)
        for piece in (events,) if pace is None else _in_time(events, pace):
            reached = max(int(one.time.max()) for one in piece)
            latest = reached if latest is None else max(latest, reached)
            delivery.send(piece, latest if in_order else None)
    return Written(count, size, delivery.resent, sum(rows.bad.values()), latest)


def _check_order(events: Sequence[EventBatch], latest: int | None) -> None:
    """EventError unless each type's events are in order of time, and after what came before."""
    for one in events:
        falls = bool((one.time[1:] < one.time[:-1]).any())
        if falls or (latest is not None and int(one.time[0]) < latest):
            raise EventError(
                f"rows of {one.type.name} are not in order of time: publish the frame with "
                f"broker.spark.publish, which sorts it, or with option order 'held' (rules wait "
                f"for the commit) or 'none' (for networks in arrival mode)"
            )


def _in_time(events: Sequence[EventBatch], pace: Pace) -> Iterator[list[EventBatch]]:
    """Events in order of time, a stretch of it after another, each when it is due."""
    times = np.sort(np.concatenate([one.time for one in events]))
    for first, last in itertools.pairwise(cuts_of(times, pace.span)):
        ends = int(times[last - 1])
        begins = int(times[first])
        pace.wait(begins)
        pieces = [
            one.take(
                slice(
                    int(np.searchsorted(one.time, begins, side="left")),
                    int(np.searchsorted(one.time, ends, side="right")),
                )
            )
            for one in events
        ]
        yield [piece for piece in pieces if len(piece)]


# --- Spark's interfaces --------------------------------------------------------------------------


class _Batch(Writing):
    """``df.write.format("rexmq")``."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Rules may go on."""
        self.settle(messages, None)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Leave what was written, for which rules wait until it is written again."""


class _Stream(Writing):
    """``df.writeStream.format("rexmq")``."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Rules may go on up to what later batches may still bring."""
        self.settle(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Leave what was written; it is known when the batch is written again."""


class BatchWriter(_Batch, DataSourceArrowWriter):
    """A frame, in Arrow's batches."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One task."""
        return self.publish(iterator)


class BatchRowWriter(_Batch, DataSourceWriter):
    """A frame, row by row."""

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """One task."""
        return self.publish(batches_of(iterator, self.schema))


class StreamWriter(_Stream, DataSourceStreamArrowWriter):
    """A stream, in Arrow's batches."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One task."""
        return self.publish(iterator)


class StreamRowWriter(_Stream, DataSourceStreamWriter):
    """A stream, row by row."""

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """One task."""
        return self.publish(batches_of(iterator, self.schema))


BATCH_WRITERS: Mapping[str, type[BatchWriter | BatchRowWriter]] = {
    "arrow": BatchWriter,
    "rows": BatchRowWriter,
}
STREAM_WRITERS: Mapping[str, type[StreamWriter | StreamRowWriter]] = {
    "arrow": StreamWriter,
    "rows": StreamRowWriter,
}
"""By option ``writer``."""

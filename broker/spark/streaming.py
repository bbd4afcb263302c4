"""``detect_stream``: rules over structured streams, with the results of ``detect`` over the whole.

Spark's watermark says up to when a stream is complete; what it has passed is evaluated, cell by
cell, by the engine that ``detect`` runs (``memory``). Cells are cut by key; what has no key is in
one of them.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as f
from pyspark.sql.types import StructType

from broker.spark.cells import Cell, bucket_of
from broker.spark.composites import spark_schema
from broker.spark.environment import SparkUnavailable, verify_workers
from broker.spark.frames import TIME, Form, Frames
from broker.spark.identity import own_digest
from broker.spark.layouts import Layouts, laid_out
from broker.spark.memory import FOUND, Memory, Part
from broker.spark.options import seconds
from broker.spark.packing import CELL, LATEST, PACKED, Packing, Wanted, unpacked
from broker.spark.remaining import remaining
from broker.spark.request import (
    checked_rules,
    printed_rules,
    wanted_types,
    warn_unordered,
    warn_whole,
    wide_parts,
)
from broker.spark.task import DIGEST, Task
from matcher.identity import hash_128, printed
from matcher.model import EventType
from rules.cutting.splitting import KEY, ByKey, Pass, Splitting, split
from rules.engine.order.timers import uses_timer
from rules.planning.variants import variants

CELLS = 16
"""Into so many cells keys are parted, unless it is said otherwise. It does not follow from the
cores, for a checkpoint must outlive the machine that it was made on.
"""
METRICS = "rexmq"
"""The name of our numbers among the ``observedMetrics`` of a query's progress."""
_STORE = "spark.sql.streaming.stateStore.providerClass"


def detect_stream(
    events: Frames,
    rules: str | Path,
    partition_by: str | None = None,
    *,
    disorder: str,
    types: Collection[str] | None = None,
    time: str = TIME,
    time_zone: str | None = None,
    layout: Layouts | None = None,
    on_bad: str = "refuse",
    cells: int = CELLS,
    keep: str = "events",
    full_cause: bool = False,
) -> DataFrame:
    """The composite events that ``rules`` find in streams, as ``detect`` finds them in the whole.

    ``disorder``: how much older than the latest row of its frame a row may be (``10 min``): the
    watermark follows the latest time, of the slowest frame, at that distance. An instant is
    evaluated when the watermark has passed it; rows that come for it afterwards are left out and
    counted. Times before 1970 are never passed.

    ``on_bad``: a row that is no event ends the query (``refuse``) or is counted (``drop``).
    ``cells``: into how many cells keys are parted; like the rules and the columns it belongs to the
    checkpoint. ``keep``: of rules whose reach has an end, the ``events`` of the reach, which are
    evaluated again with each micro-batch, or the state of the ``engine``, which costs less where
    micro-batches are far shorter than the reach. The other arguments, and the columns of the
    result, are those of ``detect``. The result is for output mode ``append``;
    ``observedMetrics`` of its query's progress has, under METRICS, ``events``, ``late``,
    ``dropped`` and ``composites`` of each micro-batch, events once for each pass.

    Raises what ``detect`` raises; ValueError for frames that are no streams, and for a session
    whose state store cannot serve.
    """
    if on_bad not in ("refuse", "drop"):
        raise ValueError(f"on_bad is 'refuse' or 'drop', not {on_bad!r}")
    delay_ms = math.ceil(seconds("disorder", disorder) * 1e3)
    query = _planned(
        events, rules, partition_by, types, time, time_zone, layout, cells, keep, full_cause
    )
    warn_whole(query.splitting)
    warn_unordered(query.form)
    if not query.parts:
        return query.nothing()
    packing = packing_of(query.parts, query.form, drops_bad=on_bad == "drop")
    packed = [
        _with_cells(frame, query.form, query.parts)
        .mapInArrow(packing, PACKED)
        .withWatermark(LATEST, f"{delay_ms} milliseconds")
        for frame in query.frames
    ]
    # Without the column of the watermark, so that Spark leaves it to us to tell what is late.
    together = functools.reduce(DataFrame.unionAll, packed).drop(LATEST)
    found = together.groupBy(CELL).transformWithState(
        Memory(query.parts, query.plan), FOUND, "Append", "EventTime"
    )
    counts = ("events", "late", "dropped", "composites")
    observed = found.observe(METRICS, *(f.sum(name).alias(name) for name in counts))
    return observed.mapInArrow(unpacked, query.schema)


def detect_remaining(
    events: Frames,
    rules: str | Path,
    checkpoint: str | Path,
    partition_by: str | None = None,
    *,
    types: Collection[str] | None = None,
    time: str = TIME,
    time_zone: str | None = None,
    layout: Layouts | None = None,
    cells: int = CELLS,
    keep: str = "events",
    full_cause: bool = False,
) -> DataFrame:
    """The composite events that a stopped query would still find if nothing more came, and that its
    sink does not have: what waits for the watermark is evaluated as the end of the streams.

    ``checkpoint`` is the query's ``checkpointLocation``, which stays as it is: a query that goes on
    from it finds these events again, with the same ids, unless rows that follow change them. The
    other arguments are those that ``detect_stream`` was given.

    Raises what ``detect_stream`` raises, and OtherCheckpoint for a checkpoint of other arguments.
    """
    query = _planned(
        events, rules, partition_by, types, time, time_zone, layout, cells, keep, full_cause
    )
    if not query.parts:
        return query.nothing()
    return remaining(query.session, str(checkpoint), query.parts, query.plan).mapInArrow(
        unpacked, query.schema
    )


# --- what is asked ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Query:
    """A query over streams as it was asked for: frames in one form, and the passes of its rules.
    ``plan`` is what a checkpoint belongs to, in 32 digits; ``schema`` is of the composite events.
    """

    session: SparkSession
    frames: Sequence[DataFrame]
    form: Form
    splitting: Splitting
    parts: tuple[Part, ...]
    plan: str
    schema: StructType

    def nothing(self) -> DataFrame:
        """No composite events."""
        return self.session.createDataFrame([], self.schema)


def _planned(
    events: Frames,
    rules: str | Path,
    partition_by: str | None,
    types: Collection[str] | None,
    time: str,
    time_zone: str | None,
    layout: Layouts | None,
    cells: int,
    keep: str,
    full_cause: bool,
) -> _Query:
    if cells < 1:
        raise ValueError(f"cells is at least 1, not {cells}")
    if keep not in ("events", "engine"):
        raise ValueError(f"keep is 'events' or 'engine', not {keep!r}")
    events, time, times = laid_out(events, layout, time, time_zone)
    ruleset = checked_rules(rules, events, time)
    splitting = split(ruleset, (KEY,), partition_by)
    wanted = wanted_types(ruleset, types)
    frames, form = wide_parts(events, ruleset, time, times)
    session = _streaming_session(events)
    keeps_engine = keep == "engine"
    parts = parts_of(
        splitting.passes, form, cells, wanted, keeps_engine=keeps_engine, full_cause=full_cause
    )
    plan = printed(hash_128(printed_rules(rules), str(form), str(cells), str(partition_by), keep))
    return _Query(session, frames, form, splitting, parts, plan, spark_schema(wanted))


# --- how the passes are laid out ----------------------------------------------------------------


def parts_of(
    passes: Collection[Pass],
    form: Form,
    cells: int,
    wanted: Collection[EventType],
    *,
    keeps_engine: bool = False,
    full_cause: bool,
) -> tuple[Part, ...]:
    """The passes with their cells, which are numbered through all of them; those without a reach
    keep their engine whatever is asked for.
    """
    order = (TIME,) if form.has_sequence else form.contents
    parts, first = [], 0
    for one in passes:
        count = cells if isinstance(one.way, ByKey) else 1
        keeps = keeps_engine or one.reach is None
        reach = 0 if keeps or one.reach is None else one.reach  # nothing is evaluated again
        task = Task(one, form, (Cell(),) * count, reach, 1, 0, tuple(wanted), full_cause)
        ticks = any(uses_timer(rule) for whole in one.rules.rules for rule in variants(whole))
        parts.append(Part(task, first, order, ticks, keeps))
        first += count
    return tuple(parts)


def packing_of(parts: Collection[Part], form: Form, *, drops_bad: bool) -> Packing:
    """The rows that each pass wants: where Timers tick all, for they tick from the first on."""
    wanted = [
        Wanted(
            None if part.ticks else part.task.part.used_types,
            f"{CELL}{place}",
            part.first_cell,
            len(part.task.cells),
        )
        for place, part in enumerate(parts)
    ]
    columns = dict.fromkeys(form.contents)
    columns |= dict.fromkeys(["sequence"] if form.has_sequence else [DIGEST])
    return Packing(wanted, tuple(columns), drops_bad)


def _with_cells(frame: DataFrame, form: Form, parts: Collection[Part]) -> DataFrame:
    """A wide frame with a column of cells for each pass, and what names rows without names."""
    if not form.has_sequence:
        frame = frame.withColumn(DIGEST, own_digest(form))
    for place, part in enumerate(parts):
        way = part.task.part.way
        cell = bucket_of(form, way, len(part.task.cells)) if isinstance(way, ByKey) else f.lit(0)
        frame = frame.withColumn(f"{CELL}{place}", cell)
    return frame


# --- what is refused -----------------------------------------------------------------------------


def _streaming_session(events: Frames) -> SparkSession:
    """The session of streams, sound for their state."""
    frames = events if isinstance(events, Mapping) else {"events": events}
    for name, frame in frames.items():
        if not frame.isStreaming:
            raise ValueError(f"the frame of {name} is no stream; detect() is for recorded events")
    session = frame.sparkSession
    verify_workers(session)
    if "RocksDB" not in (session.conf.get(_STORE, "") or ""):
        raise ValueError(
            f"set {_STORE} to org.apache.spark.sql.execution.streaming.state."
            f"RocksDBStateStoreProvider before: Spark's other store holds no state of this kind"
        )
    if not _has_protobuf():
        raise SparkUnavailable(
            "state of streams needs the package protobuf, which is not installed: "
            "pip install rexmq[spark]"
        )
    return session


def _has_protobuf() -> bool:
    try:
        return importlib.util.find_spec("google.protobuf") is not None
    except ModuleNotFoundError:  # there is no "google" at all
        return False

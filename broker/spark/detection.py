"""``detect``: rules over DataFrames, with the results of ``rexmq detect`` over the whole.

The rules say how events can be cut (``rules.cutting.splitting``). The frames are read once, and
their rows packed in blocks (``blocks``); a first look at these says how full cells would be. Each
cell is one task's, which runs the engine over its blocks in order of time. Frames that are nothing
but files are read by the tasks themselves where that is better (``direct``).
"""

from __future__ import annotations

import contextlib
import functools
import warnings
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark import StorageLevel
from pyspark.sql import DataFrame, functions as f

from broker.spark.blocks import BLOCKS, EVENTS, FIRST, ROWS_MIN, Packing, Portion
from broker.spark.cells import CELL, Cell, cells_of, in_cells, slices
from broker.spark.composites import spark_schema
from broker.spark.cuts import may_be_cut
from broker.spark.direct import FileLook, Files, look_at_files, work_of
from broker.spark.environment import cores_of, verify_workers
from broker.spark.errors import readable_errors
from broker.spark.frames import BAD, ID, SEQUENCE, SOURCE, TIME, TYPE, Form, Frames
from broker.spark.identity import own_digest
from broker.spark.layouts import Layouts, laid_out
from broker.spark.look import Look, look_at_blocks
from broker.spark.portions import columns_of, portions_of
from broker.spark.request import (
    checked_rules,
    wanted_types,
    warn_unordered,
    warn_whole,
    wide_of,
    wide_parts,
)
from broker.spark.scans import Scan, scan_of
from broker.spark.task import DIGEST, Task, Work
from matcher.model import TIME_MIN, EventType
from rules.cutting.splitting import WAYS, Pass, split
from rules.engine.order.timers import uses_timer
from rules.planning.variants import variants

OnBad = Literal["refuse", "drop"]
CELLS_A_CORE = 4
"""So many cells for each core, so that none waits long for the last of the others."""


def detect(
    events: Frames,
    rules: str | Path,
    partition_by: str | None = None,
    *,
    types: Collection[str] | None = None,
    time: str = TIME,
    time_zone: str | None = None,
    layout: Layouts | None = None,
    on_bad: OnBad = "refuse",
    cells: int | None = None,
    ways: Sequence[str] = WAYS,
    full_cause: bool = False,
    reads_files: bool = True,
) -> DataFrame:
    """The composite events that ``rules`` find in ``events``, as ``rexmq detect`` finds them.

    ``events``: a frame with a column ``type``, or a frame for each type, by name; with ``time``
    (timestamps, dates, text or seconds; ``time_zone`` for those without one), a column for
    each attribute, and ``source`` and ``sequence``, by which simultaneous events are ordered
    (tesla.md E4). Without these they are ordered by all that they hold, and a warning says so.
    ``id`` is optional; without ids and numbers, events are named after what they hold. ``layout``
    (matcher.formats.layout; in place of ``time`` and ``time_zone``) says what columns mean that are
    called otherwise, and how times are written.

    ``rules``: TESLA text, or the path of a file. Types that they do not declare follow from the
    frames, if these are given by type.

    ``partition_by``: an attribute that is to be the key of every rule; else keys and slices of
    time are found from the rules (``explain_plan``). ``ways``: which of ``key`` and ``time`` may
    be taken, the preferred first. ``cells``: into how many pieces; the default is CELLS_A_CORE for
    each core, and fewer where the rules look far back. Where tasks read files, rules bound to a key
    that have a reach are cut by time even so if fewer rows are read then (``cuts``).

    ``types``: these composite types alone. ``on_bad``: whether rows that are no events (without
    time, with null or an infinite number in an attribute) are refused (BadEvent) or dropped with
    a warning that counts them; ``rejected`` shows them.

    ``reads_files``: whether workers may read Parquet files themselves, where a frame is nothing
    else and they read the same (``explain_plan``), which is several times as fast.

    The result has the columns ``type``, ``time``, ``source``, ``id``, ``cause`` (ids of the causes,
    terminator first; ``full_cause``: ``source#id``) and a struct of its attributes for each type;
    ``of_type`` makes a table of one type. Its rows are in no order, as in any DataFrame.

    The frames are read once, at once; what the rules need of them is kept on Spark's disks for as
    long as the result itself is (not what is made of it, for which they would be read again). Of
    Parquet files just what tells how to cut is read at once where tasks then read them themselves;
    a task that finds a file changed since raises FileChanged.
    Raises RuleErrors, SchemaError (a column that is missing or of another kind, by name), BadEvent
    and ValueError.
    """
    if on_bad not in ("refuse", "drop"):
        raise ValueError(f"on_bad is 'refuse' or 'drop', not {on_bad!r}")
    if cells is not None and cells < 1:
        raise ValueError(f"cells is at least 1, not {cells}")
    events, time, written = laid_out(events, layout, time, time_zone)
    ruleset = checked_rules(rules, events, time)
    splitting = split(ruleset, ways, partition_by)
    wanted = wanted_types(ruleset, types)
    frames, form = wide_parts(events, ruleset, time, written)
    session = frames[0].sparkSession
    verify_workers(session)
    if ways:
        warn_whole(splitting)
    warn_unordered(form)
    count = cells or CELLS_A_CORE * cores_of(session)
    portions = portions_of(splitting.passes, form, count)
    inputs = _inputs(events, frames, form, portions, time, reads_files=reads_files)
    direct = _directly(inputs, splitting.passes, form, wanted, cells, full_cause=full_cause)
    if direct is not None:
        seen, found = direct
        _judge(seen, on_bad)
        return found
    packed = functools.reduce(DataFrame.unionAll, [one.packed(portions, form) for one in inputs])
    blocks = packed.persist(StorageLevel.DISK_ONLY)
    try:
        with readable_errors():
            seen = look_at_blocks(blocks)
        _judge(seen, on_bad)
    except BaseException:
        blocks.unpersist()
        raise
    if not portions:
        blocks.unpersist()
        return session.createDataFrame([], spark_schema(wanted))
    bounds = [
        slices(part, seen.shares(portion.first, portion.buckets), count, exactly=cells is not None)
        for part, portion in zip(splitting.passes, portions, strict=True)
    ]
    times = seen.whole.times or (1, 0)
    tasks = tuple(
        Task(part, form, _cells(own), part.reach or 0, times[0], times[-1], wanted, full_cause)
        for part, own in zip(splitting.passes, bounds, strict=True)
    )
    reaches = [task.overlap for task, own in zip(tasks, bounds, strict=True) for _ in own]
    placed = in_cells(blocks, [one for own in bounds for one in own], reaches)
    work = Work.of(tasks)
    found = _handed_out(placed, work).mapInArrow(work, spark_schema(wanted))
    weakref.finalize(found, _forget, blocks).atexit = False
    return found


def explain_plan(
    events: Frames,
    rules: str | Path,
    partition_by: str | None = None,
    *,
    time: str = TIME,
    time_zone: str | None = None,
    layout: Layouts | None = None,
    ways: Sequence[str] = WAYS,
) -> str:
    """How ``detect`` would cut the events for each rule, and why: a line a rule; then a line for
    each frame that says whether the workers would read its files themselves, or why not.
    """
    events, time, written = laid_out(events, layout, time, time_zone)
    ruleset = checked_rules(rules, events, time)
    splitting = split(ruleset, ways, partition_by)
    passes = [
        f"pass {place}: {', '.join(sorted(part.owned))}"
        for place, part in enumerate(splitting.passes, 1)
    ]
    frames, form = wide_parts(events, ruleset, time, written)
    portions = portions_of(splitting.passes, form, 1)
    inputs = _inputs(events, frames, form, portions, time, reads_files=True)
    return "\n".join([str(splitting), *passes, *map(str, inputs)])


def rejected(
    events: Frames,
    rules: str | Path,
    *,
    time: str = TIME,
    time_zone: str | None = None,
    layout: Layouts | None = None,
) -> DataFrame:
    """The rows that are no events: ``reason``, ``type``, ``time`` in microseconds, ``source``,
    ``sequence``, ``id`` and, as text, ``data``, the attributes that are there.
    """
    events, time, written = laid_out(events, layout, time, time_zone)
    ruleset = checked_rules(rules, events, time)
    wide, form = wide_of(events, ruleset, time, written)
    data = f.to_json(
        f.struct(
            *(
                f.col(form.column(attribute)).alias(f"{attribute.name}")
                for attribute in {
                    one.name: one for type_ in form.types for one in type_.declared
                }.values()
            )
        )
    )
    return wide.where(f.col(BAD).isNotNull()).select(
        f.col(BAD).alias("reason"), TYPE, TIME, SOURCE, SEQUENCE, ID, data.alias("data")
    )


# --- packing and looking -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Input:
    """A frame of events, whose rows are all of type ``name`` (None: a column tells).

    ``wide``: the same in the form of all frames, with the columns that are wanted; ``scan``: how
    the workers read it themselves, or why they do not.
    """

    name: str | None
    wide: DataFrame
    scan: Scan | str

    def packed(self, portions: Sequence[Portion], form: Form) -> DataFrame:
        """The blocks and tallies of the frame."""
        packing = Packing(portions, self.name, form.has_sequence, ROWS_MIN)
        if isinstance(self.scan, Scan):
            return self.scan.packed(self.wide.sparkSession, packing, BLOCKS)
        return self.wide.mapInArrow(packing, BLOCKS)

    def __str__(self) -> str:
        name = "the frame" if self.name is None else f"the frame of {self.name}"
        if isinstance(self.scan, str):
            return f"{name}: read by Spark, for {self.scan}"
        files = "1 Parquet file" if self.scan.files == 1 else f"{self.scan.files} Parquet files"
        return f"{name}: {files}, read by the workers themselves"


def _inputs(
    events: Frames,
    frames: Sequence[DataFrame],
    form: Form,
    portions: Sequence[Portion],
    time: str,
    *,
    reads_files: bool,
) -> list[_Input]:
    """The given frames with their wide ones."""
    names = [*events] if isinstance(events, Mapping) else [None]
    given = [*events.values()] if isinstance(events, Mapping) else [events]
    inputs = []
    for name, frame, whole in zip(names, given, frames, strict=True):
        if not form.has_sequence:
            whole = whole.withColumn(DIGEST, own_digest(form))
        columns = columns_of(form, portions, name)
        if name is not None and SOURCE not in frame.columns:
            columns.remove(SOURCE)
        scan = scan_of(frame, form, name, columns, time) if reads_files else "that was asked for"
        inputs.append(_Input(name, whole.select(columns), scan))
    return inputs


def _directly(
    inputs: Sequence[_Input],
    passes: Sequence[Pass],
    form: Form,
    wanted: Sequence[EventType],
    cells: int | None,
    *,
    full_cause: bool,
) -> tuple[Look, DataFrame] | None:
    """A look into the files of all frames, if these are scans, and the results of tasks that read
    them themselves, if that is the better way.
    """
    scans = [one.scan for one in inputs if isinstance(one.scan, Scan)]
    session = inputs[0].wide.sparkSession
    cores = cores_of(session)
    portions = portions_of(passes, form, cells or cores)
    if not portions or len(scans) < len(inputs) or not all(map(may_be_cut, passes, portions)):
        return None
    packings = [Packing(portions, one.name, True, ROWS_MIN) for one in inputs]
    files, tasks = Files.of(scans, packings)
    if not tasks:
        return None
    with readable_errors():
        seen, spans = look_at_files(session, FileLook(files.for_a_look(), tasks))
    first, *_, last = seen.whole.times or (1, 0)
    plain = [
        (part, Task(part, form, (), part.reach or 0, first, last, (*wanted,), full_cause))
        for part in passes
    ]
    count = cells or CELLS_A_CORE * cores
    work = work_of(files, plain, portions, spans, count, exactly=cells is not None)
    return None if work is None else (seen, work.found(session, spark_schema(wanted)))


def _judge(seen: Look, on_bad: OnBad) -> None:
    if on_bad == "refuse":
        seen.refuse_bad()
    elif seen.bad:
        warnings.warn(f"{seen.told()}: left out", stacklevel=3)


def _forget(blocks: DataFrame) -> None:
    # The session may have been stopped by now, and its blocks are gone with it.
    with contextlib.suppress(Exception):
        blocks.unpersist()


# --- running -------------------------------------------------------------------------------------


def _cells(bounds: Sequence[Sequence[int]]) -> tuple[Cell, ...]:
    return tuple(cell for own in bounds for cell in cells_of(own))


def _handed_out(placed: DataFrame, work: Work) -> DataFrame:
    """Blocks with the cells that need them, as their tasks are to get them."""
    rows = placed.select(CELL, FIRST, EVENTS)
    for first, task in work.tasks:
        if any(uses_timer(one) for rule in task.part.rules.rules for one in variants(rule)):
            rows = rows.unionAll(_markers(rows, first, len(task.cells)))
    return rows.repartitionById(work.cells, f.col(CELL)).sortWithinPartitions(FIRST)


def _markers(rows: DataFrame, first: int, cells: int) -> DataFrame:
    """A row without events for each cell, before all others, so that every cell has a task."""
    return rows.sparkSession.range(first, first + cells).select(
        f.col("id").cast("int").alias(CELL),
        f.lit(TIME_MIN).alias(FIRST),
        f.lit(None).cast("binary").alias(EVENTS),
    )

"""``publish``: recorded events to a broker in order of time, by several tasks at once.

Law 1: the frames are cut into ranges of time, each of which one task publishes in order, as a part
of the source. Before the first of them starts, every part has promised where its range begins; so
no rule goes on over a range that no task has begun, nothing is late, and tasks may start whenever
they like. The first ranges are begun first, so that the slowest part is always at work.

Law 2: rows that bear sequence numbers are the events that ``detect`` takes them for, of the same
sources and ids; so a rule finds the same, down to the order of simultaneous ones (tesla.md E4).

Law 3: other rows are events of one source. A row's name follows from the row: its ``id``, which
names it among those of its own source (E1), whose name goes before it where there may be several;
else what it holds, with a number among those that hold the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from time import time as time_now

from pyspark.sql import DataFrame, functions as f

from broker.spark import frames as forms
from broker.spark.cells import CELL, bounds_of, slice_of
from broker.spark.environment import cores_of, verify_workers
from broker.spark.errors import readable_errors
from broker.spark.frames import BAD, ID, SEQUENCE, SOURCE, TIME, Form
from broker.spark.identity import numbered_by, own_digest
from broker.spark.layouts import Layouts, laid_out
from broker.spark.look import look
from broker.spark.options import WriteOptions, default_source
from broker.spark.source import register
from broker.spark.target import Target, text_of
from matcher.model import EventType

PARTS_A_CORE = 2
"""So many ranges for each core."""


@dataclass(frozen=True)
class Published:
    """The result of publishing, or of a trial (``dry_run``): ``events``, in so many ``parts``;
    ``rejected`` holds the rows that are no events, with the ``reason``; ``reasons`` counts them, by
    type too.
    """

    events: int
    parts: int
    reasons: Mapping[tuple[str, str], int]
    rejected: DataFrame


def publish(
    events: Mapping[str, DataFrame],
    broker: str = "",
    *,
    source: str = "",
    types: Collection[EventType] = (),
    time: str = TIME,
    time_zone: str | None = None,
    layout: Layouts | None = None,
    on_bad: str = "refuse",
    parts: int | None = None,
    acks: str = "broker",
    timeout: str = "30 s",
    speed: float | None = None,
    dry_run: bool = False,
    key: str = "",
    server_key: str = "",
) -> Published:
    """Publish frames of events, one a type, in order of time.

    ``source``: the name under which all are published (default: ``spark/`` and the types). Rows
    with a ``sequence`` are events of the source that the row names (without a column ``source``: of
    their type's name); others of this one.

    ``layout`` (in place of ``time`` and ``time_zone``): what columns mean, as of ``detect``.

    ``broker``: endpoints, separated by commas (default: REXMQ_BROKER). ``key`` and ``server_key``:
    as the options of the data source (default: those of the environment). ``types``: the schemas of
    types whose attributes are not just what the columns say. Rows that are no events are refused
    (BadEvent), or with ``on_bad="drop"`` left out; they are in the result either way. ``parts``:
    into how many ranges of time; ``speed``: so many seconds of event time a second, else as fast as
    it goes; ``dry_run``: send nothing.

    Raises SchemaError, BadEvent, BrokerUnreachable, and SparkFailed for what a task could not do.
    """
    if on_bad not in ("refuse", "drop"):
        raise ValueError(f"on_bad is 'refuse' or 'drop', not {on_bad!r}")
    if not events:
        raise ValueError("no frame of events is given")
    frames, time, times = laid_out(events, layout, time, time_zone)
    assert isinstance(frames, Mapping)
    verify_workers(next(iter(frames.values())).sparkSession)
    given = {event_type.name: event_type for event_type in types}
    schemas = [given.get(name) or forms.inferred(name, frames[name], time) for name in events]
    wide, form = forms.wide(frames, schemas, time=time, times=times)
    seen = look(wide)
    if on_bad == "refuse" and not dry_run:
        seen.refuse_bad()
    session = wide.sparkSession
    count = parts or PARTS_A_CORE * cores_of(session)
    bounds = bounds_of(seen.whole.times, count)
    bad = wide.where(f.col(BAD).isNotNull()).withColumnRenamed(BAD, "reason")
    report = Published(seen.whole.count, len(bounds) + 1, seen.bad, bad)
    if dry_run or not seen.whole.count:
        return report
    if speed is not None and not 0.0 < speed < float("inf"):
        raise ValueError(f"speed is a positive number, not {speed!r}")
    options = {
        "broker": broker,
        "source": source or default_source(events),
        "order": "time",
        "acks": acks,
        "timeout": timeout,
        "form": text_of(form),
        "key": key,
        "serverKey": server_key,
    }
    if speed is not None:
        options |= {"speed": str(speed), "origin": f"{seen.whole.times[0]}@{time_now()}"}
    good = _named(wide.where(f.col(BAD).isNull()).drop(BAD), form)
    ranges = good.withColumn(CELL, slice_of(f.col(TIME), bounds))
    ordered = ranges.repartitionById(len(bounds) + 1, f.col(CELL)).sortWithinPartitions(TIME)
    register(session)
    _promise(Target.of(WriteOptions.of(options), ordered.schema), [seen.whole.times[0], *bounds])
    with readable_errors():
        ordered.drop(CELL).write.format("rexmq").options(**options).mode("append").save()
    return report


def _promise(target: Target, starts: list[int]) -> None:
    """Let every part promise where its range begins.

    The first one joins before the others and promises after them: until then nothing goes on, and
    no part finds that the others' events were evaluated before it came.
    """
    target.hold(0)
    for part, start in enumerate(starts[1:], 1):
        target.hold(part, start)
    target.hold(0, starts[0])


def _named(frame: DataFrame, form: Form) -> DataFrame:
    """The frame with an id in every row (Laws 2 and 3)."""
    own = f.nullif(f.col(ID), f.lit(""))
    if form.has_sequence:
        return frame.withColumn(ID, f.coalesce(own, f.col(SEQUENCE).cast("string")))
    if form.has_source or len(form.types) > 1:  # a source without a name is called like the type
        own = f.concat(f.col(SOURCE), f.lit("#"), own)
    made = numbered_by(frame.withColumn(ID, own), own_digest(form), "made")
    return made.withColumn(ID, f.coalesce(ID, "made")).drop("made")

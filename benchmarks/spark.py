"""Spark: rows a second into a broker, and what ``detect`` costs beside the bare engine.

    rexmq bench spark [--quick]
    python -m benchmarks.spark --rows 10000000 --growth 100000 1000000 10000000 100000000

The first takes a million rows, and a tenth and a hundredth of them for growth; quick, it takes
20,000, and no others. The second takes what it is told; 10^8 rows need 3 GB of disk for themselves,
and twice as much again to be packed and shuffled.

Each figure with a number of cores is taken in a process of its own, with a session of its own, and
after a first run that is not counted. Rows have six columns and lie in Parquet. What is measured
is the wall clock, for the work is spread over Java's and Python's processes; a figure from a busy
machine tells about the machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.apart import Outcome, outcome_of
from benchmarks.report import Row, seconds_of, table
from benchmarks.spark_log import LOGGED, used
from benchmarks.spark_processor import processor_s, spent

RULES = """
event Reading(area: string, room: int, value: float, dry: bool)
"""
RULE = """
rule jump{0}: define Jump{0}(area: string, before: float, after: float)
from Reading(area = $a, value > 0.9{0}) as Now and
     last Reading(area = $a, value < 0.0{0}) as Before within {1} min from Now and
     not Reading(area = $a, dry = true, value > 0.99) between Before and Now
where area = $a, before = Before.value, after = Now.value
"""
KEY = "pmod(xxhash64(id), 1000)"
PACE_US = 100_000
"""The time between two rows, in microseconds."""
timed = partial(seconds_of, repeats=2)
"""Starting costs too much for more."""


def rules(count: int) -> str:
    return RULES + "".join(RULE.format(n, 5 + n) for n in range(1, count + 1))


def record(session: Any, rows: int, path: str, key: str = KEY) -> Any:
    """Readings, a function of their numbers alone, in Parquet; gives the frame that reads it.
    ``key``: the number of an event's area, in SQL.
    """
    made = session.range(0, rows, 1, 8).selectExpr(
        f"timestamp_micros(id * {PACE_US}) as time",
        f"concat('area', {key}) as area",
        "pmod(xxhash64(id, 1), 40) as room",
        "pmod(xxhash64(id, 2), 1000000) / 1000000 as value",
        "pmod(xxhash64(id, 3), 10) = 0 as dry",
        "'gate' as source",
        "id as sequence",
    )
    made.write.mode("overwrite").parquet(path)
    return session.read.parquet(path)


# --- what is measured --------------------------------------------------------------------------


def detection(session: Any, rows: int, folder: str) -> dict[str, float]:
    from broker.spark import detect

    frame = record(session, rows, f"{folder}/readings")
    text = rules(10)
    found = {}
    for way in ("key", "time"):
        count = 0

        def work(way: str = way) -> None:
            nonlocal count
            count = detect({"Reading": frame}, text, ways=(way,)).count()

        found[f"by {way}, s"] = timed(work)
        for who, seconds in spent(session, work).items():
            found[f"by {way}, processor time of {who}, s"] = round(seconds, 2)
        found["composite events"] = count
    return found


def growth(session: Any, rows: int, folder: str) -> dict[str, float]:
    """By key alone, for its own sake: the first run is counted too, as it is of a long one."""
    from broker.spark import detect

    frame = record(session, rows, f"{folder}/readings")
    begun = time.perf_counter()
    count = detect({"Reading": frame}, rules(10), ways=("key",)).count()
    return {"seconds": time.perf_counter() - begun, "composite events": count}


def backtest(session: Any, rows: int, folder: str) -> dict[str, float]:
    """The flights rules over the year's events; ``rows`` means nothing here."""
    import importlib
    import sys

    from broker.demo.flights import data_folder
    from broker.spark import detect

    # The modules of the pipeline find one another beside themselves.
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "pipeline"))
    pipeline = importlib.import_module("flights")
    pipeline.make_events(session, data_folder(), Path(folder))
    events = pipeline.read_events(session, Path(folder))
    count = sum(frame.count() for frame in events.values())
    seconds = timed(lambda: detect(events, pipeline.RULES).count(), repeats=1)
    return {"the flights rules over the year, s": seconds, "events": count}


def stream_detection(session: Any, rows: int, folder: str) -> dict[str, float]:
    """``detect_stream`` over a file a micro-batch; starts and state stores are part of it."""
    from broker.spark import detect_stream

    frame = record(session, rows, f"{folder}/readings")

    def work() -> None:
        stream = session.readStream.schema(frame.schema).option("maxFilesPerTrigger", 2)
        readings = {"Reading": stream.parquet(f"{folder}/readings")}
        found = detect_stream(readings, rules(10), disorder=f"{rows * PACE_US // 10**6} s")
        with tempfile.TemporaryDirectory() as place:
            writer = found.writeStream.format("noop").option("checkpointLocation", place)
            writer.trigger(availableNow=True).start().awaitTermination()

    return {"detect_stream, rows/s": rows / timed(work, repeats=1)}


def bare(session: Any, rows: int, folder: str) -> dict[str, float]:
    """The engine alone, in one thread, over the same events in memory."""
    import pyarrow.parquet as pq

    import rules as tesla
    from matcher.formats.intake import Intake, Place
    from matcher.formats.tabular import from_arrow
    from matcher.model import TIME_MAX
    from rules.engine import make

    record(session, rows, f"{folder}/readings")
    checked = tesla.load(rules(10))
    intake = Intake(checked.schemas)
    table = pq.read_table(f"{folder}/readings").sort_by("sequence")
    batches = [
        from_arrow(piece, Place("readings", ""), intake, "Reading")
        for piece in table.combine_chunks().to_batches(65_536)
    ]
    count = 0

    def work() -> None:
        nonlocal count
        engine = make("auto")
        engine.deploy(checked)
        count = 0
        for batch in batches:
            engine.push(batch)
            count += len(engine.advance(int(batch.time[-1])))
        count += len(engine.advance(TIME_MAX))

    return {"bare engine, s": timed(work), "composite events": count}


def connector(session: Any, rows: int, folder: str) -> dict[str, float]:
    """Into a broker with nobody to hear of it; every run under another source."""
    from broker.process import BrokerProcess
    from broker.spark import register

    register(session)
    frame = record(session, rows, f"{folder}/readings").drop("source")
    number = 0
    with BrokerProcess() as broker:
        common = {"broker": broker.endpoint, "type": "Reading"}

        def batch(**options: str) -> None:
            nonlocal number
            number += 1
            writer = frame.write.format("rexmq").options(**common, **options)
            writer.option("source", f"batch{number}").mode("append").save()

        def stream() -> None:
            nonlocal number
            number += 1
            rows = session.readStream.schema(frame.schema).parquet(f"{folder}/readings")
            writer = rows.writeStream.format("rexmq").options(**common, id="sequence")
            writer = writer.option("source", f"stream{number}").option("disorder", "0 s")
            place = f"{folder}/checkpoint{number}"
            query = writer.option("checkpointLocation", place).trigger(availableNow=True)
            query.start().awaitTermination()

        return {
            "batch, ids from a column, rows/s": rows / timed(lambda: batch(id="sequence")),
            "batch, ids from the content, rows/s": rows / timed(batch),
            "stream, rows/s": rows / timed(stream),
        }


def delivery(session: Any, rows: int, folder: str) -> dict[str, float]:
    """Processor time of what one task and the broker do for a row, without Java: microseconds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from broker.process import BrokerProcess
    from broker.spark.delivery import Delivery
    from broker.spark.outgoing import PlainRows
    from routing.names import part_name
    from rules.language import load

    record(session, rows, f"{folder}/readings")
    (event_type,) = load(RULES).schemas.values()
    table = pq.read_table(f"{folder}/readings").sort_by("sequence").drop_columns("source")
    instants = table.column("time").cast(pa.timestamp("us", "UTC"))  # as Spark hands them over
    table = table.set_column(0, "time", instants)
    batches = table.combine_chunks().to_batches(65_536)
    found = {}
    for name, ids in (("a column", ("sequence",)), ("the content", ())):
        with BrokerProcess() as broker:
            sender = Delivery(
                [broker.endpoint],
                part_name("bench", 0),
                [event_type],
                acks="broker",
                batch_events=4_096,
                timeout_s=30.0,
            )
            reader = PlainRows(event_type, "time", ids, skip_bad=False)
            begun, broker_begun = time.process_time(), processor_s(broker.child.pid)
            for batch in batches:
                sender.send(reader.read(batch))
            sender.finish()
            task_s = time.process_time() - begun
            found[f"task, ids from {name}, us/row"] = task_s / rows * 1e6
            broker_s = processor_s(broker.child.pid) - broker_begun
            found[f"broker, ids from {name}, us/row"] = broker_s / rows * 1e6
    return found


DELIVERED = tuple(
    f"{who}, ids from {what}, us/row"
    for what in ("a column", "the content")
    for who in ("task", "broker")
)
CONNECTED = {
    "batch, ids from a column, rows/s": 800e3,
    "batch, ids from the content, rows/s": None,
    "stream, rows/s": 500e3,
}
"""What ``delivery`` and ``connector`` measure; of these, with the goals."""


# --- running -----------------------------------------------------------------------------------

MEASURES = {
    "detection": detection,
    "growth": growth,
    "backtest": backtest,
    "stream": stream_detection,
    "bare": bare,
    "connector": connector,
    "delivery": delivery,
}


def measure(name: str, cores: int, rows: int) -> None:
    """In a process of its own: print the figures as JSON."""
    warnings.simplefilter("ignore")
    from broker.spark import local_session

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        log.mkdir()
        session = local_session(cores, "3g", {**LOGGED, "spark.eventLog.dir": log.as_uri()})
        session.sparkContext.setLogLevel("OFF")
        figures = MEASURES[name](session, rows, folder)
        session.stop()
        print(json.dumps({**figures, **used(log)}))


def apart(name: str, cores: int, rows: int) -> Outcome:
    return outcome_of(
        "benchmarks.spark", ["--measure", name, "--cores", str(cores), "--rows", str(rows)]
    )


def run(quick: bool) -> Iterator[Row]:
    """The figures; none where Spark cannot run."""
    from broker.spark.environment import missing

    reason = missing()
    if reason is not None:
        print(f"rexmq: spark is left out: {reason}", file=sys.stderr)
        return
    if quick:
        yield from rows_of(20_000, (20_000,))
    else:
        yield from rows_of(1_000_000, (10_000, 100_000, 1_000_000))


def rows_of(rows: int, sizes: Sequence[int]) -> Iterator[Row]:
    """The figures at so many rows, and how they grow over ``sizes``."""
    alone = apart("bare", 1, rows)
    yield alone.row("the bare engine", "bare engine, s", "s")
    bare_s = alone.figures.get("bare engine, s")
    one, two = (apart("detection", cores, rows) for cores in (1, 2))
    for way in ("by key, s", "by time, s"):
        name = f"detect {way[:-3]}"
        yield one.row(f"{name}, one core", way, "s", "the bare engine", bare_s)
        yield two.row(f"{name}, two cores", way, "s", "one core", one.figures.get(way))
    yield from growing(sizes)
    year = apart("backtest", 2, 0)
    note = f"{round(year.figures['events'])} events" if year.figures else ""
    figure = "the flights rules over the year, s"
    yield year.row(figure.removesuffix(", s"), figure, "s", note=note)
    streamed = apart("stream", 2, rows)
    yield streamed.row("detect_stream, two cores", "detect_stream, rows/s", "rows/s")
    delivered = apart("delivery", 1, rows)
    for figure in DELIVERED:
        yield delivered.row(figure.removesuffix(", us/row"), figure, "us/row")
    connected = apart("connector", 2, rows)
    for figure, goal in CONNECTED.items():
        name = figure.removesuffix(", rows/s")
        yield connected.row(name, figure, "rows/s", "the goal" if goal else "", goal)


def growing(sizes: Sequence[int]) -> Iterator[Row]:
    """Seconds of ``detect`` by key on two cores, each size beside the one before; the rows, shuffle
    and memory that it took are in the note.
    """
    before: tuple[str, float | None] = ("", None)
    for size in sizes:
        one = apart("growth", 2, size)
        note = ""
        if one.figures:
            note = (
                f"{one.figures['shuffled, bytes'] / size:.0f} B/row shuffled, "
                f"workers {one.figures['workers, bytes'] / 2**20:.0f} MiB"
            )
        name = f"{size} rows"
        yield one.row(f"detect by key, {name}", "seconds", "s", *before, note)
        before = (name, one.figures.get("seconds"))


def main() -> None:
    """Everything at a chosen size, or one measurement in this process (run by ``apart``)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", choices=sorted(MEASURES))
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--growth", type=int, nargs="*", default=[])
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.cores, arguments.rows)
    else:
        found = []
        try:
            for row in rows_of(arguments.rows, arguments.growth):
                print(row.name, "failed" if row.value is None else row.value, file=sys.stderr)
                found.append(row)
        finally:
            print(table(found))
        sys.exit(any(row.value is None for row in found))


if __name__ == "__main__":
    main()

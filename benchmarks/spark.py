"""Spark: rows a second into a broker, and what ``detect`` costs beside the bare engine.

    rexmq bench spark [--quick]

Each figure with a number of cores is taken in a process of its own, with a session of its own, and
after a first run that is not counted. Rows have six columns and lie in Parquet. What is measured
is the wall clock, for the work is spread over Java's and Python's processes; a figure from a busy
machine tells about the machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

from benchmarks.report import Row

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
AREAS = 1_000
PACE_US = 100_000
"""The time between two rows, in microseconds."""


def rules(count: int) -> str:
    return RULES + "".join(RULE.format(n, 5 + n) for n in range(1, count + 1))


def record(session: Any, rows: int, path: str) -> Any:
    """Readings, a function of their numbers alone, in Parquet; gives the frame that reads it."""
    made = session.range(0, rows, 1, 8).selectExpr(
        f"timestamp_micros(id * {PACE_US}) as time",
        f"concat('area', pmod(xxhash64(id), {AREAS})) as area",
        "pmod(xxhash64(id, 1), 40) as room",
        "pmod(xxhash64(id, 2), 1000000) / 1000000 as value",
        "pmod(xxhash64(id, 3), 10) = 0 as dry",
        "'gate' as source",
        "id as sequence",
    )
    made.write.mode("overwrite").parquet(path)
    return session.read.parquet(path)


def timed(work: Callable[[], object], runs: int = 2) -> float:
    """The seconds of the best of so many runs, after one that is not counted."""
    work()
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


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
        found["composite events"] = count
    return found


def bare(session: Any, rows: int, folder: str) -> dict[str, float]:
    """The engine alone, in one thread, over the same events in memory."""
    import pyarrow.parquet as pq

    import rules as tesla
    from matcher.intake import Intake, Place
    from matcher.model import TIME_MAX
    from matcher.tabular import from_arrow
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


# --- running -----------------------------------------------------------------------------------

MEASURES = {"detection": detection, "bare": bare, "connector": connector}


def measure(name: str, cores: int, rows: int) -> None:
    """In a process of its own: print the figures as JSON."""
    warnings.simplefilter("ignore")
    from broker.spark import local_session

    session = local_session(cores, "3g")
    session.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(MEASURES[name](session, rows, folder)))
    session.stop()


def apart(name: str, cores: int, rows: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.spark", "--measure", name]
    command += ["--cores", str(cores), "--rows", str(rows)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(quick: bool) -> list[Row]:
    """The figures; none where Spark cannot run."""
    from broker.spark.environment import missing

    reason = missing()
    if reason is not None:
        print(f"rexmq: spark is left out: {reason}", file=sys.stderr)
        return []
    return rows_of(20_000 if quick else 1_000_000)


def rows_of(rows: int) -> list[Row]:
    alone = apart("bare", 1, rows)["bare engine, s"]
    one, two = (apart("detection", cores, rows) for cores in (1, 2))
    found = []
    for way in ("by key, s", "by time, s"):
        name = f"detect {way[:-3]}"
        found.append(Row(f"{name}, one core", one[way], "s", "the bare engine", alone))
        found.append(Row(f"{name}, two cores", two[way], "s", "one core", one[way]))
    for size in (rows // 100, rows // 10):
        seconds = apart("detection", 2, size)["by key, s"]
        found.append(
            Row(f"detect by key, {size} rows", seconds, "s", f"{rows} rows", two["by key, s"])
        )
    goals = {"batch, ids from a column, rows/s": 800e3, "stream, rows/s": 500e3}
    for name, rate in apart("connector", 2, rows).items():
        goal = goals.get(name)
        found.append(
            Row(name.removesuffix(", rows/s"), rate, "rows/s", "the goal" if goal else "", goal)
        )
    return found


def main() -> None:
    """One measurement, in this process (run by ``apart``)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", choices=sorted(MEASURES), required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    arguments = parser.parse_args()
    measure(arguments.measure, arguments.cores, arguments.rows)


if __name__ == "__main__":
    main()

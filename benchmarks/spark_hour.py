"""An hour of ``detect_stream`` with a million keys: does its state stay flat, does it keep up?

    python -m benchmarks.campaign spark_hour [--minutes 60] [--keys 1000000] [--rate 3000]

Files of readings are written every five seconds, of keys in no order; one query runs the rule of
``benchmarks.spark_scale`` over them, a micro-batch each half minute, with a window of twenty
minutes. A third of the way its driver is killed, at two thirds it is stopped; it goes on from its
checkpoint each time. A line for each minute: seconds and rows of the last micro-batch, the state
as Spark counts it, the checkpoint on the disk, memory of Java and of Python's workers.

At the end ``detect_remaining`` gives what still waits, and all that was found is compared with
``detect`` over the files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from typer import Option

from benchmarks.campaign import Outcome, faults_of
from benchmarks.processes import resident_mib
from benchmarks.spark_kill import Files
from benchmarks.spark_scale import SWING, WITHIN_S

LOT_S, TRIGGER, DISORDER = 5, "30 seconds", "10 s"
RULE = SWING.replace(f"{WITHIN_S} s", "20 min")
SCHEMA = "time timestamp, area string, room long, value double, dry boolean, sequence long"


class Readings(Files):
    """Files of readings of so many keys, in no order."""

    def __init__(self, folder: Path, rate: int, keys: int) -> None:
        super().__init__(folder, rate, LOT_S)
        self._rate, self._keys = rate, keys
        self._random = np.random.default_rng(1)

    def table_of(self, numbers: range) -> pa.Table:
        """The readings of these numbers; their times keep to the rate."""
        sequence, rows = np.arange(numbers.start, numbers.stop), len(numbers)
        times = pa.array(sequence * (10**6 // self._rate)).view(pa.timestamp("us", "UTC"))
        areas = self._random.integers(0, self._keys, rows)
        return pa.table(
            {
                "time": times,
                "area": pa.array([f"area{area}" for area in areas.tolist()]),
                "room": sequence % 40,
                "value": self._random.random(rows),
                "dry": np.zeros(rows, bool),
                "sequence": sequence,
            }
        )


def streamed(session: Any, folder: Path, **trigger: Any) -> Any:
    """The query, begun or gone on with."""
    from broker.spark import detect_stream

    warnings.simplefilter("ignore")
    rows = session.readStream.schema(SCHEMA).parquet(str(folder / "in"))
    found = detect_stream({"Reading": rows}, RULE, disorder=DISORDER)
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "to"))
    return writer.trigger(**trigger).start(str(folder / "out"))


def drive(folder: Path) -> None:
    """Run the query for ever, or until a file ``stop`` is there; its progress goes to a file."""
    from broker.spark import local_session

    session = local_session(2, "3g")
    session.sparkContext.setLogLevel("OFF")
    query = streamed(session, folder, processingTime=TRIGGER)
    while query.isActive and not (folder / "stop").exists():
        if query.lastProgress:
            (folder / "progress.new").write_text(query.lastProgress.json)
            (folder / "progress.new").rename(folder / "progress")
        time.sleep(2)
    query.stop()
    session.stop()


def started(folder: Path) -> subprocess.Popen[bytes]:
    (folder / "stop").unlink(missing_ok=True)
    log = (folder / "driver.log").open("a")
    command = [sys.executable, "-m", "benchmarks.spark_hour", str(folder)]
    return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def stopped(folder: Path, driver: subprocess.Popen[bytes]) -> None:
    """Let the query end behind a micro-batch."""
    (folder / "stop").touch()
    driver.wait()


def told(folder: Path, process: int, written: int) -> str:
    """The line of a minute."""
    path = folder / "progress"
    progress = json.loads(path.read_text()) if path.exists() else {}
    states = progress.get("stateOperators") or [{}]
    seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1e3
    disk = sum(file.stat().st_size for file in present(folder / "to"))
    java, python = memory_of(process)
    return (
        f"batch {progress.get('batchId', '-')}: {seconds:.1f} s for "
        f"{progress.get('numInputRows', 0):,} rows; {written:,} written; "
        f"state {states[0].get('numRowsTotal', 0):,} rows, "
        f"{states[0].get('memoryUsedBytes', 0) / 2**20:.0f} MiB; "
        f"checkpoint {disk / 2**20:.0f} MiB; "
        f"Java {java:.0f} MiB, Python {python:.0f} MiB; load {os.getloadavg()[0]:.1f}"
    )


def present(folder: Path) -> Iterator[Path]:
    """The files below a folder that are still there when they are looked at."""
    for place, _, names in os.walk(folder):
        yield from (path for name in names if (path := Path(place, name)).exists())


def memory_of(session: int) -> tuple[float, float]:
    """Resident memory of the Java and the Python processes of a session of processes, in MiB."""
    memory = {True: 0.0, False: 0.0}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended since
            if os.getsid(int(path.name)) == session:
                is_java = "java" in (path / "comm").read_text()
                memory[is_java] += resident_mib(int(path.name))
    return memory[True], memory[False]


def compared(folder: Path) -> tuple[int, int, int]:
    """How many composite events there are, were lost or wrong, and came twice."""
    from broker.spark import detect, detect_remaining, local_session

    session = local_session(2, "3g")
    session.sparkContext.setLogLevel("OFF")
    streamed(session, folder, availableNow=True).awaitTermination()
    rows = session.read.schema(SCHEMA).parquet(str(folder / "in"))
    whole = detect({"Reading": rows}, RULE)
    stream = session.readStream.schema(SCHEMA).parquet(str(folder / "in"))
    rest = detect_remaining({"Reading": stream}, RULE, folder / "to")
    ours = session.read.parquet(str(folder / "out")).unionByName(rest)
    counts = {row["id"]: row["count"] for row in ours.groupBy("id").count().collect()}
    ids = {row["id"] for row in whole.select("id").collect()}
    session.stop()
    return len(ids), len(ids ^ counts.keys()), sum(count > 1 for count in counts.values())


def campaign(
    folder: Path,
    minutes: int = 60,
    keys: int = 1_000_000,
    rate: Annotated[int, Option(help="Readings a second.")] = 3_000,
) -> Iterator[Outcome]:
    """One hour."""
    (folder / "in").mkdir()
    files = Readings(folder / "in", rate, keys)
    files.start()
    driver = started(folder)
    for minute in range(1, minutes + 1):
        time.sleep(60)
        print(f"{minute:>3} min: {told(folder, driver.pid, files.count)}", flush=True)
        if minute == minutes // 3:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
            print("the driver is killed, and started again", flush=True)
            driver = started(folder)
        elif minute == 2 * minutes // 3:
            stopped(folder, driver)
            print("the query is stopped, and started again", flush=True)
            driver = started(folder)
    files.end()
    stopped(folder, driver)
    count, wrong, twice = compared(folder)
    said = f"{files.count:,} readings; {count:,} composite events"
    yield Outcome(said, faults_of({"lost or wrong": wrong, "twice": twice}))


if __name__ == "__main__":
    drive(Path(sys.argv[1]))

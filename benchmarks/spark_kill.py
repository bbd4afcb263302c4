"""Kills at random moments while Spark streams to a broker and from it: what is lost, what is twice?

    python -m benchmarks.campaign spark_kill [--kills 30] [--rate 200] [--master local[2,4]]

Files of readings are written all the time. One stream of Spark writes them to a broker with a
store, another reads the log of the broker and writes a table. One kill (SIGKILL) follows another,
in turns: of Spark's driver with its Java, of a process that runs tasks, of the broker; each is
started again, and so is a stream that has ended. With ``--master local-cluster[2,1,1024]`` tasks
run in Java processes of their own, which are killed too.

At the end the readings in the broker's log and in the table are compared with those of the files:
``lost`` never came, ``twice`` came more than once. A line for each kill, then the outcome.
Faults: anything that is lost or twice.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from typer import Option

from benchmarks import campaign as campaigns
from benchmarks.faults import GIVEN_UP_S, QUIET_S, Pace
from benchmarks.servers import free_port
from broker.process import BrokerProcess
from broker.store import Reader
from broker.store.entries import message_of

LOT_S = 1.0
"""Seconds of readings that are written as one file."""
PACE = Pace(calm=(3.0, 9.0), dead=(0.0, 2.0))
WORKS = ("broker.spark.daemon", "CoarseGrainedExecutorBackend")
"""Words in the commands of processes that run tasks."""
LOST_MAX_S = 6 * GIVEN_UP_S
"""Java and Spark start anew within so many seconds, on a busy machine too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a campaign has found: counts of readings."""

    kills: int
    written: int
    lost: dict[str, int]
    twice: dict[str, int]

    def __str__(self) -> str:
        found = "; ".join(
            f"{place}: {self.lost[place]} lost, {self.twice[place]} twice" for place in self.lost
        )
        return f"{self.kills} kills; {self.written} readings; {found}"


class Files(campaigns.Worker):
    """Files of readings, one each ``lot_s`` seconds; ``count`` readings are written."""

    def __init__(self, folder: Path, rate: float, lot_s: float = LOT_S) -> None:
        super().__init__()
        self._folder, self._lot_s, self._lot = folder, lot_s, max(1, round(rate * lot_s))
        self.count = 0

    def run(self) -> None:
        """Keep to the rate by the clock."""
        due = time.monotonic() + self._lot_s
        while not self.ending.wait(max(0.0, due - time.monotonic())):
            due += self._lot_s
            table = self.table_of(range(self.count, self.count + self._lot))
            whole = self._folder.parent / "whole.parquet"
            pq.write_table(table, whole)
            whole.rename(self._folder / f"{self.count:09}.parquet")
            self.count += self._lot

    def table_of(self, numbers: range) -> pa.Table:
        """The readings of these numbers."""
        return pa.table({"time": [number / 100 for number in numbers], "number": numbers})


class Streams:
    """Spark's driver, a broker and what both make, each of which can be killed."""

    def __init__(self, folder: Path, master: str, seed: int) -> None:
        self._folder, self._master, self._random = folder, master, random.Random(seed)
        self._read: dict[str, list[int]] = {}
        """The readings in each file of the table, which is written once."""
        (folder / "in").mkdir()
        self._endpoint = f"tcp://127.0.0.1:{free_port()}"
        self._broker = self._started()
        self._driver = self._driving()
        self.kinds = {
            "driver": self._kill_driver,
            "worker": self._kill_worker,
            "broker": self._kill_broker,
        }

    def run(self, kills: int, rate: float) -> Outcome:
        """Write files while so many kills happen, and compare."""
        files = Files(self._folder / "in", rate)
        files.start()
        try:
            self._kill(files, kills)
        finally:
            files.end()
        self._until_quiet(files.count)
        self.close()
        counts = {"broker": Counter(self._in_log()), "table": Counter(self._in_table())}
        written = range(files.count)
        return Outcome(
            kills,
            files.count,
            {place: len(set(written) - own.keys()) for place, own in counts.items()},
            {place: sum(n > 1 for n in own.values()) for place, own in counts.items()},
        )

    def _kill(self, files: Files, kills: int) -> None:
        self._until_more(files)
        for number in range(1, kills + 1):
            time.sleep(self._random.uniform(*PACE.calm))
            kind = [*self.kinds][number % len(self.kinds)]
            self.kinds[kind]()
            waited_s = self._until_more(files)
            print(f"{number:>4}  kill {kind:<8}goes on after {waited_s:5.1f} s", flush=True)

    def close(self) -> None:
        """End the processes."""
        self._end_driver()
        self._broker.kill()

    # --- kills ---

    def _dead(self) -> None:
        time.sleep(self._random.uniform(*PACE.dead))

    def _end_driver(self) -> None:
        if self._driver.poll() is None:
            os.killpg(self._driver.pid, signal.SIGKILL)
        self._driver.wait()

    def _kill_driver(self) -> None:
        self._end_driver()
        self._dead()
        self._driver = self._driving()

    def _kill_worker(self) -> None:
        while True:
            if works := [*_below(self._driver.pid)]:
                with suppress(ProcessLookupError):  # it has ended by itself
                    os.kill(self._random.choice(works), signal.SIGKILL)
                    return
            self._tend()
            time.sleep(0.1)

    def _kill_broker(self) -> None:
        self._broker.kill()
        self._dead()
        self._broker = self._started()

    def _started(self) -> BrokerProcess:
        return BrokerProcess("--data", str(self._folder / "store"), listen=(self._endpoint,))

    def _driving(self) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "benchmarks.spark_kill"]
        with (self._folder / "driver.log").open("a") as log:
            return subprocess.Popen(
                [*words, str(self._folder), self._endpoint, self._master],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    # --- what came ---

    def _until_more(self, files: Files) -> float:
        """Seconds until the table has a reading that is written from now on."""
        since, first = time.monotonic(), files.count
        while max(self._in_table(), default=-1) < first:
            if time.monotonic() > since + LOST_MAX_S:
                raise TimeoutError(f"nothing comes: {(self._folder / 'driver.log').read_text()}")
            self._tend()
            time.sleep(0.5)
        return time.monotonic() - since

    def _until_quiet(self, count: int) -> None:
        """Return when the table has all readings, or gets no more."""
        before, until = -1, time.monotonic() + QUIET_S
        while time.monotonic() < until:
            came = len({*self._in_table()})
            if came == count:
                break
            if came > before:
                before, until = came, time.monotonic() + QUIET_S
            self._tend()
            time.sleep(0.5)

    def _tend(self) -> None:
        """Start the driver again if it has ended."""
        if self._driver.poll() is not None:
            self._driver = self._driving()

    def _in_log(self) -> Iterator[int]:
        """The readings in the broker's log."""
        with Reader.open(self._folder / "store") as reader:
            positions = [entry.position for entry in reader.outlines()]
            for entry in reader.at(positions):
                for batch in message_of(entry).batches:
                    yield from map(int, batch.columns[0])

    def _in_table(self) -> Iterator[int]:
        """The readings in the files that the table's own log of commits names."""
        for path in sorted(_committed(self._folder / "out" / "_spark_metadata")):
            if path not in self._read:
                self._read[path] = pq.read_table(path, columns=["number"]).column(0).to_pylist()
            yield from self._read[path]


def _committed(log: Path) -> set[str]:
    """The files that Spark's log of a sink names. It makes one file of several now and then, and
    removes these; so what has gone since it was listed stands in another one.
    """
    while True:
        with suppress(FileNotFoundError):
            lines = [one.read_text().splitlines()[1:] for one in log.glob("[0-9]*")]
            paths = [json.loads(line)["path"] for line in itertools.chain(*lines)]
            return {unquote(urlparse(path).path) for path in paths}


def _below(process: int) -> Iterator[int]:
    """The processes that run tasks, of those that a process has started; some end meanwhile."""
    with suppress(OSError):
        for path in Path(f"/proc/{process}/task").glob("*/children"):
            for child in map(int, path.read_text().split()):
                with suppress(OSError):
                    command = Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace")
                    if any(word in command for word in WORKS):
                        yield child
                yield from _below(child)


# --- the driver ----------------------------------------------------------------------------------


def drive(folder: Path, endpoint: str, master: str) -> None:
    """Run both streams for ever, and start again what has ended."""
    from broker.spark import local_session, register

    spark = local_session(2, "1g", {"spark.master": master})
    spark.sparkContext.setLogLevel("OFF")
    register(spark)

    def to_broker():
        rows = spark.readStream.schema("time double, number long").parquet(str(folder / "in"))
        options = {"broker": endpoint, "type": "Reading", "source": "plant", "id": "number"}
        writer = rows.writeStream.format("rexmq").options(**options, disorder="1 h")
        return writer.option("checkpointLocation", str(folder / "to")).start()

    def to_table():
        reader = spark.readStream.format("rexmq").options(broker=endpoint, subscribe="Reading()")
        writer = reader.load().writeStream.format("parquet")
        place = str(folder / "from")
        return writer.option("checkpointLocation", place).start(str(folder / "out"))

    starts = {"to the broker": to_broker, "to the table": to_table}
    queries = {}
    while True:
        for name, start in starts.items():
            query = queries.get(name)
            if query is not None and query.isActive:
                continue
            if query is not None:
                print(name, query.exception(), flush=True)
            try:
                queries[name] = start()
            except Exception as error:  # the broker is away, or knows no readings yet
                print(name, error, flush=True)
        time.sleep(0.5)


def campaign(
    folder: Path,
    kills: int = 30,
    rate: Annotated[float, Option(help="Readings a second.")] = 200.0,
    seed: int = 1,
    master: str = "local[2,4]",
) -> Iterator[campaigns.Outcome]:
    """One campaign."""
    streams = Streams(folder, master, seed)
    try:
        outcome = streams.run(kills, rate)
    finally:
        streams.close()
    lost, twice = sum(outcome.lost.values()), sum(outcome.twice.values())
    yield campaigns.Outcome(str(outcome), campaigns.faults_of({"lost": lost, "twice": twice}))


if __name__ == "__main__":
    drive(Path(sys.argv[1]), *sys.argv[2:])

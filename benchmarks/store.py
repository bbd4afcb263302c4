"""A broker's store, on the disk that temporary files are on.

A change at a time, each waited for, and a plain file that is written and synced, take turns. Then
entries of 256 events are written as fast as the store takes them, encoding included, each with its
source's last number; read and decoded; and a store of 10^5 entries is opened, and emptied. Rates
are by the wall clock, as a disk has no other; the processor time that goes with them stands in the
note. At last a broker is started whose store has 10^7 events, of which its rule needs the last
10^6, as many as a broker keeps for one (``retained_events_max``), or 10^5.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.report import Row
from broker import Publisher, RuleManager
from broker.process import BrokerProcess
from broker.store import Append, Put, Store, Sync
from broker.store.entries import entry_of, message_of
from matcher.model import EventBatch, EventIds, EventType, StringColumn
from routing.durability.records import times_record
from routing.messages import Publish

READING = EventType.of("Reading", area="string", value="float", floor="int")
BATCH = 256
BLOCK = bytes(8_192)
"""About as much as a small change has the store write."""


def run(quick: bool = False) -> Iterator[Row]:
    """What a change, a batch, a read event and an opening take."""
    with TemporaryDirectory(prefix="rexmq-store-") as folder:
        yield from _changes(Path(folder), 50 if quick else 500)
        yield from _batches(Path(folder), 2_000 if quick else 20_000)
        yield from _opening(Path(folder), 10_000 if quick else 100_000)
    yield from _restarts(100_000 if quick else 10_000_000)


def _changes(folder: Path, count: int) -> Iterator[Row]:
    """A change at a time, beside a sync of the disk."""
    synced, stored, normal = [], [], []
    with (
        Store.open(folder / "full") as full,
        Store.open(folder / "normal", sync=Sync.NORMAL) as lax,
        (folder / "plain").open("wb", buffering=0) as plain,
    ):
        for number in range(count):
            change = [Put("source", "s", b"%d" % number)]
            synced.append(_took(lambda: (plain.write(BLOCK), os.fsync(plain.fileno()))))
            stored.append(_took(lambda: full.wait(full.write(change))))  # noqa: B023
            normal.append(_took(lambda: lax.wait(lax.write(change))))  # noqa: B023
    sync_ms, full_ms = 1e3 * median(synced), 1e3 * median(stored)
    goal = f"goal: at most {2 * sync_ms + 1:.2f}"
    yield Row("a change that is stored, p50", full_ms, "ms", "fsync, p50", sync_ms, goal)
    p99 = [1e3 * float(np.quantile(one, 0.99)) for one in (stored, synced)]
    yield Row("a change that is stored, p99", p99[0], "ms", "fsync, p99", p99[1])
    yield Row("changes one by one", count / sum(stored), "/s", "fsyncs", count / sum(synced))
    yield Row("a change with sync normal, p50", 1e3 * median(normal), "ms", "fsync, p50", sync_ms)


def _took(do: Callable[[], object]) -> float:
    begun = time.perf_counter()
    do()
    return time.perf_counter() - begun


def _batches(folder: Path, count: int) -> Iterator[Row]:
    """Entries of 256 events: encoded and written, then read and decoded."""
    batches = [_batch(number) for number in range(64)]
    with Store.open(folder / "log") as store:

        def write() -> None:
            ticket = 0
            for number in range(count):
                entry = entry_of("s", Publish((batches[number % 64],)))
                ticket = store.write([Append(entry), Put("source", "s", b"%d" % number)])
                while store.is_full:
                    time.sleep(0.001)
            store.wait(ticket)

        def read() -> None:
            for entry in store.entries():
                message_of(entry)

        for name, do, goal in (
            ("events stored, in entries of 256", write, "goal: 200,000"),
            ("events read and decoded", read, "goal: 1,000,000"),
        ):
            begun = time.process_time()
            rate = count * BATCH / _took(do)
            processor = 1e9 * (time.process_time() - begun) / (count * BATCH)
            yield Row(name, rate, "events/s", note=f"{goal}; {processor:.0f} ns of processor each")


def _batch(number: int) -> EventBatch:
    """Events of one source: an area of 20, a value, a floor."""
    chance = np.random.default_rng(number)
    sequence = np.arange(BATCH) + number * BATCH + 1
    areas = StringColumn.from_strings([f"a{place}" for place in range(20)])
    return EventBatch(
        READING,
        1_790_000_000_000_000 + sequence * 1_000,
        EventIds(StringColumn.constant("s", BATCH), sequence),
        (
            StringColumn(chance.integers(0, 20, BATCH).astype(np.int32), areas.values).compact(),
            chance.normal(20, 5, BATCH),
            chance.integers(0, 9, BATCH),
        ),
    )


def _opening(folder: Path, count: int) -> Iterator[Row]:
    """Opening a store with many entries, and reading what only the log has."""
    directory = folder / "many"
    entry = entry_of("s", Publish((_batch(0),)))
    with Store.open(directory, sync=Sync.NORMAL) as store:
        ticket = 0
        for _ in range(count):
            ticket = store.write([Append(entry)])
            while store.is_full:
                time.sleep(0.001)
        store.wait(ticket)
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        store = Store.open(directory)
        times.append(time.perf_counter() - begun)
        store.close()
    yield Row(f"opening a store of {count} entries", 1e3 * median(times), "ms")
    yield from _trimming(directory, count)


def _trimming(directory: Path, count: int) -> Iterator[Row]:
    """Changes while all of the entries go, beside changes when they have gone."""
    during: list[float] = []
    after: list[float] = []
    with Store.open(directory, retain_bytes=0) as store:
        store.trim(count + 1)
        begun = time.perf_counter()
        while store.first_position <= count:
            during.append(_took(lambda: store.wait(store.write([_change(during)]))))
        note = f"{count / (time.perf_counter() - begun):,.0f} entries/s go"
        for _ in range(len(during)):
            after.append(_took(lambda: store.wait(store.write([_change(after)]))))
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        values = [1e3 * float(np.quantile(one, share)) for one in (during, after)]
        yield Row(
            f"a change while entries go, {name}", values[0], "ms", f"else, {name}", values[1], note
        )


def _change(before: list[float]) -> Put:
    return Put("source", "s", b"%d" % len(before))


# --- a broker that starts again ---------------------------------------------------------------

RULE = (
    f"event {READING} rule warm: define Warm(floor: int) "
    "from Reading(value > 90) as r and last Reading(floor = r.floor) as p within 1 h from r "
    "where floor = r.floor"
)
NEEDED = (1_000_000, 100_000)
"""Events at the end of the log that the rule needs."""


def _restarts(count: int) -> Iterator[Row]:
    """The time until a broker answers whose store has so many events, beside one without any."""
    with TemporaryDirectory(prefix="rexmq-restart-") as name:
        folder = Path(name) / "b1"
        with _started(folder) as broker:
            with RuleManager(broker.endpoint) as manager:
                manager.add(RULE)
            with Publisher(broker.endpoint, name="s", types=[READING], replay=True) as publisher:
                publisher.publish_batch(_batch(0))
        without = min(_restart(folder)[0] for _ in range(3))
        _fill(folder, count)
        for needed in NEEDED:
            _need(folder, min(needed, count))
            seconds, processor, memory = _restart(folder)
            note = f"goal: 10; {processor:.1f} s of processor, {memory} MiB resident"
            row = f"a start with {count:,} events, {needed:,} needed"
            yield Row(row, seconds, "s", "without any", without, note)


def _started(folder: Path) -> BrokerProcess:
    return BrokerProcess("--name", "b1", "--data", str(folder), "--log-level", "warning")


def _restart(folder: Path) -> tuple[float, float, int]:
    """Seconds until a broker listens and answers, its processor time by then, and its memory in
    MiB.
    """
    begun = time.perf_counter()
    with _started(folder) as broker:
        with RuleManager(broker.endpoint, connect_timeout_s=60.0, timeout_s=60.0) as manager:
            manager.status()
        seconds = time.perf_counter() - begun
        child = Path(f"/proc/{broker.child.pid}")
        fields = (child / "stat").read_text().rpartition(")")[2].split()
        processor = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        lines = (child / "status").read_text().splitlines()
        memory = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return seconds, processor, memory // 1_024


def _fill(folder: Path, count: int) -> None:
    """Append to a broker's log as it would have."""
    with Store.open(folder, sync=Sync.NORMAL) as store:
        for number in range(store.last_position, count // BATCH):
            store.write([Append(entry_of("s", Publish((_batch(number),))))])
            while store.is_full:
                time.sleep(0.001)


def _need(folder: Path, events: int) -> None:
    """Have the rule need so many events at the end of the log, as after a survey."""
    with Store.open(folder, sync=Sync.NORMAL) as store:
        first = max(1, store.last_position - events // BATCH)
        (entry,) = store.at([first])
        hour_us = 3_600_000_000
        store.trim(first)
        store.wait(store.write([times_record("rules", {"warm": entry.first_time + hour_us})]))

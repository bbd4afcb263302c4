"""Detection: the workloads of the thesis (5.8 and 6.4) by each engine, on one thread, in CPU time.

:mod:`benchmarks.detection_workloads` says what they are. The baseline is T-Rex, the C++ original,
measured on the same kind of machine.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import numpy as np

from benchmarks.detection_workloads import (
    Workload,
    aggregate_join,
    batch_of,
    fire,
    inequality,
    join,
    r10,
    rare_partners,
    sequences,
    texts,
    with_ids,
)
from benchmarks.report import Row
from broker.parallel import deployed
from matcher.model import TIME_MAX, EventBatch, EventIds, EventType
from rules import Engine, load
from rules.engine import make
from rules.engine.cdp import CdpEngine
from rules.engine.intake.rows import row_of
from rules.pattern import RuleSet

T_REX = "T-Rex (C++)"
NO_IDS = "without ids"
EXPLICIT: Mapping[str, Callable[[EventIds], EventIds]] = {
    NO_IDS: lambda ids: ids,
    "row numbers": lambda ids: replace(ids, given=True),
    "other numbers": lambda ids: texts(ids, lambda number: str(number + 10**6)),
    "texts": lambda ids: texts(ids, lambda number: f"e{number}"),
}
"""Ids of each kind, of events that are numbered."""
ENGINES = ("cdp", "aip", "auto")
REPEATS = 3
LATE = 50
"""Events that come late at each distance; the middle one counts."""
FIRST_PUSH = """
import rules
from matcher.model import EventBatch, EventIds, EventType, StringColumn
from rules.engine import make
import numpy as np
engine = make("cdp")
rule = "rule r: define C() from B() and last A() within 1 s from B"
engine.deploy(rules.load(f"event A() event B() {rule}"))
for number, name in enumerate("AB"):
    ids = EventIds(StringColumn.constant("s", 1), np.array([number]))
    engine.push(EventBatch(EventType.of(name), np.array([number]), ids, ()))
assert len(list(engine.advance(2).events())) == 1
"""
"""A process that loads the engine and one rule, pushes two events and finds a composite one."""


def run(quick: bool) -> Iterator[Row]:
    scale = 20 if quick else 1
    workloads = (
        sequences(3, "last", 1_000, 200_000 // scale, 155e3),
        sequences(3, "each", 1_000, 20_000 // scale, 17.4e3),
        sequences(2, "last", 1_000, 200_000 // scale, 152e3),
        sequences(2, "each", 1_000, 60_000 // scale, 46e3),
        fire("last", 100 // scale, 60_000 // scale, 10.9e3),
        fire("each", 100 // scale, 400 // scale, chunk=8),
        r10("last", 10_000 // scale, 100_000 // scale, 300_000 // scale),
        r10("each", 10_000 // scale, 100_000 // scale, 300_000 // scale),
        r10("last", 100_000 // scale, 100_000 // scale, 300_000 // scale),
        aggregate_join(100_000 // scale, 300_000 // scale, 317.0),
        aggregate_join(1_000_000 // scale, 300_000 // scale, None),
        join(200_000 // scale, 0.98e6),
        inequality(100_000 // scale, 200_000 // scale),
        rare_partners(100_000 // scale),
    )
    repeats = 1 if quick else REPEATS
    for workload in workloads:
        yield from measure(workload, repeats)
    if not quick:
        # As many events as before are relevant to each rule: what grows is what is deployed.
        yield from measure(sequences(3, "last", 10_000, 100_000), repeats)
        yield from measure_once(sequences(3, "last", 100_000, 100_000))
        yield from measure(sequences(3, "last", 1_000, 200_000, rate=1_000), repeats)
        yield from measure(sequences(2, "last", 1_000, 200_000, rate=1_000), repeats)
        yield from measure(sequences(2, "each", 1_000, 20_000, rate=1_000, chunk=256), repeats)
        yield from measure_once(sequences(3, "each", 1_000, 2_000, rate=1_000, chunk=32))
    for workload in (
        sequences(3, "last", 1_000, 200_000 // scale),
        join(200_000 // scale, None),
    ):
        yield from measure_ids(workload, repeats)
    yield from measure_start(repeats)
    yield from measure_late(1_000_000 // scale)
    yield from measure_singly(sequences(3, "last", 1_000, 20_000 // scale))
    yield from measure_published(20_000 // scale)
    yield from measure_threads(sequences(3, "each", 1_000, 80_000 // scale))


def measure(workload: Workload, repeats: int) -> Iterable[Row]:
    """Events and composite events a second of CPU time, after the warm-up, by each engine.

    The engines run in turn, to and fro, so that what is compared follows ``aip`` equally often:
    whichever does finds memory that went back to the system, and waits while it is cleared. All
    runs do the same, chunk by chunk, and of each chunk the best counts, so that what disturbs the
    machine for a moment disturbs few chunks, and hardly the same again. ``auto`` stands beside the
    better of the others.
    """
    rules = load(workload.rules)
    runs: dict[str, list[Run]] = {name: [] for name in ENGINES}
    for repeat in range(repeats):
        for name in ENGINES if repeat % 2 == 0 else reversed(ENGINES):
            runs[name].append(run_of(workload, rules, name))
    rates = {name: rate_of(some) for name, some in runs.items()}
    for name, rate in rates.items():
        better = max(rates["cdp"], rates["aip"])
        baseline = ("the better", better) if name == "auto" else (T_REX, workload.baseline)
        yield Row(
            f"detection/{workload.name}, {name}",
            rate,
            "events/s",
            *(baseline if baseline[1] else ("", None)),
            runs[name][0].note(rate),
        )


def measure_once(workload: Workload) -> Iterable[Row]:
    """Events a second of CPU time by ``cdp`` alone, once: what takes a minute to begin."""
    one = run_of(workload, load(workload.rules), "cdp")
    rate = rate_of([one])
    yield Row(f"detection/{workload.name}, cdp", rate, "events/s", "", None, one.note(rate))


def measure_ids(workload: Workload, repeats: int) -> Iterable[Row]:
    """Events a second of CPU time by ``cdp``, with explicit ids of each kind, whose contents are
    digested to tell repeats from conflicts (tesla.md E1); beside the same events without ids.
    """
    rules = load(workload.rules)
    kinds = {kind: with_ids(workload, make_ids) for kind, make_ids in EXPLICIT.items()}
    runs: dict[str, list[Run]] = {kind: [] for kind in kinds}
    for repeat in range(repeats):
        for kind in kinds if repeat % 2 == 0 else reversed(kinds):
            runs[kind].append(run_of(kinds[kind], rules, "cdp"))
    rates = {kind: rate_of(some) for kind, some in runs.items()}
    for kind, rate in rates.items():
        if kind != NO_IDS:
            name = f"detection/{workload.name}, ids that are {kind}, cdp"
            yield Row(name, rate, "events/s", NO_IDS, rates[NO_IDS])


@dataclass(frozen=True, slots=True)
class Run:
    """One run after its warm-up: events, composite events, and seconds of CPU time by chunk."""

    events: int
    composites: int
    spent: Sequence[float]

    def note(self, rate: float) -> str:
        """How many composite events there are, at so many events a second."""
        per_event = self.composites / self.events
        return f"{rate * per_event:,.0f} composite events/s, {per_event:.2f} an event"


def rate_of(runs: Sequence[Run]) -> float:
    """Events a second of CPU time, each chunk at its best."""
    return runs[0].events / sum(map(min, zip(*(one.spent for one in runs), strict=True)))


def run_of(workload: Workload, rules: RuleSet, name: str) -> Run:
    """A run by an engine of this name."""
    engine = make(name)
    engine.deploy(rules)
    gc.collect()  # else what other engines left behind is looked through in the midst of this
    events = composites = 0
    spent = []
    for place, chunk in enumerate(workload.chunks):
        started = time.process_time()
        for batch in chunk:
            engine.push(batch)
        last = max(int(batch.time[-1]) for batch in chunk)
        is_last = place + 1 == len(workload.chunks)
        found = engine.advance(TIME_MAX if is_last else last + 1)
        if place * workload.chunk >= workload.warm_up or is_last:
            spent.append(time.process_time() - started)
            events += sum(map(len, chunk))
            composites += len(found)
    return Run(events, composites, spent)


def measure_start(repeats: int) -> Iterable[Row]:
    """From a process's start to its first composite event, by the clock, kernels being compiled;
    beside a process of Python that loads numpy."""
    spent: dict[str, list[float]] = {code: [] for code in (FIRST_PUSH, "import numpy")}
    for code, found in spent.items():
        for _ in range(1 + repeats):  # the first may compile
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            found.append(time.perf_counter() - begun)
    first, bare = (min(found[1:]) for found in spent.values())
    yield Row("detection/first push, from a process's start", first, "s", "import numpy", bare)


def measure_late(entries: int) -> Iterable[Row]:
    """Microseconds of CPU time for an event that comes after so many later ones of its column."""
    engine = CdpEngine()
    engine.deploy(
        load(
            "event A(v: int) event B(v: int) rule late: define C(v: int) from A() "
            f"and last B() within {2 * entries} us from A where v = B.v"
        )
    )
    type_ = EventType.of("B", v="int")

    def advance(start: int, count: int) -> float:
        """The seconds that it takes to take so many events in, one every other microsecond."""
        place = np.arange(start, start + 2 * count, 2)
        engine.push(batch_of(type_, place, place, (place,)))
        started = time.process_time()
        engine.advance(2 * entries)
        return time.process_time() - started

    advance(0, entries)
    for distance in (100, 10_000, 100_000, entries - LATE):
        if distance <= entries - LATE:
            # Odd times, so that they come between two, and each in an advance of its own.
            first = 2 * (entries - distance - LATE) + 1
            spent = sorted(advance(first + 2 * one, 1) for one in range(LATE))
            title = f"detection/an event after {distance:,} later ones of its column"
            yield Row(title, spent[LATE // 2] * 1e6, "us", "", None)


def measure_singly(workload: Workload) -> Iterable[Row]:
    """Microseconds of CPU time for one event at a time: as a row, at the engine's own entry; as a
    batch of one; and as a batch of one with batches of what it sets off.

    The engine's own time is that until what an event set off stands in its columns; batches of it
    are made only for who asks, and the last two rows ask every time. All is run several times,
    and of each event the best counts, less what it takes to look at the clock.
    """
    ones = [
        batch.take(slice(place, place + 1))
        for chunk in workload.chunks
        for batch in chunk
        for place in range(len(batch))
    ]
    ones.sort(key=lambda one: int(one.time[0]))
    rules = load(workload.rules)
    for how, by_row, is_read in (
        (" as rows", True, False),
        ("", False, False),
        (", read as batches", False, True),
    ):
        runs = [
            spent_singly(rules, ones, by_row=by_row, is_read=is_read)[workload.warm_up :]
            for _ in range(REPEATS)
        ]
        microseconds = (np.min(runs, axis=0) - look_at_clock()) / 1e3
        for name, value in (
            ("mean", float(microseconds.mean())),
            ("p99", float(np.percentile(microseconds, 99))),
        ):
            title = f"detection/{workload.name}, one at a time{how}, {name}"
            yield Row(title, value, "us", "", None)


FIRE = """
event Smoke(area: string)
event Temp(area: string, value: float)
define Fire(area: string, temperature: float)
from Smoke(area = $a) and last Temp(area = $a, value > 45) within 5 min from Smoke
where area = $a, temperature = Temp.value
"""


def measure_published(count: int) -> Iterator[Row]:
    """Microseconds of CPU time for an event given to ``rules.Engine.publish``, events made of what
    it sets off included: a Smoke in ten events, and nine in ten of these have a Fire.
    """
    random = Random(7)
    events = [
        ("Smoke", {"area": f"a{random.randrange(100)}"})
        if random.random() < 0.1
        else ("Temp", {"area": f"a{random.randrange(100)}", "value": 60 * random.random()})
        for _ in range(count)
    ]
    spent = []
    for _ in range(REPEATS):
        engine = Engine(FIRE)
        engine.publish("Temp", area="", value=0.0, time=0)
        gc.collect()
        started = time.process_time()
        for place, (kind, data) in enumerate(events):
            engine.publish(kind, data, time=place / 100)
        spent.append(time.process_time() - started)
    title = "detection/fire in process, Engine.publish, an event"
    yield Row(title, min(spent) / count * 1e6, "us", "goal", 12.0)


def spent_singly(
    rules: RuleSet, ones: Sequence[EventBatch], *, by_row: bool, is_read: bool
) -> list[int]:
    """Nanoseconds of CPU time for each event, between two looks at the clock."""
    engine = CdpEngine()
    engine.deploy(rules)
    rows = [row_of(one) for one in ones]
    gc.collect()
    spent = []
    for one, row in zip(ones, rows, strict=True):
        assert row is not None, "the events of the workload are known by their numbers"
        mark = row.time + 1
        started = time.process_time_ns()
        if by_row:
            engine.push_row(one.type, row)
        else:
            engine.push(one)
        found = engine.advance(mark)
        if is_read:
            assert len(found.batches) <= len(found)
        spent.append(time.process_time_ns() - started)
    return spent


def look_at_clock() -> int:
    """Nanoseconds from one look at the clock to the next, at the least."""
    looks = [time.process_time_ns() for _ in range(10_000)]
    return min(after - before for before, after in pairwise(looks))


def measure_threads(workload: Workload) -> Iterable[Row]:
    """Events a second on two threads beside one, after the warm-up: by elapsed time, which needs
    two free cores, and by the processor time of both.
    """
    rates = []
    for threads in (1, 2):
        engine = deployed("cdp", load(workload.rules), threads)
        events, elapsed, spent = 0, 0.0, 0.0
        for place, chunk in enumerate(workload.chunks):
            begun, started = time.perf_counter(), time.process_time()
            for batch in chunk:
                engine.push(batch)
            engine.advance(max(int(batch.time[-1]) for batch in chunk) + 1)
            if place * workload.chunk >= workload.warm_up or place + 1 == len(workload.chunks):
                elapsed += time.perf_counter() - begun
                spent += time.process_time() - started
                events += sum(map(len, chunk))
        rates.append((events / elapsed, events / spent))
    for how, one, two in zip(("", ", CPU time"), *rates, strict=True):
        title = f"detection/{workload.name}, two threads{how}"
        yield Row(title, two, "events/s", "one thread", one)

"""Threads, in chapters 5 and 6 of the thesis: figures 5.24 and 6.10.

Rules are spread over threads (:mod:`rules.engine.parts`), which detect at once. What is measured
is elapsed time, on as many threads as the machine has cores: a machine that is busy with other
work shows less than it could.
"""

from __future__ import annotations

import gc
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.reproduction.engine_claims import AIP, CDP, EQUAL
from benchmarks.reproduction.engine_runs import (
    CHUNK,
    SEEDS,
    Making,
    Mean,
    checked,
    engines,
)
from benchmarks.reproduction.engine_sweep import PAGE
from benchmarks.reproduction.engine_workloads import (
    WINDOW_MS,
    Joined,
    Sequences,
    Workload,
    in_chunks,
)
from benchmarks.reproduction.experiment import Chart, Claim, Experiment, Figure, Outcome, Table
from broker.parallel import deployed
from matcher.model import MICROSECONDS

INTRODUCTION = ""
CORES = os.cpu_count() or 1
EVENTS, QUICK_EVENTS = 100_000, 500
SEVERAL = 16 * CHUNK
"""Events that come at once: the threads are called once for each such chunk."""
RATE, LOADED, LOAD_EVENTS = 100.0, 100, 4_000
"""Figure 5.24: events a second of event time, the rules that each is relevant to (a rule is so
once a state), and how many there are."""
Cases = dict[str, Callable[[int], Making]]
"""Workloads by the beginnings of columns' names, and by a number of rules."""


def elapsed(
    making: Making,
    engine: str,
    threads: int,
    span: tuple[float, int, int],
    seed: int,
    at_once: int,
) -> float:
    """Microseconds of elapsed time an event; ``span`` is (events a second, warm-up, events)."""
    rate, warm_up, count = span
    rng = np.random.default_rng(seed)
    workload = making(rng)
    events = workload.events(warm_up + count, rng)
    detector = deployed(engine, checked(workload.rules), threads)
    times = (np.arange(len(events)) * (MICROSECONDS / rate)).astype(np.int64)
    done, spent = 0, 0.0
    gc.collect()
    for places in in_chunks(len(events), at_once):
        batches = events.batches(places, times[places])
        begun = time.perf_counter()
        for batch in batches:
            detector.push(batch)
        detector.advance(int(times[places[-1]]) + 1)
        if places[0] >= warm_up:
            spent += time.perf_counter() - begun
            done += len(places)
    return spent / done * 1e6


def mean(
    making: Making,
    engine: str,
    threads: int,
    span: tuple[float, int, int],
    quick: bool,
    at_once: int = SEVERAL,
) -> Mean:
    """Over seeds."""
    seeds = SEEDS[:1] if quick else SEEDS
    return Mean.of([elapsed(making, engine, threads, span, seed, at_once) for seed in seeds])


# --- 5.24: threads ---------------------------------------------------------------------------


def over_threads(quick: bool) -> Outcome:
    """Many rules for each event, on one thread and more."""
    counts = sorted({1, 2, CORES})
    scenario = Sequences("each", triggered=LOADED)
    making = (scenario.smaller(10) if quick else scenario).workload
    # Two windows: once the first is full, memory for what is found grows for as long again.
    warm_up = int(2 * RATE * WINDOW_MS[1] / 1e3)
    span = (RATE, 0, QUICK_EVENTS) if quick else (RATE, warm_up, LOAD_EVENTS)
    names = engines()
    rows: list[tuple[Figure, ...]] = []
    for threads in counts:
        row: list[Figure] = [threads]
        for engine in names.values():
            found = mean(making, engine, threads, span, quick, CHUNK)
            row += [found.value, found.half, 1e6 / found.value]
        rows.append(tuple(row))
    columns = [f"{name} {figure}" for name in names for figure in ("[us]", "+- [us]", "[events/s]")]
    table = Table(("threads", *columns), tuple(rows))
    charts = (
        Chart(tuple(columns[::3]), "elapsed time an event [us]", intervals=tuple(columns[1::3])),
        Chart(tuple(columns[2::3]), "throughput [events/s]"),
    )
    return Outcome(table, charts, tuple(_speedups(table, names)))


def _speedups(table: Table, names: Iterable[str]) -> Iterator[Claim]:
    for name in names:
        times = np.array(table.column(f"{name} [us]"), np.float64)
        gains = times[0] / times
        yield Claim(
            f"{name}: from 1 to 5 cores the time is halved, the throughput almost doubled",
            f"{gains.max():.2f} times as fast, with {CORES} cores",
            bool(gains.max() >= 1.9) if CORES >= 5 else None,
        )
        yield Claim(
            f"{name}: a second core brings most",
            f"{gains[1]:.2f} times as fast with two",
            bool(gains[1] - 1 >= np.diff(gains)[1:].max()) if len(gains) > 2 else None,
        )
        yield Claim(
            f"{name}: twice the cores are less than twice as fast: the slowest thread decides",
            f"{gains[1]:.2f} times as fast with two",
            bool(1 < gains[1] < 2),
        )


# --- 6.10: threads and rules -----------------------------------------------------------------


def over_rules(quick: bool) -> Outcome:
    """How much faster several threads are, by the number of rules."""
    counts = (1, 10) if quick else (1, 5, 10, 20, 50)
    rows: list[tuple[Figure, ...]] = []
    scenario = Joined(groups=10)
    for rules in counts:
        row: list[Figure] = [rules]
        for policy in ("each", "last"):
            making = partial(apart, replace(scenario, rules=rules, policy=policy).workload)
            span = (1e6, 0, QUICK_EVENTS) if quick else (1e6, scenario.window, EVENTS)
            for engine in engines().values():
                one, several = (mean(making, engine, n, span, quick).value for n in (1, CORES))
                row.append(one / several)
        rows.append(tuple(row))
    columns = tuple(f"{policy} {name}" for policy in ("each", "last") for name in engines())
    table = Table(("rules", *columns), tuple(rows))
    chart = Chart(columns, f"speed-up by {CORES} threads", (True, False))
    return Outcome(table, (chart,), tuple(_gains(table, columns)))


def apart(making: Making, rng: np.random.Generator) -> Workload:
    """The workload with a type of its own for each rule: those of one type stay on one thread."""
    workload = making(rng)
    text = re.sub(r"rule r(\d+): define CE", r"rule r\1: define CE\1", workload.rules)
    return replace(workload, rules=text)


def _gains(table: Table, columns: Sequence[str]) -> Iterator[Claim]:
    few, many = table.rows[0], table.rows[-1]
    for engine in (AIP, CDP):
        places = [place + 1 for place, line in enumerate(columns) if line.endswith(engine)]
        if not places:
            continue
        first, last = (float(np.mean([float(row[one]) for one in places])) for row in (few, many))  # type: ignore[arg-type]
        yield Claim(
            f"{engine}: one thread is slightly better with few rules",
            f"{first:.2f} times as fast with {few[0]} rule",
            1 / EQUAL <= first <= 1.0,
        )
        yield Claim(
            f"{engine}: several are better with many; at most 2.5 times, on 6 cores",
            f"{last:.2f} times as fast with {many[0]} rules, on {CORES} cores",
            1.0 < last <= max(2.5, CORES),
        )


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        "thesis-5.24",
        PAGE,
        "threads",
        "The default scenario with each-within, and a hundred (rule, state) pairs for each event: "
        "some 3,800 composite events an event. 100 events a second of event time, 4,000 events "
        "once the windows have been full twice. Elapsed time; events come 256 at a time.",
        over_threads,
    ),
    Experiment(
        "thesis-6.10",
        PAGE,
        "threads by the number of rules",
        "R10 with rules of types of their own, each event relevant to a tenth of them; 100,000 "
        "events after a full window of 100,000. Elapsed time; events come 4,096 at a time.",
        over_rules,
    ),
)

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.reproduction.engine import DEFAULT
from benchmarks.reproduction.engine_claims import AIP, CDP
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
EVENTS, QUICK_EVENTS = 20_000, 500
SEVERAL = 16 * CHUNK
"""Events that come at once: the threads are called once for each such chunk."""
Cases = dict[str, Callable[[int], Making]]
"""Workloads by the beginnings of columns' names, and by a number of rules."""


def elapsed(making: Making, engine: str, threads: int, span: tuple[float, int, int], seed: int):  # type: ignore[no-untyped-def]
    """Microseconds of elapsed time an event; ``span`` is (events a second, warm-up, events)."""
    rate, warm_up, count = span
    rng = np.random.default_rng(seed)
    workload = making(rng)
    events = workload.events(warm_up + count, rng)
    detector = deployed(engine, checked(workload.rules), threads)
    times = (np.arange(len(events)) * (MICROSECONDS / rate)).astype(np.int64)
    done, spent = 0, 0.0
    gc.collect()
    for places in in_chunks(len(events), SEVERAL):
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
    making: Making, engine: str, threads: int, span: tuple[float, int, int], quick: bool
) -> Mean:
    """Over seeds."""
    seeds = SEEDS[:1] if quick else SEEDS
    return Mean.of([elapsed(making, engine, threads, span, seed) for seed in seeds])


# --- 5.24: threads ---------------------------------------------------------------------------


def over_threads(quick: bool) -> Outcome:
    """The default scenario of chapter 5 on one thread and more."""
    counts = sorted({1, 2, CORES})
    lines = [f"{policy} {name}" for policy in ("each", "last") for name in engines()]
    rows: list[tuple[Figure, ...]] = []
    for threads in counts:
        row: list[Figure] = [threads]
        for policy, rate in (("each", 100.0), ("last", 1_000.0)):
            scenario = Sequences(policy)
            making = (scenario.smaller(10) if quick else scenario).workload
            warm_up = 0 if quick else int(rate * WINDOW_MS[1] / 1e3)
            span = (rate, warm_up, QUICK_EVENTS if quick else EVENTS)
            for engine in engines().values():
                found = mean(making, engine, threads, span, quick)
                row += [found.value, found.half]
        rows.append(tuple(row))
    columns = [column for line in lines for column in (f"{line} [us]", f"{line} +- [us]")]
    table = Table(("threads", *columns), tuple(rows))
    chart = Chart(tuple(columns[::2]), "elapsed time an event [us]", intervals=tuple(columns[1::2]))
    return Outcome(table, (chart,), tuple(_speedups(table, lines)))


def _speedups(table: Table, lines: Sequence[str]) -> Iterator[Claim]:
    for line in lines:
        times = np.array(table.column(f"{line} [us]"), np.float64)
        gain = times[0] / times.min()
        yield Claim(
            f"{line}: from 1 to 5 cores the time is halved",
            f"{gain:.2f} times as fast, with {CORES} cores",
            bool(gain >= 2) if CORES >= 5 else None,
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
            first <= 1.0,
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
        DEFAULT + " Elapsed time; events come 4,096 at a time.",
        over_threads,
    ),
    Experiment(
        "thesis-6.10",
        PAGE,
        "threads by the number of rules",
        "R10 with rules of types of their own, each event relevant to a tenth of them; 20,000 "
        "events after a full window of 100,000. Elapsed time; events come 4,096 at a time.",
        over_rules,
    ),
)

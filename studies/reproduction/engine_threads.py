"""Threads, in chapters 5 and 6 of the thesis: figures 5.24 and 6.10.

Rules are spread over threads (:mod:`rules.engine.threads.parts`), which detect at once. What is
measured is elapsed time, on as many threads as the machine has cores: a machine that is busy with
other work shows less than it could.
"""

from __future__ import annotations

import gc
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from broker.parallel import deployed
from matcher.model import MICROSECONDS
from studies.reproduction.engine_claims import (
    AIP,
    CDP,
    NO_AIP,
    claim,
    course,
    figures,
    in_the_end,
    times,
    unmeasured,
    us,
)
from studies.reproduction.engine_runs import (
    CHUNK,
    FEW_SEEDS,
    Making,
    checked,
    engines,
)
from studies.reproduction.engine_sweep import PAGE
from studies.reproduction.engine_workloads import (
    WINDOW_MS,
    Joined,
    Sequences,
    Workload,
    filling,
    in_chunks,
)
from studies.reproduction.experiment import Chart, Claim, Experiment, Outcome, Table
from studies.reproduction.seeds import Mean, estimates, halves, table_of, told
from studies.reproduction.verdicts import ABOVE, SLIGHTLY_BELOW

INTRODUCTION = ""
CORES = os.cpu_count() or 1
RATE_OF = "{} [events/s]"
EVENTS, QUICK_EVENTS = 100_000, 500
SECONDS_MAX = 0.5
"""A run ends after so much time, if its events are not done then."""
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
    for places in filling(events, workload.ends, warm_up, at_once):
        for batch in events.batches(places, times[places]):
            detector.push(batch)
        detector.advance(int(times[places[-1]]) + 1)
    done, spent = 0, 0.0
    gc.collect()
    for chunk in in_chunks(count, at_once):
        places = warm_up + chunk
        batches = events.batches(places, times[places])
        begun = time.perf_counter()
        for batch in batches:
            detector.push(batch)
        detector.advance(int(times[places[-1]]) + 1)
        spent += time.perf_counter() - begun
        done += len(places)
        if spent > SECONDS_MAX:
            break
    return spent / done * 1e6


def means(
    making: Making,
    threads: Sequence[int],
    span: tuple[float, int, int],
    seeds: Sequence[int],
    at_once: int = SEVERAL,
) -> dict[tuple[str, int], Mean]:
    """Over seeds, by the engine's name and how many threads it has; they take turns."""
    ways = [(name, count) for name in engines() for count in threads]
    runs = [
        [elapsed(making, engines()[name], count, span, seed, at_once) for name, count in ways]
        for seed in seeds
    ]
    return {way: Mean.of(of_way) for way, of_way in zip(ways, zip(*runs, strict=True), strict=True)}


# --- 5.24: threads ---------------------------------------------------------------------------


def over_threads(quick: bool) -> Outcome:
    """Many rules for each event, on one thread and more."""
    counts = sorted({1, 2, CORES})
    scenario = Sequences("each", triggered=LOADED)
    making = (scenario.smaller(10) if quick else scenario).workload
    # Two windows: once the first is full, memory for what is found grows for as long again.
    warm_up = int(2 * RATE * WINDOW_MS[1] / 1e3)
    span = (RATE, 0, QUICK_EVENTS) if quick else (RATE, warm_up, LOAD_EVENTS)
    seeds = FEW_SEEDS[:1] if quick else FEW_SEEDS
    found = means(making, counts, span, seeds, CHUNK)
    kept = {us(name): [found[name, count] for count in counts] for name in engines()}
    table = table_of("threads", counts, seeds, kept)
    rates = [
        tuple(1e6 / one.value for one in of_count) for of_count in zip(*kept.values(), strict=True)
    ]
    columns = (*table.columns, *map(RATE_OF.format, engines()))
    rows = zip(table.rows, rates, strict=True)
    return threads_told(Table(columns, tuple((*row, *more) for row, more in rows), table.runs))


def threads_told(table: Table) -> Outcome:
    """What is drawn and said of a table of figure 5.24."""
    names = [name for name in engines() if us(name) in table.columns]
    lines = tuple(map(us, names))
    charts = (
        Chart(lines, "elapsed time an event [us]", intervals=halves(table, lines)),
        Chart(tuple(map(RATE_OF.format, names)), "throughput [events/s]"),
    )
    return Outcome(table, charts, tuple(_speedups(table)))


def _speedups(table: Table) -> Iterator[Claim]:
    cores = [int(one) for one in figures(table, table.columns[0])]
    for name in (AIP, CDP):
        helps = f"{name}: more cores help"
        halved = f"{name}: from 1 to 5 cores the time is halved, the throughput almost doubled"
        most = f"{name}: a second one helps most"
        slowest = f"{name}: twice the cores are less than twice as fast: the slowest thread decides"
        if f"{name} [us]" not in table.columns:
            yield from (unmeasured(said, NO_AIP) for said in (helps, most, halved, slowest))
            continue
        line = times(table, name)
        gains = [line[0] / one for one in line[1:]]
        measured = "; ".join(
            f"{one} times as fast with {count}" for one, count in zip(gains, cores[1:], strict=True)
        )
        few = f"{cores[-1]} cores are too few"
        yield claim(helps, measured, [(gains[-1], ABOVE)])
        if len(gains) > 1:
            steps = [after / before for before, after in pairwise(gains)]
            yield claim(most, measured, [(gains[0] / one, ABOVE) for one in steps])
        else:
            yield unmeasured(most, few)
        if cores[-1] >= 5:
            yield claim(halved, measured, [(gains[-1], (1.8, math.inf))])
        else:
            yield unmeasured(halved, few)
        yield claim(slowest, measured, [(gains[0], (1.0, 2.0))])


# --- 6.10: threads and rules -----------------------------------------------------------------


def over_rules(quick: bool) -> Outcome:
    """How much faster several threads are, by the number of rules."""
    counts = (1, 10) if quick else (1, 5, 10, 20, 50)
    scenario = Joined(groups=10)
    seeds = FEW_SEEDS[:1] if quick else FEW_SEEDS
    gains: dict[str, list[Mean]] = {}
    for rules in counts:
        for policy in ("each", "last"):
            making = partial(apart, replace(scenario, rules=rules, policy=policy).workload)
            span = (1e6, 0, QUICK_EVENTS) if quick else (1e6, scenario.window, EVENTS)
            found = means(making, (1, CORES), span, seeds)
            for name in engines():
                pairs = zip(found[name, 1].seeds, found[name, CORES].seeds, strict=True)
                gain = Mean.of([one / several for one, several in pairs])
                gains.setdefault(f"{policy} {name}", []).append(gain)
    return rules_told(table_of("rules", counts, seeds, gains))


def rules_told(table: Table) -> Outcome:
    """What is drawn and said of a table of figure 6.10."""
    names = (f"{policy} {name}" for policy in ("each", "last") for name in engines())
    lines = tuple(one for one in names if one in table.columns)
    chart = Chart(lines, f"speed-up by {CORES} threads", (True, False), halves(table, lines))
    return Outcome(table, (chart,), tuple(_gains(table, lines)))


def apart(making: Making, rng: np.random.Generator) -> Workload:
    """The workload with a type of its own for each rule: those of one type stay on one thread."""
    workload = making(rng)
    text = re.sub(r"rule r(\d+): define CE", r"rule r\1: define CE\1", workload.rules)
    return replace(workload, rules=text)


def _gains(table: Table, columns: Sequence[str]) -> Iterator[Claim]:
    places = figures(table, table.columns[0])
    for engine in (AIP, CDP):
        own = {line: estimates(table, line) for line in columns if line.endswith(engine)}
        slower = f"{engine}: one thread is slightly better with fewer than 10 rules"
        faster = f"{engine}: several take advantage of more rules"
        most = f"{engine}: by less than 2.5 times at most, on 6 cores"
        if not own:
            yield from (unmeasured(said, NO_AIP) for said in (slower, faster, most))
            continue
        few = [
            one
            for line in own.values()
            for place, one in zip(places, line, strict=True)
            if place < 10
        ]
        told = "; ".join(course(name, line) for name, line in own.items())
        yield claim(slower, told, [(one, SLIGHTLY_BELOW) for one in few])
        yield claim(faster, told, [one for line in own.values() for one in in_the_end(line, ABOVE)])
        yield claim(
            most,
            f"{told}; on {CORES} cores",
            [(one, (0.0, 2.5)) for line in own.values() for one in line],
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
        judge=threads_told,
        seeds=told(FEW_SEEDS),
    ),
    Experiment(
        "thesis-6.10",
        PAGE,
        "threads by the number of rules",
        "R10 with rules of types of their own, each event relevant to a tenth of them; 100,000 "
        "events after a full window of 100,000. Elapsed time; events come 4,096 at a time. Up to "
        "50 rules and two threads, where the thesis goes farther and has six.",
        over_rules,
        judge=rules_told,
        seeds=told(FEW_SEEDS),
    ),
)

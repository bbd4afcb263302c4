"""How well ``auto`` chooses the way of a rule: its rate beside the single ways', on one thread.

The workloads are chains: those of :mod:`benchmarks.hybrid_workloads`, made longer, and those of
:mod:`benchmarks.detection_workloads` that are chains. Ways run in turn, and of each chunk the
best of some runs counts, in processor time, as in :mod:`benchmarks.detection`; kernels are loaded
beforehand, and events are evaluated in the portions of ``rexmq detect``. A figure is the share of
the best way's rate that ``auto`` has, moves and trials included, beside the share of the worst.

::

    python -m benchmarks.ways [--quick] [--only NAME]
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.detection_workloads import Workload, fire, rare_partners, sequences
from benchmarks.hybrid_workloads import (
    Stream,
    correlated,
    distant,
    keyed,
    sensors,
    walks,
)
from benchmarks.report import Row, attempted, table
from broker.detection import marks_of
from broker.parallel import deployed
from matcher.model import TIME_MAX
from rules import load
from rules.pattern import RuleSet

WAYS = ("cdp", "aip", "hybrid", "auto")
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds of each chunk, and the composite events."""

    spent: tuple[float, ...]
    composites: int


def run(quick: bool, only: str = "") -> Iterator[Row]:
    for workload in workloads(10 if quick else 1):
        if only in workload.name:
            name = f"ways/{workload.name}"
            yield from attempted(name, lambda one=workload: measure(one, 1 if quick else REPEATS))


def workloads(scale: int) -> Iterator[Workload]:
    """Chains, each with enough events for trials to pay."""
    rising = ["change < later.change"]
    minutes = 30_000 // scale
    for stream in (
        walks("changes, 6 states", rising, minutes, 20),
        walks("correlation, 6 states", [correlated(0.8)], minutes, 14),
        walks("a run, 6 states", rising, minutes, 20, runs=(2,)),
        sensors(200_000 // scale, 120),
        sensors(100_000 // scale, 80, 7, 1, 6, "<"),
        keyed(120_000 // scale, 8, 300),
        distant(300_000 // scale, 60),
    ):
        yield of_stream(stream)
    yield sequences(3, "each", 1_000, 60_000 // scale)
    yield sequences(2, "each", 1_000, 60_000 // scale)
    yield fire("each", 100 // scale, 400 // scale, chunk=8)
    yield rare_partners(200_000 // scale)


def of_stream(stream: Stream) -> Workload:
    return Workload(stream.name, stream.rule, stream.chunks, 0)


def measure(workload: Workload, repeats: int) -> Iterator[Row]:
    """The rate of every way, and ``auto`` beside the best and the worst."""
    rules = load(workload.rules)
    runs: dict[str, list[Run]] = {name: [] for name in WAYS}
    for name in WAYS:
        run_of(workload, rules, name)  # loads what it needs
    for repeat in range(repeats):
        for name in WAYS if repeat % 2 == 0 else reversed(WAYS):
            runs[name].append(run_of(workload, rules, name))
    if len({one.composites for some in runs.values() for one in some}) > 1:
        raise AssertionError(f"{workload.name}: the ways differ")
    events = sum(len(batch) for chunk in workload.chunks for batch in chunk)
    rates = {
        name: events / sum(map(min, zip(*(one.spent for one in some), strict=True)))
        for name, some in runs.items()
    }
    auto = rates.pop("auto")
    best, worst = max(rates, key=rates.__getitem__), min(rates.values())
    said = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
    note = f"{said}; the worst is {worst / rates[best]:.2f} of the best"
    yield Row(f"ways/{workload.name}, auto", auto, "events/s", best, rates[best], note)


def run_of(workload: Workload, rules: RuleSet, name: str) -> Run:
    """A run in one way."""
    engine = deployed(name, rules, 1)
    gc.collect()
    spent, composites, done = [], 0, 0
    for place, chunk in enumerate(workload.chunks):
        started = time.process_time()
        for batch in chunk:
            engine.push(batch)
        is_last = place + 1 == len(workload.chunks)
        last = max((int(batch.time[-1]) for batch in chunk), default=0)
        for mark in marks_of(chunk, TIME_MAX if is_last else last + 1, done):
            composites += len(engine.advance(mark))
        spent.append(time.process_time() - started)
        done += sum(map(len, chunk))
    return Run(tuple(spent), composites)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="workloads whose names contain this")
    options = parser.parse_args()
    print(table(list(run(options.quick, options.only))))


if __name__ == "__main__":
    main()

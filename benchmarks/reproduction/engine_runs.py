"""How the engine experiments measure: the time of an event, and what a full queue drops.

*Processing time* is CPU time for each event after a warm-up: mean and 95 % confidence over seeds.
*Throughput* is the thesis's experiment of 5.8.1 on a virtual clock: events arrive at a constant
rate, at most QUEUE wait, what arrives beyond is dropped, and the engine takes all that wait at
once; the clock goes on by the time that this really took.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.reproduction.engine_workloads import Events, Workload, in_chunks
from broker.warmup import warm_up
from matcher.model import MICROSECONDS
from rules import load
from rules.engine import ENGINES, Detector, make

SEEDS = (1, 2, 3)
QUEUE = 100
"""Events that may wait, as in the thesis."""
CHUNK = 256
SECONDS_MAX = 2.0
"""A run for one seed and value ends after so much CPU time, if its events are not done then."""
STUDENT_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 10: 2.262}
"""The 97.5 % quantile of Student's distribution, by how many values there are."""

Making = Callable[[np.random.Generator], Workload]
Engines = dict[str, str]
"""Names of ``rules.engine.make`` by those of the thesis."""


@cache
def engines() -> Engines:
    """The engines of the thesis that are there, their kernels compiled."""
    for name in ENGINES:
        warm_up(name)
    return {name.upper(): name for name in ("aip", "cdp") if name in ENGINES}


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds, and half the width of its 95 % confidence interval (None for one)."""

    value: float
    half: float | None

    @classmethod
    def of(cls, values: list[float]) -> Mean:
        count = len(values)
        if count < 2:
            return cls(float(np.mean(values)), None)
        deviation = float(np.std(values, ddof=1))
        return cls(float(np.mean(values)), STUDENT_95[count] * deviation / math.sqrt(count))


@dataclass(frozen=True, slots=True)
class Measured:
    """One engine on one workload: microseconds an event, and composite events for each."""

    event_us: Mean
    composites: Mean


@dataclass(frozen=True, slots=True)
class Span:
    """How events follow each other: ``rate`` a second of event time; the first ``warm_up`` are not
    measured, then ``events`` are.
    """

    rate: float
    warm_up: int
    events: int


def processing(making: Making, engine: str, span: Span, seeds: tuple[int, ...]) -> Measured:
    """Mean CPU time of an event on one thread."""
    runs = [_processing_once(making, engine, span, seed) for seed in seeds]
    times, composites = zip(*runs, strict=True)
    return Measured(Mean.of(list(times)), Mean.of(list(composites)))


def _processing_once(making: Making, engine: str, span: Span, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    workload = making(rng)
    events = workload.events(span.warm_up + span.events, rng)
    detector = deployed(engine, workload)
    times = (np.arange(len(events)) * (MICROSECONDS / span.rate)).astype(np.int64)
    done = found = 0
    spent = 0.0
    gc.collect()
    for places in in_chunks(len(events), CHUNK):
        batches = events.batches(places, times[places])
        begun = time.process_time()
        for batch in batches:
            detector.push(batch)
        composites = detector.advance(int(times[places[-1]]) + 1)
        if places[0] < span.warm_up:
            continue
        spent += time.process_time() - begun
        done += len(places)
        found += len(composites)
        if spent > SECONDS_MAX:
            break
    return spent / done * 1e6, found / done


@dataclass(frozen=True, slots=True)
class Offered:
    """One engine at one rate: composite events a second, and the share of events dropped."""

    throughput: Mean
    dropped: Mean


def offered(
    making: Making, engine: str, rate: float, events: int, seeds: tuple[int, ...]
) -> Offered:
    """What comes out when events arrive at a rate and a full queue drops them."""
    runs = [_offered_once(making, engine, rate, events, seed) for seed in seeds]
    throughput, dropped = zip(*runs, strict=True)
    return Offered(Mean.of(list(throughput)), Mean.of(list(dropped)))


def _offered_once(
    making: Making, engine: str, rate: float, count: int, seed: int
) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    workload = making(rng)
    events = workload.events(count, rng)
    detector = deployed(engine, workload)
    _begin(detector, events)
    arrivals = np.arange(count) / rate
    clock, arrived, dropped, found = 0.0, 0, 0, 0
    gc.collect()
    while arrived < count:
        clock = max(clock, float(arrivals[arrived]))
        present = int(np.searchsorted(arrivals, clock, "right"))
        waiting = np.arange(arrived, min(present, arrived + QUEUE))
        dropped += present - arrived - len(waiting)
        arrived = present
        # Event time begins behind the event that made the engine ready.
        times = BEGINNING_US + (arrivals[waiting] * MICROSECONDS).astype(np.int64)
        batches = events.batches(waiting, times)
        begun = time.perf_counter()
        for batch in batches:
            detector.push(batch)
        found += len(detector.advance(int(times[-1]) + 1))
        clock += time.perf_counter() - begun
        if clock > count / rate + SECONDS_MAX:
            break
    return found / clock, dropped / arrived


BEGINNING_US = 3_600 * MICROSECONDS
"""Far beyond any window."""


def _begin(detector: Detector, events: Events) -> None:
    """One instant, so that nothing is compiled or loaded while the clock runs."""
    for batch in events.batches(np.arange(1), np.zeros(1, np.int64)):
        renamed = type(batch.ids)(batch.ids.source, batch.ids.sequence - len(events))
        detector.push(type(batch)(batch.type, batch.time, renamed, batch.columns))
    detector.advance(1)


def deployed(engine: str, workload: Workload) -> Detector:
    """An engine with the rules."""
    detector = make(engine)
    detector.deploy(load(workload.rules))
    return detector

"""How the engine experiments measure: the time of an event, and what a full queue drops.

*Processing time* is CPU time for each event after a warm-up: mean and 95 % confidence over seeds.
*Throughput* is the thesis's experiment of 5.8.1 on a virtual clock: events arrive at a constant
rate, at most QUEUE wait, what arrives beyond is dropped, and the engine takes all that wait at
once; the clock goes on by the CPU time that this took.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from broker.warmup import warm_up
from matcher.model import MICROSECONDS, EventBatch, EventIds, Int64s
from rules import load
from rules.engine import ENGINES, Detector, make
from rules.pattern import RuleSet
from studies.reproduction.engine_workloads import Workload, in_chunks
from studies.reproduction.verdicts import student

SEEDS = (1, 2, 3)
TOLD_SEEDS = f"{SEEDS[0]} to {SEEDS[-1]}"
QUEUE = 100
"""Events that may wait, as in the thesis."""
CHUNK = 256
SECONDS_MAX = 0.5
"""A run for one seed and value ends after so much CPU time, if its events are not done then."""

Making = Callable[[np.random.Generator], Workload]
Engines = dict[str, str]
"""Names of ``rules.engine.make`` by those of the thesis."""


def engines() -> Engines:
    """The engines of chapter 5, their kernels compiled, and ours that has links beside them."""
    _warm_up()
    return {"AIP": "aip-published", "CDP": "cdp", "links": "aip"}


def of_today() -> Engines:
    """The engines of chapter 6, as they are today."""
    _warm_up()
    return {"AIP": "aip", "CDP": "cdp"}


@cache
def _warm_up() -> None:
    for name in ENGINES:
        warm_up(name)


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
        return cls(float(np.mean(values)), student(count) * deviation / math.sqrt(count))


@dataclass(frozen=True, slots=True)
class Measured:
    """One engine on one workload: microseconds an event, and composite events for each."""

    event_us: Mean
    composites: Mean


@dataclass(frozen=True, slots=True)
class Span:
    """How events follow each other: ``rate`` a second of event time; the first ``warm_up`` are not
    measured, then ``events`` are. So many come at a time as a ``chunk``.
    """

    rate: float
    warm_up: int
    events: int
    chunk: int = CHUNK


def processing(
    making: Making, engines: Sequence[str], span: Span, seeds: tuple[int, ...]
) -> list[Measured]:
    """Mean CPU time of an event on one thread, by engine. They take turns, seed by seed: what else
    the machine does is done to all.
    """
    runs = [[_processing_once(making, one, span, seed) for one in engines] for seed in seeds]
    found = []
    for of_engine in zip(*runs, strict=True):
        times, composites = zip(*of_engine, strict=True)
        found.append(Measured(Mean.of(list(times)), Mean.of(list(composites))))
    return found


def _processing_once(making: Making, engine: str, span: Span, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    workload = making(rng)
    events = workload.events(span.warm_up + span.events, rng)
    detector = deployed(engine, workload)
    times = (np.arange(len(events)) * (MICROSECONDS / span.rate)).astype(np.int64)
    done = found = 0
    spent = 0.0
    gc.collect()
    for places in in_chunks(len(events), span.chunk):
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
    """What came of a rate: composite events a second, and the share of events dropped."""

    throughput: float
    dropped: float


class Stream:
    """Events that arrive at one rate after another, at one engine with its rules; ``at`` a rate.

    Each rate has a stretch of event time of its own, beyond any window of the one before. The
    clock goes on by CPU time: what else the machine does is no part of it.
    """

    def __init__(self, making: Making, engine: str, events: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        workload = making(rng)
        self._events = workload.events(events, rng)
        self._detector = deployed(engine, workload)
        self._begun = 0
        self._push(np.arange(1), np.zeros(1, np.int64))  # nothing is loaded while the clock runs
        self._detector.advance(1)

    def at(self, rate: float, count: int) -> Offered:
        """Let ``count`` events arrive, so many a second; a full queue drops them."""
        self._begun += 1
        beginning = self._begun * STRETCH_US
        arrivals = np.arange(count) / rate
        clock, arrived, dropped, found = 0.0, 0, 0, 0
        gc.collect()
        while arrived < count and clock <= count / rate + SECONDS_MAX:
            clock = max(clock, float(arrivals[arrived]))
            present = int(np.searchsorted(arrivals, clock, "right"))
            waiting = np.arange(arrived, min(present, arrived + QUEUE))
            dropped += present - arrived - len(waiting)
            arrived = present
            times = beginning + (arrivals[waiting] * MICROSECONDS).astype(np.int64)
            spent, composites = self._push(waiting, times)
            found += composites
            clock += spent
        return Offered(found / clock, dropped / arrived)

    def held(self, rate: float, count: int, filling: int, least: int, at_once: int) -> Offered:
        """Let ``count`` events arrive, so many a second, and tell what came of them but for the
        first ``filling``. It ends early, but not before ``least`` more, once a hundredth of what is
        counted is dropped.
        """
        self._begun += 1
        beginning = self._begun * STRETCH_US
        waiting = np.zeros(0, np.int64)
        clock = since = 0.0
        arrived = dropped = found = 0
        counted: int | None = None if filling else 0
        gc.collect()
        while arrived < count or len(waiting):
            if not len(waiting):
                clock = max(clock, arrived / rate)
            present = min(int(clock * rate + 1e-6) + 1, count)
            room = min(present, arrived + QUEUE - len(waiting))
            waiting = np.append(waiting, np.arange(arrived, room))
            dropped += present - room
            arrived = present
            taken, waiting = waiting[:at_once], waiting[at_once:]
            times = beginning + (taken * (MICROSECONDS / rate)).astype(np.int64)
            spent, composites = self._push(taken, times)
            found += composites
            clock += spent
            if counted is None and arrived >= filling:
                counted, since, dropped, found = arrived, clock, 0, 0
            is_seen = counted is not None and arrived - counted >= least
            if is_seen and dropped > (count - filling) / 100:
                break
        return Offered(found / (clock - since), dropped / (arrived - (counted or 0)))

    def _push(self, places: Int64s, times: Int64s) -> tuple[float, int]:
        """Take events in and evaluate; the seconds that took, and the composite events."""
        batches = [self._renamed(batch) for batch in self._events.batches(places, times)]
        begun = time.process_time()
        for batch in batches:
            self._detector.push(batch)
        found = len(self._detector.advance(int(times[-1]) + 1))
        return time.process_time() - begun, found

    def _renamed(self, batch: EventBatch) -> EventBatch:
        """The same events under ids of this stretch."""
        sequence = batch.ids.sequence + self._begun * len(self._events)
        return replace(batch, ids=EventIds(batch.ids.source, sequence))


STRETCH_US = 3_600 * MICROSECONDS


def deployed(engine: str, workload: Workload) -> Detector:
    """An engine with the rules."""
    detector = make(engine)
    detector.deploy(checked(workload.rules))
    return detector


@lru_cache(2 * len(SEEDS))
def checked(rules: str) -> RuleSet:
    """Rules are checked once for all engines."""
    return load(rules)

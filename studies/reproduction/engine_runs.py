"""How the engine experiments measure: the time of an event, and what a full queue drops.

*Processing time* is CPU time for each event after a warm-up: mean and 95 % confidence over seeds.
*Throughput* is the thesis's experiment of 5.8.1 on a virtual clock: events arrive at a constant
rate, at most QUEUE wait, what arrives beyond is dropped, and the engine takes all that wait at
once; the clock goes on by the CPU time that this took.
"""

from __future__ import annotations

import gc
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
from studies.reproduction.engine_workloads import Workload, filling, in_chunks
from studies.reproduction.seeds import Mean
from studies.reproduction.turns import SECONDS_MAX, TURN_S, take_turns

SEEDS = tuple(range(1, 11))
"""As many as the thesis has."""
FEW_SEEDS = SEEDS[:5]
"""Where one seed takes long."""
QUEUE = 100
"""Events that may wait, as in the thesis."""
CHUNK = 256

Making = Callable[[np.random.Generator], Workload]
Engines = dict[str, str]
"""Names of ``rules.engine.make`` by those of the thesis."""


def engines() -> Engines:
    """The thesis's engines, their kernels compiled, and ours that has links beside them."""
    _warm_up()
    return {"AIP": "aip-published", "CDP": "cdp", "links": "aip"}


@cache
def _warm_up() -> None:
    for name in ENGINES:
        warm_up(name)


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


Work = tuple[Making, Span]
"""What is measured, and how its events follow each other."""


def processing(
    works: Sequence[Work], engines: Sequence[str], seeds: Sequence[int]
) -> list[list[Measured]]:
    """Mean CPU time of an event on one thread, for each work by engine. With each seed all of them
    take turns: what else the machine does is done to all.
    """
    ways = [(*work, engine) for work in works for engine in engines]
    measured = [
        Measured(*map(Mean.of, zip(*of_way, strict=True)))
        for of_way in zip(*(_in_turns(ways, seed) for seed in seeds), strict=True)
    ]
    return [measured[first : first + len(engines)] for first in range(0, len(ways), len(engines))]


def _in_turns(ways: Sequence[tuple[Making, Span, str]], seed: int) -> list[tuple[float, float]]:
    """For each way microseconds an event and composite events for each, with one seed."""
    turns = [Turns(*way, seed) for way in ways]
    gc.collect()
    gc.freeze()  # the others' rules are not looked through while one is measured
    take_turns(turns)
    gc.unfreeze()
    return [one.result for one in turns]


class Turns:
    """An engine with its rules, its windows full; it takes events for TURN_S at a turn."""

    def __init__(self, making: Making, span: Span, engine: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        workload = making(rng)
        self._span = span
        self._events = workload.events(span.warm_up + span.events, rng)
        self._times = (np.arange(len(self._events)) * (MICROSECONDS / span.rate)).astype(np.int64)
        self._detector = deployed(engine, workload)
        self._chunks = in_chunks(span.events, span.chunk)
        self._spent, self._done, self._found = 0.0, 0, 0
        for places in filling(self._events, workload.ends, span.warm_up, span.chunk):
            self._take(places)

    def turn(self) -> bool:
        """Take events; False once all are taken, or SECONDS_MAX are over."""
        end = min(self._spent + TURN_S, SECONDS_MAX)
        for chunk in self._chunks:
            spent, found = self._take(self._span.warm_up + chunk)
            self._spent += spent
            self._done += len(chunk)
            self._found += found
            if self._spent > end:
                return self._spent <= SECONDS_MAX
        return False

    def _take(self, places: Int64s) -> tuple[float, int]:
        """Take events in and evaluate; the seconds that took, and the composite events."""
        batches = self._events.batches(places, self._times[places])
        begun = time.process_time()
        for batch in batches:
            self._detector.push(batch)
        composites = self._detector.advance(int(self._times[places[-1]]) + 1)
        return time.process_time() - begun, len(composites)

    @property
    def result(self) -> tuple[float, float]:
        """Microseconds an event, and composite events for each."""
        return self._spent / self._done * 1e6, self._found / self._done


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


@lru_cache(8)
def checked(rules: str) -> RuleSet:
    """Rules are checked once for all engines."""
    return load(rules)

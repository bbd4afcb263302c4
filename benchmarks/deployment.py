"""Rules that come, are replaced and go one by one while events flow: how long each change takes.

Thousands of rules of six shapes (joins by values, a negation, an aggregate, consumption, rules
over composite events of others) are deployed one by one, then each is replaced by another of its
name, then all are removed; between two changes events come and are evaluated. Figures are
milliseconds of this thread's CPU time for one change of checked rules, Python's collector
included: the 99th percentile says what most wait for, the longest what growth and the collector
cost. The engine is warm, and what stays is frozen now and then, as in a broker; how long that
takes is a figure, too.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from benchmarks.detection_workloads import batch_of
from benchmarks.report import Row
from broker.warmup import warm_up
from matcher.model import MICROSECONDS, EventBatch, EventType, StringColumn
from rules import load
from rules.engine import make
from rules.engine.engine import Detector
from rules.pattern import RuleSet
from runtime.ageing import Ageing

RULES = 2_000
ENGINE = "auto"
EVENTS, EVENTS_PER_S = 64, 1_000
"""Events between two changes, and in a second of event time."""
TYPES = 50
"""Composite types of one shape of rules."""
LEVELS = 500
"""An alarm is the terminator of one rule in so many."""
PLACES = tuple(f"place-{number}" for number in range(20))
GOAL_MS = 5.0
SEED = 5

READING = EventType.of("Reading", place="string", value="float", count="int")
ALARM = EventType.of("Alarm", place="string", level="int")
FOUND = EventType.of("Found", place="string", level="int")
KNOWN = {type_.name: type_ for type_ in (READING, ALARM, FOUND)}
SHAPES = (
    "define T{type}(place: string, v: float) from Alarm(place = $p, level = {level}) as a"
    " and last Reading(place = $p, value > {threshold}) as r within {window} s from a"
    " where place = $p, v = r.value consuming r",
    "define T{type}(n: int) from Alarm(level = {level}) as a"
    " and each Reading(count = {level}) as r within 3 s from a"
    " and not Alarm(level = 0) between r and a where n = r.count",
    "define T{type}(m: float) from Alarm(place = $p, level = {level}) as a"
    " and $m = Avg(Reading(place = $p).value within {window} s from a) where m = $m",
    "define T{type}(n: int) from Alarm(level = {level}) as a"
    " and last Reading(count = {level}) as r within {window} s from a"
    " and last Reading(value < {threshold}) as s within 2 s from r where n = s.count",
    "define Found(place: string, level: int) from Alarm(place = $p, level = {level}) as a"
    " and last Reading(place = $p, value > {threshold}) as r within {window} s from a"
    " where place = $p, level = {level}",
    "define T{type}(n: int) from Found(level = {level}) as f"
    " and last Alarm() as a within {window} s from f where n = a.level",
)


def run(quick: bool) -> Iterator[Row]:
    warm_up(ENGINE)
    count = RULES // 20 if quick else RULES
    olds, news = ([rule_of(number, version) for number in range(count)] for version in (0, 1))
    spent = Changes(make(ENGINE)).measured(olds, news)
    for name, times in spent.items():
        label = f"deployment/{count:,} rules one by one, {name}"
        for percentile in (50, 99):
            yield Row(f"{label}, p{percentile}", float(np.percentile(times, percentile)), "ms")
        yield Row(f"{label}, longest", max(times), "ms", "the goal", GOAL_MS)


def rule_of(number: int, version: int) -> RuleSet:
    """One rule, by its number; versions differ in all their constants but the terminator's."""
    shape = SHAPES[number % len(SHAPES)]
    text = shape.format(
        type=f"{number % len(SHAPES)}_{number % TYPES}",
        level=number % LEVELS,
        threshold=(number % 7 + version) / 10,
        window=2 + number % 9 + version,
    )
    return load(f"rule r{number}: {text}", known=KNOWN)


class Changes:
    """An engine whose rules change while events flow, and how long things took, in milliseconds."""

    def __init__(self, engine: Detector) -> None:
        self._engine = engine
        self._rng = np.random.default_rng(SEED)
        self._events = self._mark = 0
        self._ageing = Ageing(lambda: None)
        self._frozen: list[float] = []

    def measured(self, olds: Sequence[RuleSet], news: Sequence[RuleSet]) -> dict[str, list[float]]:
        """Let rules come, be replaced, and go; the durations by what was done."""
        self._ageing.begin()
        try:
            return {
                "deployed": [self._spent(partial(self._deploy, one)) for one in olds],
                "replaced": [self._spent(partial(self._replace, one)) for one in news],
                "removed": [self._spent(partial(self._remove, one)) for one in news],
                "freezing between them": self._frozen,
            }
        finally:
            self._ageing.end()
            gc.unfreeze()

    def _deploy(self, one: RuleSet, version: int = 0) -> None:
        self._engine.deploy(one, since=self._mark, version=version)

    def _remove(self, one: RuleSet) -> None:
        self._engine.remove(one.rules[0].name)

    def _replace(self, one: RuleSet) -> None:
        self._remove(one)
        self._deploy(one, version=1)

    def _spent(self, change: Callable[[], None]) -> float:
        """How long a change takes, once events have come before it."""
        for batch in events(self._events, self._rng):
            self._engine.push(batch)
        self._events += EVENTS
        self._mark = self._events * MICROSECONDS // EVENTS_PER_S
        self._engine.advance(self._mark)
        self._frozen.append(milliseconds(self._ageing.take))
        return milliseconds(change)


def milliseconds(action: Callable[[], None]) -> float:
    """What an action takes of this thread's CPU time."""
    begun = time.thread_time_ns()
    action()
    return (time.thread_time_ns() - begun) / 1e6


def events(first: int, rng: np.random.Generator) -> Iterator[EventBatch]:
    """What comes between two changes: an alarm in eight events, the others readings."""
    numbers = np.arange(first, first + EVENTS)
    times = numbers * MICROSECONDS // EVENTS_PER_S
    places = rng.integers(0, len(PLACES), EVENTS).astype(np.int32)
    levels, values = rng.integers(0, LEVELS, EVENTS), rng.random(EVENTS)
    is_alarm = numbers % 8 == 0
    for type_, chosen in ((READING, ~is_alarm), (ALARM, is_alarm)):
        place = StringColumn(places[chosen], PLACES)
        others = (values[chosen], levels[chosen]) if type_ is READING else (levels[chosen],)
        yield batch_of(type_, times[chosen], numbers[chosen], (place, *others))

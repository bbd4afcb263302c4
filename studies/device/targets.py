"""Uses of a device, and of none: predicates that no index serves over long windows, a range of one
in a thousand values, and R10's join by a value, which the processor's indexes answer.

Elapsed microseconds for a terminator, by our engines, and by two loops that numba compiled for the
one predicate and run over its columns and do nothing else, on one thread: no engine that takes
rules as data can be faster on the processor. Targets stand in the notes. Of the rule that has one
each kernel is timed by itself, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit

from benchmarks.report import Row, attempted, seconds_of
from matcher.gpu.device import device
from matcher.model import AnyArray, EventType
from studies.bench_gpu import TARGET
from studies.device.apart import kernels
from studies.device.bandwidth import bytes_a_second, share
from studies.device.detection import alone_of
from studies.device.streams import (
    AIP,
    CDP,
    GRAPHS,
    LAUNCHED,
    PUBLISHED,
    SEED,
    Stream,
    filled,
    terminators_wanted,
    timings,
)
from studies.reproduction.engine_workloads import VALUES, Events, Joined, Workload

WINDOW = 1_000_000
WINDOWS = (1_000, 10_000, 100_000, WINDOW)
"""They show from where on the device pays."""
LONGEST = 10_000_000
SIMULATED_WINDOW = 8
A_TERMINATOR_US, TIMES, TIMES_AT_ONCE = 30.0, 5.0, 50.0
SCAN = "numba scan"
SCANS = 20
"""Terminators that the loop is timed on."""


@njit  # type: ignore[untyped-decorator]
def _last_near(v: AnyArray, w: AnyArray, x: int, y: int) -> int:
    """The last place of which the distance to a point is less than five; -1 if there is none."""
    for place in range(len(v) - 1, -1, -1):
        if (v[place] - x) * (v[place] - x) + (w[place] - y) * (w[place] - y) < 25:
            return place
    return -1


@njit  # type: ignore[untyped-decorator]
def _last_sum(v: AnyArray, w: AnyArray, x: int, y: int) -> int:
    """The last place of which a sum is that of another's; -1 if there is none."""
    for place in range(len(v) - 1, -1, -1):
        if v[place] * 50_000 + w[place] == y * 50_000 + x:
            return place
    return -1


@njit  # type: ignore[untyped-decorator]
def _last_within(v: AnyArray, w: AnyArray, x: int, y: int) -> int:
    """The last place of which one value is in a range and the other far below; -1 without."""
    for place in range(len(v) - 1, -1, -1):
        if x <= v[place] < x + 50 and w[place] < y - 49_990:
            return place
    return -1


@dataclass(frozen=True, slots=True)
class Predicate:
    """One of two attributes of each event, as rules say it and as numba compiles it."""

    name: str
    text: str
    scan: Callable[[AnyArray, AnyArray, int, int], int]


PREDICATES = (
    Predicate("a sum", "b.v * 50000 + b.w = a.w * 50000 + a.v", _last_sum),
    Predicate(
        "a distance", "(b.v - a.v) * (b.v - a.v) + (b.w - a.w) * (b.w - a.w) < 25", _last_near
    ),
    Predicate("a range", "b.v >= a.v, b.v < a.v + 50, b.w < a.w - 49990", _last_within),
)


def workload(predicate: Predicate, window: int) -> Workload:
    """One rule that asks for the last event of which the predicate holds; half of all events ask.

    A window is full of events that may be asked for, since no terminator comes before.
    """
    text = predicate.text.replace("b.", "")
    rules = (
        "event A(v: int, w: int)\nevent B(v: int, w: int)\n"
        f"rule scan: define Found(v: int) from A() as a and last B({text}) as b"
        f" within {window} us from a where v = b.v"
    )
    types = tuple(EventType.of(name, v="int", w="int") for name in "AB")

    def events(count: int, chance: np.random.Generator) -> Events:
        kinds = np.ones(count, np.int64)
        asking = min(count, 4 * terminators_wanted())
        kinds[count - asking :] = chance.integers(0, 2, asking)
        drawn = [chance.integers(1, VALUES + 1, count) for _ in range(2)]
        return Events(types, kinds, lambda _, at: tuple(column[at] for column in drawn))

    return Workload(rules, events)


def run(quick: bool) -> Iterator[Row]:
    """The windows that show from where on the device pays first, then a million events by other
    predicates, and the longest window.
    """
    if device().simulated:
        yield from scans(PREDICATES[0], SIMULATED_WINDOW)
        yield from joins(SIMULATED_WINDOW)
        return
    found: dict[int, list[Row]] = {}
    for window in WINDOWS[:: 3 if quick else 1]:
        for row in scans(PREDICATES[0], window):
            yield row
            found.setdefault(window, []).append(row)
    yield from crossovers(found)
    for predicate in PREDICATES[1:]:
        yield from scans(predicate, WINDOW)
    yield from joins(WINDOW)
    yield from scans(PREDICATES[0], LONGEST)


def crossovers(found: Mapping[int, Sequence[Row]]) -> Iterator[Row]:
    """From what window on, of those that were measured, the device is ahead in all."""
    times = {
        window: {row.name.rpartition("/")[2]: row.value for row in rows if row.value is not None}
        for window, rows in sorted(found.items())
    }
    for engine in (GRAPHS, LAUNCHED, PUBLISHED):
        for other in (CDP, SCAN):
            ahead = None
            for window, of in times.items():
                if engine not in of or other not in of:
                    continue
                if of[engine] >= of[other]:
                    ahead = None
                elif ahead is None:
                    ahead = window
            if ahead is not None:
                name = f"targets/{PREDICATES[0].name}, crossover/{engine} ahead of {other}"
                yield Row(name, ahead, "events", note="the least window measured from which on")


def scans(
    predicate: Predicate,
    window: int,
    engines: Sequence[str] = (CDP, GRAPHS, LAUNCHED, PUBLISHED),  # it has no automaton: AIP is CDP
) -> Iterator[Row]:
    """A predicate that the processor has no index for, beside the loop over its columns."""
    label = f"targets/{predicate.name}, window of {window:,}"
    rng = np.random.default_rng(SEED)
    columns = [rng.integers(1, VALUES + 1, window) for _ in range(2)]
    points = rng.integers(1, VALUES + 1, (SCANS, 2)).tolist()

    def loop() -> None:
        for x, y in points:
            predicate.scan(*columns, x, y)

    scan_us = seconds_of(loop, repeats=3) / SCANS * 1e6
    yield Row(f"{label}/{SCAN}", scan_us, "us a terminator", note="the loop alone")
    stream = Stream.of(workload(predicate, window), window, 2 * terminators_wanted(), [0])
    asked = Asked(label, stream, scan_us, window == WINDOW and predicate is PREDICATES[0])
    for name in engines:
        yield from attempted(f"{label}/{name}", partial(asked.by, name))


@dataclass(frozen=True, slots=True)
class Asked:
    """A stream whose terminators are timed beside the loop."""

    label: str
    stream: Stream
    scan_us: float
    has_target: bool

    def by(self, name: str) -> Iterator[Row]:
        """The time that one engine takes for a terminator."""
        # For the processor 64 at once are 64 times one, and would take seconds.
        engine, at_most = filled(name, self.stream), 1 if name == CDP else None
        for at_once, timing in timings(engine, self.stream, at_most):
            way = f", {at_once} at once" if at_once > 1 else ""
            note = f"{timing.composites:.3g} found"
            if self.has_target and name == GRAPHS:
                note = f"{TARGET}at most {self._target_us(at_once):.3g}; {note}"
            yield self._row(f"{name}{way}", timing.terminator_us, note)
            if timing.alone is not None:
                for what, seconds in alone_of(timing.alone):
                    note = share(timing.alone.moved, seconds, bytes_a_second(device()))
                    yield self._row(f"{name}{way}, {what}", seconds * 1e6 / at_once, note)
            if self.has_target and name == GRAPHS and engine.recordings is not None:
                place = self.label.partition("/")[2] + way
                each = partial(kernels, place, engine.recordings)
                yield from attempted(f"kernels/{place}", each)

    def _target_us(self, at_once: int) -> float:
        if at_once > 1:
            return self.scan_us / TIMES_AT_ONCE
        return min(self.scan_us / TIMES, A_TERMINATOR_US)

    def _row(self, name: str, us: float, note: str) -> Row:
        return Row(f"{self.label}/{name}", us, "us a terminator", SCAN, self.scan_us, note)


def joins(window: int) -> Iterator[Row]:
    """R10, whose events the processor finds by an index; the device has to be no slower to be worth
    anything here.
    """
    stream = Stream.joined(Joined(window=window))
    beside: dict[int, float] = {}
    for name in (CDP, AIP, GRAPHS, LAUNCHED, PUBLISHED):
        label = f"targets/R10, windows of {window:,}/{name}"
        yield from attempted(label, partial(_joined, label, name, stream, beside))


def _joined(label: str, name: str, stream: Stream, beside: dict[int, float]) -> Iterator[Row]:
    for at_once, timing in timings(filled(name, stream), stream):
        way = f", {at_once} at once" if at_once > 1 else ""
        other = None if name == CDP else beside.get(at_once)
        beside.setdefault(at_once, timing.terminator_us)
        note = f"{timing.composites:.3g} found"
        yield Row(label + way, timing.terminator_us, "us a terminator", CDP, other, note)

"""Windows that are filled, terminators that ask, and the engines that answer, timed by the clock.

Law 1: nothing is measured before all windows of the rules are full. No terminator comes until then,
so that filling costs what taking events in costs; the first ones after it are not counted, since
kernels are loaded then and automata catch up.

Law 2: what is timed is all that a host does with events: it pushes them, advances the mark, and
counts the composite events. Batches are made before. Terminators come one by one, each with the
events that lie between it and the one before, or so many at once.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.report import seconds_of
from matcher.gpu.device import Device, Lane, device
from matcher.model import EventBatch, Int64s
from rules import load
from rules.engine import Detector, make
from studies.reproduction.engine_workloads import Events, Joined, Workload

SEED = 7
FILLING = 2**18
"""Events of a chunk while windows are filled."""
FIRST, FIRST_S = 3, 2.0
"""Turns after the filling that are not counted at least, and seconds that end these."""
ROUNDS = 8
"""Of terminators one by one as many are not counted as it takes until each type was there, since
the rules of each catch up, but no more than so many for each type."""
TURNS: Mapping[int, int] = {1: 600, 64: 12}
"""The most turns that are counted, by how many terminators come at once."""
FEW: Mapping[int, int] = {1: 2, 3: 1}
"""The same under the simulator."""
SECONDS_MAX = 0.25
"""So much elapsed time ends the counting too, but not before TURNS_MIN turns."""
TURNS_MIN = 2

ALONE, ALONE_S = 20, 0.05
"""How often the device's own part of a turn is repeated at most, to be timed, and the seconds that
end this."""

AIP, CDP = "CPU AIP", "CPU CDP"
PUBLISHED, LAUNCHED, GRAPHS = "GPU CDP, published", "GPU CDP, launched", "GPU CDP, graphs"
PUBLISHED_1G = "GPU CDP, published, 1 GiB"
"""With as much memory as the thesis's GPU, and columns sized for a million events, as there."""
COLUMN_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Alone:
    """Seconds of what a turn does on the device, its copies among it: one behind the other, and
    each waited for, which is what the host could have at best. And the bytes that its kernels
    move, at least (:mod:`studies.device.moved`).
    """

    behind_s: float
    waited_s: float
    moved: int


@dataclass(frozen=True, slots=True)
class _Launched:
    """The launches of one evaluation: how they are repeated, and how they are made anew."""

    again: Callable[[], None]
    work: Callable[[], None]
    lane: Lane


class Recordings:
    """A device that notes what a turn launches of what is recorded on it, an evaluation for each
    rule that is asked, so that the turn can be repeated by itself; without ``graphs`` it records
    nothing, and all is launched anew each time.

    Example: of 1,000 rules a terminator concerns 100, so its turn is 100 graphs.
    """

    def __init__(self, *, graphs: bool) -> None:
        self.device: Device = copy(device())
        self._graphs = graphs
        self._launched: list[_Launched] = []
        self._recorded_anew = False
        """Whether something was recorded in this turn: a graph that was launched before then may
        work in memory that is given back."""
        self.device.recorded = self._record  # type: ignore[method-assign]

    def begin_turn(self) -> None:
        """Forget what was launched before."""
        self._launched, self._recorded_anew = [], False

    def _record(self, work: Callable[[], None], lane: Lane) -> Callable[[], None]:
        one = _Launched(self.repeatable(work, lane), work, lane)
        self._recorded_anew = True

        def again() -> None:
            self._launched.append(one)
            one.again()

        return again

    @property
    def last(self) -> tuple[Callable[[], None], Lane]:
        """The last evaluation of the turn, and its lane."""
        return self._launched[-1].work, self._launched[-1].lane

    def repeatable(self, work: Callable[[], None], lane: Lane) -> Callable[[], None]:
        """Launches in the form in which they are repeated here."""
        return device().recorded(work, lane) if self._graphs else work

    def alone(self) -> Alone | None:
        """A repetition of the turn by itself; None where it launched nothing."""
        if not self._launched:
            return None
        turn = [one.again for one in self._launched]
        if self._recorded_anew:
            turn = [self.repeatable(one.work, one.lane) for one in self._launched]
        _, lane = self.last
        behind, waited = (self.repeated(turn, lane, waits=waits) for waits in (False, True))
        return Alone(behind, waited, self.moved().total())

    def repeated(self, turn: Sequence[Callable[[], None]], lane: Lane, *, waits: bool) -> float:
        """Seconds of launches that are repeated, one behind the other or each time waited for."""

        def several(times: int) -> None:
            for _ in range(times):
                for again in turn:
                    again()
                if waits:
                    lane.wait()
            lane.wait()

        once = seconds_of(partial(several, 1), repeats=1)
        if self.device.simulated:
            return once
        times = max(1, min(ALONE, int(ALONE_S / once)))
        return seconds_of(partial(several, times), repeats=3) / times

    def moved(self) -> Counter[Any]:
        """Bytes that the kernels of the turn move, by kernel."""
        from studies.device.moved import counting  # numba may have no CUDA without a device

        with counting(self.device) as moved:
            for one in self._launched:
                one.work()
                one.lane.wait()
        return moved


@dataclass(frozen=True, slots=True)
class Engine:
    """A new engine, and what it records on a device; None of the processor's."""

    detector: Detector
    recordings: Recordings | None = None


Turn = tuple[Sequence[EventBatch], int]
"""Batches that come together, and the mark behind them."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Rules, and events of which the first ``filling`` ones fill windows; ``asking``: the types of
    the terminators. Event number n is at n microseconds.
    """

    rules: str
    events: Events
    filling: int
    asking: Int64s

    @classmethod
    def of(
        cls, workload: Workload, filling: int, terminators: int, asking: Sequence[int]
    ) -> Stream:
        """So many events to fill windows, then those of so many terminators, about."""
        rng = np.random.default_rng(SEED)
        kinds = workload.events(1, rng).types
        measured = terminators * len(kinds) // len(asking)
        events = workload.events(filling + measured, rng)
        return cls(workload.rules, events, filling, np.array(asking, np.int64))

    @classmethod
    def joined(cls, scenario: Joined, window: int | None = None) -> Stream:
        """R10 and what a scenario changes of it; ``window``: how far back one step looks."""
        workload = scenario.workload(np.random.default_rng(SEED))
        filling = (scenario.states - 1) * (window or scenario.window)
        asking = range(0, scenario.groups * scenario.states, scenario.states)
        return cls.of(workload, filling, terminators_wanted(len(asking)), list(asking))

    def fill(self, detector: Detector) -> None:
        """Take in what fills the windows: all events but terminators."""
        for first in range(0, self.filling, FILLING):
            last = min(first + FILLING, self.filling)
            places = np.arange(first, last)
            places = places[~np.isin(self.events.kinds[first:last], self.asking)]
            if len(places):
                for batch in self.events.batches(places, places):
                    detector.push(batch)
            detector.advance(last)

    @property
    def asking_names(self) -> frozenset[str]:
        """The names of the terminators' types."""
        return frozenset(self.events.types[number].name for number in self.asking.tolist())

    @property
    def capacity(self) -> int:
        """Room for the events of a type, for columns that are sized once."""
        return 4 * self.filling // len(self.events.types) + 1_024

    def turns(self, at_once: int, first: int, count: int) -> list[Turn]:
        """So many turns from an event on, each up to and with so many terminators."""
        asks = np.flatnonzero(np.isin(self.events.kinds[first:], self.asking)) + first
        ends = asks[at_once - 1 :: at_once][:count] + 1
        turns = []
        for end in ends.tolist():
            places = np.arange(first, end)
            turns.append((self.events.batches(places, places), end))
            first = end
        return turns


def _ours(*, graphs: bool) -> Engine:
    from rules.engine.gpu.engine import GpuEngine

    recordings = Recordings(graphs=graphs)
    return Engine(GpuEngine(recordings.device), recordings)


def _published(capacity: int, memory: int | None = None) -> Engine:
    from studies.cdp_on_cuda import PublishedCdp

    return Engine(PublishedCdp(capacity=capacity, memory=memory))


ENGINES: Mapping[str, Callable[[Stream], Engine]] = {
    AIP: lambda _: Engine(make("aip")),
    CDP: lambda _: Engine(make("cdp")),
    GRAPHS: lambda _: _ours(graphs=True),
    LAUNCHED: lambda _: _ours(graphs=False),
    PUBLISHED: lambda stream: _published(stream.capacity),
    PUBLISHED_1G: lambda _: _published(COLUMN_MAX, 2**30),
}
"""The engines by what tables call them."""


def terminators_wanted(types: int = 1) -> int:
    """Terminators of so many types that all that is measured of one engine may need."""
    found = sum(at_once * (uncounted(at_once, types) + turns) for at_once, turns in ways().items())
    return found + found // 10 + 64


def uncounted(at_once: int, types: int) -> int:
    """The most turns that are not counted."""
    return max(FIRST, ROUNDS * types) if at_once == 1 else FIRST


def ways() -> Mapping[int, int]:
    """TURNS, or FEW of them under the simulator."""
    return FEW if device().simulated else TURNS


@dataclass(frozen=True, slots=True)
class Timing:
    """Of so many turns elapsed microseconds for each event and for each terminator, and composite
    events for each terminator; and what a turn does on the device, where it is recorded.
    """

    turns: int
    event_us: float
    terminator_us: float
    composites: float
    alone: Alone | None = None


def filled(name: str, stream: Stream) -> Engine:
    """An engine of ENGINES with a stream's rules and full windows."""
    engine = ENGINES[name](stream)
    engine.detector.deploy(load(stream.rules))
    stream.fill(engine.detector)
    return engine


def timings(
    engine: Engine, stream: Stream, at_most: int | None = None
) -> Iterator[tuple[int, Timing]]:
    """What a turn takes, by how many terminators come at once, ``at_most`` of them; windows are
    full (Law 1).
    """
    first = stream.filling
    for at_once, count in ways().items():
        if at_most is not None and at_once > at_most:
            continue
        turns = stream.turns(at_once, first, uncounted(at_once, len(stream.asking)) + count)
        taken = _begin(engine.detector, turns[:-count], stream.asking_names)
        timing = timed(engine, turns[taken : taken + count], at_once)
        first = turns[taken + timing.turns - 1][1]  # no event is left out
        alone = None if engine.recordings is None else engine.recordings.alone()
        yield at_once, replace(timing, alone=alone)


def _begin(detector: Detector, turns: Sequence[Turn], types: frozenset[str]) -> int:
    """Take turns until terminators of all types have come; how many these were."""
    missing, begun = set(types), time.perf_counter()
    for taken, turn in enumerate(turns):
        is_late = taken > 0 and time.perf_counter() - begun > FIRST_S
        if is_late or (taken >= FIRST and not missing):
            return taken
        take(detector, turn)
        missing.difference_update(batch.type.name for batch in turn[0])
    return len(turns)


def timed(engine: Engine, turns: Sequence[Turn], at_once: int) -> Timing:
    """The mean over some turns (Law 2)."""
    spent, events, found, done = 0.0, 0, 0, 0
    gc.collect()
    gc.disable()
    begun = time.perf_counter()
    for turn in turns:
        if engine.recordings is not None:
            engine.recordings.begin_turn()
        found += take(engine.detector, turn)
        events += sum(map(len, turn[0]))
        done += 1
        spent = time.perf_counter() - begun
        if spent > SECONDS_MAX and done >= TURNS_MIN:
            break
    gc.enable()
    asked = done * at_once
    return Timing(done, spent / events * 1e6, spent / asked * 1e6, found / asked)


def take(detector: Detector, turn: Turn) -> int:
    """Let a detector take a turn; how many composite events it finds."""
    batches, mark = turn
    for batch in batches:
        detector.push(batch)
    return len(detector.advance(mark))

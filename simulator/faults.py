"""Faults of a run: when, for how long, and where.

A fault that does something to lanes does it to both directions of its links. What it changes is
put back when it ends; so faults of one kind in one place must not overlap (together).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simulator.clients import Source
from simulator.hosts import BrokerHost
from simulator.lanes import Lane
from simulator.simulation import Simulation

FAILURES = ("crash", "stop", "restart", "backup", "drain")
"""Kinds of brokers that are not there for a while: without what they knew, with all of it, with
what their stores have kept of it, or had some time ago, and once nobody has needed them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``kind`` is one of KINDS; ``value`` is what it says there.

    ``at_s`` is in seconds after the first event's time, ``for_s`` how long it lasts (None: to the
    end). ``links``, ``brokers`` and ``sources`` say where (empty: everywhere). Raises ValueError.
    """

    kind: str
    at_s: float
    for_s: float | None = None
    links: tuple[tuple[str, str], ...] = ()
    brokers: tuple[str, ...] = ()
    value: float | None = None
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kind = KINDS.get(self.kind)
        if kind is None:
            raise ValueError(f"kind: expected one of {', '.join(KINDS)}, found {self.kind!r}")
        if self.for_s is not None and self.for_s <= 0:
            raise ValueError(f"for_s must be positive, not {self.for_s}")
        if (self.value is None) != (kind.value is None):
            expected = f"expected {kind.value}" if kind.value else "there is none"
            raise ValueError(f"value: for a fault of kind {self.kind} {expected}")
        if self.value is not None and self.value < 0 and kind.value != AHEAD:
            raise ValueError(f"value must not be negative: {self.value}")
        if self.value is not None and kind.value == SHARE and self.value > 1:
            raise ValueError(f"value: expected {SHARE}, found {self.value}")
        for place in ("links", "brokers", "sources"):
            if getattr(self, place) and place != kind.where:
                raise ValueError(f"{place}: a fault of kind {self.kind} is on {kind.where}")

    @property
    def end_s(self) -> float:
        """When it ends, as ``at_s``."""
        return math.inf if self.for_s is None else self.at_s + self.for_s

    @property
    def places(self) -> frozenset[Any]:
        """Where it is: links, which are the same from either end, or names; none: everywhere."""
        return frozenset(map(place_of, getattr(self, KINDS[self.kind].where)))


def place_of(place: str | tuple[str, str]) -> str | frozenset[str]:
    """A broker or a source by its name, a link by its two ends."""
    return place if isinstance(place, str) else frozenset(place)


def together(one: Fault, other: Fault) -> bool:
    """Whether two faults are alike, in one place, and at one time: even for an instant."""
    if not alike(one.kind, other.kind) or one.at_s > other.end_s or other.at_s > one.end_s:
        return False
    return not one.places or not other.places or not one.places.isdisjoint(other.places)


def alike(one: str, other: str) -> bool:
    """Whether two kinds are the same, or both stop brokers: what is not there cannot fail."""
    return one == other or (one in FAILURES and other in FAILURES)


Undo = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Places:
    """Where faults can be: links by their ends, brokers by name, and sources by the name that the
    scenario gives them (those of one file have one).
    """

    links: Mapping[frozenset[str], Sequence[Lane]]
    brokers: Mapping[str, BrokerHost]
    sources: Mapping[str, Sequence[Source]]

    def struck(self, fault: Fault) -> Struck:
        """The object that the fault strikes; KeyError for what is not there."""
        links = [frozenset(link) for link in fault.links] or self.links
        return Struck(
            [lane for link in links for lane in self.links[link]],
            [self.brokers[name] for name in fault.brokers or self.brokers],
            [one for name in fault.sources or self.sources for one in self.sources[name]],
        )


@dataclass(frozen=True, slots=True)
class Struck:
    """The object that a fault strikes. Its kind looks at one of these only."""

    lanes: Sequence[Lane]
    hosts: Sequence[BrokerHost]
    sources: Sequence[Source]


@dataclass(frozen=True, slots=True)
class Kind:
    """``value``: what the fault's value is, None for none; ``where``: which of its keys says where
    it is; ``begin`` gives how to end it.
    """

    value: str | None
    where: str
    begin: Callable[[Fault, Struck], Undo]


def arrange(
    faults: Sequence[Fault],
    simulation: Simulation,
    origin: float,
    places: Places,
) -> None:
    """Let the faults happen; ``origin`` is the first event's time, in seconds."""
    for fault in faults:
        _arrange(fault, simulation, origin, places.struck(fault))


def _arrange(fault: Fault, simulation: Simulation, origin: float, struck: Struck) -> None:
    def begin() -> None:
        simulation.trace.note(simulation.now, f"fault {fault.kind} begins")
        undo = KINDS[fault.kind].begin(fault, struck)
        if fault.for_s is not None:
            simulation.at(simulation.now + fault.for_s, lambda: end(undo))

    def end(undo: Undo) -> None:
        simulation.trace.note(simulation.now, f"fault {fault.kind} ends")
        undo()

    simulation.at(origin + fault.at_s, begin)


# --- the kinds ---------------------------------------------------------------------------------


def _cut(fault: Fault, struck: Struck) -> Undo:
    def mend() -> None:
        for lane in struck.lanes:
            lane.is_cut = False

    for lane in struck.lanes:
        lane.is_cut = True
    return mend


def _changing(field: str) -> Callable[[Fault, Struck], Undo]:
    """A fault that changes one thing of its lanes' quality."""

    def begin(fault: Fault, struck: Struck) -> Undo:
        before = [getattr(lane.quality, field) for lane in struck.lanes]

        def restore() -> None:
            for lane, value in zip(struck.lanes, before, strict=True):
                _change(lane, field, value)

        for lane in struck.lanes:
            _change(lane, field, fault.value)
        return restore

    return begin


def _change(lane: Lane, field: str, value: Any) -> None:
    lane.quality = replace(lane.quality, **{field: value})


def _failing(
    stop: Callable[[BrokerHost], None], start: Callable[[BrokerHost], None]
) -> Callable[[Fault, Struck], Undo]:
    """A fault that stops brokers, and starts them again."""

    def begin(fault: Fault, struck: Struck) -> Undo:
        stopped = [host for host in struck.hosts if host.is_running]

        def restart() -> None:
            for host in stopped:
                start(host)

        for host in stopped:
            stop(host)
        return restart

    return begin


def _set_back(fault: Fault, struck: Struck) -> Undo:
    older_s = fault.value or 0.0
    return _failing(lambda host: host.set_back(older_s), BrokerHost.start)(fault, struck)


def _slow(fault: Fault, struck: Struck) -> Undo:
    assert fault.value is not None
    before = [host.processor.slowness for host in struck.hosts]

    def restore() -> None:
        for host, slowness in zip(struck.hosts, before, strict=True):
            host.processor.slowness = slowness

    for host in struck.hosts:
        host.processor.slowness = fault.value
    return restore


def _lost(fault: Fault, struck: Struck) -> Undo:
    def restore() -> None:
        for source in struck.sources:
            source.set_in_reach(True)

    for source in struck.sources:
        source.set_in_reach(False)
    return restore


def _skew(fault: Fault, struck: Struck) -> Undo:
    assert fault.value is not None

    def restore() -> None:
        for source in struck.sources:
            source.set_clock(0.0)

    for source in struck.sources:
        source.set_clock(fault.value)
    return restore


SHARE = "a share of the messages, from 0 to 1"
SECONDS = "a number of seconds"
SYNC = "how many seconds its store takes to keep something"
OLDER = "how many seconds before it is killed the copy of its store was made"
AHEAD = "by how many seconds clocks are ahead; they are behind by a negative one"
KINDS: Mapping[str, Kind] = {
    "cut": Kind(None, "links", _cut),
    "loss": Kind(SHARE, "links", _changing("loss")),
    "repeats": Kind(SHARE, "links", _changing("repeats")),
    "reordering": Kind(SECONDS, "links", _changing("jitter_s")),
    "delay": Kind(SECONDS, "links", _changing("delay_s")),
    "crash": Kind(None, "brokers", _failing(BrokerHost.crash, BrokerHost.start)),
    "stop": Kind(None, "brokers", _failing(BrokerHost.stop, BrokerHost.resume)),
    "restart": Kind(SYNC, "brokers", _failing(BrokerHost.fail, BrokerHost.start)),
    "backup": Kind(OLDER, "brokers", _set_back),
    "drain": Kind(None, "brokers", _failing(BrokerHost.drain, BrokerHost.come_back)),
    "slow": Kind("a factor on what messages cost", "brokers", _slow),
    "skew": Kind(AHEAD, "sources", _skew),
    "lost": Kind(None, "sources", _lost),
}
"""The kinds of faults."""


# --- how far clocks go wrong -------------------------------------------------------------------


def ahead_s(faults: Sequence[Fault], source: str) -> float:
    """By how many seconds the clock of a source is ahead at most."""
    return max([0.0, *(one.value or 0.0 for one in _skews(faults, source))])


def behind_s(faults: Sequence[Fault]) -> float:
    """By how many seconds any source's clock is behind at most."""
    return max([0.0, *(-(one.value or 0.0) for one in _skews(faults))])


def before_s(faults: Sequence[Fault]) -> float:
    """How many seconds before its time the first event may be published."""
    return max([0.0, *(min(one.value or 0.0, -one.at_s) for one in _skews(faults))])


def _skews(faults: Sequence[Fault], source: str | None = None) -> Iterator[Fault]:
    for fault in faults:
        strikes = source is None or not fault.sources or source in fault.sources
        if fault.kind == "skew" and strikes:
            yield fault

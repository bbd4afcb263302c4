"""What goes wrong in a run, when, for how long, and where.

A fault that does something to lanes does it to both directions of its links. What it changes is
put back when it ends; faults of one kind on one link must not overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simulator.hosts import BrokerHost
from simulator.lanes import Lane
from simulator.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Fault:
    """``kind`` is one of KINDS; ``value`` is what it says there.

    ``at_s`` is in seconds after the first event's time, ``for_s`` how long it lasts (None: to the
    end). ``links`` and ``brokers`` say where (empty: everywhere). Raises ValueError.
    """

    kind: str
    at_s: float
    for_s: float | None = None
    links: tuple[tuple[str, str], ...] = ()
    brokers: tuple[str, ...] = ()
    value: float | None = None

    def __post_init__(self) -> None:
        kind = KINDS.get(self.kind)
        if kind is None:
            raise ValueError(f"kind: expected one of {', '.join(KINDS)}, found {self.kind!r}")
        if self.for_s is not None and self.for_s <= 0:
            raise ValueError(f"for_s must be positive, not {self.for_s}")
        if (self.value is None) != (kind.value is None):
            expected = f"expected {kind.value}" if kind.value else "there is none"
            raise ValueError(f"value: for a fault of kind {self.kind} {expected}")
        if self.value is not None and self.value < 0:
            raise ValueError(f"value must not be negative: {self.value}")
        if self.value is not None and kind.value == SHARE and self.value > 1:
            raise ValueError(f"value: expected {SHARE}, found {self.value}")
        if self.links and kind.at_brokers:
            raise ValueError(f"links: a fault of kind {self.kind} is at brokers")
        if self.brokers and not kind.at_brokers:
            raise ValueError(f"brokers: a fault of kind {self.kind} is on links")


Undo = Callable[[], None]
Lanes = Mapping[frozenset[str], Sequence[Lane]]


@dataclass(frozen=True, slots=True)
class Kind:
    """``value``: what the fault's value is, None for none; ``begin`` gives how to end it."""

    value: str | None
    at_brokers: bool
    begin: Callable[[Fault, Sequence[Lane], Sequence[BrokerHost]], Undo]


def arrange(
    faults: Sequence[Fault],
    simulation: Simulation,
    origin: float,
    lanes: Lanes,
    brokers: Mapping[str, BrokerHost],
) -> None:
    """Let the faults happen; ``origin`` is the first event's time, in seconds."""
    for fault in faults:
        _arrange(fault, simulation, origin, lanes, brokers)


def _arrange(
    fault: Fault,
    simulation: Simulation,
    origin: float,
    lanes: Lanes,
    brokers: Mapping[str, BrokerHost],
) -> None:
    links = [frozenset(link) for link in fault.links] or list(lanes)
    struck = [lane for link in links for lane in lanes[link]]
    hosts = [brokers[name] for name in fault.brokers or brokers]

    def begin() -> None:
        simulation.trace.note(simulation.now, f"fault {fault.kind} begins")
        undo = KINDS[fault.kind].begin(fault, struck, hosts)
        if fault.for_s is not None:
            simulation.at(simulation.now + fault.for_s, lambda: end(undo))

    def end(undo: Undo) -> None:
        simulation.trace.note(simulation.now, f"fault {fault.kind} ends")
        undo()

    simulation.at(origin + fault.at_s, begin)


# --- the kinds ---------------------------------------------------------------------------------


def _cut(fault: Fault, lanes: Sequence[Lane], hosts: Sequence[BrokerHost]) -> Undo:
    def mend() -> None:
        for lane in lanes:
            lane.is_cut = False

    for lane in lanes:
        lane.is_cut = True
    return mend


def _changing(field: str) -> Callable[[Fault, Sequence[Lane], Sequence[BrokerHost]], Undo]:
    """A fault that changes one thing of its lanes' quality."""

    def begin(fault: Fault, lanes: Sequence[Lane], hosts: Sequence[BrokerHost]) -> Undo:
        before = [getattr(lane.quality, field) for lane in lanes]

        def restore() -> None:
            for lane, value in zip(lanes, before, strict=True):
                _change(lane, field, value)

        for lane in lanes:
            _change(lane, field, fault.value)
        return restore

    return begin


def _change(lane: Lane, field: str, value: Any) -> None:
    lane.quality = replace(lane.quality, **{field: value})


def _crash(fault: Fault, lanes: Sequence[Lane], hosts: Sequence[BrokerHost]) -> Undo:
    crashed = [host for host in hosts if host.is_running]

    def restart() -> None:
        for host in crashed:
            if not host.is_running:
                host.start()

    for host in crashed:
        host.crash()
    return restart


def _slow(fault: Fault, lanes: Sequence[Lane], hosts: Sequence[BrokerHost]) -> Undo:
    assert fault.value is not None
    before = [host.processor.slowness for host in hosts]

    def restore() -> None:
        for host, slowness in zip(hosts, before, strict=True):
            host.processor.slowness = slowness

    for host in hosts:
        host.processor.slowness = fault.value
    return restore


SHARE = "a share of the messages, from 0 to 1"
SECONDS = "a number of seconds"
KINDS: Mapping[str, Kind] = {
    "cut": Kind(None, False, _cut),
    "loss": Kind(SHARE, False, _changing("loss")),
    "repeats": Kind(SHARE, False, _changing("repeats")),
    "reordering": Kind(SECONDS, False, _changing("jitter_s")),
    "delay": Kind(SECONDS, False, _changing("delay_s")),
    "crash": Kind(None, True, _crash),
    "slow": Kind("a factor on what messages cost", True, _slow),
}
"""The kinds of faults."""

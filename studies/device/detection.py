"""Detection on a device beside the processor: the figures of the thesis's section 6.4, which are
the journal version's 8 to 16, with windows of 10^3 to 10^7 events and 1 to 1,000 rules.

Microseconds of elapsed time for an event. Each figure has the processor's AIP and CDP, CDP on the
device as published, and ours on it, launched anew and by graphs; terminators one by one, and 64 at
once. The names of rows have the figure, the value of what changes, and the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.report import Row, attempted
from matcher.gpu.device import device
from studies.device.apart import kernels
from studies.device.bandwidth import bytes_a_second, share
from studies.device.streams import (
    AIP,
    CDP,
    GRAPHS,
    LAUNCHED,
    PUBLISHED,
    PUBLISHED_1G,
    Alone,
    Stream,
    filled,
    timings,
)
from studies.reproduction.engine_joins import SIMPLE
from studies.reproduction.engine_workloads import Joined

BOTH = ("each", "last")
SIMULATED_WINDOW = 6


@dataclass(frozen=True, slots=True)
class Sweep:
    """One figure: the values of what changes, and the scenario of each.

    ``few``: from a value on AIP and what was published are left out, which would take minutes.
    ``small``: up to a value they are measured with the memory of the thesis's GPU, too.
    ``with_launches``: ours is measured without graphs, too, and its kernels by themselves.
    """

    figure: str
    parameter: str
    values: Sequence[float]
    scenario: Callable[[float], Joined]
    policies: Sequence[str] = BOTH
    few: float = float("inf")
    small: float = 0
    with_launches: bool = False

    def engines(self, value: float) -> Sequence[str]:
        """The engines that are measured at a value."""
        ours = (GRAPHS, LAUNCHED) if self.with_launches else (GRAPHS,)
        if value >= self.few:
            return (CDP, *ours)
        small = (PUBLISHED_1G,) if value <= self.small else ()
        return (AIP, CDP, *ours, PUBLISHED, *small)


def changed(name: str, scenario: Joined | None = None) -> Callable[[float], Joined]:
    """The scenario of a value of one of its parameters, R10's by default."""

    def of(value: float) -> Joined:
        whole = value if name == "accepted" else int(value)
        return replace(scenario or Joined(), **{name: whole})

    return of


WINDOWS = (1_000, 4_000, 10_000, 100_000, 250_000, 1_000_000)
FILTERED = Joined(window=100, states=3, aggregates=0, accepted=0.5)
"""Some thousand sequences for each terminator, of which an aggregate accepts a share."""
SWEEPS = (
    Sweep("6.5", "rules", (1,), changed("rules"), with_launches=True),
    Sweep("6.6", "states", (6, 2, 4, 3), changed("states")),
    Sweep("6.8", "values", (10_000, 100_000, 50_000), changed("values")),
    Sweep("6.9", "aggregates", (0, 3, 1), changed("aggregates")),
    Sweep(
        "6.13", "accepted, about", (0.0001, 1, 0.1, 0.5), changed("accepted", FILTERED), BOTH[:1]
    ),
    Sweep("6.12", "rules", (20, 250, 50, 100, 1_000), changed("rules", SIMPLE), few=1_000),
    Sweep(
        "6.11",
        "rules",
        (10, 100, 20, 50, 1_000),
        changed("rules", Joined(groups=10)),
        few=1_000,
        small=50,
    ),
    Sweep(
        "6.7",
        "window [events]",
        (250_000, 10_000, 100_000, 1_000_000, 1_000, 4_000),
        changed("window"),
    ),
    Sweep("6.7", "window [events]", (10_000_000,), changed("window"), BOTH[1:], few=0),
)
"""Their values in the order in which they are measured (``in_rounds``)."""


def run(quick: bool) -> Iterator[Row]:
    """All figures but the default scenario's, which is a part of its own: first the ends of each,
    by which most of its sentences are judged, then what lies between.
    """
    if device().simulated:
        yield from figures(SWEEPS[1:], quick)
        return
    rounds = list(in_rounds(SWEEPS[1:]))
    yield from figures(rounds[: len(rounds) // 2 if quick else None], quick)


def figures(sweeps: Sequence[Sweep], quick: bool) -> Iterator[Row]:
    """The rows of some figures."""
    is_tiny = device().simulated
    for sweep in sweeps:
        values = sweep.values[:1] if is_tiny else sweep.values[:: 2 if quick else 1]
        for value in values:
            for policy in sweep.policies:
                yield from point(sweep, value, policy, is_tiny)


def in_rounds(sweeps: Sequence[Sweep]) -> Iterator[Sweep]:
    """The places of some figures, each as a figure of its own: in each round the next of each."""
    for place in range(max(len(sweep.values) for sweep in sweeps)):
        for sweep in sweeps:
            if place < len(sweep.values):
                yield replace(sweep, values=sweep.values[place : place + 1])


def point(sweep: Sweep, value: float, policy: str, is_tiny: bool) -> Iterator[Row]:
    """All engines in one place of a figure."""
    scenario = replace(sweep.scenario(value), policy=policy)
    if is_tiny:
        scenario = replace(scenario, window=SIMULATED_WINDOW, rules=min(scenario.rules, 2))
    stream = Stream.joined(scenario)
    for name in sweep.engines(value):
        line = f"detection/{sweep.figure}/{value:.10g}/{policy} {name}"
        place = f"R10, {policy}" if sweep.with_launches and name == GRAPHS else ""
        yield from attempted(line, partial(measured, line, name, stream, place))


def measured(line: str, name: str, stream: Stream, place: str) -> Iterator[Row]:
    """The time that one engine takes, in each way, and the device's part of it; with a ``place``
    in the table of kernels, that of each of these, too.
    """
    engine = filled(name, stream)
    for at_once, timing in timings(engine, stream):
        way = f", {at_once} at once" if at_once > 1 else ""
        note = f"{timing.terminator_us:.3g} us and {timing.composites:.3g} found a terminator"
        yield Row(line + way, timing.event_us, "us", note=note)
        if timing.alone is not None:
            events = timing.terminator_us / timing.event_us * at_once
            for what, seconds in alone_of(timing.alone):
                told = share(timing.alone.moved, seconds, bytes_a_second(device()))
                note = f"{seconds * 1e6 / at_once:.3g} us a terminator; {told}"
                yield Row(f"{line}{way}, {what}", seconds * 1e6 / events, "us", note=note)
        if place and engine.recordings is not None:
            each = partial(kernels, place + way, engine.recordings)
            yield from attempted(f"kernels/{place}{way}", each)


def alone_of(alone: Alone) -> tuple[tuple[str, float], ...]:
    """The device's part of a turn, by its names in rows, in seconds."""
    return ("kernels alone", alone.behind_s), ("on the device, waited for", alone.waited_s)

"""CCM's lines in the figures of the thesis's chapter 4: matching one event after another on the
device, beside SFF and OCM on the processor of the same machine (:mod:`studies.reproduction`).

Milliseconds of elapsed time for an event. Of each figure its ends are measured, which its sentences
on CCM are about; table 4.2's scenario first, with the variants of CCM, the largest tables last.

Of figure 4.14, the whole system in one process, the rows are ``system/RATE/LINE``: of so many
events that are offered a second, how many are processed, by CCM and the batched matcher, too.
Example: ``system/5000/CCM`` is 5,000 where CCM can follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmarks.matching import SEED, Scenario, events_of, filters_of
from benchmarks.report import Row, attempted
from matcher.gpu.device import device
from studies.reproduction.matching import (
    DEFAULT,
    EVENTS,
    QUICK_EVENTS,
    QUICK_FILTERS,
    SWEEPS,
    filters,
    measure,
)
from studies.reproduction.methods import (
    ATOMIC,
    BATCHED,
    CCM,
    MEMSET,
    OCM_1,
    ONCE,
    ORDERED,
    SFF,
)
from studies.reproduction.system import SEEDS, SYSTEMS, processed, together

OCM = "OCM"
"""OCM as published, on all cores of whatever machine it is."""
SIDE_BY_SIDE = (SFF, ATOMIC, CCM)
DEFAULT_METHODS = (SFF, OCM_1, ATOMIC, CCM, ORDERED, ONCE, MEMSET, BATCHED)
ZIPF_METHODS = (SFF, CCM, ORDERED)
DEFAULT_PLACE, ZIPF = "default", "Zipf names"
ENDS: Mapping[str, Sequence[int]] = {
    "thesis-4.7": (9, 1),
    "thesis-4.8": (9, 1),
    "thesis-4.11": (1_000, 10),
    "thesis-4.12": (100, 0),
    "thesis-4.9": (250, 1_000, 10_000, 100_000),
    "thesis-4.10": (40,),
}
"""The points of each figure that sentences on CCM are about, beside the default scenario."""
AT_ONCE = (1, 10, 100)
"""How many events one kernel takes, in figure 4.13."""


@dataclass(frozen=True, slots=True)
class Size:
    """Filters of a scenario, where not its own; events; and figure 4.14's rates, for so long."""

    filters: int | None = None
    events: int = EVENTS
    at_once: Sequence[int] = AT_ONCE
    rates: Sequence[int] = (1_000, 5_000, 20_000)
    seconds: float = 0.3

    def of(self, scenario: Scenario) -> Scenario:
        """The scenario with so many filters."""
        return scenario if self.filters is None else filters(scenario, self.filters)


WHOLE, QUICK = Size(), Size(QUICK_FILTERS, QUICK_EVENTS, rates=(1_000,))
SIMULATED = Size(8, 2, (1, 2), (20,), 0.1)


def run(quick: bool) -> Iterator[Row]:
    """The rows, those of the default scenario first."""
    size = SIMULATED if device().simulated else QUICK if quick else WHOLE
    scenarios: dict[str, tuple[Scenario, Sequence[str]]] = {
        DEFAULT_PLACE: (DEFAULT, DEFAULT_METHODS),
        ZIPF: (replace(DEFAULT, zipf=1.0), ZIPF_METHODS),
    }
    sweeps = {one.name: one for one in SWEEPS}
    for name, points in ENDS.items():
        for point in points:
            place = f"{point:,} {sweeps[name].parameter}"
            scenarios[place] = sweeps[name].scenario(point), SIDE_BY_SIDE
    for place, (scenario, methods) in scenarios.items():
        asked, label = size.of(scenario), f"chapter 4/{place}"
        yield from attempted(label, partial(_beside_one_another, label, asked, methods, size))
        if place == DEFAULT_PLACE:
            yield from attempted(f"{label}, several at once", partial(_together, asked, size))
            yield from attempted("system", partial(_system, asked, size))


def _beside_one_another(
    label: str, scenario: Scenario, methods: Sequence[str], size: Size
) -> Iterator[Row]:
    """The methods in one scenario."""
    found = measure(scenario, methods, size.events, SEEDS[:1])
    for method in methods:
        name = OCM if method == ATOMIC else method
        beside = None if method == SFF else found[SFF].event.value
        yield Row(f"{label}/{name}", found[method].event.value, "ms", SFF, beside)
        yield Row(f"{label}/{name}, deployment", found[method].deployment.value, "ms")


def _together(scenario: Scenario, size: Size) -> Iterator[Row]:
    """CCM that takes several events by one kernel (figure 4.13)."""
    rng = np.random.default_rng(SEED)
    wanted, mixed = filters_of(scenario, rng), events_of(scenario, size.events, rng)
    for count in size.at_once:
        yield Row(f"chapter 4/{count} at once/{CCM}", together(wanted, mixed, count) / 1e3, "ms")


def _system(scenario: Scenario, size: Size) -> Iterator[Row]:
    """Events that are processed a second (figure 4.14)."""
    sff: Sequence[float | None] = [None] * len(size.rates)
    events = min(size.events, EVENTS // 2)
    for line, found in processed(scenario, SYSTEMS, size.rates, size.seconds, events):
        for rate, value, beside in zip(size.rates, found, sff, strict=True):
            yield Row(f"system/{rate}/{line}", value, "1/s", SFF, beside)
        if line == SFF:
            sff = found

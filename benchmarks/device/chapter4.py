"""CCM's lines in the figures of the thesis's chapter 4: matching one event after another on the
device, beside SFF and OCM on the processor of the same machine (:mod:`benchmarks.reproduction`).

Milliseconds of elapsed time for an event. Of each figure its ends are measured, which its sentences
on CCM are about; table 4.2's scenario first, with the variants of CCM, the largest tables last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.matching import SEED, Scenario, events_of, filters_of
from benchmarks.report import Row, attempted
from benchmarks.reproduction.matching import DEFAULT, QUICK_FILTERS, SWEEPS, filters, measure
from benchmarks.reproduction.methods import (
    ATOMIC,
    CCM,
    MAKERS,
    MEMSET,
    OCM_1,
    ONCE,
    ORDERED,
    SFF,
)
from benchmarks.reproduction.system import together
from matcher.gpu.device import device

OCM = "OCM"
"""OCM as published, on all cores of whatever machine it is."""
SIDE_BY_SIDE = (SFF, ATOMIC, CCM)
DEFAULT_METHODS = (SFF, OCM_1, ATOMIC, CCM, ORDERED, ONCE, MEMSET)
ZIPF_METHODS = (SFF, CCM, ORDERED)
DEFAULT_PLACE, ZIPF = "default", "Zipf names"
ENDS: Mapping[str, Sequence[int]] = {
    "thesis-4.7": (9, 1),
    "thesis-4.8": (9,),
    "thesis-4.11": (1_000, 10),
    "thesis-4.12": (100, 0),
    "thesis-4.9": (250, 100_000),
    "thesis-4.10": (40,),
}
"""The points of each figure that sentences on CCM are about, beside the default scenario."""
AT_ONCE, SEVERAL = (1, 10, 100), 1_000
"""How many events one kernel takes, in figure 4.13, and how many there are."""


def run(quick: bool) -> Iterator[Row]:
    """The rows, those of the default scenario first."""
    is_tiny = quick or device().simulated
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
        asked = filters(scenario, QUICK_FILTERS) if is_tiny else scenario
        label = f"chapter 4/{place}"
        yield from attempted(label, partial(_beside_one_another, label, asked, methods, is_tiny))
        if place == DEFAULT_PLACE and CCM in MAKERS:
            yield from attempted(f"{label}, several at once", partial(_together, asked))


def _beside_one_another(
    label: str, scenario: Scenario, methods: Sequence[str], is_tiny: bool
) -> Iterator[Row]:
    """The methods in one scenario; CCM where the device is none that is simulated."""
    there = tuple(method for method in methods if method in MAKERS)
    found = measure(scenario, there, is_tiny)
    for method in there:
        name = OCM if method == ATOMIC else method
        beside = None if method == SFF else found[SFF].event
        yield Row(f"{label}/{name}", found[method].event, "ms", SFF, beside)
        yield Row(f"{label}/{name}, deployment", found[method].deployment, "ms")


def _together(scenario: Scenario) -> Iterator[Row]:
    """CCM that takes several events by one kernel (figure 4.13)."""
    rng = np.random.default_rng(SEED)
    wanted, mixed = filters_of(scenario, rng), events_of(scenario, SEVERAL, rng)
    for size in AT_ONCE:
        yield Row(f"chapter 4/{size} at once/{CCM}", together(wanted, mixed, size) / 1e3, "ms")

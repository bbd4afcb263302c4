"""Sentences of the thesis's chapter 4 on CCM, judged by what one machine with a device measured.

Those on the processor's methods alone are judged with the chapter (:mod:`matching_claims`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from benchmarks.report import Row
from studies.device.chapter4 import OCM, ZIPF
from studies.reproduction.gpu_operators import not_measured
from studies.reproduction.gpu_tables import DEFAULT, Grid, Kept, Sentence, Told, listed
from studies.reproduction.matching_claims import SHARED_LOCK
from studies.reproduction.methods import CCM, MEMSET, OCM_1, ONCE, ORDERED, SFF
from studies.reproduction.verdicts import (
    ABOVE,
    BELOW,
    MUCH_ABOVE,
    MUCH_BELOW,
    SAME,
    SLIGHTLY_ABOVE,
    Estimate,
    Range,
)


def at(grid: Grid, method: str, place: str) -> Estimate:
    """A method's milliseconds for an event."""
    return grid.at(f"{method} [ms]", place)


def speedup(grid: Grid, place: str) -> Estimate:
    """CCM's speed as a multiple of SFF's."""
    return at(grid, SFF, place) / at(grid, CCM, place)


def as_fast(place: str, least: float) -> Callable[[Grid], Told]:
    """That CCM is so many times as fast as SFF, at least."""

    def asks(grid: Grid) -> Told:
        found = speedup(grid, place)
        return f"{found} times", [(found.times(1 / least), ABOVE)]

    return asks


def over(place: str, first: str, range_: Range) -> Callable[[Grid], Told]:
    """How CCM's speedup at a place compares with that at another."""

    def asks(grid: Grid) -> Told:
        here, there = speedup(grid, place), speedup(grid, first)
        return f"{here} times, {there} at {first}", [(here / there, range_)]

    return asks


def grows(place: str, first: str, least: float = 1.0) -> Callable[[Grid], Told]:
    """That CCM's speedup is greater at a place than at another, and so great at least."""

    def asks(grid: Grid) -> Told:
        told, asked = over(place, first, ABOVE)(grid)
        return told, [*asked, (speedup(grid, place).times(1 / least), ABOVE)]

    return asks


def beside(method: str, other: str, place: str, range_: Range) -> Callable[[Grid], Told]:
    """How long one method takes, as a multiple of another's time."""

    def asks(grid: Grid) -> Told:
        found = at(grid, method, place) / at(grid, other, place)
        return f"{found} times as long", [(found, range_)]

    return asks


def over_sff(grid: Grid) -> Told:
    found = speedup(grid, DEFAULT)
    return f"{found} times", [(found, (7.45, math.inf))]


def soon_deployed(grid: Grid) -> Told:
    ccm, ocm = (at(grid, f"{one}, deployment", "default").value for one in (CCM, OCM_1))
    later = ccm - ocm
    found = Estimate.single(max(later, 0.1) / 50, "ms later / 50")
    return f"{later:.3g} ms later", [(found, BELOW)]


def by_several(grid: Grid) -> Told:
    places = grid.enough([place for place in grid.places if place.endswith(SEVERAL)])
    if not places:
        raise KeyError(CCM)
    one, *several = (at(grid, CCM, place) for place in places)
    gain = one / min(several, key=lambda found: found.value)
    return f"{gain} times as fast", [(gain, SLIGHTLY_ABOVE)]


def as_large(grid: Grid) -> Told:
    """That CCM's tables are as large as the thesis's."""
    found = grid.at(f"{CCM}, device memory [MB]", DEFAULT).value
    return f"{found:.3g} MB", [(Estimate.exact(found / PUBLISHED_MB, "MB / 33.9"), SAME)]


def follows(grid: Grid) -> Told:
    offered, found = grid.enough(grid.places), grid.line(f"{CCM} [1/s]")
    first, last = (found[at].times(1 / float(offered[at])) for at in (0, -1))
    return listed(f"{CCM}, events/s", found), [(first, SAME), (last, BELOW)]


SEVERAL = " at once"
PUBLISHED_MB = 33.9
PLACES = {"1M": DEFAULT, "1M, Zipf names": ZIPF}
"""The scenarios of the section on matching that are chapter 4's, too (Table 4.1)."""
LINES = {"by graph": CCM, "ordered": ORDERED, "distinct": ONCE}
TOGETHER = 16


def with_matching(kept: Kept) -> Kept:
    """The rows, and what rows of the section on matching say of chapter 4's scenarios where its own
    have not been run: CCM's milliseconds an event, one by one behind each other, and its memory.
    """
    there = {row.name for row in kept.rows}
    more = [row for row in _of_matching(kept) if row.name not in there]
    return Kept((*kept.rows, *more), kept.devices)


def _of_matching(kept: Kept) -> Iterator[Row]:
    found = {row.name: row.value for row in kept.rows if row.value is not None}
    for scenario, place in PLACES.items():
        label = f"gpu matching/{scenario}/{CCM}"
        for way, method in LINES.items():
            if rate := found.get(f"{label}, {way}, pipelined"):
                yield Row(f"chapter 4/{place}/{method}", 1e3 / rate, "ms")
        if size := found.get(f"{label}, by graph, device memory"):
            yield Row(f"chapter 4/{place}/{CCM}, device memory", size, "MB")
    label = f"gpu matching/1M/{CCM}"
    together = f"{TOGETHER} events together"
    for count, way in ((1, "by graph"), (TOGETHER, together)):
        if rate := found.get(f"{label}, {way}, pipelined"):
            yield Row(f"chapter 4/{count}{SEVERAL}/{CCM}", 1e3 / rate, "ms")


CHAPTER_4 = (
    Sentence("CCM is 7.45 times as fast as SFF (0.139 ms)", over_sff),
    Sentence("with Zipf names its speedup is the same (2.06 ms)", over(ZIPF, DEFAULT, SAME)),
    Sentence("CCM is deployed less than 50 ms later than OCM", soon_deployed),
    Sentence("CCM's tables take 33.9 MB of the device's memory", as_large),
    Sentence(
        "ordering constraints does not significantly decrease CCM's time in the default scenario",
        beside(ORDERED, CCM, DEFAULT, (MUCH_BELOW[1], math.inf)),
    ),
    Sentence("with Zipf names it does (2.06 ms to 1.92 ms)", beside(ORDERED, CCM, ZIPF, BELOW)),
    Sentence(
        "and it slows deployment much",
        beside(f"{ORDERED}, deployment", f"{CCM}, deployment", DEFAULT, MUCH_ABOVE),
    ),
    Sentence(
        "removing duplicates slows CCM (0.139 ms to 0.31 ms)",
        beside(ONCE, CCM, DEFAULT, MUCH_ABOVE),
    ),
    Sentence(
        "resetting inside the kernel makes CCM about 30 % faster",
        beside(MEMSET, CCM, DEFAULT, (1.3 / 1.1, 1.3 * 1.1)),
    ),
    Sentence("several events by one kernel have a small benefit (141 ms to 114 ms)", by_several),
    Sentence("CCM is ten times faster than SFF with 9 attributes", as_fast("9 attributes", 10.0)),
    Sentence("with one attribute CCM is behind OCM", beside(OCM, CCM, "1 attributes", BELOW)),
    Sentence(
        "with 9 constraints a filter CCM is more than 10 times as fast as SFF",
        as_fast("9 constraints", 10.0),
    ),
    Sentence(
        "with one or two constraints a filter SFF is faster than CCM",
        beside(SFF, CCM, "1 constraints", BELOW),
    ),
    Sentence(
        "with very few filters, up to 1,000 an interface, SFF is faster than CCM",
        beside(SFF, CCM, "1,000 filters", BELOW),
    ),
    Sentence(
        "up to 10,000 filters an interface OCM is faster than CCM",
        beside(OCM, CCM, "10,000 filters", BELOW),
    ),
    Sentence(
        "CCM's advantage goes on growing with the filters, to 13x at 250,000 an interface",
        grows("100,000 filters", "250 filters", 13.0),
    ),
    Sentence(
        "CCM's advantage over SFF grows with the interfaces, from 7x to more than 13x",
        grows("40 interfaces", DEFAULT, 13.0),
    ),
    Sentence(
        "CCM's advantage grows with the share of numbers",
        grows("100 numeric [%]", "0 numeric [%]"),
    ),
    Sentence("with more than 300 names CCM is behind OCM", beside(OCM, CCM, "1,000 names", BELOW)),
)
SYSTEM = (
    Sentence("the processing rate follows the input rate until the engine cannot follow", follows),
    not_measured("both versions of CCM are as fast in the system as alone", SHARED_LOCK),
    not_measured("for CCM leaves the processor to the others", SHARED_LOCK),
)

"""How far the events of a match are apart, were they to come evenly: what its windows let pass.

Windows between neighbours say how far each event may be from the next; others bind events farther
apart, and let only a share of what the first ones allow pass. With ``each B within 10 s from A``
and ``each C within 10 s from B``, ``C within 10 s from A`` lets half of all pairs pass.

The distance of an event from another one is a density over BINS equal parts of some length of time.
Each window between neighbours adds a gap that is as likely to be short as long; a bound cuts off
what is beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from matcher.model import AnyArray
from rules.planning.plan import RulePlan, Span, StepKind
from rules.planning.sequences import selections_of
from rules.terms import TERMINATOR

BINS = 32
KEPT = 1_024
"""For so many kinds of windows what follows from them is kept: each look asks for it again."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A density of distances: ``shares`` float64[n] of parts of ``part`` microseconds each."""

    part: float = 1.0
    shares: AnyArray = field(default_factory=lambda: np.ones(1))

    def with_gap(self, window: int, limit: float) -> tuple[Spread, float]:
        """The same with one more gap, up to ``window``, no distance beyond ``limit``; and how long
        the new event may come after, in microseconds, for each that was there.
        """
        part = limit / BINS
        length = max(1, min(BINS, round(window / part)))
        gaps = np.full(length, min(window, limit) / length)
        shares = np.convolve(self._in_parts(part), gaps)[:BINS]
        reach = float(shares.sum())
        return Spread(part, shares / reach if reach else shares), reach

    def _in_parts(self, part: float) -> AnyArray:
        places = np.minimum((np.arange(len(self.shares)) * self.part / part).astype(int), BINS)
        return np.bincount(places, self.shares, BINS)[:BINS]


def _windows(plan: RulePlan) -> list[tuple[int, int, int]]:
    """Windows beyond those of neighbours: the later event, the earlier one, and how long."""
    steps = [step for step in plan.steps if step.kind is StepKind.TIMED and step.span.earlier < 0]
    return [(step.span.later, step.event, step.span.duration) for step in steps]


def limits_of(plan: RulePlan) -> list[float]:
    """For each event of a chain how far before it the earliest one may be, in microseconds."""
    gaps = [step.span.duration for step in sorted(selections_of(plan), key=lambda one: one.event)]
    found = [sum(gaps[place:]) for place in range(len(gaps))]
    for later, earlier, duration in _windows(plan):
        if earlier == len(gaps):
            found[later:] = [min(one, duration) for one in found[later:]]
    return [max(1.0, float(one)) for one in found]


def reaches_of(plan: RulePlan) -> Sequence[float]:
    """How long each event of a chain, the terminator first, may come after those before it (us)."""
    steps = sorted(selections_of(plan), key=lambda one: one.event)
    return _reaches(tuple(step.span.duration for step in steps), tuple(limits_of(plan)))


@lru_cache(maxsize=KEPT)
def _reaches(gaps: tuple[int, ...], limits: tuple[float, ...]) -> Sequence[float]:
    reaches, spread = [0.0] * len(gaps), Spread()
    for event in reversed(range(len(gaps))):
        spread, reaches[event] = spread.with_gap(gaps[event], limits[event])
    return reaches


def shares_within(plan: RulePlan) -> Mapping[int, float]:
    """For each selected event the share of those its neighbour's window allows that windows from
    the terminator let pass; events without such a window are left out.
    """
    bounds = [(event, window) for later, event, window in _windows(plan) if later == TERMINATOR]
    return _shares(tuple(bounds), tuple((one.event, one.span) for one in selections_of(plan)))


@lru_cache(maxsize=KEPT)
def _shares(
    windows: tuple[tuple[int, int], ...], selected: tuple[tuple[int, Span], ...]
) -> Mapping[int, float]:
    bounds, spreads, shares = dict(windows), {TERMINATOR: Spread()}, dict[int, float]()
    for event, span in selected if bounds else ():
        before, window = spreads.get(span.later), span.duration
        if before is None or span.earlier >= 0 or not window:
            continue
        limit = bounds.get(event, window + before.part * len(before.shares))
        spreads[event], reach = before.with_gap(window, max(1.0, float(limit)))
        if event in bounds:
            shares[event] = min(1.0, reach / window)
    return shares

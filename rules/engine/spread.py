"""How far the events of a match are apart, were they to come evenly: what its windows let pass.

Windows between neighbours say how far each event may be from the next; others bind events farther
apart, and let only a share of what the first ones allow pass. With ``each B within 10 s from A`` and
``each C within 10 s from B``, ``C within 10 s from A`` lets half of all pairs of B and C pass.

The distance of an event from another one is a density over BINS equal parts of some length of time.
Each window between neighbours adds a gap that is as likely to be short as long; a bound cuts off
what is beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from matcher.model import AnyArray
from rules.planning.plan import RulePlan, StepKind
from rules.terms import TERMINATOR

BINS = 32


def _together() -> AnyArray:
    return np.ones(1)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A density of distances: ``shares`` float64[n] of parts that are ``part`` microseconds long."""

    part: float = 1.0
    shares: AnyArray = field(default_factory=_together)

    @property
    def reach(self) -> float:
        """What is left of all: 1, or a length of time behind ``with_gap``."""
        return float(self.shares.sum())

    def with_gap(self, window: int, limit: float) -> Spread:
        """The same with one more gap, up to ``window``, no distance beyond ``limit``; what is left
        is how long the new event may come after, in microseconds, for each that was there.
        """
        part = limit / BINS
        held = self._in_parts(part)
        length = max(1, min(BINS, round(window / part)))
        gaps = np.full(length, min(window, limit) / length)
        return Spread(part, np.convolve(held, gaps)[:BINS])

    def _in_parts(self, part: float) -> AnyArray:
        places = np.minimum((np.arange(len(self.shares)) * self.part / part).astype(int), BINS)
        return np.bincount(places, self.shares, BINS)[:BINS] if len(self.shares) > 1 else _together()

    def normal(self) -> Spread:
        """The same distances of what is left, taken as all."""
        reach = self.reach
        return replace(self, shares=self.shares / reach) if reach else self


def _windows(plan: RulePlan) -> list[tuple[int, int, int]]:
    """Windows beyond those of neighbours: the later event, the earlier one, and how long."""
    steps = [step for step in plan.steps if step.kind is StepKind.TIMED and step.span.earlier < 0]
    return [(step.span.later, step.event, step.span.duration) for step in steps]


def limits_of(plan: RulePlan) -> list[float]:
    """For each event of a chain how far before it the earliest one may be, in microseconds."""
    gaps = {step.event: step.span.duration for step in _selections(plan)}
    last = len(gaps)
    found = [float(sum(gaps[event] for event in range(place + 1, last + 1))) for place in range(last)]
    for later, earlier, duration in _windows(plan):
        if earlier == last:
            for place in range(later, last):
                found[place] = min(found[place], float(duration))
    return [max(1.0, one) for one in found]


def shares_within(plan: RulePlan) -> Mapping[int, float]:
    """For each selected event the share of those its neighbour's window allows that windows from
    the terminator let pass; events without such a window are left out.
    """
    bounds = {event: duration for later, event, duration in _windows(plan) if later == TERMINATOR}
    spreads, found = {TERMINATOR: Spread()}, dict[int, float]()
    for step in _selections(plan) if bounds else ():
        before = spreads.get(step.span.later)
        if before is None or step.span.earlier >= 0 or not step.span.duration:
            continue
        allowed = step.span.duration
        limit = float(bounds.get(step.event, allowed + before.part * len(before.shares)))
        spread = before.with_gap(allowed, max(1.0, limit))
        if step.event in bounds:
            found[step.event] = min(1.0, spread.reach / allowed)
        spreads[step.event] = spread.normal()
    return found


def _selections(plan: RulePlan):  # type: ignore[no-untyped-def]
    return [step for step in plan.steps if step.kind is StepKind.SELECT]

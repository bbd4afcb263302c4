"""How what sections 5.8 and 6.4 of the thesis say of their figures is put as ratios (verdicts)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from studies.reproduction.experiment import Claim, Table
from studies.reproduction.seeds import estimates, halves
from studies.reproduction.verdicts import (
    ABOVE,
    SAME,
    Asked,
    Estimate,
    Range,
    side,
)

AIP, CDP = "AIP", "CDP"
NO_AIP = "AIP as published was not there yet when this was measured"
COMPOSITES = "composite events per event"
RATE_OFFERED = "events/s offered"
OUT, DROPPED = "{} out [1/s]", "{} dropped [%]"
LOST = 0.001
"""A share of events dropped up to which a rate is called sustained."""
DROPS = 0.01
"""A share above which an engine is said to drop events: one hiccup of a machine is less."""
AT_LEAST: Range = (0.999, math.inf)
NONE: Range = (-math.inf, 5e-324)
"""Never: nothing at all of what was counted."""

Line = Sequence[Estimate]


def us(engine: str) -> str:
    """The column of an engine's time for an event."""
    return f"{engine} [us]"


def times(table: Table, engine: str) -> list[Estimate]:
    """An engine's microseconds an event, from top to bottom."""
    return estimates(table, us(engine), engine)


def counts(table: Table, column: str = COMPOSITES) -> list[Estimate]:
    """What is counted, not timed: exact, but for what seeds differ by if they were kept."""
    rows = zip(
        table.column(table.columns[0]), figures(table, column), table.by_seed(column), strict=True
    )
    return [
        Estimate.of_seeds(seeds, f"at {place}")
        if len(seeds) > 1
        else Estimate.exact(value, f"at {place}")
        for place, value, seeds in rows
    ]


def figures(table: Table, column: str) -> list[float]:
    return [float(one) for one in table.column(column) if one is not None]


# --- ratios ---------------------------------------------------------------------------------------


def in_the_end(line: Line, range_: Range) -> list[Asked]:
    """The last figure over the first."""
    return [(line[-1] / line[0], range_)]


def throughout(line: Line, range_: Range) -> list[Asked]:
    """Each figure over the first."""
    return [(one / line[0], range_) for one in line[1:]]


def against(line: Line, other: Line, range_: Range) -> list[Asked]:
    """Each figure over the other line's at the same place."""
    return [(one / theirs, range_) for one, theirs in zip(line, other, strict=True)]


def in_proportion(line: Line, places: Sequence[float], range_: Range = SAME) -> list[Asked]:
    """Each step over that of what varies: as much again where it is the same."""
    steps = zip(pairwise(line), pairwise(places), strict=True)
    return [((after / before).times(low / high), range_) for (before, after), (low, high) in steps]


def linear(line: Line, places: Sequence[float]) -> list[Asked]:
    """It grows, and each figure between the ends lies on the straight line between these."""
    asked = in_the_end(line, ABOVE)
    for one, place in zip(line[1:-1], places[1:-1], strict=True):
        share = (place - places[0]) / (places[-1] - places[0])
        straight = line[0].times(1 - share).plus(line[-1].times(share))
        asked.append((one / straight.called("the straight line"), SAME))
    return asked


# --- claims ---------------------------------------------------------------------------------------


def course(name: str, line: Line) -> str:
    """A line's figures, in words."""
    return f"{name}: {', '.join(f'{one.value:.3g}' for one in line)}"


def claim(
    published: str, told: str, asked: Sequence[Asked], *, below: str = "", above: str = ""
) -> Claim:
    """A sentence, judged. ``below`` and ``above``: what explains a figure that is wholly on that
    side of what the sentence claims; nothing is explained that is not so.
    """
    why = {-1: below, 1: above}.get(side(asked), "")
    return Claim.judged(published, f"{told} ({why})" if why else told, asked)


def of_line(published: str, name: str, line: Line, asked: Sequence[Asked], **why: str) -> Claim:
    """A sentence on one line of figures."""
    return claim(published, course(name, line), asked, **why)


unmeasured = Claim.unmeasured


# --- rates of arrival -----------------------------------------------------------------------------


def losses(table: Table, line: str) -> list[tuple[float, float]]:
    """The rates that a line was measured at, each with the share of events dropped."""
    pairs = zip(table.column(RATE_OFFERED), table.column(DROPPED.format(line)), strict=True)
    return [
        (float(rate), float(dropped) / 100)
        for rate, dropped in pairs
        if rate is not None and dropped is not None
    ]


def first_loss(table: Table, line: str, share: float = DROPS) -> float:
    """The least rate at which more than a share is dropped; infinity if there is none."""
    return min((rate for rate, lost in losses(table, line) if lost > share), default=math.inf)


def sustained(table: Table, line: str) -> float:
    """The highest rate below that of the first loss; 0 if there is none."""
    lossy = first_loss(table, line, LOST)
    return max((rate for rate, _ in losses(table, line) if rate < lossy), default=0.0)


def spoken(rate: float) -> str:
    return "never" if rate == math.inf else f"from {rate:,.0f} events/s"


def most(table: Table, line: str) -> Estimate:
    """The most composite events a second that a line gave at any rate, with its interval."""
    outs = estimates(table, OUT.format(line))
    return max(outs, key=lambda one: one.value).called(line)


def outs_from(table: Table, line: str, rate: float) -> list[Estimate]:
    """What a line gave at a rate and at higher ones."""
    rates = [
        float(at)
        for at, out in zip(table.column(RATE_OFFERED), table.column(OUT.format(line)), strict=True)
        if at is not None and out is not None
    ]
    outs = zip(rates, estimates(table, OUT.format(line)), strict=True)
    return [one.called(f"{line} at {at:,.0f}/s") for at, one in outs if at >= rate]


def broken_off(table: Table, lines: Sequence[str]) -> str:
    """The lines whose rates ended before they dropped a hundredth, in words; empty for none.

    Such a line was measured when a rate ended it by another rule.
    """
    highest = max(figures(table, RATE_OFFERED))
    ends = {line: losses(table, line)[-1] for line in lines}
    return "; ".join(
        f"{line} was broken off at {rate:,.0f} events/s, where it dropped {100 * lost:.3g} %"
        for line, (rate, lost) in ends.items()
        if rate < highest and lost <= DROPS
    )


def loss_claim(published: str, table: Table, lines: Sequence[str], least: float) -> Claim:
    """That lines drop nothing at all up to a rate; not measured of one that was not offered it."""
    told: list[str] = []
    asked: list[Asked] = []
    for line in lines:
        shares = _up_to(losses(table, line), least)
        if shares is None:
            return unmeasured(published, f"{line} was not offered {least:,.0f} events/s")
        lossy = [f"{100 * lost:.3g} % at {rate:,.0f}" for rate, lost in shares if lost]
        told.append(f"{line} drops {', '.join(lossy) if lossy else 'nothing'}")
        is_single = not halves(table, (OUT.format(line),))
        for rate, lost in shares:
            name = f"{line} at {rate:,.0f}/s, share dropped"
            asked.append(((Estimate.single if is_single else Estimate.exact)(lost, name), NONE))
    return Claim.judged(published, f"{'; '.join(told)} (up to {least:,.0f} events/s)", asked)


def _up_to(shares: list[tuple[float, float]], least: float) -> list[tuple[float, float]] | None:
    """The shares dropped up to a rate; up to the next one without loss if that was not offered.
    None if it cannot be said what is dropped up to there.
    """
    below = [one for one in shares if one[0] <= least]
    above = [one for one in shares if one[0] > least]
    if any(rate == least or lost for rate, lost in below):
        return below
    return [*below, above[0]] if above and not above[0][1] else None

"""How what sections 5.8 and 6.4 of the thesis say of their figures is put as ratios (verdicts)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from studies.reproduction.experiment import Claim, Table
from studies.reproduction.verdicts import (
    ABOVE,
    SAME,
    Asked,
    Estimate,
    Range,
    Verdict,
    judge,
    side,
)

AIP, CDP = "AIP", "CDP"
NO_AIP = "AIP as published was not there yet when this was measured"
COMPOSITES = "composite events per event"
RATE_OFFERED = "events/s offered"
OUT, OUT_HALF, DROPPED = "{} out [1/s]", "{} out +- [1/s]", "{} dropped [%]"
LOST = 0.001
"""A share of events dropped up to which a rate is called sustained."""
DROPS = 0.01
"""A share above which an engine is said to drop events: one hiccup of a machine is less."""
AT_LEAST: Range = (0.999, math.inf)

Line = Sequence[Estimate]


def us(engine: str) -> str:
    """The column of an engine's time for an event."""
    return f"{engine} [us]"


def half(engine: str) -> str:
    """The column of half the interval of that time."""
    return f"{engine} +- [us]"


def times(table: Table, engine: str) -> list[Estimate]:
    """An engine's microseconds an event, from top to bottom."""
    values, halves = figures(table, us(engine)), table.column(half(engine))
    return [
        Estimate.measured(value, None if one is None else float(one))
        for value, one in zip(values, halves, strict=True)
    ]


def counts(table: Table, column: str = COMPOSITES) -> list[Estimate]:
    """What is counted, not timed, so that it has no interval."""
    return [Estimate(value) for value in figures(table, column)]


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
    first, last = line[0].value, line[-1].value
    asked = in_the_end(line, ABOVE)
    for one, place in zip(line[1:-1], places[1:-1], strict=True):
        share = (place - places[0]) / (places[-1] - places[0])
        asked.append((one.times(1 / (first + share * (last - first))), SAME))
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
    return Claim(published, f"{told} ({why})" if why else told, judge(asked))


def of_line(published: str, name: str, line: Line, asked: Sequence[Asked], **why: str) -> Claim:
    """A sentence on one line of figures."""
    return claim(published, course(name, line), asked, **why)


def unmeasured(published: str, why: str) -> Claim:
    return Claim(published, why, Verdict.UNMEASURED)


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


def most_out(table: Table, line: str) -> float:
    """The most composite events a second that a line gave at any rate."""
    return max(figures(table, OUT.format(line)))


def spoken(rate: float) -> str:
    return "never" if rate == math.inf else f"from {rate:,.0f} events/s"


def loss_claim(published: str, table: Table, lines: Sequence[str], least: float) -> Claim:
    """That lines drop nothing up to a rate; not known of one that was not offered so much."""
    told, asked = [], []
    for line in lines:
        lossy = first_loss(table, line)
        offered = max(rate for rate, _ in losses(table, line))
        if lossy < math.inf:
            told.append(f"{line} drops {spoken(lossy)}")
            asked.append((Estimate(lossy / least), ABOVE))
        else:
            told.append(f"{line} drops nothing up to {offered:,.0f} events/s")
            asked.append((Estimate(1.0, 0.0 if offered >= least else math.inf), AT_LEAST))
    return Claim(published, "; ".join(told), judge(asked))

"""One rule by which a sentence of a paper is held against figures, for all chapters.

Law: a sentence is put as ratios of measured figures, each with the range that the sentence claims
for it. It *holds* where the 95 % interval of every ratio lies within its range; it *does not hold*
where one lies wholly outside; else it *cannot be told*. No other thing is looked at, so figures
that are on the right side by chance alone bear nothing out.

Where a sentence has figures, its range has them. For words these ranges stand, of which the third
is the thesis's own use: it calls 70 to 90 us a slight growth and 70 to 100 a moderate one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import mean, stdev

Range = tuple[float, float]
TENTH, HALF = 1.1, 1.5
ABOVE: Range = (1.0, math.inf)
"""Grows, higher, more than."""
BELOW: Range = (0.0, 1.0)
SAME: Range = (1 / TENTH, TENTH)
"""Constant, not influenced, similar, almost the same, marginal."""
SLIGHTLY_ABOVE: Range = (1.0, HALF)
"""Slight, moderate, small or limited: in that direction, by less than a half."""
SLIGHTLY_BELOW: Range = (1 / HALF, 1.0)
MUCH_ABOVE: Range = (TENTH, math.inf)
"""Significantly, much, greatly: by more than a tenth."""
MUCH_BELOW: Range = (0.0, 1 / TENTH)

RULE = """**Verdicts** follow one rule. A sentence is put as ratios of measured figures. It *holds*
where the 95 % interval of each lies within what the sentence claims, *does not hold* where one lies
wholly outside, and else *cannot be told*.

Where a sentence gives figures, they are the bounds. Of its words, *the same*, *constant*, *not
influenced* and *marginal* mean within a tenth; *significantly* and *much* by more than a tenth;
*slightly*, *moderately* and *limited* in that direction, by less than a half, as the thesis uses
them (70 to 90 us, 70 to 100). A figure of a single run has no interval; it counts as known to a
quarter, and so does the ratio of two of them. What is counted, not timed, counts as exact. *Not
built*: there is no such thing here. *Not measured*: the reason stands beside it."""
"""The rule for readers: said at the head of each page that has verdicts."""
ONCE = 0.25
"""How far a figure of a single run, or a ratio of two, may be from what other runs would give."""
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
T_95 |= {15: 2.145, 20: 2.093, 25: 2.064, 30: 2.045}
"""Student's t for 95 %, by how many figures there are; between two, that of the fewer holds."""


class Verdict(StrEnum):
    """How a sentence stands, as pages say it."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "cannot be told"
    UNMEASURED = "not measured"
    UNBUILT = "not built"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A positive figure with its 95 % interval: from ``value / (1 + spread)`` to ``value * (1 +
    spread)``.
    """

    value: float
    spread: float = 0.0
    is_single: bool = False
    """It is of one run, as is the ratio of two figures of that run."""

    @classmethod
    def measured(cls, value: float, half: float | None) -> Estimate:
        """A mean and half the width of its interval; None for a single run."""
        return cls.single(value) if half is None else cls(value, half / value)

    @classmethod
    def single(cls, value: float) -> Estimate:
        """A figure of a single run."""
        return cls(value, ONCE, True)

    @classmethod
    def paired(cls, ones: Mapping[int, float], others: Mapping[int, float]) -> Estimate | None:
        """The ratio of two figures that were measured on the same seeds, seed by seed; None where
        they have no seed in common.
        """
        common = [seed for seed in ones if seed in others]
        logs = [math.log(ones[seed] / others[seed]) for seed in common]
        if not logs:
            return None
        if len(logs) == 1:
            return cls.single(math.exp(logs[0]))
        half = student(len(logs)) * stdev(logs) / math.sqrt(len(logs))
        return cls(math.exp(mean(logs)), math.expm1(half))

    @property
    def low(self) -> float:
        return self.value / (1 + self.spread)

    @property
    def high(self) -> float:
        return self.value * (1 + self.spread)

    def __truediv__(self, other: Estimate) -> Estimate:
        """The ratio of two figures: independent ones, or ones of a single run."""
        if self.is_single and other.is_single:
            return Estimate.single(self.value / other.value)
        return Estimate(self.value / other.value, math.hypot(self.spread, other.spread))

    def times(self, factor: float) -> Estimate:
        """The figure in another unit."""
        return Estimate(self.value * factor, self.spread, self.is_single)

    def __str__(self) -> str:
        if not self.spread:
            return f"{self.value:.3g}"
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def student(count: int) -> float:
    """Student's t for the interval of a mean of so many figures, two at least."""
    return T_95[max(one for one in T_95 if one <= count)]


Asked = tuple[Estimate, Range]


def judge(asked: Sequence[Asked]) -> Verdict:
    """The rule (Law); not measured where nothing is asked."""
    if not asked:
        return Verdict.UNMEASURED
    if any(one.high <= low or one.low >= high for one, (low, high) in asked):
        return Verdict.FAILS
    if all(one.low > low and one.high < high for one, (low, high) in asked):
        return Verdict.HOLDS
    return Verdict.OPEN


def side(asked: Sequence[Asked]) -> int:
    """On which side of its range the first ratio lies that is wholly outside: -1 below, 1 above;
    0 where none is.
    """
    for one, (low, high) in asked:
        if one.high <= low:
            return -1
        if one.low >= high:
            return 1
    return 0

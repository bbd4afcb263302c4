"""One rule by which a sentence of a paper is held against figures, for all chapters.

Law: a sentence is put as ratios of measured figures, each with the range that the sentence claims
for it. It *holds* if the 95 % interval of every ratio lies within its range; it *does not hold*
if one lies wholly outside; else it *cannot be told*. The interval that decides is the printed one:
its ends are rounded outwards to the digits that a page shows. Nothing else is looked at.

Intervals are two-sided, by Student's t over seeds. Those of ratios, sums and differences of figures
whose seeds were not kept follow from the figures' own intervals, by MOVER (A. Donner, G. Zou,
*Closed-form confidence intervals for functions of the normal mean and standard deviation*); of two
symmetric ones that is Fieller's interval. A timed figure of a single run has none, so a
sentence that rests on it cannot be told, and the page says on which side the one run lies. Figures
that are counted or simulated are exact in one run; over several seeds they have an interval too.

Where a sentence has figures, its range has them. For words these ranges stand, of which the third
is the thesis's own use: it calls 70 to 90 us a slight growth and 70 to 100 a moderate one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
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

RULE = """**Verdicts** follow one rule
([verdicts.py](../../studies/reproduction/verdicts.py)). A sentence is put as ratios of figures,
each with the range that the sentence claims for it. It *holds* if the 95 % interval of each lies
within its range, *does not hold* if one lies wholly outside, and else *cannot be told*. The column
*decided by* has the ratio that decides, its interval in brackets, and the range. Nothing else is
looked at.

Intervals are two-sided, by Student's t over seeds. A ratio of two figures that were kept seed by
seed has the interval of the logarithms of its ratios; where only means with their intervals were
kept, it follows from these by MOVER (Donner and Zou; for intervals like ours it is Fieller's). A
timed figure of one run has no interval. What rests on it cannot be told; the verdict adds what the
one run says. What is counted or simulated, not timed, is exact in one run; where it was kept seed
by seed it has the interval over seeds.

Where a sentence gives figures, they are the bounds. Of its words, *the same*, *constant*, *not
influenced* and *marginal* mean within a tenth; *significantly* and *much* by more than a tenth;
*slightly*, *moderately* and *limited* in that direction, by less than a half, as the thesis uses
them (70 to 90 us, 70 to 100). *Never* means never, of what was counted. *Not built*: there is no
such thing here. *Not measured*: the reason stands beside it."""
"""The rule for readers: said at the head of each page that has verdicts."""
LEVEL = 0.95
DIGITS = 4
"""So many digits of an interval's ends are printed."""


class Verdict(StrEnum):
    """How a sentence stands, as pages say it."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "cannot be told"
    ONCE_WITHIN = "cannot be told (one run: as claimed)"
    ONCE_OUTSIDE = "cannot be told (one run: not as claimed)"
    UNMEASURED = "not measured"
    UNBUILT = "not built"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure that is not negative, with its 95 % interval; ``exact`` and ``single`` have none.

    ``name`` says what it is a figure of, ``AIP at 5``; ratios have both.
    """

    value: float
    low: float
    high: float
    is_single: bool = False
    """It is a timed figure of one run, or made of one: its interval is not known."""
    name: str = field(default="", compare=False)
    seeds: tuple[float, ...] = field(default=(), compare=False)
    """The figure of each seed, if they were kept."""

    @classmethod
    def exact(cls, value: float, name: str = "") -> Estimate:
        """A figure that was counted."""
        return cls(value, value, value, name=name)

    @classmethod
    def single(cls, value: float, name: str = "") -> Estimate:
        """A timed figure of a single run."""
        return cls(value, 0.0, math.inf, True, name)

    @classmethod
    def measured(cls, value: float, half: float | None, name: str = "") -> Estimate:
        """A mean and half the width of its interval; None for a single run."""
        if half is None:
            return cls.single(value, name)
        return cls(value, max(value - half, 0.0), value + half, name=name)

    @classmethod
    def of_seeds(cls, seeds: Sequence[float], name: str = "") -> Estimate:
        """The mean of figures of several seeds; no less than nothing."""
        value, half = mean(seeds), _half(seeds)
        return cls(value, max(value - half, 0.0), value + half, name=name, seeds=tuple(seeds))

    @classmethod
    def paired(
        cls, ones: Mapping[int, float], others: Mapping[int, float], name: str = ""
    ) -> Estimate | None:
        """The ratio of two counted figures of the same seeds, seed by seed; None if they have no
        seed in common.
        """
        logs = [math.log(ones[seed] / others[seed]) for seed in ones if seed in others]
        if not logs:
            return None
        value, half = math.exp(mean(logs)), _half(logs) if len(logs) > 1 else 0.0
        return cls(value, value * math.exp(-half), value * math.exp(half), name=name)

    @property
    def is_exact(self) -> bool:
        return self.low == self.high

    @property
    def printed(self) -> Range:
        """The ends of its interval as pages show them."""
        if self.is_exact:
            return self.low, self.high
        return _rounded(self.low, ROUND_FLOOR), _rounded(self.high, ROUND_CEILING)

    def __truediv__(self, other: Estimate) -> Estimate:
        """The ratio of two figures: seed by seed if both were kept so, else by MOVER."""
        names = " / ".join(name for name in (self.name, other.name) if name)
        if self._is_kept_with(other) and min(*self.seeds, *other.seeds) > 0:
            kept = (dict(enumerate(one.seeds)) for one in (self, other))
            paired = Estimate.paired(*kept, names)
            assert paired is not None
            ratios = (one / two for one, two in zip(self.seeds, other.seeds, strict=True))
            return replace(paired, seeds=tuple(ratios))
        if not other.value:
            return Estimate(math.inf, 0.0, math.inf, name=names)
        value = self.value / other.value
        if self.is_single or other.is_single:
            return Estimate.single(value, names)
        if self.is_exact and other.is_exact:
            return Estimate.exact(value, names)
        low = _limit(self.value, self.low, other.value, other.high, -1)
        high = _limit(self.value, self.high, other.value, other.low, 1)
        return Estimate(value, low, high, name=names)

    def plus(self, other: Estimate) -> Estimate:
        """Both together, by MOVER."""
        value = self.value + other.value
        if self._is_kept_with(other):
            seeds = [one + more for one, more in zip(self.seeds, other.seeds, strict=True)]
            return Estimate.of_seeds(seeds, self.name)
        if self.is_single or other.is_single:
            return Estimate.single(value, self.name)
        below = math.hypot(self.value - self.low, other.value - other.low)
        above = math.hypot(self.high - self.value, other.high - other.value)
        return Estimate(value, value - below, value + above, name=self.name)

    def minus(self, other: Estimate) -> Estimate:
        """How much more it is, by MOVER; no less than nothing."""
        value = self.value - other.value
        if self._is_kept_with(other):
            seeds = [one - less for one, less in zip(self.seeds, other.seeds, strict=True)]
            return Estimate.of_seeds(seeds, self.name)
        if self.is_single or other.is_single:
            return Estimate.single(max(value, 0.0), self.name)
        below = math.hypot(self.value - self.low, other.high - other.value)
        above = math.hypot(self.high - self.value, other.value - other.low)
        ends = (value, value - below, value + above)
        return Estimate(*(max(end, 0.0) for end in ends), name=self.name)

    def times(self, factor: float) -> Estimate:
        """The figure in another unit."""
        return replace(
            self,
            value=self.value * factor,
            low=self.low * factor,
            high=self.high * factor,
            seeds=tuple(one * factor for one in self.seeds),
        )

    def called(self, name: str) -> Estimate:
        """The same figure by another name."""
        return replace(self, name=name)

    def _is_kept_with(self, other: Estimate) -> bool:
        """Whether both were kept by the same seeds, of which there are several."""
        return len(self.seeds) == len(other.seeds) > 1

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.value:.3g}"
        if self.is_single:
            return f"{self.value:.3g} (one run)"
        low, high = self.printed
        return f"{self.value:.3g} ({low:.{DIGITS}g} to {high:.{DIGITS}g})"


def _half(values: Sequence[float]) -> float:
    """Half the interval of a mean of several values."""
    return student(len(values)) * stdev(values) / math.sqrt(len(values))


def _limit(a: float, end: float, b: float, other: float, sign: int) -> float:
    """A limit of ``a / b`` from one limit of each (MOVER-R): the lower one, ``sign`` -1, from the
    lower of ``a`` and the upper of ``b``; the upper one the other way about.
    """
    square, rest = other * (2 * b - other), end * (2 * a - end)
    if square == 0:
        return math.inf if sign > 0 else rest / (2 * a * b)
    return (a * b + sign * math.sqrt(max((a * b) ** 2 - square * rest, 0.0))) / square


def _rounded(value: float, way: str) -> float:
    if math.isinf(value):
        return value
    return float(Context(prec=DIGITS, rounding=way).create_decimal(repr(value)))


def student(count: int) -> float:
    """Student's t for the two-sided interval of a mean of so many figures, two at least."""
    from scipy.special import stdtrit  # a machine that only measures need not have it

    return float(stdtrit(count - 1, (1 + LEVEL) / 2))


Asked = tuple[Estimate, Range]
"""A ratio, and the range that a sentence claims for it."""


def judge(asked: Iterable[Asked]) -> Verdict:
    """The rule (Law); not measured where nothing is asked."""
    asked = list(asked)
    if not asked:
        return Verdict.UNMEASURED
    if any(map(_is_outside, asked)):
        return Verdict.FAILS
    singles = [pair for pair in asked if pair[0].is_single]
    if any(not _holds(one.value, one.value, range_) for one, range_ in singles):
        return Verdict.ONCE_OUTSIDE
    if not all(_holds(*one.printed, range_) for one, range_ in asked if not one.is_single):
        return Verdict.OPEN
    return Verdict.ONCE_WITHIN if singles else Verdict.HOLDS


def _is_outside(pair: Asked) -> bool:
    one, (least, greatest) = pair
    low, high = one.printed
    return not one.is_single and (high <= least or low >= greatest)


def _holds(low: float, high: float, range_: Range) -> bool:
    return low > range_[0] and high < range_[1]


def deciding(asked: Sequence[Asked]) -> Asked | None:
    """The ratio by which the verdict is as it is; None where nothing is asked.

    Of those that would give the verdict by themselves it is the one that reaches farthest beyond
    its range, or nearest to its bounds.
    """
    verdict = judge(asked)
    alike = [pair for pair in asked if judge([pair]) is verdict]
    return max(alike, key=_beyond, default=None)


def _beyond(pair: Asked) -> float:
    """How far a ratio reaches beyond its range, in logarithms; negative if it does not."""
    one, (least, greatest) = pair
    low, high = (one.value, one.value) if one.is_single else one.printed
    return max(_log(least) - _log(low), _log(high) - _log(greatest))


def _log(value: float) -> float:
    return math.log(min(max(value, 1e-300), 1e300))


def decided_by(asked: Sequence[Asked]) -> str:
    """The ratio that decides, with its interval and what is claimed for it, as pages say it."""
    pair = deciding(asked)
    if pair is None:
        return ""
    one, range_ = pair
    of = f"{one.name}: " if one.name else ""
    return f"{of}{one}{' exactly' if one.is_exact else ''}; claimed {claimed(range_)}"


def claimed(range_: Range) -> str:
    """A range in words."""
    low, high = range_
    if low == -math.inf:
        return "none"
    if high == math.inf:
        return f"above {low:.{DIGITS}g}"
    return f"below {high:.{DIGITS}g}" if low == 0 else f"{low:.{DIGITS}g} to {high:.{DIGITS}g}"


def side(asked: Sequence[Asked]) -> int:
    """On which side of its range the first ratio lies that is wholly outside: -1 below, 1 above;
    0 where none is. A figure of one run lies where it is.
    """
    for one, (least, greatest) in asked:
        low, high = (one.value, one.value) if one.is_single else one.printed
        if high <= least:
            return -1
        if low >= greatest:
            return 1
    return 0

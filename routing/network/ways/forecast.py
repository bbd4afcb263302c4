"""What is to be expected of events that have not been watched for long (thesis 7.3.8).

Law 1: a type seen ``k`` times in ``t`` seconds has not just the rate ``k / t``, which would be none
at all for most rare ones. How different the rates of types are is measured, too: by their mean and
variance they are taken to be gamma distributed, with shape ``a`` and ``b`` seconds. Then the rate
of one is gamma distributed with ``a + k`` and ``b + t``, and the longer one looks the less it
matters what was supposed.

Law 2: windows are no fuller than events are old. What a rule finds while they fill is less than
what it will find in full ones, by a factor for each event that it selects: of a type that comes by
chance, ``each`` finds as many as windows are long, ``first`` and ``last`` one if there is any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import mean, pvariance

from matcher.model import MICROSECONDS
from routing.partition.pulling import Pull
from rules.pattern import Policy, Rule, Selected


class Forecast:
    """What follows from how often events came.

    ``rates``: events a second, by type, measured over the last ``seconds``; ``age``: the seconds
    for which events have come.
    """

    def __init__(self, rates: Mapping[str, float], seconds: float, age: float) -> None:
        self._rates = rates
        self._seconds = seconds
        self._filled = max(age - seconds / 2, seconds / 2)
        """How old events were on average while rules were watched."""
        self._shape, self._before = _prior(list(rates.values()))

    def rate(self, name: str) -> float:
        """The events of a type to be expected in a second (Law 1)."""
        counted = self._shape + self._rates.get(name, 0.0) * self._seconds
        watched = self._before + self._seconds
        return counted / watched if watched > 0 else 0.0

    def awake(self, name: str, window: int) -> float:
        """The share of the time in which a window of so many microseconds around events of a type
        is open, to be expected of all the rates that the type may have (Law 1).
        """
        counted = self._shape + self._rates.get(name, 0.0) * self._seconds
        watched = self._before + self._seconds
        seconds = window / MICROSECONDS
        return 1 - (watched / (watched + seconds)) ** counted if seconds > 0 else 0.0

    def awake_for(self, pull: Pull) -> float:
        """The same of the longest window around a master."""
        return self.awake(pull.master.type.name, window_of(pull))

    def growth(self, rule: Rule) -> float:
        """How many times what a rule found it will find (Law 2)."""
        return math.prod(map(self._filling, rule.selected))

    def _filling(self, one: Selected) -> float:
        seconds = one.window.duration / MICROSECONDS
        before = self._chance(one, min(seconds, self._filled))
        return self._chance(one, seconds) / before if before > 0 else 1.0

    def _chance(self, one: Selected, seconds: float) -> float:
        """How many events are to be expected in such a window where one is selected."""
        if one.policy is Policy.EACH:
            return seconds
        return 1 - math.exp(-self._rates.get(one.type.name, 0.0) * seconds)


def window_of(pull: Pull) -> int:
    """The longest window around a master, in microseconds."""
    return max(one.before + one.after for one in pull.around)


def _prior(rates: list[float]) -> tuple[float, float]:
    """The shape of a gamma distribution with the mean and variance of some rates, and its scale's
    inverse, in seconds; nothing where rates do not differ.
    """
    if len(rates) < 2 or not (spread := pvariance(rates)):
        return 0.0, 0.0
    middle = mean(rates)
    return middle**2 / spread, middle / spread

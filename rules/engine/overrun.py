"""Rules that would yield too much at one instant: a bound for those who cannot hold any number.

``each`` beside ``each`` makes every pair: a thousand events of two types are a million composite
events at one instant. An engine that is given ``composites_per_instant_max`` ends a rule there.

Law: a rule that has more matches at an instant yields those that come first in the order of E4, and
has ended then: it is evaluated at no later instant. That follows from its events alone, so it ends
at the same instant, with the same composite events, wherever it is evaluated.
Example: with a bound of 3, ``each A`` of A1 to A5 yields the composite events of A1, A2 and A3.
"""

from __future__ import annotations

from dataclasses import dataclass

from matcher.identity import plain_name
from matcher.times import time_text

COMPOSITES_MAX = 1_000_000
"""Composite events that a rule may have at one instant, unless somebody says otherwise."""


@dataclass(frozen=True, slots=True)
class Overrun:
    """A rule that has ended: at ``instant``, in microseconds, it has more than ``most`` matches.

    ``until`` is the first instant at which it does not hold.
    """

    rule: str
    instant: int
    most: int

    @property
    def until(self) -> int:
        """Just beyond its last instant."""
        return self.instant + 1

    def __str__(self) -> str:
        return (
            f"rule {plain_name(self.rule)} has more than {self.most} composite events at "
            f"{time_text(self.instant)} (composites_per_instant_max), and has ended there"
        )

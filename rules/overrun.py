"""Rules that end by themselves: they yield too much at one instant, or have ended the process.

``each`` beside ``each`` makes every pair: a thousand events of two types are a million composite
events at one instant. An engine that is given ``composites_per_instant_max`` ends a rule there.

A rule that has more matches at an instant yields those that come first in the order of E4, and has
ended then: it is evaluated at no later instant. That follows from its events alone, so it ends at
the same instant, with the same composite events, wherever it is evaluated. With a bound of 3,
``each A`` of A1 to A5 yields the composite events of A1, A2 and A3.

A rule that finds little may search long: three ``each``, of which no three fit. It ends at the
instant at which it looks at more than SEARCHES times as many events; that takes about a second.
That instant is not the same everywhere: each way of evaluation looks at another number of events.
"""

from __future__ import annotations

from dataclasses import dataclass

from matcher.identity import plain_name
from matcher.times import time_text
from rules.patience import SAID

COMPOSITES_MAX = 1_000_000
"""Composite events that a rule may have at one instant, unless somebody says otherwise."""
SEARCHES, SEARCHES_MIN = 20, 20_000_000
"""Events that a rule may look at in one instant: so many for each composite event that it may have
then, and so many at least.
"""


@dataclass(frozen=True, slots=True)
class Overrun:
    """A rule that has ended: at ``instant``, in microseconds, it has more than ``most`` matches; or
    ``most`` is 0, and a signal has ended the process twice while the rule was evaluated
    (:mod:`rules.engine.order.last_words`), or its ``pattern`` takes too long
    (:mod:`rules.patience`).

    ``until`` is the first instant at which it does not hold.
    """

    rule: str
    instant: int
    most: int = 0
    pattern: str | None = None

    @property
    def until(self) -> int:
        """Just beyond its last instant."""
        return self.instant + 1

    def __str__(self) -> str:
        name = plain_name(self.rule)
        if self.pattern is not None:
            return (
                f"rule {name} has ended at {time_text(self.instant)} with {self.pattern!r}: {SAID}"
            )
        if not self.most:
            return (
                f"rule {name} was being evaluated when a signal ended the broker, twice; "
                f"it is out of force until it is added again"
            )
        return (
            f"rule {name} has more than {self.most} composite events at {time_text(self.instant)} "
            f"(composites_per_instant_max), or looks for them at more than "
            f"{max(SEARCHES * self.most, SEARCHES_MIN)} events, and has ended there"
        )

"""How far a live source may be ahead of its broker's clock (``ahead_max_s``).

An event, or a promise, that is further ahead is refused by name: one wrong time would take marks
years ahead, which never go back, and everything stamped now would be late from then on. Recorded
events say nothing about the clock, so a source that replays is not bound; nor is anybody where the
host's ``now`` is not seconds since the epoch.

``ahead_max_s`` is 300 s, the clock says 12:00: an event of 12:04 is taken, one of 12:06 is not.
"""

from __future__ import annotations

from msgspec import Struct

from matcher.model import MICROSECONDS
from matcher.times import time_text
from routing.config import NodeConfig
from routing.serving.sources import FAR

HOUR = 3_600 * MICROSECONDS
ZONES_MAX = 15 * HOUR
"""No place's time is further from UTC."""


def horizon_of(config: NodeConfig, now: float) -> int:
    """The latest time that live sources may speak of at ``now``; FAR where there is none."""
    if not config.wall_clock:
        return FAR
    return min(round((now + config.ahead_max_s) * MICROSECONDS), FAR)


class Ahead(Struct, frozen=True, gc=False):
    """A broker's clock in seconds, and the latest time that it takes (FAR: any) in microseconds."""

    now: float
    limit: int

    def refuses(self, promise: int | None) -> bool:
        """Whether a promise is too far ahead; one that everything was published is not."""
        return promise is not None and self.limit + 1 < promise < FAR

    def describe(self, time: int) -> str:
        """Say what is wrong with a time beyond the limit, and what to do."""
        clock = round(self.now * MICROSECONDS)
        most = (self.limit - clock) / MICROSECONDS
        cause = "is it local time taken for UTC? " if time - clock <= ZONES_MAX else ""
        return (
            f"{time_text(time)} is more than {most:g} s (ahead_max_s) after this broker's clock, "
            f"{time_text(clock)}; {cause}a replay of recorded "
            f"events says so (--replay, or replay=True)"
        )

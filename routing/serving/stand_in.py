"""Sources that go from a broker that drains to another one of its network, without being late.

Law: the promise of a source that was sent away counts for ``HAND_OVER_S`` longer, while its name is
free. s has promised Temp up to 40 s, u up to 90 s, and s is on its way to b1: rules over Temp stay
at 40 s until b1 has s, whose next Temp is of 41 s. Without that they would go on to 90 s meanwhile,
and it would be late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from routing.serving.sources import Source, SourceState

HAND_OVER_S = 5.0
"""Seconds that a source has to be at another broker."""
GONE = " (gone to another broker)"
"""How the name of a stand-in ends: no client is called that."""


def stand_in_for(source: Source, now: float) -> Source:
    """A lost source that has promised the same, and will promise nothing more."""
    made = Source(source.name + GONE, SourceState.LOST, promise=source.promise)
    made.floors, made.goes_on, made.lost_at = dict(source.floors), True, now
    return made


def close_overdue(sources: Iterable[Source], now: float) -> Sequence[Source]:
    """Close the stand-ins among these whose time is over; gives them."""
    found = [one for one in sources if one.name.endswith(GONE) and now - one.lost_at >= HAND_OVER_S]
    for one in found:
        one.enter(SourceState.CLOSED)
    return found

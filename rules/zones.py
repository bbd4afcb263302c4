"""Time zones: that of a rule's Timer, and how far local time is ahead of UTC (tesla.md S13).

Zones and their rules are those of the time zone database that Python finds: the system's, or that
of the package tzdata.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from datetime import UTC as UTC_ZONE, datetime, timedelta
from zoneinfo import ZoneInfo

from matcher.model import MICROSECONDS
from rules.pattern import UTC, ZONE, Rule
from rules.terms import TERMINATOR, AttributeOf, Compare, Comparison, Expression, Literal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC_ZONE)
_DAY = 86_400
AHEAD_MIN, AHEAD_MAX = 0, 4_102_444_800_000_000
"""The years 1970 to 2099, in microseconds: of these local times are told (``aheads``)."""
_FIRST = (datetime(1, 1, 3, tzinfo=UTC_ZONE) - _EPOCH) // timedelta(seconds=1)
_LAST = (datetime(9999, 12, 29, tzinfo=UTC_ZONE) - _EPOCH) // timedelta(seconds=1)
"""Between these, in seconds, local times have a year from 1 to 9999 in any zone."""


def zone_of(rule: Rule) -> str:
    """The time zone in which a rule's Timer ticks."""
    for condition in rule.conditions:
        if (zone := zone_named(condition)) is not None:
            return zone
    return UTC


def zone_named(condition: Expression) -> str | None:
    """The zone of a condition ``zone = "Europe/Rome"`` of a Timer; None where it is none."""
    if isinstance(condition, Compare) and condition.comparison is Comparison.EQUAL:
        for one, other in (
            (condition.left, condition.right),
            (condition.right, condition.left),
        ):
            if is_zone_field(one) and isinstance(other, Literal):
                return str(other.value)
    return None


def is_zone_field(expression: Expression) -> bool:
    """Whether an expression is the zone of a Timer, which is a terminator."""
    return isinstance(expression, AttributeOf) and (expression.event, expression.attribute) == (
        TERMINATOR,
        ZONE,
    )


@functools.cache
def is_zone(name: str) -> bool:
    """Whether a time zone is called so, like Europe/Rome."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def stretches(zone: str, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The stretches of [begin, end) in which local time is equally far ahead of UTC, in order: the
    begin and the end of each, and how far, all in seconds.
    """
    start, ahead = begin, None
    for day in range(begin // _DAY, -(-end // _DAY)):
        change, before, after = _of_day(zone, day)
        for moment, offset in ((day * _DAY, before), (change, after)):
            if offset != ahead:
                if ahead is not None and start < min(max(moment, begin), end):
                    yield start, min(max(moment, begin), end), ahead
                    start = min(max(moment, begin), end)
                ahead = offset
    if ahead is not None and start < end:
        yield start, end, ahead


@functools.lru_cache(maxsize=65_536)
def _of_day(zone: str, day: int) -> tuple[int, int, int]:
    """When in a day of UTC, given as a number of days since the epoch, a zone's clocks change, if
    they do, and how far they are ahead before that and from then on; all in seconds.
    """
    low, high = day * _DAY, (day + 1) * _DAY
    before, after = _ahead(zone, low), _ahead(zone, high)
    while before != after and high - low > 1:
        middle = (low + high) // 2
        if _ahead(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high, before, after


def _ahead(zone: str, second: int) -> int:
    """How far local time is ahead of UTC at a second since the epoch."""
    moment = _EPOCH + timedelta(seconds=min(max(second, _FIRST), _LAST))
    ahead = moment.astimezone(ZoneInfo(zone)).utcoffset()
    assert ahead is not None
    return ahead // timedelta(seconds=1)


@functools.lru_cache(maxsize=64)
def aheads(zone: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """When clocks of a zone change in the years 1970 to 2099, the first time being the beginning,
    and how far they are ahead of UTC from then on; in microseconds.
    """
    begins, found = [AHEAD_MIN], [_ahead(zone, 0)]
    for day in range(AHEAD_MAX // (_DAY * MICROSECONDS)):
        ahead = _ahead(zone, (day + 1) * _DAY)
        if ahead != found[-1]:
            begins.append(_of_day(zone, day)[0] * MICROSECONDS)
            found.append(ahead)
    return tuple(begins), tuple(one * MICROSECONDS for one in found)

"""Instants as rules write them: ``2024-06-01``, ``2024-06-01T09:30:00Z``, and in a zone,
``2024-06-01T09:30[Europe/Rome]`` (tesla.md X3; RFC 9557).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from matcher.times import EPOCH

_WRITTEN = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)"
    r"(?:[Tt](?P<time>\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(?P<offset>[Zz]|[+-]\d\d:\d\d)?)?"
    r"(?:\[(?P<zone>[^]]*)\])?",
    re.ASCII,
)


def instant_of(text: str) -> int:
    """The microseconds since the epoch of an instant, a date being its first; ValueError with what
    is wrong with it. Without an offset and a zone it is UTC.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError("no instant")
    offset, zone = found["offset"], found["zone"]
    if offset and zone is not None:
        raise ValueError("an instant with an offset and a zone")
    try:
        local = datetime.fromisoformat(f"{found['date']}T{found['time'] or '00:00'}{offset or ''}")
    except ValueError as error:
        raise ValueError(f"no instant: {error}") from None
    if local.tzinfo is None:
        local = local.replace(tzinfo=_zone_of(zone))
    if zone is not None and local.astimezone(UTC).astimezone(local.tzinfo) != local:
        raise ValueError("a local time that a change of clocks leaves out")
    return (local.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def _zone_of(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name if name is not None else "UTC")
    except (KeyError, ValueError, OSError):
        raise ValueError(f"unknown time zone {name}") from None

"""Where a subscription begins.

``new``: with what is published from now on. ``earliest``, or a time: with the past
(broker.client.history).
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from matcher.errors import BadEvent
from matcher.model import TIME_MIN
from matcher.times import time_of

Start: TypeAlias = str | int | float | datetime
"""A time (RFC 3339, seconds since the epoch, a datetime), "earliest", or "new"."""


def start_time(start: Start) -> int | None:
    """The time that ``start`` says, TIME_MIN for "earliest" and None for "new"."""
    if start in ("new", "earliest"):
        return None if start == "new" else TIME_MIN
    try:
        return time_of(start)
    except BadEvent as error:
        raise ValueError(f"start is 'new', 'earliest' or a time: {error}") from None

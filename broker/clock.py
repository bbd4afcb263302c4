"""The wall clock of a host: seconds since the epoch that never go back.

The protocol core stamps events by it and asks that time never runs backwards. A clock that is set
back goes on at half its pace until the true time has caught up: were it to stand still, no
heartbeat would be due, and everybody would take its host for lost.
"""

from __future__ import annotations

import time

PACE = 0.5
"""Of a clock that is ahead. Heartbeats that are twice as rare are not missed yet."""


class Clock:
    """``now()`` in seconds since the epoch, never less than what it gave before."""

    def __init__(self) -> None:
        self._last = 0.0
        self._asked_at = time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch."""
        asked_at = time.monotonic()
        self._last = max(time.time(), self._last + PACE * (asked_at - self._asked_at))
        self._asked_at = asked_at
        return self._last

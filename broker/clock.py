"""The wall clock of a host: seconds since the epoch that never go back.

The protocol core stamps events by it and asks that time never runs backwards; a clock that is
set back stands still until it has caught up.
"""

from __future__ import annotations

import time


class Clock:
    """``now()`` in seconds since the epoch, never less than what it gave before."""

    def __init__(self) -> None:
        self._last = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        now = time.time()
        if now < self._last:
            return self._last
        self._last = now
        return now

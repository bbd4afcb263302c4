"""Publishing as fast as things happened, or so many times as fast: when, and how much at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from matcher.model import MICROSECONDS, Int64s

PACE_S = 0.01
"""Events that are due within so many seconds leave together."""
SLICE_EVENTS_MAX = 4_096
"""Events that leave together, where no pace is given."""


@dataclass
class Pace:
    """Waits until the clock has come as far as event time, ``speed`` times as fast.

    ``origin``: an event time in microseconds and the clock's seconds at which it is due; without
    one, the first event time that is waited for is due at once.
    """

    speed: float
    origin: tuple[int, float] | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def wait(self, event_time: int) -> None:
        """Return when ``event_time``, in microseconds, is due."""
        if self.origin is None:
            self.origin = event_time, self.clock()
        first, begun = self.origin
        due_s = (event_time - first) / MICROSECONDS / self.speed
        if (left := begun + due_s - self.clock()) > 0:
            self.sleep(left)

    @property
    def span(self) -> int:
        """The event time, in microseconds, that passes in PACE_S; at least 1."""
        return max(1, round(PACE_S * self.speed * MICROSECONDS))


def cuts_of(times: Int64s, span: int | None) -> list[int]:
    """Where sorted times are cut: never between equal ones, after ``span`` microseconds at most, or
    after SLICE_EVENTS_MAX events where there is none.
    """
    cuts = [0]
    while cuts[-1] < len(times):
        first = cuts[-1]
        if span is None:
            last = min(first + SLICE_EVENTS_MAX, len(times)) - 1
            end = int(np.searchsorted(times, times[last], side="right"))
        else:
            end = int(np.searchsorted(times, times[first] + span, side="left"))
            end = max(end, int(np.searchsorted(times, times[first], side="right")))
        cuts.append(end)
    return cuts

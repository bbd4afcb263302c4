"""How much a node has done, in all and lately."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

WINDOW_TICKS = 10
"""Rates are over the last so many ticks of the node's timer."""


class Rates:
    """Counters of events, and their rates. ``now`` is in seconds."""

    def __init__(self, now: float) -> None:
        self.received = 0
        self.detected = 0
        self.delivered = 0
        self.dropped = 0
        self.malformed = 0
        self.not_allowed = 0
        self.ended = 0
        self._samples: deque[tuple[float, tuple[int, int, int]]] = deque(
            [(now, (0, 0, 0))], maxlen=WINDOW_TICKS
        )

    @property
    def totals(self) -> Mapping[str, int]:
        """Events taken in, detected, delivered and dropped; malformed messages, and requests that
        their users may not make.
        """
        return {
            "received": self.received,
            "detected": self.detected,
            "delivered": self.delivered,
            "dropped": self.dropped,
            "malformed": self.malformed,
            "not_allowed": self.not_allowed,
            "ended": self.ended,
        }

    @property
    def per_second(self) -> Mapping[str, float]:
        """The rates over the last ticks."""
        first, last = self._samples[0], self._samples[-1]
        seconds = last[0] - first[0]
        names = ("received", "detected", "delivered")
        if seconds <= 0:
            return dict.fromkeys(names, 0.0)
        pairs = zip(names, first[1], last[1], strict=True)
        return {name: round((new - old) / seconds, 1) for name, old, new in pairs}

    def tick(self, now: float) -> None:
        """Take a sample."""
        self._samples.append((now, (self.received, self.detected, self.delivered)))

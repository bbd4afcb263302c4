"""How much a node has done, in all and lately."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

WINDOW_TICKS = 10
"""Rates are over the last so many ticks of the node's timer."""
STEP_S, STEPS = 5.0, 60
"""Seconds of a step of the history, at least, and how many steps that has."""
NAMES = "received", "detected", "delivered", "dropped"
"""The counts that have a history."""


class Rates:
    """Counters of events, and their rates. ``now`` is in seconds."""

    def __init__(self, now: float, detected: Callable[[], int]) -> None:
        """``detected``: how many composite events were found, asked when somebody looks."""
        self.received = 0
        self._detected = detected
        self.delivered = 0
        self.dropped = 0
        self.malformed = 0
        self.not_allowed = 0
        self.ended = 0
        self._samples: deque[tuple[float, tuple[int, int, int]]] = deque(
            [(now, (0, 0, 0))], maxlen=WINDOW_TICKS
        )
        self._steps: deque[tuple[float, tuple[int, ...]]] = deque(
            [(now, (0,) * len(NAMES))], maxlen=STEPS + 1
        )

    @property
    def totals(self) -> Mapping[str, int]:
        """Events taken in, detected, delivered and dropped; malformed messages, and requests that
        their users may not make.
        """
        return {
            "received": self.received,
            "detected": self._detected(),
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

    @property
    def history(self) -> Mapping[str, Sequence[float]]:
        """The rates of the last minutes, a number a step, the oldest first."""
        steps = [(new[0] - old[0], new[1], old[1]) for old, new in pairwise(self._steps)]
        return {
            name: [round((new[place] - old[place]) / seconds, 2) for seconds, new, old in steps]
            for place, name in enumerate(NAMES)
        }

    def tick(self, now: float) -> None:
        """Take a sample."""
        self._samples.append((now, (self.received, self._detected(), self.delivered)))
        if now - self._steps[-1][0] >= STEP_S:
            totals = self.totals
            self._steps.append((now, tuple(totals[name] for name in NAMES)))

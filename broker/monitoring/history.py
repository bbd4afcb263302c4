"""Counts of the last minutes, for rates that are shown as a line.

A sample is taken every ``STEP_S`` while somebody looks; ``SAMPLES`` of them are kept. Of ``fire``,
which has found 10 events at one sample and 40 at the next, the line ends at 6 a second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import pairwise

STEP_S, SAMPLES = 5.0, 60
LATELY = 12
"""Steps of which the rate lately is the mean: a minute."""


class History:
    """Counts by name, at the times of the samples."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, Mapping[str, int]]] = deque(maxlen=SAMPLES + 1)

    def note(self, counts: Mapping[str, int], at: float) -> None:
        """Take a sample, unless the last one is from a moment ago."""
        if not self._samples or at - self._samples[-1][0] >= STEP_S:
            self._samples.append((at, dict(counts)))

    def line(self, name: str) -> list[float]:
        """The rate from each sample to the next, the oldest first; 0 where the count began anew."""
        samples = [(at, counts[name]) for at, counts in self._samples if name in counts]
        return [
            round(max(0, count - before) / (at - since), 2)
            for (since, before), (at, count) in pairwise(samples)
        ]

    def lately(self, name: str, count: int, at: float) -> float:
        """The rate from a minute ago until now, when the count is ``count``."""
        samples = [(since, counts[name]) for since, counts in self._samples if name in counts]
        since, before = samples[-min(LATELY, len(samples))] if samples else (at, count)
        return round(max(0, count - before) / max(at - since, 1.0), 2)

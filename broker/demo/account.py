"""The account of a run of the demo: counts, latencies, and which days it hit hardest.

The latency of a composite event is measured between two moments of one clock: when the last of
the publishers handed over the stretch of its time, which the broker has to wait for (S14), and
when the subscriber took it. At full speed that includes all waiting in queues.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import numpy.typing as npt

from broker.demo.flights import day_of
from matcher.model import Event, Int64s

CAUGHT = "Caught"
"""The type whose events rank the days: a flight caught in a bad patch."""


@dataclass(slots=True, eq=False)
class Handovers:
    """When each publisher handed over each stretch of the year.

    ``edges`` int64[n + 1]: the stretches' bounds in event time, microseconds; ``seconds``
    float64[publishers, n] by ``perf_counter``, NaN before it happened. Every publisher writes to
    a row of its own.
    """

    edges: Int64s
    seconds: npt.NDArray[np.float64]

    @classmethod
    def of(cls, edges: Int64s, publishers: int) -> Handovers:
        """Nothing handed over yet."""
        return cls(edges, np.full((publishers, len(edges) - 1), np.nan))

    def complete_at(self, time: int) -> float:
        """When the last publisher had handed over the stretch of an event time; the last so far,
        where a rule needs nothing of another.
        """
        stretch = int(np.searchsorted(self.edges, time, side="right")) - 1
        return float(np.nanmax(self.seconds[:, stretch]))


@dataclass(slots=True)
class Account:
    """Counts as events come, to be asked at the end. ``seconds``: how long the run took."""

    types: Sequence[str]
    published: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    latencies_s: list[float] = field(default_factory=list)
    days: dict[date, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @property
    def detected(self) -> int:
        """Composite events so far."""
        return self.counts.total()

    def add(self, event: Event, taken_at: float, handovers: Handovers) -> None:
        """Count a composite event that the subscriber took at ``taken_at`` seconds."""
        self.counts[event.type] += 1
        self.days[day_of(event.time)][event.type] += 1
        self.latencies_s.append(taken_at - handovers.complete_at(event.time))

    def latency_s(self, share: float) -> float:
        """The latency that ``share`` of the composite events were within; 0 without any."""
        return float(np.quantile(self.latencies_s, share)) if self.latencies_s else 0.0

    def worst_days(self, number: int) -> list[tuple[date, Counter[str]]]:
        """The days on which most flights were caught, with their counts by type."""
        hit = [(day, counts) for day, counts in self.days.items() if counts[CAUGHT]]
        return sorted(hit, key=lambda one: (-one[1][CAUGHT], one[0]))[:number]

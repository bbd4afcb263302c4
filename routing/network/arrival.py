"""A broker's part where events have the times at which they come (``ordering = "arrival"``).

The thesis's T-Rex evaluates events as they come; so does this station, for immediacy. There are no
marks, and nothing waits.

Law 1: an event that a rule here uses is stamped when it comes, later than any before it: that is
its time to the rules, their windows and their composite events. Its own time is not looked at.
What comes together keeps the order of its sources. So the results are what one engine gives for
the events in the order and at the times in which they came here.

Law 2: fragments let pass whatever satisfies static conditions, since how far two events are apart
is decided here and nowhere below.

Law 3: a rule sees what comes from its deployment on. One that moves to another broker begins with
nothing there, and what is under way when the tree changes is lost: exactness is what the other
ordering is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from matcher.model import TIME_MIN, EventBatch, Int64s
from routing.deployment import Deployed
from routing.network.station import Division, Station
from routing.order import in_sequence
from routing.partition.composites import numbered
from rules.engine.engine import NOTHING, Detections, Detector
from rules.pattern import TIMER


class ArrivalStation(Station):
    """A Station whose engine is given events as they come."""

    def __init__(self, name: str, engine: Detector, waiting_events_max: int) -> None:
        super().__init__(name, engine, waiting_events_max)
        self._come: list[list[EventBatch]] = []
        self._passed = TIME_MIN
        """Everything earlier has been evaluated; what comes is later than that."""

    def begin_anew(self) -> None:
        """Nothing begins anew (Law 3)."""

    def push(self, batches: Iterable[EventBatch], *, fresh: bool = True) -> None:
        """Take events in, of local sources or from a child; ``fresh`` as in Forward."""
        come = []
        for batch in batches:
            if len(batch):
                self._forwarder.push(batch, fresh=fresh)
                self._has_news = True
                if batch.type.name in self._used:
                    come.append(batch)
        if come:
            self._come.append(come)

    def advance(self, own: Mapping[str, int], clock: int | None, now: int) -> Detections | None:
        """Evaluate what has come; None when nothing has."""
        ticks = clock is not None and any(TIMER.name in uses for uses in self._uses.values())
        if not (self._has_news or ticks):
            return None
        self._has_news = False
        detections = self._evaluate(now) if self._rules else NOTHING
        for batch in detections.batches:
            if self._forwarder.looks_at(batch.type.name):
                self._forwarder.push(numbered(batch, self._ranks))
        self._post(self._forwarder.advance({}))
        return detections

    def _evaluate(self, now: int) -> Detections:
        come, self._come = self._come, []
        for batches in come:
            for batch in stamped(batches, max(now, self._passed)):
                self._engine.push(batch)
                self._passed = max(self._passed, int(batch.time.max()) + 1)
        self._passed = max(self._passed, now)
        return self._engine.advance(self._passed)

    def _install(self, rules: Sequence[Deployed], division: Division) -> None:
        since = None if self._passed == TIME_MIN else self._passed
        super()._install([replace(one, since=since) for one in rules], division)


def stamped(batches: Sequence[EventBatch], first: int) -> list[EventBatch]:
    """Events that come together, at times from ``first`` on, each its own."""
    count = sum(map(len, batches))
    order = in_sequence(batches)
    times: Int64s = np.arange(first, first + count)
    if order is not None:
        times[order] = np.arange(first, first + count)
    found = []
    start = 0
    for batch in batches:
        own = times[start : start + len(batch)]
        found.append(EventBatch(batch.type, own, batch.ids, batch.columns, batch.causes))
        start += len(batch)
    return found

"""A broker's part where events have the times at which they come (``ordering = "arrival"``).

The thesis's T-Rex evaluates events as they come; so does this evaluator, for immediacy. There are
no marks, and nothing waits but for what was asked for.

Fragments let pass whatever satisfies static conditions, since how far two events are apart is
decided here and nowhere below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from matcher.model import TIME_MIN, EventBatch, Int64s
from routing.deployment import Deployed
from routing.evaluation.skew import SkewLimit
from routing.evaluation.tree_evaluator import NOTHING_RESUMED, TreeEvaluator
from routing.messages import Forward
from routing.order import at_times, in_sequence
from routing.partition.composites import numbered
from routing.partition.places import Division
from routing.partition.rule_states import ResumedRule
from routing.serving.sources import FAR
from rules.engine.engine import NOTHING, Detections
from rules.engine.order.intervals import Intervals
from rules.pattern import TIMER

ASKED_WITHIN_US = 10_000_000
"""Events that have waited below are asked for no later than that, or are forgotten."""


class ArrivalEvaluator(TreeEvaluator):
    """A TreeEvaluator whose engine is given events as they come."""

    def __init__(
        self, name: str, engine: Intervals, waiting_events_max: int, limit: SkewLimit
    ) -> None:
        super().__init__(name, engine, waiting_events_max, limit)
        self._come: list[tuple[Sequence[EventBatch], bool, Int64s | None]] = []
        """Batches of each message, whether they are fresh, and when they came where they waited."""
        self._passed = TIME_MIN
        """Everything earlier has been evaluated; what comes is later than that."""

    def begin_anew(self, resumed: Mapping[str, ResumedRule] = NOTHING_RESUMED) -> None:
        """Nothing begins anew: a rule that moves to another broker begins with nothing there, and
        what is under way when the tree changes is lost. Exactness is what the other ordering is
        for. fire moves from b2 to b1: a Smoke after that finds no Temp of before.
        """

    def push(self, batches: Iterable[EventBatch], *, fresh: bool = True) -> None:
        """Take events in, of local sources or from a child; ``fresh`` as in Forward."""
        come = tuple(batch for batch in batches if len(batch))
        if come:
            self._come.append((come, fresh, None))
            self.has_news = True

    def take(self, child: str, message: Forward, now: float) -> None:
        """Take in what a child has sent, perhaps of what has waited there: that has the times at
        which it came there, by the clock of the broker there, and its End behind it, until when the
        instants from the master on wait for it. What comes in a window that is open comes as if it
        were pushed. So it is as near to the results without pulling as delays are short beside
        windows, if clocks agree as far as these matter. A Temp waits at b3 from 10 s; a Smoke at 12
        s asks for it: it is of 10 s.
        """
        if message.came is not None:
            times = np.frombuffer(message.came, "<i8").astype(np.int64)
            self._come.append((message.batches, False, times))
            self.has_news = True
            message = Forward((), message.marks, 0, message.answers)
        super().take(child, message, now)

    def advance(self, own: Mapping[str, int], clock: int | None, now: int) -> Detections | None:
        """Evaluate what has come; None when nothing has."""
        ticks = clock is not None and any(TIMER.name in uses for uses in self._duties.uses.values())
        if not (self.has_news or ticks):
            return None
        self.has_news = False
        come, self._come = self._come, []
        for batches, fresh, times in come:
            if times is None:
                self._take_in(batches, fresh, now)
            else:  # none of them is from the future, whatever clocks say
                self._take_late(batches, np.clip(times, -FAR, now))
        detections = self._evaluate_stamped(now) if self._duties.rules else NOTHING
        for batch in detections.batches:
            if self.forwarder.looks_at(batch.type.name):
                self.forwarder.push(numbered(batch, self._division.ranks))
        ends = self.forwarder.ends(now, now - ASKED_WITHIN_US, self._pulls.answered)
        self.outbox.post(self.forwarder.advance({}), answers=ends)
        return detections

    def _take_in(self, batches: Iterable[EventBatch], fresh: bool, now: int) -> None:
        used = []
        for batch in batches:
            self.forwarder.push(batch, fresh=fresh, came=np.full(len(batch), now))
            if batch.type.name in self._duties.used:
                used.append(batch)
        for batch in stamped(used, max(now, self._passed)) if used else ():
            self.engine.push(batch)
            self._pulls.see(batch)
            self._passed = max(self._passed, int(batch.time.max()) + 1)
        self.engine.take_conflict()  # times are those of arrival: the same event seems another

    def _take_late(self, batches: Iterable[EventBatch], times: Int64s) -> None:
        first = 0
        for batch in batches:
            came = times[first : first + len(batch)]
            first += len(batch)
            self.forwarder.push(batch, fresh=False, came=came)
            if batch.type.name in self._duties.used:
                self.engine.push(at_times(batch, came))
        self.engine.take_conflict()

    def _evaluate_stamped(self, now: int) -> Detections:
        self._passed = max(self._passed, now)
        if not self._pulls.asks:
            return self.engine.advance(self._passed)
        marks = dict.fromkeys((*sorted(self._duties.used), TIMER.name), self._passed)
        self._pulls.learn(marks)
        for name, mark in self._pulls.limits.items():
            marks[name] = min(marks.get(name, mark), mark)
        return self.engine.advance(marks)

    @property
    def _front_of_masters(self) -> int:
        return self._passed - 1 if self._passed > TIME_MIN else TIME_MIN

    def _install(self, rules: Sequence[Deployed], division: Division) -> None:
        if self._passed > TIME_MIN:
            rules = [replace(one, since=self._passed) for one in rules]
        super()._install(rules, division)


def stamped(batches: Sequence[EventBatch], first: int) -> list[EventBatch]:
    """Events that come together, at times from ``first`` on, each its own. Such a time is that of
    the event to rules, their windows and their composite events; its own is not looked at. So the
    results are what one engine gives for the events in the order and at the times in which they
    came here. A Temp of 9 s and one of 8 s come at 10 s: to rules they are of 10 s and 1 us later.
    """
    count = sum(map(len, batches))
    order = in_sequence(batches)
    times: Int64s = np.arange(first, first + count)
    if order is not None:
        times[order] = np.arange(first, first + count)
    found = []
    start = 0
    for batch in batches:
        own = times[start : start + len(batch)]
        found.append(at_times(batch, own))
        start += len(batch)
    return found

"""How often events of each type come, as the root measures it (thesis 7.3.8).

Law: the root surveys the tree now and then, and so hears how many events of each type there were so
far. From one survey to the next that gives rates, by the events' own times, since windows go by
these. It does so every ``ADAPT_AFTER_S`` until rates are known, and then after twice as long each
time, up to ``ADAPT_EVERY_S``.
"""

from __future__ import annotations

from collections.abc import Mapping

from matcher.model import MICROSECONDS
from routing.messages import Need, Needed, Plan
from routing.network.agreement.rounds import Tally
from routing.network.brokers.dividing import DividingBroker
from routing.network.setup import Setup

ADAPT_AFTER_S, ADAPT_EVERY_S = 8.0, 600.0


class MeasuringBroker(DividingBroker):
    """A DividingBroker that considers, when rates were measured, whether to divide otherwise."""

    def __init__(self, setup: Setup) -> None:
        self._adapt_at: float | None = None
        self._adapt_after_s = ADAPT_AFTER_S
        self._seen: Mapping[str, tuple[int, int]] = {}
        """What was published by the last survey, and the greatest times."""
        self._wants_change = False
        """At the root: whether a plan would pay."""
        super().__init__(setup)

    def handle_timer(self, now: float) -> None:
        """Do what is due."""
        if self._adapt_at is not None and self._adapt_at <= now:
            self._now = now
            self._adapt_at = now + self._adapt_after_s
            if self._router.is_root and self._detection.is_at_work and len(self._deployments):
                self._need(Need(Needed.SURVEY))
        super().handle_timer(now)

    def next_timer(self) -> float | None:
        """When that is."""
        due, own = super().next_timer(), self._adapt_at
        return due if own is None else own if due is None else min(due, own)

    def _follow_plan(self, plan: Plan) -> None:
        super()._follow_plan(plan)
        if plan.anew:
            self._seen = {}
        if not self._router.is_root:
            self._adapt_at = None
        elif self._adapt_at is None:
            self._adapt_after_s = ADAPT_AFTER_S
            self._adapt_at = self._now + ADAPT_AFTER_S

    def _add_to(self, tally: Tally) -> None:
        for name in self._detection.published:
            known = self._advertisements.find(name)
            if known is not None and known.front is not None:
                tally.count([(name, known.events, known.front)])

    def _weigh(self, tally: Tally) -> None:
        counts = dict(tally.counts)
        before, self._seen = self._seen, counts
        if not before or not counts:
            return
        elapsed = max(front for _, front in counts.values()) - max(f for _, f in before.values())
        if elapsed <= 0:
            return
        self._adapt_after_s = min(2 * self._adapt_after_s, ADAPT_EVERY_S)
        seconds = elapsed / MICROSECONDS
        events = {name: count - before.get(name, (0, 0))[0] for name, (count, _) in counts.items()}
        rates = {name: max(0, count) / seconds for name, count in sorted(events.items())}
        if self._would_pay(rates, seconds, tally):
            self._wants_change = True
            self._tell_soon()

    def _would_pay(self, rates: Mapping[str, float], seconds: float, tally: Tally) -> bool:
        """Whether to divide otherwise at these rates, in events a second; the plan that follows
        bears what was found. ``tally``: all that the survey has brought, so many seconds after the
        one before.
        """
        raise NotImplementedError

    @property
    def _has_work(self) -> bool:
        return self._wants_change or super()._has_work

    def _carry_out_due(self, homes: dict[str, set[str]]) -> None:
        self._wants_change = False
        super()._carry_out_due(homes)

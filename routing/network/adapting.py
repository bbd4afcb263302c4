"""Masters that follow what is published (thesis 7.3.8).

Law 1: the root surveys the tree now and then, and so hears how many events of each type there were
so far. From one survey to the next that gives rates, by the events' own times, since windows go by
these. It does so every ``ADAPT_AFTER_S`` until rates are known, and then after twice as long each
time, up to ``ADAPT_EVERY_S``.

Law 2: where other masters would cost clearly less at these rates, the tree pauses, and a plan
follows that bears the rates. Every broker works out the masters from it, so all change at one
instant. On the single tree nothing else changes, and nothing begins anew; the trees of brokers with
sinks have each its own masters, and begin anew with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matcher.model import MICROSECONDS
from routing.messages import Need, Needed, Plan
from routing.network.dividing import DividingBroker
from routing.network.division import RATES_S
from routing.network.setup import Setup
from routing.partition.choosing import Weights

ADAPT_AFTER_S, ADAPT_EVERY_S = 8.0, 600.0
BETTER = 0.8
"""Masters are changed for others that cost no more than this part of what the old ones do."""


class AdaptingBroker(DividingBroker):
    """A DividingBroker whose rules get other masters when events come otherwise."""

    def __init__(self, setup: Setup) -> None:
        self._adapt_at: float | None = None
        self._adapt_after_s = ADAPT_AFTER_S
        self._seen: Mapping[str, tuple[int, int]] = {}
        """What was published by the last survey, and the greatest times."""
        self._wants_masters = False
        super().__init__(setup)

    # --- when (Law 1) ---

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

    @property
    def _counts(self) -> Iterable[tuple[str, int, int]]:
        for name in self._detection.published:
            known = self._advertisements.find(name)
            if known is not None and known.front is not None:
                yield name, known.events, known.front

    # --- what (Law 2) ---

    def _weigh(self, counts: Mapping[str, tuple[int, int]]) -> None:
        before, self._seen = self._seen, dict(counts)
        if not before or not counts:
            return
        elapsed = max(front for _, front in counts.values()) - max(f for _, f in before.values())
        if elapsed <= 0:
            return
        self._adapt_after_s = min(2 * self._adapt_after_s, ADAPT_EVERY_S)
        seconds = elapsed / MICROSECONDS
        events = {name: count - before.get(name, (0, 0))[0] for name, (count, _) in counts.items()}
        rates = {name: max(0, count) / seconds for name, count in sorted(events.items())}
        if self._would_pay(rates):
            self._measured = tuple((name, round(rate * RATES_S)) for name, rate in rates.items())
            self._wants_masters = True
            self._tell_soon()

    def _would_pay(self, rates: Mapping[str, float]) -> bool:
        """Whether other masters would cost clearly less."""
        now = then = 0.0
        for root, division in self._divisions:
            rules = [one.rule for one in division.rules]
            weights = Weights(division.tree(root), division.published, rules, rates)
            pulls = division.partition.pulls
            now += weights.cost({name: pull.number for name, pull in pulls.items()})
            then += weights.cost(weights.choose())
        return then < BETTER * now

    @property
    def _has_work(self) -> bool:
        return self._wants_masters or super()._has_work

    def _carry_out_due(self, homes: dict[str, set[str]]) -> None:
        self._wants_masters = False
        super()._carry_out_due(homes)

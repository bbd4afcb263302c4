"""How often events of each type come, as the root measures it (thesis 7.3.8).

The root surveys the tree now and then, and so hears how many events of each type there were so
far. From one survey to the next that gives rates, by the events' own times, since windows go by
these. It does so every ``ADAPT_AFTER_S`` until rates are known, and then after twice as long each
time, up to ``ADAPT_EVERY_S``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from matcher.model import MICROSECONDS
from routing.messages import Need, Needed, Plan
from routing.network.agreement.rounds import Tally
from routing.network.brokers.agenda import Agenda
from routing.network.brokers.ground import Ground
from routing.network.brokers.needs import Needs

ADAPT_AFTER_S, ADAPT_EVERY_S = 8.0, 600.0


class Chooser(Protocol):
    """A chooser that goes by the rates: whether to divide otherwise, and how."""

    def add_to(self, tally: Tally) -> None:
        """Add to a survey what this broker knows and a choice follows from."""
        ...

    def would_pay(self, rates: Mapping[str, float], seconds: float, tally: Tally) -> bool:
        """Whether to divide otherwise at these rates, in events a second. ``tally``: all that the
        survey has brought, so many seconds after the one before.
        """
        ...

    def note(self, tally: Tally) -> None:
        """A survey has brought this; whether it would pay has been asked, if it could be."""
        ...

    def choose(self) -> None:
        """The tree pauses: the plan that follows is to bear what was found last."""
        ...

    def follow(self, plan: Plan) -> bool:
        """There is another plan; whether what was measured before it counts no more."""
        ...


class Measuring:
    """Measures rates at the root; ``chooser`` says what follows from them."""

    def __init__(self, ground: Ground, agenda: Agenda, needs: Needs, chooser: Chooser) -> None:
        self._ground = ground
        self._agenda = agenda
        self._needs = needs
        self._chooser = chooser
        self.due_at: float | None = None
        """When the root surveys next; None elsewhere."""
        self._after_s = ADAPT_AFTER_S
        self._seen: Mapping[str, tuple[int, int]] = {}
        """Events published by the last survey, and the greatest times, by type."""
        self.has_work = False
        """At the root: whether a plan would pay."""

    def handle_timer(self) -> None:
        """Survey, at the root, and where there is something to measure."""
        ground = self._ground
        self.due_at = ground.moment.now + self._after_s
        if ground.router.is_root and ground.detection.is_at_work and len(ground.deployments):
            self._needs.say(Need(Needed.SURVEY))

    def follow(self, plan: Plan) -> None:
        """The tree goes by this plan from now on."""
        if self._chooser.follow(plan):
            self._seen = {}
        if not self._ground.router.is_root:
            self.due_at = None
        elif self.due_at is None:
            self._after_s = ADAPT_AFTER_S
            self.due_at = self._ground.moment.now + ADAPT_AFTER_S

    def add_to(self, tally: Tally) -> None:
        """Add what this broker has measured to a survey."""
        for name in self._ground.detection.publishers.types:
            known = self._ground.advertisements.find(name)
            if known is not None and known.front is not None:
                tally.count([(name, known.events, known.front)])
        self._chooser.add_to(tally)

    def weigh(self, tally: Tally) -> None:
        """At the root: a survey has brought this."""
        self._look(tally)
        self._chooser.note(tally)

    def _look(self, tally: Tally) -> None:
        counts = dict(tally.counts)
        before, self._seen = self._seen, counts
        if not before or not counts:
            return
        elapsed = max(front for _, front in counts.values()) - max(f for _, f in before.values())
        if elapsed <= 0:
            return
        self._after_s = min(2 * self._after_s, ADAPT_EVERY_S)
        seconds = elapsed / MICROSECONDS
        events = {name: count - before.get(name, (0, 0))[0] for name, (count, _) in counts.items()}
        rates = {name: max(0, count) / seconds for name, count in sorted(events.items())}
        if self._chooser.would_pay(rates, seconds, tally):
            self.has_work = True
            self._agenda.tell_soon()

    def begin_plan(self) -> None:
        """At the root: a plan is made."""
        self.has_work = False
        self._chooser.choose()

"""Inputs that are open with nobody there: since when, and when the root closes them (planner).

An input is a type at a broker. It is open, or closed: its sources have said goodbye, or were lost
for too long, which their broker says; or nobody there has spoken for it for ``forget_s``. A type
that nobody publishes has no input yet, and is closed once too much has waited for one.
"""

from __future__ import annotations

from collections.abc import Collection

from routing.messages import RootRequest
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.update_timer import UpdateTimer


class Inputs:
    """At the root: the brokers with such inputs, and the types that are to be closed."""

    def __init__(self, context: BrokerContext, timer: UpdateTimer) -> None:
        self._context = context
        self._timer = timer
        self._forget_s = context.overlay.config.forget_s
        self._since: dict[str, float] = {}
        self._unpublished: set[str] = set()
        self._is_due = False
        self.leaving: set[str] = set()
        """Brokers of which nothing is waited for."""
        self.due_at: float | None = None
        """When the next are to be closed; None when that is not known, or has come."""

    @property
    def has_work(self) -> bool:
        """Whether something is to be closed."""
        return self._is_due or bool(self._unpublished)

    def handle_timer(self) -> None:
        """Let the tree pause, since inputs are to be closed."""
        self._is_due, self.due_at = True, None
        self._timer.tell_soon()

    def let_go(self, request: RootRequest) -> None:
        """A broker that drains has nothing any more, and forgets what was published there."""
        self.leaving.update(request.names)
        self.handle_timer()

    def handle_request(self, request: RootRequest) -> None:
        """Close types with the next plan that rules have waited for in vain."""
        self._unpublished.update(request.names)
        self._timer.tell_soon()

    def take_unpublished(self) -> set[str]:
        """Such types, since this was last asked."""
        types, self._unpublished = self._unpublished, set()
        return types

    def overdue(self, brokers: Collection[str]) -> list[str]:
        """Give those of these brokers whose inputs nobody has spoken for for too long."""
        since, now = self._since, self._context.moment.now
        return [one for one in brokers if one in since and since[one] + self._forget_s <= now]

    def keep(self, brokers: Collection[str]) -> None:
        """Note that nobody speaks for inputs of these brokers, and of no others."""
        now = self._context.moment.now
        self._since = {one: self._since.get(one, now) for one in brokers}
        self._is_due, self.due_at = False, None
        if self._since:
            self.due_at = min(self._since.values()) + self._forget_s

    def leave(self) -> None:
        """Forget them: another broker is the root."""
        self.keep(())
        self._unpublished.clear()

"""How far that has come which is kept until it is asked for (7.3.7), told to who would ask.

What waits to be asked for, for masters, waits where nobody evaluates the rule. Who keeps it says so
when it is far ahead of them (evaluation.skew): to the root, and the root tells all. Who would ask
says from when on it may still do so, and takes what is kept for having come if there are no masters
any more. What is said counts until more is kept; nobody says anything while masters keep up.
"""

from __future__ import annotations

from routing.messages import Awaited
from routing.network.brokers.context import BrokerContext


class PulledProgress:
    """Tells how far what is kept here has come, and hears where else it is kept."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._router = context.router

    def tell_kept(self) -> None:
        """Tell how far what is kept for masters has come."""
        kept = self._context.detection.skew_limit.take_kept()
        if kept:
            self._pass_on(Awaited(tuple(sorted(kept.items()))))

    def hear_awaited(self, neighbour: str, message: Awaited) -> None:
        """Hear what is kept elsewhere, as a broker below says to the root, or the root to all."""
        if neighbour == self._router.father:
            self._spread(message)
        elif neighbour in self._router.branches:
            self._pass_on(message)

    def _pass_on(self, message: Awaited) -> None:
        """On to the root, and from there to all."""
        if self._router.is_root:
            self._spread(message)
        elif self._router.father is not None:
            self._context.send(self._router.father, message)

    def _spread(self, message: Awaited) -> None:
        self._context.detection.hear_awaited(message.types)
        for branch in self._router.children:
            self._context.send(branch.neighbour, message)

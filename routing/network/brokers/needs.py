"""Needs of a broker that the root meets: a plan, a survey, an end of waiting.

A need goes up from father to father; at the root the part does it that answers for such. While
there is no way to the root it is forgotten, for with another tree comes another plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from routing.messages import Need, Needed
from routing.network.brokers.context import BrokerContext

Meet = Callable[[Need], None]
"""Does, at the root, what somebody needs."""


class Needs:
    """The way to the root."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._router = context.router
        self._meets: Mapping[Needed, Meet] = {}

    def are_met_by(self, meets: Mapping[Needed, Meet]) -> None:
        """Set the functions that do at the root what is needed."""
        self._meets = meets

    def say(self, need: Need) -> None:
        """Something is needed of the root."""
        if self._router.is_root:
            self._meets[need.what](need)
        elif self._router.father is not None:
            self._context.send(self._router.father, need)

    def hear(self, neighbour: str, need: Need) -> None:
        """Somebody below needs something."""
        if neighbour in self._router.branches:
            self.say(need)

"""Requests of a broker to its root: a plan, a checkpoint, an end of waiting.

A request goes up from father to father; at the root the part does it that answers for such. While
there is no way to the root it is forgotten, for with another tree comes another plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from routing.messages import RootRequest, RootTask
from routing.network.brokers.context import BrokerContext

HandleRequest = Callable[[RootRequest], None]
"""Does, at the root, what somebody needs."""


class RootRequests:
    """The way to the root."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._router = context.router
        self._handlers: Mapping[RootTask, HandleRequest] = {}

    def are_handled_by(self, handlers: Mapping[RootTask, HandleRequest]) -> None:
        """Set the functions that do at the root what is needed."""
        self._handlers = handlers

    def say(self, request: RootRequest) -> None:
        """Something is needed of the root."""
        if self._router.is_root:
            self._handlers[request.what](request)
        elif self._router.father is not None:
            self._context.send(self._router.father, request)

    def hear(self, neighbour: str, request: RootRequest) -> None:
        """Somebody below needs something."""
        if neighbour in self._router.branches:
            self.say(request)

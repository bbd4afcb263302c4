"""Requests of this broker's clients to the root that it has not answered.

Each is answered once, if only by the loss of the way to the root.
"""

from __future__ import annotations

from collections import deque

from routing.effects import Peer
from routing.errors import Refusal
from routing.messages import Asking, Code, HandOver

PENDING_REQUESTS_MAX = 10_000
"""Requests of one broker's clients that wait for the root, or for its answer."""

PendingRequest = tuple[Peer, Asking | HandOver, str]
"""A client, what it asks, and the client's name where that is of use."""


class PendingRequests:
    """The open requests: those sent, by the numbers that they bear, and those that wait."""

    def __init__(self) -> None:
        self._sent: dict[int, PendingRequest] = {}
        self._waiting: deque[PendingRequest] = deque()
        self._last_number = 0

    def check_room(self) -> None:
        """Refusal when too many are open."""
        if len(self._sent) + len(self._waiting) >= PENDING_REQUESTS_MAX:
            raise Refusal(Code.LIMIT, f"{PENDING_REQUESTS_MAX} requests wait for the root already")

    def wait(self, peer: Peer, request: Asking) -> None:
        """There is no way to the root yet."""
        self._waiting.append((peer, request, ""))

    def send(self, peer: Peer, request: Asking | HandOver, name: str = "") -> int:
        """The request is about to be sent; gives its number."""
        self._last_number += 1
        self._sent[self._last_number] = peer, request, name
        return self._last_number

    def answer(self, number: int) -> PendingRequest | None:
        """An answer has come; None for one that nobody waits for any more."""
        return self._sent.pop(number, None)

    def take_lost(self) -> list[PendingRequest]:
        """The way to the root has changed: those that will not be answered."""
        lost, self._sent = self._sent, {}
        return list(lost.values())

    def take_waiting(self) -> list[PendingRequest]:
        """Give the requests that wait, to be tried again."""
        waiting, self._waiting = self._waiting, deque()
        return list(waiting)

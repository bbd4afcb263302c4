"""A client's requests: numbered, and answered exactly once, if only by the loss of the link.

A request that is *repeated* was asked by nobody: it repeats on a new link what was confirmed on
an earlier one, and its confirmation is nobody's news. Parts of logs, which are long, are asked for
one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from routing.errors import SessionError
from routing.messages import Advertise, ReadLog, Subscribe, Unadvertise, Unsubscribe

WISHES = Advertise | Unadvertise | Subscribe | Unsubscribe
"""Requests that say what the client wants, and are asked again on the next link."""
REQUESTS_MAX = 10_000
"""Requests without an answer at a time."""


class ClientRequest(Protocol):
    """A message that is answered: by Confirmed, LogPart or Refused, which bear its number."""

    @property
    def request(self) -> int:
        """Its number."""


class SessionRequests:
    """The requests of one session that have no answer yet."""

    def __init__(self) -> None:
        self._open: dict[int, ClientRequest] = {}
        self._repeated: set[int] = set()
        self._ended: set[int] = set()
        """Requests for a subscription whose end has been confirmed before its beginning."""
        self._last = 0
        self.advertising = 0
        """How many advertisements wait for their answer."""
        self._log_reader: int | None = None
        """The part of a log that was asked for."""

    @property
    def open(self) -> Sequence[ClientRequest]:
        """Requests without an answer, in the order of their numbers."""
        return list(self._open.values())

    def number(self) -> int:
        """A new request's number."""
        self._last += 1
        return self._last

    def add(self, request: ClientRequest, repeated: bool) -> None:
        """Note a request; SessionError when too many wait for an answer."""
        if len(self._open) >= REQUESTS_MAX:
            raise SessionError(f"{REQUESTS_MAX} requests wait for an answer already")
        self._open[request.request] = request
        self.advertising += isinstance(request, Advertise)
        if repeated:
            self._repeated.add(request.request)

    def take_read(self) -> ReadLog | None:
        """The next part of a log to be asked for; None while another is on its way."""
        if self._log_reader is None:
            reads = (one for one in self._open.values() if isinstance(one, ReadLog))
            if (found := next(reads, None)) is not None:
                self._log_reader = found.request
                return found
        return None

    def answer(self, number: int) -> tuple[ClientRequest, bool] | None:
        """An answer has come: the request, and whether it was repeated; None for no such one."""
        request = self._open.pop(number, None)
        if request is None:
            return None
        self.advertising -= isinstance(request, Advertise)
        self._log_reader = None if number == self._log_reader else self._log_reader
        repeated = number in self._repeated
        self._repeated.discard(number)
        self._ended.discard(number)
        return request, repeated

    def end_subscription(self, number: int) -> None:
        """A subscription has ended. If its beginning was not answered yet, which may take longer in
        a network, it is not to be asked for on another link.
        """
        for request in self._open.values():
            if isinstance(request, Subscribe) and request.number == number:
                self._ended.add(request.request)

    def is_ended(self, number: int) -> bool:
        """Whether a request asks for a subscription that has ended."""
        return number in self._ended

    def is_repeated(self, number: int) -> bool:
        """Whether a request was asked by nobody."""
        return number in self._repeated

    def is_wished(self, number: int) -> bool:
        """Whether a request is asked again on the next link if this one has no answer to it."""
        return isinstance(self._open.get(number), WISHES)

    def lose(self) -> list[ClientRequest]:
        """The link is lost: gives those that may or may not have been done.

        WISHES stay open, and are asked again in their order. Repeated ones are repeated from what
        was confirmed.
        """
        lost = []
        for request in self.open:
            number = request.request
            repeated = number in self._repeated
            if repeated or number in self._ended or not isinstance(request, WISHES):
                self.answer(number)
                lost += [] if repeated else [request]
        return lost

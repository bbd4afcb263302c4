"""Queries of clients that all brokers answer: what each has kept of an event's path, or does.

A query goes along the single tree to every broker, and each sends its answer back the way the query
came. The broker that was asked tells its client once all have answered, or ANSWERS_S later without
the others, whom it names. b1 is asked for t#7: b2 says that it came from b1, b3, beyond b2, that it
was delivered to k; had b3 not been heard of, b1 would say so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from routing import messages
from routing.effects import Peer
from routing.errors import Refusal
from routing.messages import NetworkAnswer, NetworkQuery, Question

ANSWERS_S = 2.0
"""Seconds after which a client is told what is there."""
OPEN_MAX, OF_USER_MAX = 1_000, 4
"""Queries of this broker's clients at a time, and of one user: each is work at all brokers."""
Find = Callable[[str], Mapping[str, Any]]
"""Gives this broker's answer to a question, of an event."""
Answer = Callable[[Peer, messages.Confirmed], None]


@dataclass(slots=True)
class _Query:
    """A client's: whose it is, until when it waits, for whom, and what has been answered."""

    peer: Peer
    user: str
    request: int
    due_at: float
    awaited: set[str]
    found: list[Mapping[str, Any]] = field(default_factory=list)


class NetworkQueries:
    """Queries of the clients of broker ``name``, and of others on their way. ``send`` sends to a
    neighbour.
    """

    def __init__(self, name: str, send: Callable[[str, messages.Carried], None]) -> None:
        self._name = name
        self._send = send
        self.finders: dict[Question, Find] = {
            Question.TRACE: lambda event: {"traced": 0, "events": []},
            Question.STATUS: lambda event: {},
        }
        """Answers of this broker, by question."""
        self.answer: Answer = lambda peer, message: None
        """Answers a client, which may be gone."""
        self._open: dict[int, _Query] = {}
        self._last = 0
        self.due_at: float | None = None
        """When the first query has waited long enough."""

    def handle_timer(self, now: float) -> None:
        """Answer those that have waited long enough."""
        for number in [one for one, query in self._open.items() if query.due_at <= now]:
            self._tell(number)

    def ask(
        self,
        peer: Peer,
        user: str,
        message: messages.AskingAll,
        brokers: Collection[str],
        tree: Collection[str],
        now: float,
    ) -> None:
        """A client asks something of all ``brokers``, by the neighbours in the ``tree``. Refusal
        where too many do.
        """
        own = sum(1 for query in self._open.values() if user and query.user == user)
        if len(self._open) >= OPEN_MAX or own >= OF_USER_MAX:
            raise Refusal(messages.Code.LIMIT, f"{own or OPEN_MAX} queries of brokers are open")
        self._last += 1
        query = _Query(peer, user, message.request, now + ANSWERS_S, {*brokers} - {self._name})
        asked = Question.STATUS, ""
        if isinstance(message, messages.ShowTrace):
            asked = Question.TRACE, message.event
        query.found.append(self._own(*asked))
        self._open[self._last] = query
        self._look_at_first()
        self._send_on(NetworkQuery((self._name,), self._last, *asked), tree)
        if not query.awaited:
            self._tell(self._last)

    def hear(
        self, sender: str, message: NetworkQuery | NetworkAnswer, tree: Collection[str]
    ) -> None:
        """Take in what a neighbour has sent."""
        if isinstance(message, NetworkAnswer):
            self._take(message)
        elif self._name not in message.path:
            asked = message.question, message.event
            own = self._own(*asked)
            self._send(sender, NetworkAnswer(message.path, message.number, own))
            on = NetworkQuery((*message.path, self._name), message.number, *asked)
            self._send_on(on, {*tree} - {sender})

    def _take(self, answer: NetworkAnswer) -> None:
        """Tell on towards who has asked, or take it in."""
        before = answer.path[:-1]
        if before:
            self._send(before[-1], NetworkAnswer(before, answer.number, answer.found))
            return
        query, broker = self._open.get(answer.number), answer.found.get("broker")
        if query is not None and broker in query.awaited:
            query.awaited.discard(broker)
            query.found.append(answer.found)
            if not query.awaited:
                self._tell(answer.number)

    def _look_at_first(self) -> None:
        self.due_at = next((query.due_at for query in self._open.values()), None)

    def _own(self, question: Question, event: str) -> Mapping[str, Any]:
        return {"broker": self._name, **self.finders[question](event)}

    def _send_on(self, query: NetworkQuery, neighbours: Collection[str]) -> None:
        for neighbour in sorted(neighbours):
            self._send(neighbour, query)

    def _tell(self, number: int) -> None:
        query = self._open.pop(number)
        self._look_at_first()
        detail = {"brokers": query.found, "silent": sorted(query.awaited)}
        self.answer(query.peer, messages.Confirmed(query.request, detail))

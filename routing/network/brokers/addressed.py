"""Requests that name a broker: parts of its log, and steps by which a durable sink goes there.

Law: such a request goes along the tree by the plan, behind all events that came before it at each
broker on the way, and its answer comes back by the same brokers. b1 hands billing over to b3: what
b1 has had of Temp has left b2 for b3 before the step does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from routing.errors import Refusal
from routing.messages import Answered, Asked, Confirmed, HandOver, LogPart, ReadLog, Refused
from routing.network.agreement.remote_sources import ELSEWHERE
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.log_reader import LogReader
from routing.serving.pending_requests import PendingRequests

TakeStep = Callable[[str, HandOver, Callable[[Confirmed | Refused], None]], None]
HearAnswer = Callable[[HandOver, Confirmed | LogPart | Refused | None], None]


class Addressed:
    """Their way through this broker."""

    def __init__(
        self, context: BrokerContext, log_reader: LogReader, pending: PendingRequests
    ) -> None:
        self._context = context
        self._log_reader = log_reader
        self._pending = pending
        self.takes: TakeStep = lambda home, step, answer: None
        """Takes in a step of another broker, and answers it."""
        self.hears: HearAnswer = lambda step, answer: None
        """Hears the answer to a step of this broker; None for one that is lost."""

    def hear(self, neighbour: str, asked: Asked) -> None:
        """A request has come: it is for this broker, or goes on."""
        context, request = self._context, asked.request
        assert isinstance(request, ReadLog | HandOver)

        def answer(found: Confirmed | LogPart | Refused) -> None:
            context.send(neighbour, Answered(asked.path[:-1], asked.number, found))

        if isinstance(request, ReadLog) and self._log_reader.is_own(request):
            self._log_reader.read(request, asked.rights, answer)
        elif isinstance(request, HandOver) and request.broker == context.name:
            self.takes(asked.path[0], request, answer)
        else:
            try:
                on = self._log_reader.way_to(request.broker)
            except Refusal as refusal:
                answer(Refused(request.request, refusal.code, str(refusal)))
            else:
                context.send_flows()
                context.send(on, replace(asked, path=(*asked.path, context.name)))

    def say(self, step: HandOver) -> None:
        """Send a step to the broker that it names; Refusal where there is no way to that."""
        way, context = self._log_reader.way_to(step.broker), self._context
        number = self._pending.send(ELSEWHERE, step)
        context.send_flows()
        context.send(way, Asked((context.name,), number, "", step))

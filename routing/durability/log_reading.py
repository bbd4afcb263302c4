"""Reading a broker's log by its clients and by those of other brokers.

Law: what a part of a log promises is true of it. The marks are those of the moment at which it was
asked for, and it is read once all that had come by then is kept; so whoever has read up to ``last``
has all events before the marks. Temp is promised up to 40 s when b3 is asked, and the Temps of 38 s
are on their way to its disk: the answer waits for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from matcher.model import MICROSECONDS
from routing.errors import Refusal
from routing.messages import Act, Answered, Asked, Code, LogPart, ReadLog, Refused, Rights
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.context import BrokerContext
from routing.permission import check_right
from routing.storage import ReadableLog
from rules.pattern import TIMER


class LogReading:
    """The log of this broker's store, as others may read it."""

    def __init__(self, context: BrokerContext, agreed: Agreed) -> None:
        self._context = context
        self._agreed = agreed
        self.log: ReadableLog | None = None
        """None without a store."""

    # --- for a broker beyond a neighbour ---

    def hear(self, neighbour: str, asked: Asked) -> None:
        """A request has come that is for this broker, or goes on."""
        context, request = self._context, asked.request
        assert isinstance(request, ReadLog)

        def answer(found: LogPart | Refused) -> None:
            context.send(neighbour, Answered(asked.path[:-1], asked.number, found))

        if self.is_own(request):
            self.read(request, asked.rights, answer)
            return
        try:
            on = self.way_to(request.broker)
        except Refusal as refusal:
            answer(Refused(request.request, refusal.code, str(refusal)))
        else:
            context.send(on, replace(asked, path=(*asked.path, context.name)))

    def way_to(self, broker: str) -> str:
        """The neighbour on the way to a broker along the tree; Refusal where there is none."""
        plan = self._agreed.plan if self._agreed.is_planned else None
        fathers = {} if plan is None else {name: father for name, father, _ in plan.nodes}
        if broker not in fathers:
            raise Refusal(Code.SILENT, f"broker {broker!r} is out of reach")
        at, below = broker, ""
        while at and at != self._context.name:
            at, below = fathers[at], at
        return below if at else fathers[self._context.name]

    # --- here ---

    def is_own(self, request: ReadLog) -> bool:
        """Whether a request is for this broker."""
        return request.broker in ("", self._context.name)

    def read(
        self, request: ReadLog, rights: Rights, answer: Callable[[LogPart | Refused], None]
    ) -> None:
        """Answer a request that is for this broker, at once or once the log has caught up."""
        clock = TIMER.name, round(self._context.moment.now * MICROSECONDS)
        marks = (*self._context.detection.promises.items(), clock)

        def act() -> None:
            try:
                answer(self._part(request, rights, marks))
            except Refusal as refusal:
                answer(Refused(request.request, refusal.code, str(refusal)))

        self._context.callbacks.when_kept(act)

    def _part(
        self, request: ReadLog, rights: Rights, marks: tuple[tuple[str, int], ...]
    ) -> LogPart:
        name = self._context.name
        if self.log is None:
            raise Refusal(Code.NO_STORE, f"broker {name!r} keeps no log (--data)")
        _check_rights(rights, request)
        found = self.log.read(request, cut=rights.grants is not None)
        homes = dict(self._agreed.catalog.homes)
        homes[name] = tuple(self._context.detection.publishers.types)
        published = tuple((one, types) for one, types in sorted(homes.items()) if types)
        return LogPart(request.request, name, *found, marks, published)


def _check_rights(rights: Rights, request: ReadLog) -> None:
    """Refusal unless a user may read all events of the types that it asks for."""
    if rights.grants is None:
        return
    if not request.types:
        reason = f"user {rights.user!r} has to name the types that it wants to read of a log"
        raise Refusal(Code.NOT_ALLOWED, reason)
    check_right(rights, Act.SUBSCRIBE, *request.types)
    for name in request.types:
        if rights.filters(name) is not None:
            reason = f"user {rights.user!r} may read some {name} alone ({rights.lines(name)})"
            raise Refusal(Code.NOT_ALLOWED, f"{reason}, and so nothing of a log")

"""Reading a broker's log by its clients and by those of other brokers.

Law 1: what a part of a log promises is true of it. The marks are those of the moment at which it
was asked for, and it is read once all that had come by then is kept; so whoever has read up to
``last`` has all events before the marks. Temp is promised up to 40 s when b3 is asked, and the
Temps of 38 s are on their way to its disk: the answer waits for them.

Law 2: a client has one part of a log under way, from when it asks until it says that it has it; a
second one is refused. So one part waits for a client that reads nothing. Request 7 was answered: 8
is refused until the client has said that it has the answer to 7.

Law 3: PARTS_AT_ONCE clients of a broker have a part under way, whosever log it is of, half of them
one user's; the others wait for their turn, in the order in which they asked. A client that has not
said after STALLED_S that it has what it was sent loses its link, as a sink does that chose to,
where others wait. Of a thousand clients that read nothing 16 hold 64 MB together; client 17 is
served after 30 s.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matcher.model import MICROSECONDS
from routing.effects import Peer
from routing.errors import Refusal
from routing.messages import Asked, Code, Confirmed, LogPart, ReadLog, Refused, Rights
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.context import BrokerContext
from routing.permission import check_log
from routing.serving.link import Link, LogReading
from routing.serving.pending_requests import PendingRequests
from routing.storage import ReadableLog
from rules.pattern import TIMER

PARTS_AT_ONCE = 16
"""Parts of logs, of some 4 MB, that the clients of a broker have under way together (Law 3)."""
STALLED_S = 30.0
"""Seconds in which a client has to take a part of a log while others wait for theirs."""
LOOK_S = 0.05
"""Seconds after which it is looked again whose turn it is, while anybody waits."""


class LogReader:
    """The log of this broker's store, as others may read it."""

    def __init__(self, context: BrokerContext, agreed: Agreed) -> None:
        self._context = context
        self._agreed = agreed
        self.log: ReadableLog | None = None
        """None without a store."""
        self._under_way: dict[Peer, LogReading] = {}
        """The parts whose turn it is, some of them over by now, by client."""
        self._waiting: dict[Peer, ReadLog] = {}
        """Requests of the others, in the order in which they came."""
        self.due_at: float | None = None
        """When it is looked whose turn it is; None while nobody waits."""
        self.check_room: Callable[[], None] = lambda: None
        """Refusal while the store takes nothing more: then the log does not catch up."""

    # --- for a client ---

    def ask(self, link: Link, request: ReadLog, pending: PendingRequests) -> None:
        """A client asks for a part of a log; Refusal where it has yet to take the last (Law 2).
        ``pending``: the requests that go to other brokers, or do once more.
        """
        if link.reading is None:
            link.reading = LogReading(request)
        elif link.reading.request is not request:
            reason = "one part of a log at a time: ask for the next once you have the last"
            raise Refusal(Code.LIMIT, reason)
        if not self._has_turn(link, link.reading):
            self._waiting[link.peer] = request
            self.due_at = self._context.moment.now + LOOK_S
            return
        try:
            self._begin(link, request, pending)
        except Refusal:
            link.reading = None
            raise

    def _begin(self, link: Link, request: ReadLog, pending: PendingRequests) -> None:
        if self.is_own(request):
            self.read(request, link.rights, partial(self.tell, link.peer))
            return
        pending.check_room()
        way = self.way_to(request.broker)
        number, name = pending.send(link.peer, request), self._context.name
        self._context.send(way, Asked((name,), number, "", request, link.rights))

    def tell(self, peer: Peer, answer: Confirmed | LogPart | Refused) -> None:
        """Answer a client that may be gone."""
        link = self._context.links.by_peer.get(peer)
        if link is None or link.reading is None:
            return
        if isinstance(answer, Refused):
            link.reading = None
            self._context.service.refuse(link, answer.request, answer.code, answer.reason)
            return
        link.reading.told_at = self._context.moment.now
        self._context.outlet.send(peer, answer)

    # --- whose turn it is (Law 3) ---

    def _has_turn(self, link: Link, reading: LogReading) -> bool:
        """Whether it is a client's turn, or can be by now."""
        if self._under_way.get(link.peer) is reading:
            return True
        if self._waiting or not self._has_room(link.rights.user):
            return False
        self._under_way[link.peer] = reading
        return True

    def _has_room(self, user: str) -> bool:
        """Whether one part more of a user's may be under way, without those that are over."""
        known, on = self._context.links.by_peer, filter(self._is_on, self._under_way)
        self._under_way = {peer: self._under_way[peer] for peer in on}
        own = sum(1 for peer in self._under_way if user and known[peer].rights.user == user)
        return len(self._under_way) < PARTS_AT_ONCE and own < PARTS_AT_ONCE // 2

    def _is_on(self, peer: Peer) -> bool:
        """Whether a client is there and has yet to take what it had its turn for."""
        link = self._context.links.by_peer.get(peer)
        return link is not None and link.reading is self._under_way[peer]

    def handle_timer(self) -> None:
        """Give turns that are over to those who wait."""
        context, now = self._context, self._context.moment.now
        for peer, reading in list(self._under_way.items()):
            is_told = reading.told_at is not None and now - reading.told_at > STALLED_S
            if is_told and self._is_on(peer):
                reason = f"a part of a log was not taken in {STALLED_S:g} s, and others wait"
                context.service.expel(peer, Code.QUEUE_FULL, reason)
        full = set[str]()
        for peer, request in list(self._waiting.items()):
            link = context.links.by_peer.get(peer)
            user = "" if link is None else link.rights.user
            if user in full or not self._has_room(user):
                full.add(user)
                continue
            del self._waiting[peer]
            if link is not None and link.reading is not None:
                self._under_way[peer] = link.reading
                context.node.receive(peer, request, now)
        self.due_at = now + LOOK_S if self._waiting else None

    # --- the way ---

    def way_to(self, broker: str) -> str:
        """The neighbour on the way to a broker along the tree; Refusal where there is none."""
        plan = self._agreed.plan if self._agreed.is_planned else None
        if plan is None:
            raise Refusal(Code.SILENT, f"the network changes: no way to broker {broker!r} yet")
        fathers = {name: father for name, father, _ in plan.nodes}
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

        def act(do: Callable[[], object]) -> None:
            try:
                do()
            except Refusal as refusal:
                answer(Refused(request.request, refusal.code, str(refusal)))

        def begin() -> None:
            self.check_room()
            read = partial(self._part, request, rights, marks)
            self._context.outlet.once_kept(lambda: act(lambda: answer(read())))

        act(begin)

    def _part(
        self, request: ReadLog, rights: Rights, marks: tuple[tuple[str, int], ...]
    ) -> LogPart:
        name = self._context.name
        if self.log is None:
            raise Refusal(Code.NO_STORE, f"broker {name!r} keeps no log (--data)")
        check_log(rights, request)
        found = self.log.read(request, cut=rights.grants is not None)
        homes = dict(self._agreed.catalog.homes)
        homes[name] = tuple(self._context.detection.publishers.types)
        if rights.grants is not None:  # who may not ask for a status is told of no other types
            homes = {at: tuple(sorted({*types} & {*request.types})) for at, types in homes.items()}
            marks = tuple(mark for mark in marks if mark[0] in (*request.types, TIMER.name))
        published = tuple((one, types) for one, types in sorted(homes.items()) if types)
        return LogPart(request.request, name, *found, marks, published)

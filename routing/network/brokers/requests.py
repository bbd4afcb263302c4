"""Requests of clients to the whole network: to the root with them, and back with the answers.

Law 1: what concerns the whole network is decided at the root: which types are known, which rules
are in force since when. A client's request goes there and its answer comes back the same way; while
there is no way to the root, requests wait. So do those of a source that was here before and of
which the root has yet to hear that it has closed. A client of b3 deploys fire: b3 asks b2, b2 asks
the root b1.

Law 2: what changes the division of the rules is done while the tree pauses (pauses). So a rule
holds from an instant beyond all that has been evaluated anywhere, and a source that joins begins
beyond all marks. An answer is sent, to own clients too, once the root has told what it is true of
and goes by it. All have come to 40 s or less: fire, deployed now, holds from 40 s on.

Law 3: when the tree changes, what was asked may be lost: what can be asked twice is asked again,
and so is what this broker has yet to do for its own clients. A request that waits at a link which
is lost goes with it (routing.overlay.channel), for the tree changes then. b2 fails while b3
waits for an answer: Advertise is asked again, Deploy is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from matcher.model import TIME_MIN
from routing import messages
from routing.effects import Peer
from routing.errors import ProtocolError, Refusal
from routing.messages import (
    Advertise,
    Answered,
    Asked,
    Asking,
    Code,
    Confirmed,
    HandOver,
    ReadLog,
    Refused,
    Unadvertise,
)
from routing.network.agreement.remote_sources import ELSEWHERE, stand_in
from routing.network.brokers.addressed import Addressed
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.log_reader import LogReader
from routing.network.brokers.registry import SourceRegistry
from routing.network.brokers.update_timer import UpdateTimer
from routing.serving.link import Link
from routing.serving.pending_requests import PENDING_REQUESTS_MAX, PendingRequests
from routing.serving.request_queue import RequestQueue
from routing.serving.slices import Slices
from routing.serving.sources import SourceState
from routing.serving.status import begin_facts

_CHANGING = (Advertise, Unadvertise, messages.Deploy, messages.Remove)
"""Requests that change what the division follows from."""
_REPEATABLE = (Advertise, Unadvertise, messages.ListRules, messages.ShowRule, ReadLog)
"""Requests that may be made twice."""


class _Queued(NamedTuple):
    """A request of a client of another broker, and the account of its source at the time."""

    asked: Asked
    stay: messages.Stay | None


class Requests:
    """The requests of this broker's clients; at the root, of all."""

    def __init__(
        self,
        context: BrokerContext,
        timer: UpdateTimer,
        registry: SourceRegistry,
        log_reader: LogReader,
        slices: Slices,
    ) -> None:
        self._context = context
        self._router = context.router
        self._detection = context.detection
        self._timer = timer
        self._registry = registry
        self._log_reader = log_reader
        self._pending = PendingRequests()
        self.addressed = Addressed(context, log_reader, self._pending)
        """Requests that name a broker."""
        self._queue = RequestQueue[tuple[Peer, Asking] | tuple[str, _Queued]](
            lambda text, then: slices.read_ahead(self._detection.changes.read_ahead(text), then),
            timer.tell_soon,
        )
        """At the root: requests that wait for the tree to pause."""
        self._answered: list[tuple[str, Answered]] = []
        """At the root: answers that wait until it has told what they are true of, and goes by it.
        """
        self._answered_here: list[tuple[Peer, Confirmed]] = []
        """The same, to own clients."""
        self.behind_events: set[Peer] = set()
        """The clients that have un-advertised types while events of theirs are held: these go
        first, or they would be of a type that is known no more."""

    @property
    def has_work(self) -> bool:
        """At the root: whether requests wait for the tree to pause."""
        return self._queue.is_ready

    # --- from a client here ---

    def ask(self, link: Link, request: Asking) -> None:
        """A client asks what the root has to answer (Law 1), or the broker that it names."""
        if isinstance(request, ReadLog):
            self._log_reader.ask(link, request, self._pending)
        elif not self._router.is_root:
            self._ask_root(link, request)
        elif not isinstance(request, _CHANGING):
            self._context.outlet.send(link.peer, self._context.service.answer(link, request))
        else:
            if len(self._queue) >= PENDING_REQUESTS_MAX:
                reason = f"{PENDING_REQUESTS_MAX} requests wait for the network already"
                raise Refusal(Code.LIMIT, reason)
            if isinstance(request, Advertise):
                self._context.advertisements.check(request.types, link.name)
            self._queue.add(link.peer, request, (link.peer, request))

    def _ask_root(self, link: Link, request: Asking) -> None:
        context, father = self._context, self._router.father
        self._pending.check_room()
        is_leaving = self._detection.publishers.is_leaving(link.name)
        if father is None or is_leaving or self._is_behind_events(link.peer, request):
            self._pending.wait(link.peer, request)
            return
        if isinstance(request, Advertise):
            context.advertisements.check(request.types, link.name)
            context.service.source_of(link)
        number = self._pending.send(link.peer, request, link.name)
        context.send(father, Asked((context.name,), number, link.name, request, link.rights))
        if link.peer and isinstance(request, Advertise):
            self._detection.publishers.expect([schema.name for schema in request.types])

    def withdraw(self) -> None:
        """Have the rules removed whose owners have lost the right to them."""
        context, father = self._context, self._router.father
        leaving = context.service.users.leaving
        for rule, name in list(leaving.items()):
            known, request = context.deployments.find_in_force(name), messages.Remove(0, name)
            if known is None or known.rule.name != rule:
                del leaving[rule]
            elif self._router.is_root:
                self._queue.add_ready((ELSEWHERE, request))
            elif father is not None:
                number = self._pending.send(ELSEWHERE, request)
                context.send(father, Asked((context.name,), number, "", request))

    # --- from another broker ---

    def hear_asked(self, neighbour: str, asked: Asked) -> None:
        """A request has come, for the root."""
        if not asked.path or asked.path[-1] != neighbour:
            raise ProtocolError(Code.PROTOCOL, "a request whose path is not the one it came")
        if isinstance(asked.request, ReadLog | HandOver):
            self.addressed.hear(neighbour, asked)
            return
        if not self._router.is_root:
            if self._router.father is not None:
                on = replace(asked, path=(*asked.path, self._context.name))
                self._context.send_flows()  # a source that closed, and is back, has gone before
                self._context.send(self._router.father, on)
            return
        if isinstance(asked.request, _CHANGING):
            entry = neighbour, _Queued(asked, self._context.accounts.find(asked.client))
            self._queue.add((asked.path[0], asked.client), asked.request, entry)
        else:
            self._answered.append((neighbour, self._answer(asked)))
            self._timer.tell_soon()

    def _answer(self, asked: Asked) -> Answered:
        return Answered(asked.path[:-1], asked.number, self._do(asked))

    def _do(self, asked: Asked) -> Confirmed | Refused:
        """Do what a client of another broker asks, as if it were a client of this one."""
        request = asked.request
        assert not isinstance(request, HandOver), "it names a broker"
        try:
            return self._context.service.answer(self._registry.admit(asked), request)
        except (Refusal, ProtocolError) as refusal:
            return Refused(request.request, refusal.code, str(refusal))

    def tell_answered(self) -> None:
        """At the root: what the answers are true of has been told."""
        answered, self._answered = self._answered, []
        for neighbour, message in answered:
            self._context.send(neighbour, message)
        here, self._answered_here = self._answered_here, []
        for peer, answer in here:
            self._context.answer(peer, answer)
        self._queue.go_on()

    # --- while the tree pauses ---

    def do_queued(self, homes: dict[str, set[str]]) -> None:
        """At the root: do what was asked (Law 2). ``homes``: by broker, what is published there;
        what comes to it is added.
        """
        for sender, asked in self._queue.take():
            if isinstance(asked, _Queued):
                assert isinstance(sender, str)
                self._answered.append((sender, self._do_of_other(asked)))
                is_done = isinstance(self._answered[-1][1].answer, Confirmed)
                done = asked.asked if is_done else None
            else:
                assert isinstance(sender, bytes)
                done = self._do_own(sender, asked)
            if done and isinstance(done.request, Advertise):
                home, types = done.path[0], {schema.name for schema in done.request.types}
                homes.setdefault(home, set()).update(types)
                now, user = self._context.moment.now, done.rights.user
                self._context.accounts.begin(done.client, home, types, now, user)

    def _do_of_other(self, queued: _Queued) -> Answered:
        """Do what a client of another broker has asked, unless it is a source that has closed since
        and may be back, with other types.
        """
        asked, number = queued.asked, queued.asked.request.request
        stay = self._context.accounts.find(asked.client)
        if stay is queued.stay or stay is None or stay.home != asked.path[0] or not stay.is_over:
            return self._answer(asked)
        answer: Confirmed | Refused = Refused(number, Code.SILENT, "closed meanwhile")
        if isinstance(asked.request, Unadvertise):
            answer = Confirmed(number)  # with that it is done
        return Answered(asked.path[:-1], asked.number, answer)

    def _do_own(self, peer: Peer, request: Asking) -> Asked | None:
        """Do what an own client has asked; gives it with its sender, None if it was not done."""
        service, link = self._context.service, self._context.links.by_peer.get(peer)
        if peer == ELSEWHERE:  # of the broker itself
            link = stand_in("", self._context.moment.now)
        if link is None:
            return None
        asked = Asked((self._context.name,), 0, link.name, request, link.rights)
        try:
            if isinstance(request, Advertise):
                self._registry.claim(asked, request)
            answer = service.answer(link, request)
        except Refusal as refusal:
            service.refuse(link, request.request, refusal.code, str(refusal))
        except ProtocolError as error:
            service.expel(peer, error.code, str(error))
        else:
            self._answered_here.append((peer, answer))
            self._note_own(link, request)
            return asked
        return None

    def _note_own(self, link: Link, request: Asking) -> None:
        """The root has taken over what this broker's client asked."""
        if isinstance(request, Advertise) and link.source is not None:
            self._detection.add_own(link.source, [schema.name for schema in request.types])

    # --- answers ---

    def hear_answered(self, neighbour: str, answered: Answered) -> None:
        """An answer has come, for a client here or for a broker below."""
        context = self._context
        if answered.path:
            context.send(answered.path[-1], replace(answered, path=answered.path[:-1]))
            return
        pending = self._pending.answer(answered.number)
        if pending is None:
            return
        (peer, request, name), answer = pending, answered.answer
        if peer and isinstance(request, Advertise):
            self._detection.publishers.expect_no_more([schema.name for schema in request.types])
        if isinstance(request, HandOver):
            self.addressed.hears(request, answer)
            return
        if isinstance(request, ReadLog):
            self._log_reader.tell(peer, replace(answer, request=request.request))
            return
        link = context.links.by_peer.get(peer)
        if isinstance(answer, Confirmed):
            if link is not None:
                answer = self._carry_out(link, request, answer)
            elif isinstance(request, Advertise):
                self._be_left(name, request)
        elif isinstance(answer, Refused) and link is not None:
            context.service.refuse(link, request.request, answer.code, answer.reason)
            return
        context.answer(peer, replace(answer, request=request.request))

    def _be_left(self, name: str, request: Advertise) -> None:
        """A source was taken in whose client has gone meanwhile: it waits for that to come back, or
        has closed, which the root has yet to hear.
        """
        source = self._context.sources.find(name)
        if source is None or source.standing is SourceState.LIVE:
            return  # the client is back, and advertises again
        is_closed = source.standing is SourceState.CLOSED
        for schema in request.types:
            self._context.advertisements.advertise(source, schema, TIME_MIN)
        self._detection.add_own(source, [schema.name for schema in request.types])
        if is_closed:
            self._context.service.close_source(source)

    def _carry_out(self, link: Link, request: Asking, answer: Confirmed) -> Confirmed:
        """Do here, too, what the root has confirmed. Gives what to tell the client."""
        context = self._context
        if isinstance(request, Advertise):
            source, floors = context.service.source_of(link), answer.detail.get("from", {})
            for schema in request.types:
                floor = floors.get(schema.name)
                context.advertisements.advertise(
                    source, schema, TIME_MIN if floor is None else floor
                )
            context.service.check_interests()
            self._note_own(link, request)
            source.last_sequence = context.sources.taken(source.name)
            detail = begin_facts(source, request.types)
            if (last := answer.detail.get("last_sequence", 0)) > link.last_sequence:
                detail = {**detail, "last_sequence": last}
            return replace(answer, detail=detail)
        if isinstance(request, Unadvertise) and link.source is not None:
            names = [name for name in request.types if name in link.source.floors]
            self._detection.withdraw(link.source, names)
        return answer

    # --- another tree (Law 3) ---

    def lose_root(self) -> None:
        """The way to the root is another, or there is none."""
        self._detection.publishers.expect_nothing()
        for peer, request, _ in self._pending.take_lost():
            if isinstance(request, HandOver):
                self.addressed.hears(request, None)
            elif isinstance(request, _REPEATABLE):
                self._pending.wait(peer, request)
            else:
                reason = "the network changed before the answer came; see in the list of rules"
                self._context.answer(peer, Refused(request.request, Code.SILENT, reason))
        for sender, asked in self._queue.clear():
            if not isinstance(asked, _Queued):  # by an own client, and nothing of it has been done
                assert isinstance(sender, bytes)
                self._pending.wait(sender, asked)

    def _is_behind_events(self, peer: Peer, request: Asking) -> bool:
        if isinstance(request, Unadvertise) and self._detection.is_held:
            self.behind_events.add(peer)
        return peer in self.behind_events

    def ask_behind_events(self) -> None:
        """Ask: what was held has gone."""
        if self.behind_events:
            self.behind_events.clear()
            self.ask_again()

    def ask_again(self) -> None:
        """Ask what has waited; it waits on, if it still has to."""
        context = self._context
        self.withdraw()
        for peer, request, _ in self._pending.take_waiting():
            assert not isinstance(request, HandOver), "it never waits"
            if context.links.by_peer.get(peer) is not None:
                context.node.receive(peer, request, context.moment.now)

"""A broker in a network: a Node for its clients, part of an overlay, and of its single tree.

Law 1: what concerns the whole network is decided at the root: which types are known, which rules
are in force since when. A client's request goes there and its answer comes back the same way;
while there is no way to the root, requests wait. What the root knows is told to all.

Law 2: a source's events enter the network at its own broker, which checks, counts and acknowledges
them. The root knows the source, as a visitor, so that its name is its own.

Law 3: a single broker is the root of a tree of one, and then does just what a Node does.

How all come to do the same is said in routing.network.brokers.planning, what becomes of events in
routing.network.brokers.dividing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from matcher.model import TIME_MIN, EventBatch
from routing.effects import Effect, Peer
from routing.errors import ProtocolError, Refusal
from routing.messages import (
    Advertise,
    Answered,
    Asked,
    Asking,
    Code,
    Confirmed,
    Deploy,
    Known,
    LinkHello,
    ListRules,
    Message,
    Refused,
    Remove,
    ShowRule,
    Unadvertise,
    Want,
    Wanted,
)
from routing.network.agreement.confirmations import Client, Confirmations, Neighbour, Reply, Waiter
from routing.network.agreement.petitions import Petitions
from routing.network.agreement.terms import terms_of
from routing.network.agreement.visitors import ELSEWHERE, Visitors, stand_in
from routing.network.setup import Setup
from routing.network.stations.divided import DividedDetection
from routing.network.stations.overview import network_facts
from routing.network.stations.relaying import DividedRouter
from routing.network.tables.router import CLOSED
from routing.node import Node
from routing.overlay.channel import Down, Up
from routing.overlay.overlay import Heard, Overlay
from routing.serving.intake import check_schema
from routing.serving.link import Link
from routing.wire import MAGIC
from rules.engine.engine import Detector
from rules.errors import RuleErrors

_LINK_HELLO = 48
REPEAT_S = 1.0
"""Seconds after which what a neighbour has not confirmed is told again."""


class Broker(Node):
    """One broker of a network. Drive it like a Node; neighbours' links are peers like clients'."""

    handlers: ClassVar[Mapping[type, Callable[[Any, Link, Any], None]]]
    heard: ClassVar[Mapping[type, Callable[[Any, str, Any], None]]]
    """What neighbours send, and what is done about it."""
    _detecting: ClassVar[type[DividedDetection]] = DividedDetection
    _detection: DividedDetection

    def __init__(self, setup: Setup) -> None:
        overlay = setup.overlay
        terms = terms_of(setup.strategy.name, setup.config.ordering)
        self.overlay = Overlay(replace(overlay, terms=terms), setup.now)
        self._strategy = setup.strategy
        self._router = DividedRouter(overlay.name)
        self._visitors = Visitors()
        self._petitions = Petitions()
        self._confirmations = Confirmations()
        self._known = Known((), ())
        self._told_version = -1
        self._answers: list[Message] = []
        self._answered: list[tuple[str, Answered]] = []
        """At the root: answers that wait until it has told what they are true of."""
        self._tell_at: float | None = None
        self._repeat_at: float | None = None
        """When what is not confirmed by then is told again."""
        self._gather_s = overlay.flood_s
        self._buffer_max = overlay.buffer_max
        self._held_back = False
        self._reigns = False
        """Whether this broker was the root when it last looked."""
        super().__init__(setup.config, setup.engine, setup.now)

    def _make_detection(self, engine: Detector) -> DividedDetection:
        return self._detecting(
            self.overlay.name,
            self._router,
            self._config,
            engine,
            self._advertisements,
            self._deployments,
            on_types=self._check_interests,
            on_rules=self._sinks.index,
        )

    def status(self, now: float) -> Mapping[str, Any]:
        """What StatusRequest is answered with: of the network, too."""
        facts = network_facts(self.overlay, self._router, self._strategy.name)
        return {**super().status(now), "network": facts}

    # --- inputs ---

    def receive_frames(self, peer: Peer, frames: Sequence[bytes | memoryview], now: float) -> None:
        """Decode and take in one message, of a client or of a neighbour."""
        if peer in self.overlay.links or (peer not in self._links.by_peer and greets(frames)):
            self.overlay.receive_frames(peer, frames, now)
            self._follow_overlay(now)
        else:
            super().receive_frames(peer, frames, now)

    def be_greeted(self, peer: Peer, hello: LinkHello, now: float) -> None:
        """A neighbour greets, as ``receive_frames`` would find."""
        self.overlay.receive(peer, hello, now)
        self._follow_overlay(now)

    def lose(self, peer: Peer, now: float) -> None:
        """The link broke, be it a client's or a neighbour's."""
        if peer in self.overlay.links:
            self.overlay.lose(peer, now)
            self._follow_overlay(now)
        else:
            super().lose(peer, now)

    def add_link(self, peer: Peer, now: float, delay_us: int | None = None) -> None:
        """Be linked to the broker at ``peer``."""
        self.overlay.add_link(peer, now, delay_us)

    def handle_timer(self, now: float) -> None:
        """Do what is due, for clients and for neighbours."""
        due = self.overlay.next_timer()
        if due is not None and due <= now:
            self.overlay.handle_timer(now)
            self._follow_overlay(now)
        if self._tell_at is not None and self._tell_at <= now:
            self._now = now
            self._tell()
            if not self._confirmations.is_settled:
                self._repeat_at = now + REPEAT_S
        if self._repeat_at is not None and self._repeat_at <= now:
            self._now, self._repeat_at = now, None
            self._repeat()
        due = super().next_timer()
        if due is not None and due <= now:
            super().handle_timer(now)

    def next_timer(self) -> float | None:
        """When ``handle_timer`` is due next."""
        due = super().next_timer()
        for other in (self.overlay.next_timer(), self._tell_at, self._repeat_at):
            if other is not None and (due is None or other < due):
                due = other
        return due

    def close(self, reason: str, now: float) -> None:
        """Say Goodbye to clients and neighbours."""
        super().close(reason, now)
        self.overlay.close(reason, now)

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        others = self.overlay.take_effects() if self.overlay.effects else []
        return super().take_effects() + others if self._effects else others

    # --- the network ---

    def _follow_overlay(self, now: float) -> None:
        self._now = now
        overlay = self.overlay
        is_anew = overlay.has_moved and overlay.take_moved() and self._follow_tree()
        changes = overlay.take_changes() if overlay.changes else ()
        for change in changes:
            if isinstance(change, Heard):
                self._hear(change)
            else:
                self._note_link(change)
        if is_anew or self._router.has_untold:
            self._told_version = -1
        elif not changes and not self._held_back:
            return  # acknowledgements, mostly
        self._settle()

    def _follow_tree(self) -> bool:
        """The single tree may be another, or may have changed; whether it is another."""
        epoch, neighbours = self._router.epoch, set(self._router.branches)
        if self._router.follow(self.overlay.single_tree):
            self._change_root()
        is_anew = self._router.epoch != epoch
        if is_anew:
            self._confirmations.start_anew()
        for neighbour in sorted(neighbours - self._router.branches.keys()):
            self._confirm(self._confirmations.leave(neighbour))
        return is_anew

    def _hear(self, heard: Heard) -> None:
        """Take in what a neighbour sent; what makes no sense is left out, and said."""
        try:
            self.heard[type(heard.message)](self, heard.neighbour, heard.message)
        except (ProtocolError, RuleErrors) as error:
            what = type(heard.message).__name__
            self._log("error", f"{what} left out", neighbour=heard.neighbour, reason=str(error))

    def _note_link(self, change: Up | Down) -> None:
        """A link to a neighbour is up, or down; the single tree has been looked at."""

    def _is_congested(self) -> bool:
        """Whether what goes to the root piles up, so that sources get no more credit."""
        self._held_back = any(self._piles_up(father) for father in self._fathers)
        return self._held_back

    def _piles_up(self, neighbour: str) -> bool:
        channel = self.overlay.neighbours.get(neighbour)
        return channel is not None and channel.room < self._buffer_max // 2

    @property
    def _fathers(self) -> Iterable[str]:
        """The neighbours that events of local sources are sent to, to be evaluated."""
        return () if self._router.father is None else (self._router.father,)

    def _change_root(self) -> None:
        """There is another way to the root, or none: what was asked may be lost with the old."""
        if self._router.is_root != self._reigns:
            self._reigns = self._router.is_root
            self._change_role()
        for peer, request in self._petitions.take_lost():
            reason = "the network has changed before the answer came"
            self._send_to(peer, Refused(request.request, Code.SILENT, reason))
        for peer, request in self._petitions.take_waiting():
            link = self._links.find(peer)
            if link is not None:
                self.receive(peer, request, self._now)

    def _change_role(self) -> None:
        """The broker is the root from now on, or no longer."""
        raise NotImplementedError

    def _know(self) -> None:
        """Types, rules, subscriptions or neighbours have changed: see what follows here."""
        raise NotImplementedError

    def _tell(self) -> None:
        """Tell what is wanted, and what was answered."""
        raise NotImplementedError

    def _settle(self) -> None:
        super()._settle()
        if self._told_version != self._sinks.version and self._router.has_tree:
            self._told_version = self._sinks.version
            self._know()
            self._tell_soon()
        self._send_flows()

    def _send_flows(self) -> None:
        """What is routed leaves; before anything is told by which its types might be forgotten."""
        for neighbour, flow in self._router.take_flows():
            self.overlay.send(neighbour, flow, self._now)

    def _tell_soon(self) -> None:
        if self._tell_at is None:
            self._tell_at = self._now + self._gather_s

    def _hear_want(self, neighbour: str, want: Want) -> None:
        if self._router.want(neighbour, want):
            self._told_version = -1
            self._confirmations.add(Neighbour(neighbour, want.number))

    def _hear_wanted(self, neighbour: str, wanted: Wanted) -> None:
        if neighbour in self._router.branches:
            self._confirm(self._confirmations.confirm(neighbour, wanted.number))

    def _repeat(self) -> None:
        """Tell again what was not confirmed: the neighbour was not in the same tree yet."""
        if self._confirmations.is_settled:
            return
        for neighbour in self._confirmations.unconfirmed:
            if neighbour in self._router.branches:
                self._router.branches[neighbour].told = None
        self._tell_soon()

    def _confirm_subscription(self, link: Link, answer: Confirmed) -> None:
        if self._router.is_root and not self._router.branches:
            super()._confirm_subscription(link, answer)
        else:
            self._confirmations.add(Client(link.peer, answer))

    def _confirm(self, waiters: Iterable[Waiter]) -> None:
        for waiter in waiters:
            if isinstance(waiter, Client):
                self._send_to(waiter.peer, waiter.answer)
            elif isinstance(waiter, Reply):
                self.overlay.send(waiter.name, waiter.answer, self._now)
            else:
                self.overlay.send(waiter.name, Wanted(waiter.number), self._now)

    # --- events of other brokers ---

    def _check_schemas(self, batches: Sequence[EventBatch]) -> None:
        for batch in batches:
            known = self._advertisements.find(batch.type.name)
            if known is not None:
                check_schema(batch, known.schema)

    def _hear_promise(self, name: str, mark: int) -> None:
        if not self._router.is_root:
            self._router.promise(name, mark)
            return
        source = self._visitors.find(name)
        if source is None:
            return
        source.spoke_at = self._now
        if mark == CLOSED:
            self._send_flows()
            self._sources.close(source)
            self._detection.withdraw(source, list(source.floors))
            self._visitors.leave(name)
        else:
            self._detection.keep_promise(source, mark, self._now)

    # --- requests ---

    def _ask(self, link: Link, request: Asking) -> None:
        """A client asks what the root has to answer (Law 1)."""
        if self._router.is_root:
            Node.handlers[type(request)](self, link, request)
            return
        self._petitions.check_room()
        if not self._router.has_tree:
            self._petitions.wait(link.peer, request)
            return
        if isinstance(request, Advertise):
            self._advertisements.check(request.types, link.name)
            self._source_of(link)
        self._ask_root(link.peer, link.name, request)

    def _ask_root(self, peer: Peer, client: str, request: Asking) -> None:
        assert self._router.father is not None
        number = self._petitions.send(peer, request)
        asked = Asked((self.overlay.name,), number, client, request)
        self.overlay.send(self._router.father, asked, self._now)

    def _hear_asked(self, neighbour: str, asked: Asked) -> None:
        check_path(neighbour, asked)
        if not self._router.is_root:
            if self._router.father is not None:
                on = replace(asked, path=(*asked.path, self.overlay.name))
                self.overlay.send(self._router.father, on, self._now)
            return
        answered = Answered(asked.path[:-1], asked.number, self._answer(asked))
        self._answered.append((neighbour, answered))
        self._tell_soon()

    def _answer(self, asked: Asked) -> Confirmed | Refused:
        """Do what a client of another broker asks, as if it were a client of this one."""
        request = asked.request
        self._answers = []
        try:
            Node.handlers[type(request)](self, self._visitor(asked), request)
        except Refusal as refusal:
            return Refused(request.request, refusal.code, str(refusal))
        except ProtocolError as error:
            return Refused(request.request, error.code, str(error))
        (answer,) = self._answers
        assert isinstance(answer, Confirmed | Refused)
        return answer

    def _visitor(self, asked: Asked) -> Link:
        """What stands for the client of another broker here."""
        if not isinstance(asked.request, Advertise | Unadvertise):
            return stand_in(asked.client, self._now)
        if self._links.named(asked.client) is not None:
            reason = f"a live client of broker {self.overlay.name} is named {asked.client!r}"
            raise Refusal(Code.NAME_TAKEN, reason)
        return self._visitors.admit(asked, self._now)

    def _hear_answered(self, neighbour: str, answered: Answered) -> None:
        if answered.path:
            on = replace(answered, path=answered.path[:-1])
            self.overlay.send(answered.path[-1], on, self._now)
            return
        petition = self._petitions.answer(answered.number)
        if petition is None:
            return
        (peer, request), answer = petition, answered.answer
        link = self._links.find(peer)
        if link is not None and isinstance(answer, Confirmed):
            self._carry_out(link, request, answer)
        self._send_to(peer, replace(answer, request=request.request))

    def _carry_out(self, link: Link, request: Asking, answer: Confirmed) -> None:
        """What the root has confirmed is true here, too."""
        if isinstance(request, Advertise):
            source, floors = self._source_of(link), answer.detail.get("from", {})
            for schema in request.types:
                floor = floors.get(schema.name)
                self._advertisements.advertise(source, schema, TIME_MIN if floor is None else floor)
            self._check_interests()
        elif isinstance(request, Unadvertise) and link.source is not None:
            names = [name for name in request.types if name in link.source.floors]
            self._detection.withdraw(link.source, names)

    # --- outputs ---

    def _send_to(self, peer: Peer, message: Message) -> None:
        """Send to a client that may be gone."""
        if self._links.find(peer) is not None:
            self._send(peer, message)

    def _send(self, peer: Peer, message: Message) -> None:
        if peer == ELSEWHERE:
            self._answers.append(message)
        else:
            super()._send(peer, message)


def check_path(neighbour: str, asked: Asked) -> None:
    """ProtocolError when a request did not come the way that it says."""
    if not asked.path or asked.path[-1] != neighbour:
        raise ProtocolError(Code.PROTOCOL, "a request whose path is not the one it came")


def greets(frames: Sequence[bytes | memoryview]) -> bool:
    """Whether frames are, by their looks, the greeting of a neighbour."""
    first = frames[0] if frames else b""
    return len(first) > 3 and bytes(first[:2]) == MAGIC and first[3] == _LINK_HELLO


Broker.handlers = {
    **Node.handlers,
    **dict.fromkeys((Advertise, Unadvertise, Deploy, Remove, ListRules, ShowRule), Broker._ask),
}

Broker.heard = {
    Want: Broker._hear_want,
    Wanted: Broker._hear_wanted,
    Asked: Broker._hear_asked,
    Answered: Broker._hear_answered,
}

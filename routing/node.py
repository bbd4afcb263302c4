"""The broker's side of the protocol, without sockets, clocks or threads (protocol.md section 8).

``receive`` or ``receive_frames`` for what came, ``lose`` for a link that broke, ``handle_timer``
when ``next_timer`` is due; after each of them the host carries out ``take_effects``, unless it
does so as they arise (``emit``).

Law 1: a conversation is Hello, then anything that ``handlers`` has, then Goodbye. What is not in
the table for a link's state costs its sender the link. A request that is refused changes nothing;
malformed bytes and broken contracts change nothing but their sender's link.

Law 2: what is done for a client that is welcome is its Service; this file is about who is.

Law 3: messages that are there at once (``receive_together``) are taken in one after another, and
what follows from their events, marks and credit is done once, behind them: one advance of the
engine, one delivery to a sink, one acknowledgement to a source. So a busy broker makes larger
batches, and none waits for any. A message of another kind finds all done that came before it.
It is done at once, too, when a source has used up half of its credit: that gets more before it has
none left.

Law 4: a node that drains takes no new clients, sends its sources away once what they have published
is acknowledged, and its sinks once they have what is queued for them. s has published up to 7: it
hears Acknowledged up to 7, then Goodbye (leaving), and goes on with 8 elsewhere. Whoever only looks
may stay, and a client of a durable sink come for what is its own, until that goes to another broker
(routing.network.brokers.giver). When it is done is for the host to say, who ends it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from routing import messages, wire
from routing.config import OPERATORS, NodeConfig
from routing.delivery.sink import Sink
from routing.effects import Close, Peer
from routing.errors import ProtocolError, Refusal, VersionMismatch, WireError
from routing.messages import Code, Goodbye, Hello
from routing.serving.beyond import Beyond
from routing.serving.buckets import credit_of
from routing.serving.inspection import Inspection
from routing.serving.limits import check_connections, check_size
from routing.serving.link import Link
from routing.serving.outlet import Outlet
from routing.serving.required_rights import check_message
from routing.serving.service import Service
from routing.serving.sources import LOST_FOR_LONG, SourceState
from routing.serving.status import time_or_none
from routing.serving.tables import Tables
from routing.silence import excused

LOST_CLOSED = "lost source closed"
"""Words of the log for a source whose link has been lost for ``source_silence_max_s``."""
COMING = (
    messages.Advertise,
    messages.Unadvertise,
    messages.Publish,
    messages.Promise,
    messages.Subscribe,
    messages.Deploy,
    messages.Remove,
)
"""Acts of clients that would stay; one that only looks may go on (Law 4)."""
GREETING_MAX = 1 << 16
"""Bytes of a message that is decoded though its link is not known: a Hello has far fewer."""
DRAINS = "this broker drains: go to another one"
"""Words for those who are sent away."""


class Node:
    """One broker's clients. ``now`` is in seconds and never goes back; event time is in the events.
    ``status``: what StatusRequest is answered with.
    """

    def __init__(
        self,
        config: NodeConfig,
        tables: Tables,
        service: Service,
        outlet: Outlet,
        beyond: Beyond,
        status: Callable[[float], Mapping[str, Any]],
    ) -> None:
        self._config = config
        self._moment = tables.moment
        self._ticked_at = self._moment.now
        self._closed = False
        self._links = tables.links
        self._sources, self._names = tables.sources, tables.names
        self._sinks, self._deployments = tables.sinks, tables.deployments
        self._service = service
        self._outlet = outlet
        self._send, self._log, self._expel = outlet.send, outlet.log, service.expel
        self._beyond = beyond
        self._status = status
        self.rights_of: Callable[[Peer], messages.Rights] = lambda peer: messages.EVERYTHING
        """The rights of who is at a link: the host knows them, where there are keys."""
        self.draining: Sequence[str] | None = None
        """Once it drains, what it waits for, in words, as its host has found last."""
        self.inspection = Inspection(
            tables.links, outlet, lambda: service.durables, service.users, service.expel
        )
        """Its answers to operators."""
        self._handlers: Mapping[type, Callable[[Link, Any], None]] = {
            **service.handlers,
            Hello: self._receive_hello,
            messages.StatusRequest: self._receive_status,
            messages.Drain: self._receive_drain,
            **dict.fromkeys((messages.ShowTrace, messages.ShowNetwork), self._ask_all),
            **self.inspection.handlers,
            messages.Heartbeat: lambda link, message: None,  # being heard is all there is to it
            Goodbye: self._receive_goodbye,
        }
        """Messages that a welcomed client may send, each with its handler."""

    # --- inputs ---

    def receive(self, peer: Peer, message: messages.FromClient, now: float) -> None:
        """Take in one message. A peer's mistake costs at most that peer its link."""
        assert not self._closed, "the node has been closed"
        self._moment.now = now
        link = self._links.by_peer.get(peer)
        try:
            if link is None:
                self._greet(peer, message)
                return
            link.heard_at = now
            handler = self._handlers.get(type(message))
            if handler is None:
                raise ProtocolError(Code.PROTOCOL, f"{type(message).__name__} is not for a broker")
            if link.rights is not messages.EVERYTHING:
                check_message(self._names, link, message)
            handler(link, message)
        except Refusal as refusal:
            request = getattr(message, "request", None)
            if link is None:
                self._send(peer, messages.Refused(request, refusal.code, str(refusal)))
            else:
                self._service.refuse(link, request, refusal.code, str(refusal))
            if request is None:
                self._expel(peer, refusal.code, str(refusal))
        except ProtocolError as error:
            self._expel(peer, error.code, str(error))
        self._service.settle_input()

    def receive_frames(self, peer: Peer, frames: Sequence[bytes | memoryview], now: float) -> None:
        """Decode (``wire.decode``) and take in one message; malformed frames close the link."""
        self._moment.now = now
        try:
            link = self._links.by_peer.get(peer)
            if link is None and sum(map(len, frames)) > GREETING_MAX:
                self._send_to_greet(peer)
            if link is not None and self._service.limits_sizes:
                check_size(link, sum(map(len, frames)))
            message = wire.decode(frames, by_client=True)
        except ProtocolError as error:
            self._expel(peer, error.code, str(error))
        except VersionMismatch as error:
            self._service.rates.malformed += 1
            self._expel(peer, Code.VERSION, str(error))
        except WireError as error:
            self._service.rates.malformed += 1
            self._expel(peer, Code.PROTOCOL, str(error))
        else:
            self.receive(peer, message, now)  # type: ignore[arg-type]
            return
        self._service.settle_input()

    def configure(self, config: NodeConfig, now: float) -> None:
        """Take over what a running node can change (all but ``config.FIXED``).

        A lower limit takes nothing away from anybody; it refuses what comes from now on.
        """
        self._moment.now = now
        self._config = self._config.changed_to(config)
        self._service.configure(self._config)
        self._service.settle()

    def lose(self, peer: Peer, now: float) -> None:
        """The link broke without Goodbye. No effect for it follows; unknown peers are ignored."""
        self._moment.now = now
        link = self._links.by_peer.get(peer)
        if link is not None:
            self._service.drop(link)
            self._service.settle()

    def handle_timer(self, now: float) -> None:
        """Do what is due: heartbeats, lost clients and sources, ticks of Timer."""
        due = self._ticked_at + self._config.heartbeat_s / 2
        self._moment.now = self._ticked_at = now
        self._service.rates.tick(now)
        for link in self._links:
            link.heard_at = excused(link.heard_at, due, now)
            if link.is_silent(now):
                self._expel(link.peer, Code.SILENT, f"nothing heard for {link.timeout_s:g} s")
            elif now - link.sent_at >= self._config.heartbeat_s / 2:
                self._send(link.peer, messages.Heartbeat())
        self._sources.excuse(due, now)
        self._close_lost()
        self._service.overtake()
        self._service.durables.take_due(now)
        self._service.settle()

    def next_timer(self) -> float | None:
        """When ``handle_timer`` is due next; None when nothing waits for time."""
        due = None
        if self._links.by_peer or self._may_close_lost:
            due = self._ticked_at + self._config.heartbeat_s / 2
        if self._deployments.need_clock and self._config.wall_clock:  # Timer ticks
            slack = self._config.timer_slack_s
            second = int(self._ticked_at - slack) + 1 + slack
            due = second if due is None else min(due, second)
        again_at = self._service.durables.due_at
        if again_at < math.inf:
            due = again_at if due is None else min(due, again_at)
        return due

    def drain(self, now: float) -> None:
        """Begin to drain (Law 4), and go on: the host calls this again until all have gone."""
        self._moment.now = now
        if self.draining is None:
            self.draining = ()
            self._handlers = {**self._handlers, **dict.fromkeys(COMING, self._send_away)}
            self._log("warning", "draining")
        self._service.settle()
        for link in list(self._links):
            sink = self._sinks.find(link.peer)
            if link.source is not None or (sink is not None and not sink.has_any):
                self._expel(link.peer, Code.LEAVING, DRAINS)
        self._sources.send_away(now)
        self._service.settle()

    @property
    def waiting_sinks(self) -> Sequence[Sink]:
        """The sinks for which something is queued."""
        return [sink for sink in self._sinks if sink.has_any]

    def _send_away(self, link: Link, message: Any) -> None:
        if isinstance(message, messages.Subscribe) and message.durable in self._service.durables:
            self._service.handlers[messages.Subscribe](link, message)
            return
        raise ProtocolError(Code.LEAVING, DRAINS)

    def close(self, reason: str, now: float) -> None:
        """Say Goodbye to every client; the node takes nothing more in."""
        self._moment.now = now
        for link in self._links:
            self._outlet.part(link.peer, Code.CLOSING, reason)
            self._links.remove(link)
        self._closed = True

    # --- links ---

    def _greet(self, peer: Peer, message: messages.FromClient) -> None:
        """A link that is not known yet: only Hello will do."""
        if not isinstance(message, Hello):
            self._send_to_greet(peer)
        if self.draining is not None and message.name:
            raise ProtocolError(Code.LEAVING, DRAINS)
        rights = self.rights_of(peer)
        self._names.check_free(rights, message.name)
        former = self._links.predecessor(message, rights.user, self._moment.now)
        if former is not None:
            code = Code.IN_USE if former.is_superseded_by(message) else Code.SILENT
            self._expel(former.peer, code, "another link of this client took its place")
        check_connections(rights, self._links)
        self._make_room(message.name, rights.user)
        self._welcome(peer, message, rights)
        self._service.settle_input()

    def _send_to_greet(self, peer: Peer) -> NoReturn:
        self._log("info", "refused", peer=peer.hex(), reason="no hello")
        raise ProtocolError(Code.UNKNOWN, "this broker does not know the link: say Hello")

    def _make_room(self, name: str, user: str) -> None:
        """Have room for a user's client; Refusal if there is none, and no user has many more."""
        clients_max = self._config.clients_max
        if len(self._links) < clients_max + (0 if name else OPERATORS):
            return
        crowded_out = self._links.crowded_out(user)
        if crowded_out is None:
            raise Refusal(Code.LIMIT, f"more than {clients_max} clients (clients_max)")
        reason = f"its place goes to another user: its own has most of the {clients_max} clients"
        self._expel(crowded_out.peer, Code.LIMIT, f"{reason} (clients_max)")

    def _welcome(self, peer: Peer, hello: Hello, rights: messages.Rights) -> None:
        now, name = self._moment.now, hello.name
        timeout_s = hello.heartbeat_s * self._config.heartbeats_missed_max
        source = self._sources.find(name) if name else None
        last_sequence = self._sources.taken(name) if name else 0
        link = Link(peer, name, hello.instance, timeout_s, now, now, now)
        link.last_sequence = last_sequence
        link.replays = hello.replay
        link.rights = rights
        link.message_bytes_told = rights.limits.message_bytes_max
        self._service.limits_sizes |= link.message_bytes_told is not None
        self._links.add(link)
        most = credit_of(rights, self._service.buckets.of(rights, now))
        welcome = messages.Welcome(
            messages.VERSION,
            self._config.name,
            last_sequence,
            min(self._config.publish_credit, most) if name else 0,
            self._config.heartbeat_s,
            source is not None and source.standing is SourceState.LOST,
            link.message_bytes_told,
        )
        self._send(peer, welcome)
        self._log("info", "welcomed", client=name, peer=peer.hex())

    def _receive_goodbye(self, link: Link, message: Goodbye) -> None:
        if message.code is not Code.CLOSING:
            # It hangs up on this link only; it may come back with more.
            self._outlet.emit(Close(link.peer, message.reason))
            self._service.drop(link)
            return
        self._links.remove(link)
        has_kept = bool(link.source or self._service.durables.find(link.peer))
        self._service.leave(link.peer)
        self._log("info", "goodbye", client=link.name, peer=link.peer.hex())
        if link.source is not None:
            self._service.close_source(link.source)
        reason = message.reason or "goodbye"
        if has_kept:
            self._outlet.once_kept(lambda: self._outlet.part(link.peer, Code.CLOSING, reason))
        else:
            self._outlet.part(link.peer, Code.CLOSING, reason)

    @property
    def _may_close_lost(self) -> bool:
        """Whether a lost source is to be closed some time."""
        never = self._config.source_silence_max_s is None and self.draining is None
        return self._sources.has_lost and not never

    def _close_lost(self) -> None:
        """Close the sources that have been lost for too long (routing.serving.sources)."""
        silence_max_s = self._config.source_silence_max_s
        for source in self._sources.overdue(silence_max_s, self._moment.now):
            types, promise = sorted(source.floors), time_or_none(source.promise)
            self._service.close_source(source, LOST_FOR_LONG)
            fields = {
                "lost_s": source.patience_s(silence_max_s),
                "types": types,
                "promise": promise,
            }
            self._log("warning", LOST_CLOSED, source=source.name, **fields)

    def _receive_status(self, link: Link, message: messages.StatusRequest) -> None:
        self._outlet.note_look(link, message.request)
        self._send(link.peer, messages.Confirmed(message.request, self._status(self._moment.now)))

    def _receive_drain(self, link: Link, message: messages.Drain) -> None:
        self._outlet.note_look(link, message.request)
        if not self._config.drainable:
            raise Refusal(Code.LIMIT, "this broker drains at a signal alone (SIGUSR1)")
        self._log("warning", "asked to drain", client=link.name, peer=link.peer.hex())
        self.drain(self._moment.now)
        self._send(
            link.peer, messages.Confirmed(message.request, {"draining": list(self.draining or ())})
        )

    def _ask_all(self, link: Link, message: messages.ShowTrace | messages.ShowNetwork) -> None:
        self._outlet.note_look(link, message.request)
        self._beyond.ask_all(link, message)

    def _receive_hello(self, link: Link, message: Hello) -> None:
        raise ProtocolError(Code.PROTOCOL, "Hello on a link that has been welcomed")

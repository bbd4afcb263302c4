"""One broker's part in the network: its links, what it knows of the others, and its trees.

Drive it like a Node: ``receive`` what came over links between brokers, ``lose``, ``handle_timer``,
``take_effects``; ``take_changes`` says what has become of neighbours and trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from matcher.traces import TraceContexts
from routing import messages, wire
from routing.effects import Close, Effect, Log, Peer, Send
from routing.errors import ProtocolError, VersionMismatch, WireError
from routing.messages import Code, Goodbye, LinkStates
from routing.overlay.channel import Channel
from routing.overlay.config import OverlayConfig
from routing.overlay.connections import Connections
from routing.overlay.ends import DelayKnown, Down, Heard, LinkResult, Piling, Up, link_text
from routing.overlay.queries import NetworkQueries
from routing.overlay.topology import Topology
from routing.traced import with_traces

NEIGHBOUR_DOWN = "neighbour down"
"""The line of the log on a neighbour that is given up or gone."""
SAID_MAX = 1_024
"""Refused links that are remembered as said."""


Change: TypeAlias = Up | Down | Piling | Heard

_OWN_BUSINESS = frozenset(
    {Up, Down, DelayKnown, Piling, LinkStates, messages.NetworkQuery, messages.NetworkAnswer}
)
"""Results of a channel that are not just passed on as heard."""


class Overlay:
    """The network, from one broker's point of view. ``now`` is in seconds and never goes back. An
    overlay composes connections and channels, which make one neighbour of several links, or none,
    with the topology, and keeps what brokers send one another for whoever is on top of it.
    """

    def __init__(self, config: OverlayConfig, now: float) -> None:
        self._config = config
        self._now = now
        self._estranged_s = config.estranged_s
        self._connections = Connections(config)
        self.links: Mapping[Peer, Channel] = self._connections.by_link
        """The links to brokers that this one is, or wants to be, linked to."""
        self._neighbours: dict[str, Channel] = {}
        self.neighbours: Mapping[str, Channel] = self._neighbours
        """The links that are up, by the neighbours' names."""
        self._delays: dict[Peer, int] = {}
        self._due: dict[Channel, float] = {}
        """When a channel's timer is due, kept since most inputs touch one channel only."""
        self._first_due: float | None = None
        """The least of these; None where it has to be looked for."""
        self.topology = Topology(config, now, self._linked, self._tell)
        self.effects: list[Effect] = []
        """Effects that ``take_effects`` would give."""
        self.traces = TraceContexts()
        """Trace contexts of events: whatever leaves gets those of its events, and what comes brings
        them."""
        self.queries = NetworkQueries(
            config.name, lambda neighbour, message: self.send(neighbour, message, self._now)
        )
        self.changes: list[Change] = []
        """Changes that ``take_changes`` would give."""
        self.has_moved = True
        """Result that ``take_moved`` would give."""
        self._said: dict[str, str] = {}
        """Why links were refused, as far as the log has said so: by neighbour, or by link."""

    # --- what is known ---

    @property
    def endpoints(self) -> Sequence[str]:
        """The links that this broker was told to make, whether anybody answers or not."""
        return sorted(map(link_text, self._connections.told))

    @property
    def name(self) -> str:
        """The broker's name."""
        return self._config.name

    @property
    def config(self) -> OverlayConfig:
        """Its choices."""
        return self._config

    @property
    def durables(self) -> Mapping[str, str]:
        """The durable sinks at other brokers, those out of reach too: their brokers, by name."""
        others = (one for one in self.topology.states if one.origin != self.name)
        return {name: state.origin for state in others for name in state.durables}

    @property
    def facts(self) -> dict[str, Any]:
        """The brokers, links and trees as a broker's status shows them."""
        reachable = self.topology.part.nodes
        return {
            "centre": self.topology.part.centre,
            "settled": self.topology.is_settled,
            "brokers": [
                {
                    "name": state.origin,
                    "reachable": state.origin in reachable,
                    "neighbours": [
                        {"name": name, "delay_us": delay_us} for name, delay_us in state.neighbours
                    ],
                }
                for state in self.topology.states
            ],
            "links": [channel.facts for _, channel in sorted(self.neighbours.items())],
            "trees": [
                tree.facts
                for tree in sorted(self.topology.trees, key=lambda tree: tree.root)
                if not tree.orphan
            ],
        }

    # --- inputs ---

    def say_durables(self, names: Iterable[str], now: float) -> None:
        """Tell all brokers which durable sinks are at this one."""
        self._now = now
        self.topology.say_durables(tuple(sorted(names)), now)

    def awake(self, now: float) -> bool:
        """Something is to be done; gives whether this broker was kept from its work for so long
        that others may have forgotten it. It shows, for while neighbours are there something is to
        be done at every heartbeat.
        """
        was_away = now - self._now >= self._estranged_s and bool(self._neighbours)
        self._now = now
        if was_away:
            self.has_moved = True
            self.topology.be_away(now)
        return was_away

    def add_link(self, peer: Peer, now: float, delay_us: int | None = None) -> None:
        """Greet the broker at ``peer``. ``delay_us`` None: the link's delay is measured."""
        self.awake(now)
        if delay_us is not None:
            self._delays[peer] = delay_us
        self._collect(self._connections.add(peer, now))
        if self.topology.settle_at is not None:
            self.topology.settle_at = now + self._config.settle_s

    def receive(self, peer: Peer, message: messages.FromNeighbour, now: float) -> None:
        """Take in what came over a link between brokers; unknown ones may be greeted back."""
        self.awake(now)
        try:
            if isinstance(message, messages.LinkHello):
                channel = self._connections.greet(peer, message, now)
            else:
                found = self.links.get(peer)
                if found is None:
                    self._send_away(peer, message)
                    return
                channel = found
            if isinstance(message, Goodbye):
                self._receive_goodbye(channel, peer, message)
            else:
                channel.receive(message, now)
        except ProtocolError as error:
            name = message.name if isinstance(message, messages.LinkHello) else ""
            self._expel(peer, error, name)
        else:
            self._collect(channel)
        if self._connections.touched:
            self._collect_touched()

    def receive_frames(self, peer: Peer, frames: Sequence[bytes | memoryview], now: float) -> None:
        """Decode and take in one message; malformed frames cost the neighbour the link."""
        try:
            message = wire.decode(frames)
        except WireError as error:
            self.awake(now)
            code = Code.VERSION if isinstance(error, VersionMismatch) else Code.PROTOCOL
            self._expel(peer, ProtocolError(code, str(error)))
            self._collect_touched()
        else:
            self.receive(peer, message, now)  # type: ignore[arg-type]

    def lose(self, peer: Peer, now: float) -> None:
        """The host has lost the link."""
        self.awake(now)
        self._connections.lose(peer, now)
        self._collect_touched()

    def send(self, neighbour: str, message: messages.Carried, now: float) -> None:
        """Send to a neighbour; nothing is sent to one that is not up."""
        channel = self._neighbours.get(neighbour)
        if channel is not None:
            if self.traces.has_any and isinstance(message, messages.BEARING):
                message = with_traces(message, self.traces)
            channel.send(message, now)
            self._collect(channel)

    def ask_all(self, peer: Peer, user: str, request: messages.AskingAll, now: float) -> None:
        """A client asks something of all brokers."""
        self.awake(now)
        self.queries.ask(peer, user, request, self.topology.part.nodes, self._tree_neighbours, now)

    @property
    def _tree_neighbours(self) -> set[str]:
        """The neighbours in the single tree."""
        tree = self.topology.single_tree
        if tree is None:
            return set()
        return tree.children if tree.father is None else {*tree.children, tree.father}

    def handle_timer(self, now: float) -> None:
        """Do what is due."""
        self.awake(now)
        for channel in [channel for channel, due in self._due.items() if due <= now]:
            channel.handle_timer(now)
            self._collect(channel)
        self.queries.handle_timer(now)
        topology = self.topology
        settle_at, forget_at = topology.settle_at, topology.forget_at
        if (settle_at is not None and settle_at <= now) or (
            forget_at is not None and forget_at <= now
        ):
            self.has_moved = True
            topology.conclude(now)
        if topology.flood_at is not None and topology.flood_at <= now:
            topology.flood()

    def next_timer(self) -> float | None:
        """When ``handle_timer`` is due next; None when nothing waits for time."""
        due = self._first_due
        if due is None and self._due:
            due = self._first_due = min(self._due.values())
        topology = self.topology
        asked = self.queries.due_at
        for other in (topology.flood_at, topology.settle_at, topology.forget_at, asked):
            if other is not None and (due is None or other < due):
                due = other
        return due

    def close(self, reason: str, now: float) -> None:
        """Leave the network."""
        self._now = now
        for channel in self._connections.channels:
            channel.close(now, reason)
            self._collect(channel)

    # --- outputs ---

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        effects, self.effects = self.effects, []
        return effects

    def take_moved(self) -> bool:
        """Whether trees or neighbours may be others than when this was last asked."""
        has_moved, self.has_moved = self.has_moved, False
        return has_moved

    def take_changes(self) -> list[Change]:
        """The neighbours that came and went, and what they sent, in order."""
        changes, self.changes = self.changes, []
        return changes

    # --- links ---

    def _receive_goodbye(self, channel: Channel, peer: Peer, message: Goodbye) -> None:
        self.effects.append(Close(peer, message.reason))
        if not channel.is_up and message.code is not Code.CLOSING:
            self._warn_once("refused by another broker", peer, channel.neighbour, message.reason)
        if channel.peer == peer:
            channel.receive(message, self._now)
        self._connections.lose(peer, self._now)

    def _send_away(self, peer: Peer, message: messages.FromNeighbour) -> None:
        """Whoever does not begin with a greeting may begin anew."""
        if not isinstance(message, Goodbye):
            reason = "this broker does not know the link: greet it"
            self.effects.append(Send(peer, Goodbye(reason, Code.UNKNOWN)))
            self.effects.append(Close(peer, reason))

    def _expel(self, peer: Peer, error: ProtocolError, name: str = "") -> None:
        """A neighbour's mistake costs it the link; one that is configured is greeted again."""
        self.effects.append(Send(peer, Goodbye(str(error), error.code)))
        self.effects.append(Close(peer, str(error)))
        self._warn_once("link refused", peer, name, str(error))
        self._connections.lose(peer, self._now, str(error))

    def _warn_once(self, text: str, peer: Peer, name: str, reason: str) -> None:
        """Say why there is no link; whoever tries again is refused without a word."""
        whom = name or (link_text(peer) if peer in self.links else "")
        if self._said.get(whom) != reason:
            if len(self._said) >= SAID_MAX:
                self._said.clear()
            self._said[whom] = reason
            fields = {"link": link_text(peer), "neighbour": name, "reason": reason}
            self.effects.append(Log("warning", text, fields))

    def _collect_touched(self) -> None:
        for channel in self._connections.take_touched():
            self._collect(channel)

    def _collect(self, channel: Channel) -> None:
        """Carry on what a channel has done."""
        if channel.effects:
            self.effects += channel.take_effects()
        due, before = channel.next_timer(), self._due.get(channel)
        if due != before:
            self._note_due(channel, due, before)
        if channel.results:
            for result in channel.take_results():
                if type(result) in _OWN_BUSINESS:
                    self._take_result(channel, result)
                else:
                    if isinstance(result, messages.BEARING) and result.traces:
                        self.traces.take(result.batches, result.traces)
                    self.changes.append(Heard(channel.neighbour, result))  # type: ignore[arg-type]

    def _note_due(self, channel: Channel, due: float | None, before: float | None) -> None:
        if due is None:
            del self._due[channel]
        else:
            self._due[channel] = due
        first = self._first_due
        if first is not None:
            if due is not None and due <= first:
                self._first_due = due
            elif before == first:
                self._first_due = None

    def _take_result(self, channel: Channel, result: LinkResult) -> None:
        if isinstance(result, Piling):
            self.changes.append(result)
            return
        if isinstance(result, messages.NetworkQuery | messages.NetworkAnswer):
            self.queries.hear(channel.neighbour, result, self._tree_neighbours)
            return
        self.has_moved = True
        if isinstance(result, Up):
            self._take_up(channel, result)
        elif isinstance(result, Down):
            self._take_down(result)
        elif isinstance(result, LinkStates):
            if self.topology.hear(channel.neighbour, result, self._now):
                text = "another broker of the network bears this name"
                self.effects.append(Log("error", text, {"via": channel.neighbour}))
        elif isinstance(result, DelayKnown):
            self.topology.say(self._now)

    def _take_up(self, channel: Channel, up: Up) -> None:
        self._neighbours[up.name] = channel
        self.changes.append(up)
        self._said.pop(up.name, None)
        if channel.peer is not None:
            self._said.pop(link_text(channel.peer), None)
        self.effects.append(Log("info", "neighbour up", {"neighbour": up.name}))
        if channel.peer not in self._delays and (up.fresh or channel.delay_us is None):
            channel.measure(self._now)
            self._collect(channel)
        self.topology.join(up.name, self._now)

    def _take_down(self, down: Down) -> None:
        if self._neighbours.pop(down.name, None) is None:
            return
        self.has_moved = True
        self.changes.append(down)
        self.effects.append(
            Log("warning", NEIGHBOUR_DOWN, {"neighbour": down.name, "reason": down.reason})
        )
        self.topology.leave(down.name, self._now)

    # --- what the topology needs ---

    def _linked(self) -> dict[str, int]:
        """The neighbours whose links are up and measured: their delays in microseconds."""
        delays = {name: self._delay(channel) for name, channel in self._neighbours.items()}
        return {name: delay for name, delay in delays.items() if delay is not None}

    def _delay(self, channel: Channel) -> int | None:
        told = None if channel.peer is None else self._delays.get(channel.peer)
        if told is not None:
            return max(told, 1)
        step, delay_us = self._config.link_delay_us, channel.delay_us
        return None if delay_us is None else step * max(1, -(-delay_us // step))

    def _tell(self, neighbour: str, message: LinkStates) -> None:
        channel = self._neighbours.get(neighbour)
        if channel is not None:
            channel.send(message, self._now)
            self._collect(channel)

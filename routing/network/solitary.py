"""A broker that works alone, as a plain Node does, until another broker greets it.

Law 1: alone it is a Node, and costs what a Node costs: no rounds, no plans, nothing kept for
brokers that might be lost.

Law 2: the first greeting makes it part of a network, with the terms that the greeting names (its
strategy, its ordering), provided that nothing depends on it yet: neither rules nor sources. Its
clients are sent away to come back, as after a broken link. Otherwise the greeting is refused: what
a Node has begun does not move. A broker that is to have rules first and neighbours later is started
as part of a network (``rexmq broker --strategy``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from routing.config import NodeConfig
from routing.effects import Close, Effect, Log, Peer, Send
from routing.errors import Refusal
from routing.messages import Code, FromClient, Goodbye, LinkHello
from routing.network.agreement.terms import Terms, read_terms
from routing.network.brokers.broker import Broker
from routing.node import Node
from routing.overlay.config import OverlayConfig
from rules.engine.engine import Detector

Join = Callable[[NodeConfig, Terms, float], Broker]
"""Makes a broker of a network with these terms, at this time in seconds."""


class Solitary(Node):
    """A Node that becomes a Broker when it has to. ``join`` makes that."""

    def __init__(self, config: NodeConfig, engine: Detector, join: Join, now: float = 0.0) -> None:
        super().__init__(config, engine, now)
        self._join = join
        self._broker: Broker | None = None

    @property
    def broker(self) -> Broker | None:
        """What it has become; None while it is alone."""
        return self._broker

    def receive_frames(self, peer: Peer, frames: Sequence[bytes | memoryview], now: float) -> None:
        """Decode and take in one message, of a client or of a broker that greets."""
        if self._broker is not None:
            self._broker.receive_frames(peer, frames, now)
        else:
            super().receive_frames(peer, frames, now)

    def receive_together(
        self, messages: Iterable[tuple[Peer, Sequence[bytes | memoryview]]], now: float
    ) -> None:
        """Take in messages that are there at once."""
        if self._broker is not None:
            self._broker.receive_together(messages, now)
        else:
            super().receive_together(messages, now)

    def configure(self, config: NodeConfig, now: float) -> None:
        """Take over what a running broker can change."""
        super().configure(config, now)
        if self._broker is not None:
            self._broker.configure(config, now)

    def lose(self, peer: Peer, now: float) -> None:
        """The link broke."""
        (super().lose if self._broker is None else self._broker.lose)(peer, now)

    def handle_timer(self, now: float) -> None:
        """Do what is due."""
        (super().handle_timer if self._broker is None else self._broker.handle_timer)(now)

    def next_timer(self) -> float | None:
        """When that is."""
        return super().next_timer() if self._broker is None else self._broker.next_timer()

    def close(self, reason: str, now: float) -> None:
        """Say Goodbye to all."""
        (super().close if self._broker is None else self._broker.close)(reason, now)

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        effects = super().take_effects()
        return effects if self._broker is None else effects + self._broker.take_effects()

    def status(self, now: float) -> Mapping[str, Any]:
        """What StatusRequest is answered with."""
        if self._broker is not None:
            return self._broker.status(now)
        return {**super().status(now), "network": _ALONE | {"root": self._config.name}}

    # --- greetings (Law 2) ---

    def _greet(self, peer: Peer, message: FromClient | LinkHello) -> None:
        if isinstance(message, LinkHello):
            self._take_greeting(peer, message)
        else:
            super()._greet(peer, message)

    def _take_greeting(self, peer: Peer, hello: LinkHello) -> None:
        try:
            terms = read_terms(hello.terms)
            self._check(terms)
        except Refusal as refusal:
            self._refuse(peer, hello, str(refusal))
            return
        if len(self._deployments) or any(source.is_open for source in self._sources):
            reason = f"broker {self._config.name!r} has begun to work alone: start it as part of "
            self._refuse(peer, hello, f"{reason}a network, with --strategy {terms.strategy}")
        else:
            self._become_broker(terms).be_greeted(peer, hello, self._moment.now)

    def _check(self, terms: Terms) -> None:
        """Refusal where the others would forget this broker before it has noticed their absence."""
        heartbeat_s, missed = self._config.heartbeat_s, self._config.heartbeats_missed_max
        own = OverlayConfig(
            self._config.name,
            heartbeat_s=heartbeat_s,
            heartbeats_missed_max=missed,
            forget_s=terms.forget_s,
        )
        if own.forgets_too_soon:
            reason = f"broker {self._config.name!r} needs a forget_s of {own.least_forget_s:g} s"
            raise Refusal(
                Code.TERMS, f"{reason} at least, with its heartbeats of {heartbeat_s:g} s"
            )

    def _refuse(self, peer: Peer, hello: LinkHello, reason: str) -> None:
        self.emit(Send(peer, Goodbye(reason, Code.TERMS)))
        self.emit(Close(peer, reason))
        self.emit(Log("info", "link refused", {"neighbour": hello.name, "reason": reason}))

    def _become_broker(self, terms: Terms) -> Broker:
        name, ordering = terms.strategy, terms.ordering
        self._log(
            "info",
            "part of a network from now on",
            strategy=name,
            ordering=ordering.value,
            forget_s=terms.forget_s,
            rule_texts=terms.rule_texts.value,
        )
        for link in list(self._links):
            self._expel(link.peer, Code.SILENT, "the broker becomes part of a network: come back")
        config = replace(self._config, ordering=ordering, rule_texts=terms.rule_texts)
        broker = self._join(config, terms, self._moment.now)
        broker.emit = self.emit
        self._broker = broker
        return broker


_ALONE: dict[str, Any] = {
    "strategy": None,
    "father": None,
    "centre": None,
    "settled": True,
    "brokers": [],
    "links": [],
    "trees": [],
}
"""The network of a broker that is alone, but for its name."""

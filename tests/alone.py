"""A broker that is alone, with a store, and clients whose every message a test says."""

from typing import Any

from event_batches import batch_of_events

import rules.engine
from matcher.model import Event, EventType
from routing.config import NodeConfig
from routing.effects import Effect, Send, Store
from routing.messages import (
    Advertise,
    Confirmed,
    Delivery,
    Goodbye,
    Hello,
    Publish,
    Subscribe,
)
from routing.network.brokers.broker import Broker
from routing.network.strategy import make
from routing.overlay.config import OverlayConfig
from simulator.simulation import Simulation
from simulator.stores import SimulatedStore

TEMP = EventType.of("Temp", n="int")
SYNC_S = 0.01


class Alone:
    """The broker, its store, and clients whose every message is taken in where the test says."""

    def __init__(self, **config: Any) -> None:
        self.simulation = Simulation(0)
        self.store = SimulatedStore(self.simulation, "b1", SYNC_S)
        self.config = NodeConfig("b1", wall_clock=False, **config)
        self.sent: list[tuple[bytes, Any]] = []
        self.published = 0
        self.start()

    def start(self) -> None:
        """Start, or start again with what the store has kept."""
        now = self.simulation.now
        engine = rules.engine.make("naive")
        overlay = OverlayConfig("b1", incarnation=round(now * 1e6) + 1)
        self.broker = Broker(self.config, overlay, engine, make("centralized"), now)
        self.broker.recall(self.store.read(), now)
        self.store.when_kept = self._kept
        self.pass_time(1.0)

    def fail(self) -> None:
        """Lose what is in memory, and start again."""
        self.store.fail()
        self.start()

    def turn(self, *said: tuple[bytes, Any]) -> None:
        """Take in what clients say, all in one turn of the host, and have it kept."""
        for peer, message in said:
            self.broker.node.receive(peer, message, self.simulation.now)
        self._carry_out()
        self.pass_time(2 * SYNC_S)

    def publish(self, peer: bytes, count: int) -> None:
        numbers = range(self.published + 1, self.published + count + 1)
        events = [Event("Temp", n * 1_000, "s", str(n), {"n": n}, n) for n in numbers]
        self.published += count
        self.turn((peer, Publish((batch_of_events(TEMP, events),))))

    def pass_time(self, seconds: float) -> None:
        ends_at = self.simulation.now + seconds
        while (due := self.broker.next_timer()) is not None and due <= ends_at:
            self.simulation.run(due)
            self.broker.handle_timer(self.simulation.now)
            self._carry_out()
        self.simulation.run(ends_at)

    def _kept(self, number: int) -> None:
        self.broker.stored(number, self.simulation.now)
        self._carry_out()

    def _carry_out(self) -> None:
        for effect in self.broker.take_effects():
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Store):
            self.store.ask(effect)
        elif isinstance(effect, Send):
            self.sent.append((effect.peer, effect.message))

    def take(self, peer: bytes, kind: type) -> list[Any]:
        """Messages of a kind that a client was sent since the last call."""
        found = [one for to, one in self.sent if to == peer and isinstance(one, kind)]
        self.sent = [one for one in self.sent if one[0] != peer or not isinstance(one[1], kind)]
        return found

    def records(self) -> dict[str, int]:
        """How many records of durable sinks the store has, by kind."""
        kept = self.store._records
        return {kind: len(kept[kind]) for kind in sorted(kept) if kind.startswith(("dur", "queue"))}


def hello(name: str = "") -> Hello:
    return Hello(1, name, 1e4, instance=len(name) + 1)


def values(deliveries: list[Delivery]) -> list[int]:
    return [n for one in deliveries for batch in one.batches for n in batch.columns[0].tolist()]


def with_source(**config: Any) -> Alone:
    alone = Alone(**config)
    alone.turn((b"s", hello("s")), (b"s", Advertise(1, (TEMP,))))
    alone.turn((b"k", hello()), (b"k", Subscribe(1, 1, "Temp()", durable="billing")))
    assert alone.take(b"k", Confirmed)
    alone.turn((b"k", Goodbye()))
    return alone

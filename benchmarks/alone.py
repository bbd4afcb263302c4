"""One broker without its sockets: what an event costs it, and what deploying rules does.

A source publishes Temps and, every tenth, a Smoke; a sink gets the Fires of one rule over both. The
events come one by one or in batches, each message as a host hands it to its broker: decoding,
evaluation, encoding and timers count, sockets and clients do not. Figures are of this process's CPU
time, the least of several turns.

::

    python -m benchmarks.alone
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.report import Row, table
from broker.warmup import warm_up
from matcher.model import MICROSECONDS, EventBatch, EventIds, EventType, StringColumn
from matcher.single import Row as Values, Single
from routing import wire
from routing.config import NodeConfig
from routing.effects import Effect, Send
from routing.messages import VERSION, Advertise, Credit, Deploy, Hello, Message, Publish, Subscribe
from routing.network.brokers.broker import Broker
from routing.overlay.config import OverlayConfig
from rules import engine

ENGINE = "auto"
EVENTS, BATCH, TURNS, RULES = 4_000, 256, 5, 1_000
EVENT_S = 0.001
"""Seconds from one event to the next, of event time and of the broker's clock."""
SOURCE, SINK = b"source", b"sink"
TEMP = EventType.of("Temp", room="string", value="float")
SMOKE = EventType.of("Smoke", room="string")
ROOMS = ("hall", "kitchen", "study", "cellar")
RULE = (
    "rule fire{number}: define Fire{number}(room: string, value: float)"
    " from Smoke(room = $r) as s and last Temp(room = $r, value > {least}) as t"
    " within 1 s from s where room = $r, value = t.value"
)
CREDIT = 2**31 - 1


class Exchange:
    """A broker with its two clients."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.now, self.number, self.delivered = 0.0, 0, 0
        broker.outlet.emit = self._carry_out
        hellos = Hello(VERSION, "source", 600.0, 1), Hello(VERSION, "sink", 600.0, 2)
        for peer, hello in zip((SOURCE, SINK), hellos, strict=True):
            self.take(peer, hello)
        self.pass_time(2.0)
        self.take(SOURCE, Advertise(1, (TEMP, SMOKE)))
        self.pass_time(2.0)

    def subscribe(self) -> None:
        """Deploy the rule, and have the sink want its events."""
        self.deploy(0)
        self.take(SINK, Subscribe(2, 1, "Fire0()"))
        self.take(SINK, Credit(CREDIT))
        self.pass_time(2.0)

    def deploy(self, number: int) -> None:
        """Deploy one more rule."""
        self.take(SINK, Deploy(10 + number, RULE.format(number=number, least=40 + number % 10)))
        self.pass_time(0.05)

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            wire.encode(effect.message)
            self.delivered += type(effect.message).__name__ == "Delivery"

    def take(self, peer: bytes, message: Message) -> None:
        """Take in one message, as from a host."""
        self.hear(peer, wire.encode(message))

    def hear(self, peer: bytes, frames: Sequence[bytes]) -> None:
        """Take in its frames."""
        broker, now = self.broker, self.now
        broker.receive_together([(peer, frames)], now)
        due = broker.next_timer()
        if due is not None and due <= now:
            broker.handle_timer(now)

    def pass_time(self, seconds: float) -> None:
        """Nothing comes for a while."""
        until = self.now + seconds
        while (due := self.broker.next_timer()) is not None and due <= until:
            self.now = max(self.now, due)
            self.broker.handle_timer(self.now)
        self.now = until

    def messages(self, count: int, size: int) -> Iterator[Sequence[bytes]]:
        """The frames of the next messages of the source."""
        for _ in range(count // size):
            first, self.number = self.number + 1, self.number + size
            batches = [single(first)] if size == 1 else batches_from(first, size)
            yield wire.encode(Publish(tuple(batches), time_of(self.number)))


def time_of(number: int) -> int:
    """When an event was observed."""
    return round(number * EVENT_S * MICROSECONDS)


def single(number: int) -> EventBatch:
    """An event that comes by itself."""
    room = ROOMS[number % len(ROOMS)]
    if number % 10:
        return Single(TEMP, Values(time_of(number), "source", number, None, (room, number % 100.0)))
    return Single(SMOKE, Values(time_of(number), "source", number, None, (room,)))


def batches_from(first: int, size: int) -> Iterator[EventBatch]:
    """Events that come together."""
    numbers = np.arange(first, first + size)
    for type_, chosen in ((TEMP, numbers[numbers % 10 != 0]), (SMOKE, numbers[numbers % 10 == 0])):
        room = StringColumn((chosen % len(ROOMS)).astype(np.int32), ROOMS)
        columns = (room, chosen % 100.0) if type_ is TEMP else (room,)
        ids = EventIds(StringColumn.constant("source", len(chosen)), chosen)
        yield EventBatch(type_, chosen * round(EVENT_S * MICROSECONDS), ids, columns)


def broker() -> Broker:
    """One that works alone."""
    config = NodeConfig(name="b1", publish_credit=2**30)
    return Broker(config, OverlayConfig("b1"), engine.make(ENGINE), None)


def spent(action: Callable[[], object]) -> float:
    """Seconds of CPU time."""
    gc.collect()
    gc.freeze()
    begun = time.process_time()
    action()
    return time.process_time() - begun


def cost(exchange: Exchange, size: int) -> float:
    """Microseconds an event."""
    count = EVENTS if size == 1 else 50 * BATCH
    come = list(exchange.messages(count, size))

    def all_of_them() -> None:
        for frames in come:
            exchange.now += EVENT_S * size
            exchange.hear(SOURCE, frames)

    before = exchange.delivered
    found = spent(all_of_them) / (len(come) * size) * 1e6
    assert exchange.delivered > before
    return found


def run(quick: bool) -> Iterator[Row]:
    """The rows."""
    warm_up(ENGINE)
    turns = 2 if quick else TURNS
    for size in (1, BATCH):
        exchange = Exchange(broker())
        exchange.subscribe()
        cost(exchange, size)
        found = min(cost(exchange, size) for _ in range(turns))
        yield Row(f"alone/events in batches of {size}", found, "us")
    count = RULES // 10 if quick else RULES
    times = []
    for _ in range(1 if quick else 2):
        exchange = Exchange(broker())
        times.append(spent(lambda e=exchange: [e.deploy(n) for n in range(count)]))
    yield Row(f"alone/{count:,} rules one by one, each", min(times) / count * 1e3, "ms")


if __name__ == "__main__":
    print(table(list(run("--quick" in sys.argv))))

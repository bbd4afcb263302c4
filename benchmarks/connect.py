"""Connectors: events a second and processor time an event, in and out, beside the bare client of
each system in the same run.

In: messages that the system has already are taken, published, and acknowledged behind the broker's
acknowledgement; the bare client takes and acknowledges as many. Out: events that a durable
subscription has already are sent and confirmed; the bare client sends as many bodies, in lots of
256 where it waits for each. A rate is that from the first on. Processor time is that of this
process alone: the connector's, or the client's. Kafka's cluster is played by librdkafka in this
process, and counts in both.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.report import Row, attempted
from benchmarks.servers import program_of
from benchmarks.systems import SYSTEMS
from broker import Publisher, Subscriber
from broker.connect.configuration import connectors_of
from broker.connect.pumps import SinkPump, SourcePump
from broker.process import BrokerProcess
from matcher.model import EventType

COUNT, COUNT_QUICK = 20_000, 3_000
WINDOW = 1_000
WAIT_S = 120.0
SESSION_S = 2.0
"""Seconds in which the connector has made its session at a system that keeps nothing without."""
TYPE = EventType.of("Temp", area="string", value="float")
FILE = """
[broker]
endpoint = "{endpoint}"

[[source]]
name = "plant"
events = ["Temp(area: string, value: float)"]
dead_letter = "plant.dead"
{source}

[[sink]]
name = "alerts"
filters = ["Temp()"]
dead_letter = "alerts.dead"
window = 1_000
{sink}
"""
Cost: TypeAlias = tuple[float, float]
"""Events a second, and processor time of one in microseconds."""


def run(quick: bool) -> Iterator[Row]:
    count = COUNT_QUICK if quick else COUNT
    for name, system in SYSTEMS.items():
        if system.program and program_of(system.program) is None:
            yield Row(name, None, "", note=f"left out: there is no {system.program}")
        else:
            yield from attempted(name, lambda name=name: measured(name, count))


def measured(name: str, count: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="connect-") as place:
        folder = Path(place)
        system = SYSTEMS[name](folder)
        with system.server, BrokerProcess("--data", str(folder / "store")) as broker:
            own = {"source": system.source, "sink": system.sink}
            text = FILE.format(endpoint=broker.endpoint, **own).replace("URL", system.url)
            (folder / "plant.toml").write_text(text)
            system.prepare()
            bare = BARE[name](system.url)
            yield from rows(f"{name} in", *asyncio.run(taken(folder, system, bare, count)))
            yield from rows(f"{name} out", *asyncio.run(given(folder, system, count)))
            system.close()


def rows(name: str, connector: Cost, bare: Cost) -> Iterator[Row]:
    yield Row(name, connector[0], "events/s", "bare client", bare[0])
    yield Row(f"{name}, processor time", connector[1], "us/event", "bare client", bare[1])


async def taken(folder: Path, system: Any, bare: Bare, count: int) -> tuple[Cost, Cost]:
    """What taking so many messages costs the connector, and the bare client."""
    await bare.prepare()
    if bare.has_sessions:
        async with pumping(folder, "sources"):
            await asyncio.sleep(SESSION_S)
    bodies = [json.dumps({"value": number + 0.5}).encode() for number in range(count)]
    await asyncio.to_thread(system.publish, [("a1", body) for body in bodies])
    async with pumping(folder, "sources") as pump:
        connector = await cost(lambda: pump.count, count)
    task = asyncio.create_task(bare.drain())
    alone = await cost(lambda: bare.count, count)
    bare.ends = True
    await task
    return connector, alone


async def given(folder: Path, system: Any, count: int) -> tuple[Cost, Cost]:
    """What giving so many events costs the connector, and the bare client."""
    address = connectors_of(folder / "plant.toml").address
    with Subscriber(address, "Temp()", name="alerts", durable=True):
        pass
    with Publisher(address, name="other", types=[TYPE]) as publisher:
        for number in range(count):
            publisher.publish("Temp", area="a1", value=number + 0.5)
    async with pumping(folder, "sinks") as pump:
        connector = await cost(lambda: pump.count, count)
    body = b'{"specversion":"1.0","type":"Temp","source":"other","id":"1","data":{"value":0.5}}'
    messages, begun = [("a1", body)] * count, time.process_time()
    since = time.perf_counter()
    await asyncio.to_thread(system.publish, messages)
    return connector, figures(count, since, begun)


@asynccontextmanager
async def pumping(folder: Path, kind: str) -> AsyncIterator[SourcePump | SinkPump]:
    """The source or the sink of the file, while it runs."""
    connectors = connectors_of(folder / "plant.toml")
    (pump,) = getattr(connectors, kind)
    task = asyncio.create_task(pump.run(connectors.address))
    try:
        yield pump
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def cost(counted: Callable[[], int], count: int) -> Cost:
    """What it costs until so many are counted, from the first on."""
    until = time.monotonic() + WAIT_S
    while not (first := counted()):
        await asyncio.sleep(0.001)
        if time.monotonic() > until:
            raise TimeoutError("nothing comes")
    since, begun = time.perf_counter(), time.process_time()
    while (had := counted()) < count:
        await asyncio.sleep(0.005)
        if time.monotonic() > until:
            raise TimeoutError(f"{had} of {count} have come")
    return figures(count - first, since, begun)


def figures(count: int, since: float, begun: float) -> Cost:
    """The cost of so many that began at these moments."""
    return (
        count / (time.perf_counter() - since),
        (time.process_time() - begun) / max(1, count) * 1e6,
    )


class Bare:
    """A bare client that takes messages and acknowledges them, until it is told to end.

    ``has_sessions``: whether the system keeps messages for those alone who have been there.
    """

    has_sessions = False

    def __init__(self, url: str) -> None:
        self.url = url
        self.count = 0
        self.ends = False

    async def prepare(self) -> None:
        """Have the system keep messages for it from now on."""

    async def drain(self) -> None:
        raise NotImplementedError

    async def ended(self) -> None:
        while not self.ends:
            await asyncio.sleep(0.01)


class BareMqtt(Bare):
    has_sessions = True

    async def prepare(self) -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        self._client = Client(CallbackAPIVersion.VERSION2, "drain", clean_session=False)
        subscribed = threading.Event()
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._connect()
        self._client.subscribe("sensors/#", 1)
        await asyncio.to_thread(subscribed.wait, WAIT_S)
        self._client.disconnect()
        self._client.loop_stop()

    async def drain(self) -> None:
        def take(_client: object, _userdata: object, _message: object) -> None:
            self.count += 1

        self._client.on_message = take
        self._connect()
        await self.ended()
        self._client.disconnect()
        self._client.loop_stop()

    def _connect(self) -> None:
        host, _, port = self.url.removeprefix("mqtt://").partition(":")
        self._client.connect(host, int(port))
        self._client.loop_start()


class BareNats(Bare):
    async def drain(self) -> None:
        from nats import connect
        from nats.js.api import ConsumerConfig

        async def take(message: Any) -> None:
            await message.ack()
            self.count += 1

        client = await connect(self.url)
        own = {"stream": "IN", "config": ConsumerConfig(max_ack_pending=WINDOW)}
        context = client.jetstream()
        await context.subscribe("sensors.*", durable="drain", cb=take, manual_ack=True, **own)
        await self.ended()
        await client.close()


class BareRedis(Bare):
    async def drain(self) -> None:
        from redis.asyncio import Redis

        client: Any = Redis.from_url(self.url)
        await client.xgroup_create("sensors", "drain", "0", mkstream=True)
        while not self.ends:
            answer = await client.xreadgroup("drain", "d", {"sensors": ">"}, WINDOW, 100)
            pairs = answer.items() if isinstance(answer, dict) else answer
            for _, entries in pairs:
                await client.xack("sensors", "drain", *(number for number, _ in entries))
                self.count += len(entries)
        await client.aclose()


class BareKafka(Bare):
    async def drain(self) -> None:
        from confluent_kafka import Consumer

        own = {"group.id": "drain", "auto.offset.reset": "earliest"}
        reader = Consumer({"bootstrap.servers": self.url, **own})
        reader.subscribe(["sensors.a1"])
        while not self.ends:
            self.count += len(await asyncio.to_thread(reader.consume, WINDOW, 0.1))
        reader.close()


class BareAmqp(Bare):
    async def prepare(self) -> None:
        from aio_pika import connect

        async with await connect(self.url) as connection:
            channel = await connection.channel()
            quorum: Any = {"x-queue-type": "quorum"}
            queue = await channel.declare_queue("drain", durable=True, arguments=quorum)
            await queue.bind("amq.topic", "sensors.*")

    async def drain(self) -> None:
        from aio_pika import connect

        async def take(message: Any) -> None:
            await message.ack()
            self.count += 1

        async with await connect(self.url) as connection:
            channel = await connection.channel()
            await channel.set_qos(WINDOW)
            await (await channel.get_queue("drain")).consume(take)
            await self.ended()


BARE: dict[str, Callable[[str], Bare]] = {
    "mqtt": BareMqtt,
    "nats": BareNats,
    "redis": BareRedis,
    "kafka": BareKafka,
    "amqp": BareAmqp,
}

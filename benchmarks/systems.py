"""Other systems, each with its server and a bare client: messages come from ``sensors``, by areas,
and go to ``alerts``.

``source`` and ``sink`` are what a file of ``rexmq connect`` says of them, with URL in the place of
the address. ``program`` is that of the server; "" if it runs in this process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks import servers

Sent: TypeAlias = tuple[str, bytes, Mapping[str, Any]]
"""A message that has gone out: its topic, body and headers."""
PUBLISH_S = 20.0


class Mqtt:
    """Mosquitto, which keeps what it has when it is ended by SIGTERM."""

    program, package = "mosquitto", "mosquitto"
    source = 'topic = "sensors/{area}"\nmqtt = { url = "URL" }'
    sink = 'topic = "alerts/{area}"\nmqtt = { url = "URL" }'
    can_restart = True
    end_with = servers.signal.SIGTERM

    def __init__(self, folder: Path) -> None:
        lines = "persistence true", f"persistence_location {folder}/", "allow_anonymous true"
        self.server = servers.mosquitto(folder, *lines)
        self.url = f"mqtt://127.0.0.1:{self.server.port}"

    def prepare(self) -> None:
        """Begin to read what goes out, in a session that the server keeps."""
        self._had: list[Sent] = []
        subscribed = threading.Event()
        self._client = self._made("bare")
        self._client.on_message = lambda _c, _u, one: self._had.append(
            (one.topic, bytes(one.payload), {})
        )
        self._client.on_connect = lambda *_: self._client.subscribe("alerts/#", 1)
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.connect("127.0.0.1", self.server.port)
        self._client.loop_start()
        subscribed.wait(PUBLISH_S)

    def publish(self, messages: Sequence[tuple[str, bytes]]) -> None:
        told = [self._client.publish(f"sensors/{area}", body, 1) for area, body in messages]
        for one in told:
            one.wait_for_publish(PUBLISH_S)
            if not one.is_published():
                raise TimeoutError

    def sent(self) -> list[Sent]:
        return [*self._had]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _made(self, name: str) -> Any:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        return Client(CallbackAPIVersion.VERSION2, name, clean_session=False)


class Nats:
    """JetStream: a stream for what comes in, and one for what goes out."""

    program, package = "nats-server", "nats-server"
    source = 'topic = "sensors.{area}"\nnats = { url = "URL", stream = "IN", ack_wait_s = 2 }'
    sink = 'topic = "alerts.{area}"\nnats = { url = "URL", stream = "OUT" }'
    can_restart = True
    end_with = servers.signal.SIGKILL

    def __init__(self, folder: Path) -> None:
        self.server = servers.nats(folder)
        self.url = f"nats://127.0.0.1:{self.server.port}"

    def prepare(self) -> None:
        async def make(context: Any) -> None:
            await context.add_stream(name="IN", subjects=["sensors.*"])
            await context.add_stream(name="OUT", subjects=["alerts.*"])

        self._run(make)

    def publish(self, messages: Sequence[tuple[str, bytes]]) -> None:
        async def send(context: Any) -> None:
            for first in range(0, len(messages), 256):
                some = messages[first : first + 256]
                await asyncio.gather(
                    *(context.publish(f"sensors.{area}", body) for area, body in some)
                )

        self._run(send)

    def sent(self) -> list[Sent]:
        had = list[Sent]()

        async def read(context: Any) -> None:
            count = (await context.stream_info("OUT")).state.messages
            for number in range(1, count + 1):
                message = await context.get_msg("OUT", number)
                had.append((message.subject, message.data, message.headers or {}))

        self._run(read)
        return had

    def close(self) -> None:
        """Nothing is open."""

    def _run(self, call: Callable[[Any], Awaitable[None]]) -> None:
        from nats import connect

        async def run() -> None:
            own = {"allow_reconnect": False, "connect_timeout": 5, "error_cb": _passed_over}
            client = await connect(self.url, **own)
            try:
                await call(client.jetstream())
            finally:
                await client.close()

        asyncio.run(run())


async def _passed_over(error: Exception) -> None:
    """The call that meets an error raises it."""


class Redis:
    """Streams of Redis, with all that is written on the disk."""

    program, package = "redis-server", "redis-server"
    source = 'topic = "sensors"\nredis = { url = "URL" }'
    sink = 'topic = "alerts:{area}"\nredis = { url = "URL" }'
    can_restart = True
    end_with = servers.signal.SIGKILL

    def __init__(self, folder: Path) -> None:
        self.server = servers.redis(folder)
        self.url = f"redis://127.0.0.1:{self.server.port}"

    def prepare(self) -> None:
        """Nothing is to be there before."""

    def publish(self, messages: Sequence[tuple[str, bytes]]) -> None:
        with self._client().pipeline(transaction=False) as pipeline:
            for area, body in messages:
                pipeline.xadd("sensors", {"body": body, "area": area})
            pipeline.execute()

    def sent(self) -> list[Sent]:
        client = self._client()
        return [
            (key.decode(), fields.pop(b"body"), {k.decode(): v for k, v in fields.items()})
            for key in client.keys("alerts:*")
            for _, fields in client.xrange(key)
        ]

    def close(self) -> None:
        """Nothing is open."""

    def _client(self) -> Any:
        from redis import Redis as Client

        return Client.from_url(self.url)


class Kafka:
    """The cluster that librdkafka plays, in this process."""

    program, package = "", ""
    source = (
        'topic = "sensors.{area}"\nkafka.servers = "URL"\n'
        'kafka.options = { "session.timeout.ms" = 3000, "heartbeat.interval.ms" = 500 }'
    )
    sink = 'topic = "alerts"\nkey = "{area}"\nkafka = { servers = "URL" }'
    can_restart = False

    def __init__(self, folder: Path) -> None:
        from contextlib import nullcontext

        from confluent_kafka import Producer

        self.server = nullcontext()
        self._producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none"})
        ((broker,),) = [self._producer.list_topics(timeout=10).brokers.values()]
        self.url = f"{broker.host}:{broker.port}"

    def prepare(self) -> None:
        self._producer.list_topics("sensors.a1", timeout=10)
        self._producer.list_topics("alerts", timeout=10)

    def publish(self, messages: Sequence[tuple[str, bytes]]) -> None:
        for area, body in messages:
            while True:
                with suppress(BufferError):
                    self._producer.produce(f"sensors.{area}", body)
                    break
                self._producer.poll(0.1)
        if self._producer.flush(PUBLISH_S):
            raise TimeoutError

    def sent(self) -> list[Sent]:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        reader = Consumer({"bootstrap.servers": self.url, "group.id": "bare"})
        partitions = reader.list_topics("alerts", 10).topics["alerts"].partitions
        reader.assign([TopicPartition("alerts", n, OFFSET_BEGINNING) for n in partitions])
        had = []
        while record := reader.poll(2):
            had.append((record.topic(), record.value(), dict(record.headers())))
        reader.close()
        return had

    def close(self) -> None:
        """It ends with this process."""


class Amqp:
    """RabbitMQ: quorum queues that are bound to an exchange."""

    program, package = "rabbitmq-server", "rabbitmq-server"
    source = 'topic = "sensors.{area}"\namqp = { url = "URL", exchange = "amq.topic" }'
    sink = 'topic = "alerts.{area}"\namqp = { url = "URL", exchange = "amq.topic" }'
    can_restart = True
    end_with = servers.signal.SIGKILL

    def __init__(self, folder: Path) -> None:
        self.server = servers.rabbitmq(folder)
        self.url = f"amqp://127.0.0.1:{self.server.port}"
        self._had: list[Sent] = []

    def prepare(self) -> None:
        async def make(channel: Any) -> None:
            for name, topic in (("plant", "sensors.*"), ("out", "alerts.*")):
                quorum = {"x-queue-type": "quorum"}
                queue = await channel.declare_queue(name, durable=True, arguments=quorum)
                await queue.bind("amq.topic", topic)

        self._run(make)

    def publish(self, messages: Sequence[tuple[str, bytes]]) -> None:
        from aio_pika import Message

        async def send(channel: Any) -> None:
            exchange = await channel.get_exchange("amq.topic")

            async def one(area: str, body: bytes) -> None:
                own = Message(body, message_id=f"{area} {body!r}", delivery_mode=2)
                await exchange.publish(own, f"sensors.{area}")

            for first in range(0, len(messages), 256):
                await asyncio.gather(*(one(*own) for own in messages[first : first + 256]))

        self._run(send)

    def sent(self) -> list[Sent]:
        """What the queue has is taken out of it, and kept here."""

        async def read(channel: Any) -> None:
            queue = await channel.get_queue("out")
            while message := await queue.get(fail=False, no_ack=True):
                headers = {**message.headers, "id": message.message_id}
                self._had.append((message.routing_key, message.body, headers))

        self._run(read)
        return [*self._had]

    def close(self) -> None:
        """Nothing is open."""

    def _run(self, call: Callable[[Any], Awaitable[None]]) -> None:
        from aio_pika import connect

        async def run() -> None:
            async with await connect(self.url) as connection:
                await call(await connection.channel())

        asyncio.run(run())


SYSTEMS: Mapping[str, Any] = {
    "mqtt": Mqtt,
    "nats": Nats,
    "redis": Redis,
    "kafka": Kafka,
    "amqp": Amqp,
}

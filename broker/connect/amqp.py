"""AMQP 0-9-1, as RabbitMQ speaks it, by aio-pika (``pip install 'rexmq[amqp]'``)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractRobustConnection
from aio_pika.exceptions import AMQPError, PublishError
from yarl import URL

from broker.connect.access import Access, check_url
from broker.connect.systems import (
    CONNECT_S,
    Inbox,
    Message,
    Outgoing,
    Pending,
    Singly,
    SystemLost,
)
from broker.connect.templates import Template
from matcher.errors import BadEvent

LEVEL = "."
TOPIC_MAX = 255
"""Bytes of a routing key."""
_ERRORS = (AMQPError, OSError, RuntimeError)
"""Errors of the client, of which RuntimeErrors tell of a channel or connection that is closed."""


class Settings(Access, frozen=True, kw_only=True):
    """The table ``amqp`` of a source or a sink."""

    url: str = "amqp://127.0.0.1:5672"
    exchange: str = ""
    queue: str = ""

    def __post_init__(self) -> None:
        check_url(self.url, "amqp", "amqps")


class _Connection:
    """A connection to a server, of a source or a sink; the client connects again by itself."""

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        self._name, self._settings, self._window = name, settings, window
        url, password = URL(settings.url), settings.password(folder)
        if settings.username:
            url = url.with_user(settings.username)
        url = url.with_password(password) if password is not None else url
        self._url = url
        self._context = settings.tls(folder) if url.scheme == "amqps" else None
        self._connection: AbstractRobustConnection | None = None

    async def open(self) -> None:
        """Connect. Raises SystemLost."""
        try:
            self._connection = await aio_pika.connect_robust(
                self._url, ssl_context=self._context, timeout=CONNECT_S
            )
            await self._begin(await self._connection.channel(on_return_raises=True))
        except _ERRORS as error:
            raise self._lost(error) from None

    async def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            await self._connection.close()

    async def _begin(self, channel: AbstractChannel) -> None:
        """Go on with a channel; after a reconnection the client does so by itself."""
        raise NotImplementedError

    def _lost(self, error: Exception) -> SystemLost:
        return SystemLost(f"{self._settings.url}: {self._settings.reason(error)}")


class Source(_Connection):
    """Messages of a queue. With an ``exchange`` the queue is made, durable and of the kind quorum,
    and has the messages whose routing keys are of a template; without one it is there already.
    """

    def __init__(
        self, name: str, settings: Settings, folder: Path, topic: Template, window: int
    ) -> None:
        super().__init__(name, settings, folder, window)
        self._pattern = topic.filled(dict.fromkeys(topic.names, "*"))
        self._queue = settings.queue or (name if settings.exchange else self._pattern)
        self._inbox = Inbox(window)

    async def receive(self) -> Sequence[Message]:
        """The next messages."""
        return await self._inbox.take()

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages, and so all before them. A message is acknowledged on the channel
        that it came by, or comes again.
        """
        last: AbstractIncomingMessage = messages[-1].place
        with suppress(*_ERRORS):  # they come again by the next channel
            await last.ack(multiple=True)

    async def _begin(self, channel: AbstractChannel) -> None:
        await channel.set_qos(self._window)
        if self._settings.exchange:
            quorum: Any = {"x-queue-type": "quorum"}
            queue = await channel.declare_queue(self._queue, durable=True, arguments=quorum)
            await queue.bind(self._settings.exchange, self._pattern)
        else:
            queue = await channel.declare_queue(self._queue, passive=True)
        await queue.consume(self._on_message)

    async def _on_message(self, message: AbstractIncomingMessage) -> None:
        headers = {name: str(value) for name, value in message.headers.items()}
        if message.content_type:
            headers["content-type"] = message.content_type
        await self._inbox.put(
            Message(
                message.routing_key or "",
                message.body,
                message,
                headers,
                message.message_id,
                None if message.timestamp is None else int(message.timestamp.timestamp() * 1e6),
            )
        )


class Sink(_Connection):
    """Messages to an ``exchange``, by default to queues."""

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        super().__init__(name, settings, folder, window)
        self._singly = Singly(self._send)

    async def send(self, lot: Sequence[Pending]) -> None:
        """Publish messages."""
        self._singly.add(lot)

    async def close(self) -> None:
        """Hang up."""
        self._singly.close()
        await super().close()

    async def _send(self, message: Outgoing) -> None:
        """Publish a message, and wait until the server has confirmed it. In a quorum queue most of
        its replicas have it then.
        """
        if len(message.topic.encode()) > TOPIC_MAX:
            raise BadEvent(f"topic: expected {TOPIC_MAX} bytes at most")
        own = aio_pika.Message(
            message.body,
            headers={**message.all_headers("cloudEvents:")},
            content_type=message.content_type,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            message_id=message.id,
        )
        try:
            await self._exchange.publish(own, message.topic, mandatory=True)
        except PublishError:
            raise BadEvent(f"topic: no queue takes {message.topic!r}") from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The client cancels what waits for confirmations when it loses its connection.
            raise SystemLost(f"{self._settings.url}: connection lost") from None
        except _ERRORS as error:
            raise self._lost(error) from None

    async def _begin(self, channel: AbstractChannel) -> None:
        name = self._settings.exchange
        self._exchange = await channel.get_exchange(name) if name else channel.default_exchange

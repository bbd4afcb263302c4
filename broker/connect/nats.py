"""NATS and JetStream, by nats-py (``pip install 'rexmq[nats]'``)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from msgspec import Meta
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, MaxPayloadError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from broker.connect.access import Access, check_url
from broker.connect.systems import (
    CONNECT_S,
    PLAIN,
    Inbox,
    Message,
    Outgoing,
    Pending,
    Singly,
    SystemLost,
    quoted_headers,
)
from broker.connect.templates import Template
from broker.log import log
from matcher.errors import BadEvent

LEVEL = "."
_ERRORS = (Error, OSError, TimeoutError)
_NO_SUBJECT = set(" \t\r\n*>\0")


class Settings(Access, frozen=True, kw_only=True):
    """The table ``nats`` of a source or a sink.

    With a ``stream`` messages are JetStream's: acknowledged, kept while nobody reads, and given
    again if no acknowledgement comes within ``ack_wait_s``. Without one they are core NATS's: what
    nobody is there to take is lost.
    """

    url: str = "nats://127.0.0.1:4222"
    stream: str = ""
    group: str = ""
    ack_wait_s: Annotated[float, Meta(ge=1)] = 30.0

    def __post_init__(self) -> None:
        check_url(self.url, "nats", "tls")


class _Connection:
    """A connection to a server, of a source or a sink; the client connects again by itself."""

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        self._name, self._settings, self._window = name, settings, window
        self._client = Client()
        self._fault: Exception | None = None
        """The client's last error: it tries again, and is given up with this one."""
        self._options: dict[str, Any] = {
            "user": settings.username or None,
            "password": settings.password(folder),
            "tls": settings.tls(folder) if settings.url.startswith("tls:") else None,
        }

    async def open(self) -> None:
        """Connect. Raises SystemLost."""
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._client.connect(
                    self._settings.url,
                    name=self._name,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=1,
                    error_cb=self._on_error,
                    **self._options,
                )
                await self._begin()
        except _ERRORS as error:
            raise self._lost(error) from None

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()

    async def _begin(self) -> None:
        """Do what follows the connection."""

    async def _on_error(self, error: Exception) -> None:
        self._fault = error
        fields = {"url": self._settings.url, "reason": self._settings.reason(error)}
        log("warning", "error of another system", fields, "connect")

    def _lost(self, error: Exception) -> SystemLost:
        if isinstance(error, TimeoutError) and self._fault is not None:
            error = self._fault
        return SystemLost(f"{self._settings.url}: {self._settings.reason(error)}")


class Source(_Connection):
    """Messages of the subjects of a template."""

    def __init__(
        self, name: str, settings: Settings, folder: Path, topic: Template, window: int
    ) -> None:
        super().__init__(name, settings, folder, window)
        self._subject = topic.filled(dict.fromkeys(topic.names, "*"))
        self._consumer = settings.group or name
        if settings.stream and set(self._consumer) & {*_NO_SUBJECT, ".", "/", "\\"}:
            raise ValueError(f"group: expected the name of a consumer, found {self._consumer!r}")
        self._inbox = Inbox(window)

    async def receive(self) -> Sequence[Message]:
        """The next messages."""
        return await self._inbox.take()

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages of JetStream."""
        try:
            for message in messages:
                kept: Msg | None = message.place
                if kept is not None and not kept.is_acked:
                    await kept.ack()
        except _ERRORS as error:
            raise self._lost(error) from None

    async def _begin(self) -> None:
        settings = self._settings
        if not settings.stream:
            await self._client.subscribe(self._subject, settings.group, self._on_message)
            return
        config = ConsumerConfig(
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=settings.ack_wait_s,
            deliver_policy=DeliverPolicy.ALL,
            max_ack_pending=self._window,
        )
        await self._client.jetstream().subscribe(
            self._subject,
            self._consumer,  # whose processes share its messages
            self._on_kept,
            self._consumer,
            settings.stream,
            config,
            manual_ack=True,
        )

    async def _on_message(self, message: Msg) -> None:
        headers = message.headers or {}
        await self._inbox.put(Message(message.subject, message.data, None, headers))

    async def _on_kept(self, message: Msg) -> None:
        about = message.metadata
        time = round(about.timestamp.timestamp() * 1e6)
        await self._inbox.put(
            Message(
                message.subject,
                message.data,
                message,
                message.headers or {},
                f"{about.stream}/{about.sequence.stream}@{time}",
                time,
            )
        )


class Sink(_Connection):
    """Messages to subjects. JetStream drops those that come again by their ``Nats-Msg-Id``."""

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
        """Publish a message, and wait until the server has it."""
        if not message.topic or _NO_SUBJECT & set(message.topic):
            raise BadEvent(f"topic: expected a subject, found {message.topic!r}")
        headers = {"Nats-Msg-Id": quote(message.id, safe=PLAIN), **quoted_headers(message)}
        own, stream = (message.topic, message.body), self._settings.stream
        try:
            if stream:
                await self._client.jetstream().publish(*own, CONNECT_S, stream, headers)
            else:
                await self._client.publish(*own, headers=headers)
                await self._client.flush()
        except MaxPayloadError:
            raise BadEvent("the server refuses it: too large") from None
        except _ERRORS as error:
            raise self._lost(error) from None

"""Streams of Redis, by redis-py (``pip install 'rexmq[redis]'``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from broker.connect.access import Access, check_url
from broker.connect.systems import (
    CONNECT_S,
    Message,
    Pending,
    SystemLost,
)
from broker.connect.templates import Template
from matcher.errors import BadEvent

LEVEL = ":"
WAIT_S = 5.0
"""For so long a read waits for entries."""
_ERRORS = (RedisError, OSError)


class Settings(Access, frozen=True, kw_only=True):
    """The table ``redis`` of a source or a sink."""

    NEEDS_USER = False
    url: str = "redis://127.0.0.1:6379"
    group: str = ""
    field: str = "body"
    length_max: Annotated[int, Meta(ge=0)] = 0

    def __post_init__(self) -> None:
        check_url(self.url, "redis", "rediss")


class _Connection:
    """A connection to a server, of a source or a sink, which is made when it is needed."""

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        self._name, self._settings, self._window = name, settings, window
        options: dict[str, Any] = {}
        password = settings.password(folder)
        if settings.username or password is not None:
            options |= {"username": settings.username or None, "password": password}
        if settings.url.startswith("rediss:"):
            options |= settings.files(folder, "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
        self._client: Any = Redis.from_url(
            settings.url, socket_connect_timeout=CONNECT_S, socket_timeout=CONNECT_S, **options
        )

    async def open(self) -> None:
        """Connect. Raises SystemLost."""
        try:
            await self._client.ping()
        except _ERRORS as error:
            raise self._lost(error) from None

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()

    def _lost(self, error: Exception) -> SystemLost:
        return SystemLost(f"{self._settings.url}: {self._settings.reason(error)}")


class Source(_Connection):
    """Entries of a stream, as a consumer of a group. The field ``field`` is the body of a message,
    the others are its headers.
    """

    def __init__(
        self, name: str, settings: Settings, folder: Path, topic: Template, window: int
    ) -> None:
        super().__init__(name, settings, folder, window)
        if topic.names:
            raise ValueError(f"topic: expected the name of one stream, found {topic.text!r}")
        self._stream, self._group = topic.filled({}), settings.group or name
        self._after: bytes | None = None
        """The last entry of those that were not acknowledged, while these are read; b">": new ones
        are read. None: the group is to be made first.
        """

    async def receive(self) -> Sequence[Message]:
        """The next messages."""
        while True:
            try:
                if entries := await self._read():
                    return [self._message(*entry) for entry in entries]
            except _ERRORS as error:
                self._after = None
                raise self._lost(error) from None

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Acknowledge entries. Entries that are not acknowledged are read again after a
        reconnection.
        """
        try:
            await self._client.xack(self._stream, self._group, *(one.place for one in messages))
        except _ERRORS as error:
            raise self._lost(error) from None

    async def _read(self) -> Sequence[tuple[bytes, Mapping[bytes, bytes]]]:
        if self._after is None:
            await self._make_group()
            self._after = b"0"
        answer = await self._client.xreadgroup(
            self._group,
            self._name,
            {self._stream: self._after},
            self._window,
            int(WAIT_S * 1_000),
        )
        entries = _entries(answer)
        if self._after != b">":
            self._after = entries[-1][0] if entries else b">"
        return [entry for entry in entries if entry[1] is not None]

    async def _make_group(self) -> None:
        try:
            await self._client.xgroup_create(self._stream, self._group, "0", mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    def _message(self, number: bytes, fields: Mapping[bytes, bytes]) -> Message:
        texts = {name.decode(errors="replace"): value for name, value in fields.items()}
        body = texts.pop(self._settings.field, b"{}")
        headers = {name: value.decode(errors="replace") for name, value in texts.items()}
        own_id = number.decode()
        time = int(own_id.partition("-")[0]) * 1_000
        return Message(self._stream, body, number, headers, own_id, time)


class Sink(_Connection):
    """Entries to streams: the body in the field ``field``, and ``id`` in another."""

    async def send(self, lot: Sequence[Pending]) -> None:
        """Add entries, in one exchange with the server."""
        for pending in lot:
            if not pending.message.topic:
                pending.tell(BadEvent("topic: expected the name of a stream"))
        messages = [pending for pending in lot if not pending.is_done]
        settings = self._settings
        async with self._client.pipeline(transaction=False) as pipeline:
            for pending in messages:
                message = pending.message
                fields = {"id": message.id, **message.all_headers(""), settings.field: message.body}
                pipeline.xadd(message.topic, fields, maxlen=settings.length_max or None)
            try:
                answers = await pipeline.execute(raise_on_error=False)
            except _ERRORS as error:
                raise self._lost(error) from None
        for pending, answer in zip(messages, answers, strict=True):
            pending.tell(BadEvent(str(answer)) if isinstance(answer, ResponseError) else None)


def _entries(answer: Any) -> list[tuple[bytes, Any]]:
    """The entries in an answer about one stream, in either protocol."""
    pairs = answer.items() if isinstance(answer, dict) else answer
    return [entry for _, entries in pairs for entry in entries]

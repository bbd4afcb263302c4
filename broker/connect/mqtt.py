"""MQTT 3.1.1 and 5, by paho-mqtt (``pip install 'rexmq[mqtt]'``).

Law 1: a message of QoS 1 is acknowledged on the connection that it came by, or not at all. The
server then sends it again; if its event was published meanwhile it is acknowledged, and not
published twice.

Law 2: paho's thread waits while ``window`` messages are under way, so that the server holds what
follows.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from broker.connect.systems import (
    CONNECT_S,
    Access,
    Inbox,
    Message,
    Outgoing,
    SystemLost,
    check_url,
)
from broker.connect.templates import Template
from broker.log import log
from matcher.errors import BadEvent

LEVEL = "/"
"""Between the levels of a topic."""
SESSION_S = 7 * 86_400
"""For so long a server of MQTT 5 keeps what comes for a source that is away."""
_PORTS = {"mqtt": 1883, "mqtts": 8883}
_WILD = set("+#\0")
QoS: TypeAlias = Literal[0, 1, 2]


class Settings(Access, frozen=True, kw_only=True):
    """The table ``mqtt`` of a source or a sink."""

    url: str = "mqtt://127.0.0.1:1883"
    version: Literal["3.1.1", "5"] = "5"
    qos: QoS = 1
    client_id: str = ""
    keepalive_s: int = 60
    share: str = ""
    retain: bool = False

    def __post_init__(self) -> None:
        check_url(self.url, *_PORTS)


@dataclass(slots=True)
class _Held:
    """A message that is under way: its content, its connection, and whether its event is there."""

    content: bytes
    link: int
    is_done: bool = False


class _Connection:
    """A connection to a server, of a source or a sink."""

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        self._settings, self._window = settings, window
        self._is_5 = settings.version == "5"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connected: asyncio.Future[None] | None = None
        self._client = client = paho.Client(
            CallbackAPIVersion.VERSION2,
            settings.client_id or name,
            clean_session=None if self._is_5 else False,
            protocol=paho.MQTTv5 if self._is_5 else paho.MQTTv311,
            manual_ack=True,
        )
        if settings.username:
            client.username_pw_set(settings.username, settings.password(folder))
        if settings.url.startswith("mqtts:"):
            client.tls_set_context(settings.tls(folder))
        client.max_inflight_messages_set(window)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect

    async def open(self) -> None:
        """Connect. Raises SystemLost."""
        self._loop = asyncio.get_running_loop()
        self._connected = self._loop.create_future()
        parts, client = urlsplit(self._settings.url), self._client
        options: dict[str, Any] = {"keepalive": self._settings.keepalive_s}
        if self._is_5:
            properties = _properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = SESSION_S
            properties.ReceiveMaximum = self._window
            options |= {"clean_start": False, "properties": properties}
        port = parts.port or _PORTS[parts.scheme]
        try:
            await asyncio.to_thread(client.connect, str(parts.hostname), port, **options)
            client.loop_start()
            async with asyncio.timeout(CONNECT_S):
                await self._connected
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or "no answer"
            raise SystemLost(f"{self._settings.url}: {reason}") from None

    async def close(self) -> None:
        """Hang up."""
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)

    def _on_connect(self, _c: Any, _u: Any, _f: Any, reason: Any, properties: Any) -> None:
        error = SystemLost(f"{self._settings.url}: {reason}") if reason.is_failure else None
        self._soon(self._told, error, getattr(properties, "ReceiveMaximum", self._window))
        if error is None:
            self._begin()

    def _on_disconnect(self, _c: Any, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        if reason.is_failure:
            fields = {"url": self._settings.url, "reason": str(reason)}
            log("warning", "connection to another system lost", fields, "connect")

    def _begin(self) -> None:
        """A connection has begun, in paho's thread."""

    def _bound(self, receive_maximum: int) -> None:
        """The same, in the loop's thread; a server of MQTT 5 says how much it takes at once."""

    def _told(self, error: SystemLost | None, receive_maximum: int) -> None:
        """The server has answered; so many messages it takes unconfirmed."""
        if error is None:
            self._bound(receive_maximum)
        if self._connected is not None and not self._connected.done():
            if error is None:
                self._connected.set_result(None)
            else:
                self._connected.set_exception(error)

    def _soon(self, call: Any, *arguments: Any) -> None:
        assert self._loop is not None, "it is open"
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)


class Source(_Connection):
    """Messages of the topics of a template."""

    def __init__(
        self, name: str, settings: Settings, folder: Path, topic: Template, window: int
    ) -> None:
        super().__init__(name, settings, folder, window)
        pattern = topic.filled(dict.fromkeys(topic.names, "+"))
        self._filter = f"$share/{settings.share}/{pattern}" if settings.share else pattern
        self._client.on_message = self._on_message
        self._inbox = Inbox(window)
        self._room = threading.Semaphore(window)
        self._lock = threading.Lock()
        self._held: dict[int, _Held] = {}
        self._link = 0
        self._is_closed = False

    async def receive(self) -> list[Message]:
        """The next messages."""
        messages = await self._inbox.take()
        self._room.release(len(messages))
        return messages

    async def close(self) -> None:
        """Hang up; what was not acknowledged comes again."""
        self._is_closed = True
        await super().close()

    def _begin(self) -> None:
        with self._lock:
            self._link += 1
        self._client.subscribe(self._filter, self._settings.qos)

    def _on_message(self, _c: Any, _u: Any, message: Any) -> None:
        body, qos = bytes(message.payload), message.qos
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = repr(message._topic)
        headers = _headers(message.properties)
        if qos == 0:
            self._hand(Message(topic, body, lambda: None, headers))
            return
        content = topic.encode() + b"\0" + body
        with self._lock:
            held = self._held.get(message.mid)
            if message.dup and held is not None and held.content == content:
                held.link = self._link  # it is under way already (Law 1)
                if held.is_done:
                    self._confirm(message.mid, qos)
                return
            held = self._held[message.mid] = _Held(content, self._link)
        acknowledge = partial(self._acknowledge, message.mid, qos, held)
        self._hand(Message(topic, body, acknowledge, headers))

    def _hand(self, message: Message) -> None:
        while not self._room.acquire(timeout=0.5):
            if self._is_closed:
                return
        self._soon(self._inbox.put_now, message)

    def _acknowledge(self, mid: int, qos: int, held: _Held) -> None:
        with self._lock:
            held.is_done = True
            if held.link == self._link and self._held.get(mid) is held:
                self._confirm(mid, qos)

    def _confirm(self, mid: int, qos: int) -> None:
        if self._client.ack(mid, qos) == MQTTErrorCode.MQTT_ERR_SUCCESS:
            del self._held[mid]


class Sink(_Connection):
    """Messages to topics."""

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        super().__init__(name, settings, folder, window)
        self._client.on_publish = self._on_publish
        self._unconfirmed: dict[int, asyncio.Future[Any]] = {}
        self._receive_maximum, self._room = window, asyncio.Semaphore(window)

    def _bound(self, receive_maximum: int) -> None:
        """Send no more at once: paho would, and the server refuses the rest, or hangs up."""
        most = min(self._window, receive_maximum)
        if most != self._receive_maximum:
            self._receive_maximum, self._room = most, asyncio.Semaphore(most)

    async def send(self, message: Outgoing) -> None:
        """Publish a message, and wait until the server has confirmed it."""
        if not message.topic or _WILD & set(message.topic):
            raise BadEvent(f"topic: expected one without + and #, found {message.topic!r}")
        properties = None
        if self._is_5:
            properties = _properties(PacketTypes.PUBLISH)
            if message.content_type:
                properties.ContentType = message.content_type
            headers = {"id": message.id, **message.all_headers("")}
            properties.UserProperty = [*headers.items()]
        settings = self._settings
        async with self._room:
            told = self._client.publish(
                message.topic, message.body, settings.qos, settings.retain, properties
            )
            future = self._unconfirmed[told.mid] = asyncio.get_running_loop().create_future()
            reason = await future
        if reason.is_failure:
            raise BadEvent(f"the server refuses it: {reason}")

    def _on_publish(self, _c: Any, _u: Any, mid: int, reason: Any, _p: Any) -> None:
        self._soon(self._confirmed, mid, reason)

    def _confirmed(self, mid: int, reason: Any) -> None:
        future = self._unconfirmed.pop(mid, None)
        if future is not None and not future.done():
            future.set_result(reason)


def _properties(packet: int) -> Properties:
    return Properties(packet)  # type: ignore[no-untyped-call]


def _headers(properties: Properties | None) -> dict[str, str]:
    """The user properties of a message of MQTT 5, and its content type."""
    if properties is None:
        return {}
    headers = dict(getattr(properties, "UserProperty", ()))
    content_type = getattr(properties, "ContentType", None)
    return headers if content_type is None else {**headers, "content-type": content_type}

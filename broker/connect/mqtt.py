"""MQTT 3.1.1 and 5, by paho-mqtt (``pip install 'rexmq[mqtt]'``)."""

from __future__ import annotations

import asyncio
import re
import ssl
import threading
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from broker.connect.access import Access, check_url
from broker.connect.systems import (
    CLOSE_S,
    CONNECT_S,
    PAUSE_MAX_S,
    PAUSE_MIN_S,
    UNFIT,
    Inbox,
    Message,
    Outgoing,
    Pending,
    SystemLost,
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
_NO_TEXT = re.compile(
    "[\0-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
    + "]"
)
"""Control characters, surrogates, and what is no character (MQTT 5, 1.5.4)."""
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
    """A message that is under way, its connection, and whether its event is there."""

    number: int
    qos: int
    topic: str
    body: bytes
    link: int
    is_done: bool = False


class _Connection:
    """A connection to a server, of a source or a sink; it is made again when it is lost.

    paho is driven by the event loop: no thread of its own would take turns with it for each
    message. While ``window`` messages wait nothing is read, so that the server holds what follows.
    """

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        self._settings, self._window = settings, window
        self._is_5 = settings.version == "5"
        self._pause_s = PAUSE_MIN_S
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_paused = False
        self._moved = 0
        """Counts what paho has read that is of use to anybody."""
        self._client = client = paho.Client(
            CallbackAPIVersion.VERSION2,
            settings.client_id or name,
            clean_session=None if self._is_5 else False,
            protocol=paho.MQTTv5 if self._is_5 else paho.MQTTv311,
            manual_ack=True,
        )
        password = settings.password(folder)
        if settings.username:
            client.username_pw_set(settings.username, password)
        if settings.url.startswith("mqtts:"):
            client.tls_set_context(settings.tls(folder))
        client.max_inflight_messages_set(window)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_socket_close = self._on_socket_close
        client.on_socket_register_write = self._on_write
        client.on_socket_unregister_write = self._on_written

    async def open(self) -> None:
        """Connect. Raises SystemLost."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._connected: asyncio.Future[None] = self._loop.create_future()
        parts, client = urlsplit(self._settings.url), self._client
        options: dict[str, Any] = {"keepalive": self._settings.keepalive_s}
        if self._is_5:
            properties = _properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = SESSION_S
            properties.ReceiveMaximum = self._window
            options |= {"clean_start": False, "properties": properties}
        port = parts.port or _PORTS[parts.scheme]
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._watched(
                    asyncio.to_thread(client.connect, str(parts.hostname), port, **options)
                )
                await self._connected
        except TimeoutError:
            raise SystemLost(f"{self._settings.url}: no answer") from None
        except OSError as error:
            raise SystemLost(f"{self._settings.url}: {self._settings.reason(error)}") from None
        self._start(self._look_after())

    async def close(self) -> None:
        """Hang up, behind what is to be written."""
        self._client.disconnect()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                while self._client.want_write() and self._client.socket() is not None:
                    self._client.loop_write()
                    await asyncio.sleep(0.001)
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watched(self, connecting: Awaitable[object]) -> None:
        """Await a connection, and have the loop read and write it."""
        await connecting
        self._client.loop_write()
        self._read_on()

    def _read_on(self) -> None:
        self._is_paused = False
        if (socket := self._client.socket()) is not None:
            self._loop.add_reader(socket, self._read)

    def _read(self) -> None:
        """Read all that is there, as far as there is room for it."""
        client, had = self._client, -1
        while (socket := client.socket()) is not None:
            if had == self._moved and not _has_decrypted(socket):
                break
            if self._is_full():
                self._is_paused = True
                self._loop.remove_reader(socket)
                break
            had = self._moved
            client.loop_read()
        client.loop_write()  # what paho answers by itself

    def _is_full(self) -> bool:
        """Whether no more is to be read for now."""
        return False

    async def _look_after(self) -> None:
        """Have paho ask the server whether it is there."""
        while True:
            await asyncio.sleep(1)
            self._client.loop_misc()

    async def _reconnect(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(PAUSE_MAX_S, 2 * self._pause_s)
            with suppress(OSError):
                await self._watched(asyncio.to_thread(self._client.reconnect))
                return

    def _on_connect(self, _c: Any, _u: Any, _f: Any, reason: Any, properties: Any) -> None:
        if not reason.is_failure:
            self._pause_s = PAUSE_MIN_S
            self._begin(getattr(properties, "ReceiveMaximum", self._window))
        if self._connected.done():
            return
        if reason.is_failure:
            self._connected.set_exception(SystemLost(f"{self._settings.url}: {reason}"))
        else:
            self._connected.set_result(None)

    def _on_disconnect(self, _c: Any, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        if reason.is_failure and self._connected.done() and not self._connected.exception():
            fields = {"url": self._settings.url, "reason": str(reason)}
            log("warning", "connection to another system lost", fields, "connect")
            self._start(self._reconnect())

    def _on_socket_close(self, _c: Any, _u: Any, socket: Any) -> None:
        self._loop.remove_reader(socket)
        self._loop.remove_writer(socket)

    def _on_write(self, _c: Any, _u: Any, socket: Any) -> None:
        if threading.get_ident() == self._thread:  # else it connects, and is watched then
            self._loop.add_writer(socket, self._client.loop_write)

    def _on_written(self, _c: Any, _u: Any, socket: Any) -> None:
        self._loop.remove_writer(socket)

    def _begin(self, receive_maximum: int) -> None:
        """A connection has begun, by which a server of MQTT 5 takes so much at once."""


class Source(_Connection):
    """Messages of the topics of a template."""

    def __init__(
        self, name: str, settings: Settings, folder: Path, topic: Template, window: int
    ) -> None:
        super().__init__(name, settings, folder, window)
        pattern = topic.filled(dict.fromkeys(topic.names, "+"))
        self._filter = f"$share/{settings.share}/{pattern}" if settings.share else pattern
        self._client.on_message = self._on_message
        self._inbox = Inbox()
        self._held: dict[int, _Held] = {}
        self._link = 0

    async def receive(self) -> list[Message]:
        """The next messages."""
        messages = await self._inbox.take()
        if self._is_paused:
            self._read_on()
        return messages

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages. One of QoS 1 is acknowledged on the connection that it came by, or
        not at all: the server then sends it again, and if its event was published meanwhile it is
        acknowledged, and not published twice.
        """
        for message in messages:
            held: _Held | None = message.place
            if held is not None:
                held.is_done = True
                if held.link == self._link and self._held.get(held.number) is held:
                    self._confirm(held)
        self._client.loop_write()

    def _is_full(self) -> bool:
        return self._inbox.count >= self._window

    def _begin(self, receive_maximum: int) -> None:
        self._link += 1
        self._client.subscribe(self._filter, self._settings.qos)

    def _on_message(self, _c: Any, _u: Any, message: Any) -> None:
        self._moved += 1
        body, number = bytes(message.payload), message.mid
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = repr(message._topic)
        held = None
        if message.qos:
            held = self._held.get(number)
            if message.dup and held is not None and (held.topic, held.body) == (topic, body):
                held.link = self._link  # it is under way already
                if held.is_done:
                    self._confirm(held)
                return
            held = self._held[number] = _Held(number, message.qos, topic, body, self._link)
        self._inbox.put_now(Message(topic, body, held, _headers(message.properties)))

    def _confirm(self, held: _Held) -> None:
        if self._client.ack(held.number, held.qos) == MQTTErrorCode.MQTT_ERR_SUCCESS:
            del self._held[held.number]


class Sink(_Connection):
    """Messages to topics."""

    def __init__(self, name: str, settings: Settings, folder: Path, window: int) -> None:
        super().__init__(name, settings, folder, window)
        self._client.on_publish = self._on_publish
        self._unconfirmed: dict[int, Pending] = {}
        self._receive_maximum, self._room = window, asyncio.Semaphore(window)

    async def send(self, lot: Sequence[Pending]) -> None:
        """Publish messages, as many at once as the server takes: paho would send more, and the
        server refuses the rest, or hangs up.
        """
        for pending in lot:
            message = pending.message
            if reason := self._objection(message):
                pending.tell(BadEvent(reason))
                continue
            if self._room.locked():
                self._client.loop_write()
            await self._room.acquire()
            try:
                while (told := self._publish(message)).rc and not self._settings.qos:
                    await asyncio.sleep(PAUSE_MIN_S)  # paho keeps none of these for the next one
            except UNFIT as error:
                self._room.release()
                pending.tell(error)
                continue
            self._unconfirmed[told.mid] = pending
        self._client.loop_write()

    def _objection(self, message: Outgoing) -> str | None:
        """Why the server would not take a message, or hang up, each time that it comes."""
        if not message.topic or _WILD & set(message.topic):
            return f"topic: expected one without + and #, found {message.topic!r}"
        texts = {"topic": message.topic}
        if self._is_5:
            texts |= {"content type": message.content_type or "", **self._user_properties(message)}
        for name, text in texts.items():
            if found := _NO_TEXT.search(text) or _NO_TEXT.search(name):
                return f"{name}: MQTT has no texts with U+{ord(found[0]):04X}"
        return None

    def _user_properties(self, message: Outgoing) -> dict[str, str]:
        return {"id": message.id, **message.all_headers("")}

    def _publish(self, message: Outgoing) -> paho.MQTTMessageInfo:
        qos, retain = self._settings.qos, self._settings.retain
        own = self._properties(message)
        return self._client.publish(message.topic, message.body, qos, retain, own)

    def _properties(self, message: Outgoing) -> Properties | None:
        if not self._is_5:
            return None
        properties = _properties(PacketTypes.PUBLISH)
        if message.content_type:
            properties.ContentType = message.content_type
        properties.UserProperty = [*self._user_properties(message).items()]
        return properties

    def _begin(self, receive_maximum: int) -> None:
        most = min(self._window, receive_maximum)
        if most != self._receive_maximum:
            self._receive_maximum, self._room = most, asyncio.Semaphore(most)
        if not self._settings.qos:  # what was on its way is lost, or was not
            for number in [*self._unconfirmed]:
                self._confirmed(number)

    def _on_publish(self, _c: Any, _u: Any, mid: int, reason: Any, _p: Any) -> None:
        self._moved += 1
        is_refused = reason.is_failure
        self._confirmed(mid, BadEvent(f"the server refuses it: {reason}") if is_refused else None)

    def _confirmed(self, mid: int, error: BadEvent | None = None) -> None:
        pending = self._unconfirmed.pop(mid, None)
        if pending is not None:
            self._room.release()
            pending.tell(error)


def _has_decrypted(socket: Any) -> bool:
    """Whether there is more to read of which the loop does not hear."""
    return isinstance(socket, ssl.SSLSocket) and socket.pending() > 0


def _properties(packet: int) -> Properties:
    return Properties(packet)  # type: ignore[no-untyped-call]


def _headers(properties: Properties | None) -> dict[str, str]:
    """The user properties of a message of MQTT 5, and its content type."""
    if properties is None:
        return {}
    headers = dict(getattr(properties, "UserProperty", ()))
    content_type = getattr(properties, "ContentType", None)
    return headers if content_type is None else {**headers, "content-type": content_type}

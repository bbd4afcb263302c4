"""The protocol of clients over WebSockets: for browsers, and for who reaches the pages alone.

A WebSocket is one link to the broker, under the keys of whose seat it is. So the broker sees a
client like any other: credit, rights and limits are its user's. Each binary message is one message
of the protocol, its frames one after another, each behind its length in four bytes, the least
significant first. Whoever reads slowly holds nobody else up: the broker sends what the client has
given credit for, and no more. A WebSocket ends with the link, behind the broker's Goodbye, and with
the session that has opened it.

What waits here for a client that reads nothing is bounded, whatever its credit: ``WAITING_MAX``
messages of the broker wait, then the broker waits, and who does not take one in ``TAKEN_S`` is cut
off. What a client has begun to say is bounded as well (``unread``).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TypeAlias

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from broker.client.link import Link
from broker.errors import ConfigurationError
from broker.monitoring import deadlines, unread
from broker.monitoring.doorway import address_of
from broker.monitoring.entry import NoEntry
from broker.monitoring.seats import Seat
from broker.monitoring.shares import NoShare, Shares

PATH = "/ws"
SOCKETS_MAX = 256
MESSAGE_BYTES_MAX = 16 * 2**20
"""Of what a client says; a longer message ends its WebSocket."""
FRAMES_MAX = 2
WAITING_MAX = 16
TAKEN_S = 20.0
LINGER_S = 1.0
"""Seconds in which the last words of a client, its Goodbye, may leave."""
ENDED, UNREADABLE, SIGNED_OUT, BROKEN, STUCK = 1000, 1003, 1008, 1012, 1013
UNREACHABLE = 503
_LENGTH = struct.Struct("<I")
_KIND, _GOODBYE = 3, 34

End: TypeAlias = tuple[int, str]
"""The code that a WebSocket ends with, and why."""


class WebSockets:
    """The WebSockets of one page. ``enter`` gives the seat of who asks, or raises NoEntry; and
    ``stay`` raises it when the session of who has asked ends.
    """

    def __init__(
        self,
        enter: Callable[[HTTPConnection], Seat],
        stay: Callable[[HTTPConnection], AbstractAsyncContextManager[None]],
    ) -> None:
        self._enter, self._stay = enter, stay
        self._shares = Shares(SOCKETS_MAX)

    @property
    def routes(self) -> list[WebSocketRoute]:
        """The requests by their path."""
        return [WebSocketRoute(PATH, self._serve)]

    async def _serve(self, socket: WebSocket) -> None:
        try:
            seat = self._enter(socket)
            holders = f"user {seat.user}", f"address {address_of(socket.scope)}"
            with self._shares.held(*holders):
                address = seat.changes.address
                unread.begin(socket.scope["peer"], seat.user or address_of(socket.scope))
                async with self._stay(socket):
                    link = Link(address.endpoint, curve=address.curve, waiting_max=WAITING_MAX)
                    await _bridge(socket, link)
        except NoEntry as refusal:
            await _deny(socket, refusal.status, str(refusal))
        except NoShare:
            await _deny(socket, UNREACHABLE, "too many WebSockets are open")
        except ConfigurationError as error:
            await _deny(socket, UNREACHABLE, str(error))
        finally:
            unread.end(socket.scope["peer"])


async def _deny(socket: WebSocket, status: int, reason: str) -> None:
    if socket.application_state is not WebSocketState.CONNECTING:
        deadlines.extend(socket.scope["peer"], LINGER_S)
        with suppress(WebSocketDisconnect, RuntimeError):  # it is closed already
            await socket.close(SIGNED_OUT, reason)
        return
    content = msgspec.json.encode({"error": reason})
    await socket.send_denial_response(Response(content, status, media_type="application/json"))


async def _bridge(socket: WebSocket, link: Link) -> None:
    """Pass messages on, both ways, until one of the two ends."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    for descriptor in link.descriptors:
        loop.add_reader(descriptor, news.set)
    ways: list[asyncio.Task[End]] = []
    try:
        await socket.accept()
        deadlines.lift(socket.scope["peer"])  # uvicorn's pings find who is gone
        ways = [asyncio.create_task(way(socket, link, news)) for way in (_up, _down)]
        done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        with suppress(WebSocketDisconnect, RuntimeError):  # it is closed already
            await socket.close(*done.pop().result())
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        for descriptor in link.descriptors:
            loop.remove_reader(descriptor)
        link.close(LINGER_S)


async def _up(socket: WebSocket, link: Link, news: asyncio.Event) -> End:
    """Pass on what the client says."""
    while True:
        try:
            message = await socket.receive_bytes()
            unread.read(socket.scope["peer"])
            frames = frames_of(message)
        except WebSocketDisconnect:
            return ENDED, ""
        except (KeyError, ValueError) as error:
            reason = str(error) if isinstance(error, ValueError) else "expected a binary message"
            return UNREADABLE, reason
        if not link.send(frames):
            return STUCK, "the broker is away, or takes nothing more"
        news.set()  # a link is to be looked at behind what it was given


async def _down(socket: WebSocket, link: Link, news: asyncio.Event) -> End:
    """Pass on what the broker says."""
    while True:
        await news.wait()
        news.clear()
        while (frames := link.receive()) is not None:
            try:
                deadlines.extend(socket.scope["peer"], TAKEN_S)
                await socket.send_bytes(message_of(frames))
                deadlines.lift(socket.scope["peer"])
            except WebSocketDisconnect:
                return ENDED, ""
            if frames[0][_KIND] == _GOODBYE:
                return ENDED, "goodbye"
        if link.ended:
            return BROKEN, link.obstacle or "the link to the broker has ended"


def message_of(frames: Sequence[bytes]) -> bytes:
    """Frames as one message of a WebSocket.

    >>> message_of([b"RX", b""]).hex(" ")
    '02 00 00 00 52 58 00 00 00 00'
    """
    return b"".join(part for frame in frames for part in (_LENGTH.pack(len(frame)), frame))


def frames_of(message: bytes) -> list[bytes]:
    """The frames of a message. ValueError for bytes that are none.

    >>> frames_of(bytes.fromhex("02 00 00 00 52 58 00 00 00 00"))
    [b'RX', b'']
    """
    frames, at = list[bytes](), 0
    while at < len(message) and len(frames) < FRAMES_MAX:
        begin = at + _LENGTH.size
        length = int.from_bytes(message[at:begin], "little")
        at = begin + length
        frames.append(message[begin:at])
    if at != len(message) or not frames:
        raise ValueError("expected one frame or two, each behind its length in four bytes")
    return frames

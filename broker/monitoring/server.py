"""The process that serves a broker's pages.

``python -m broker.monitoring.server FD``: the first line of its standard input has its settings. It
takes over the socket that the broker has bound, and ends with the broker, whose end of its standard
input it holds: a broker that is killed leaves nobody behind.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol

from broker.log import FORMS, Bounded, Fields
from broker.monitoring import deadlines, unread
from broker.monitoring.api import Api
from broker.monitoring.assets import HEADERS
from broker.monitoring.doorway import Doorway
from broker.monitoring.entry import OPERATOR, Entry
from broker.monitoring.pages import pages
from broker.monitoring.seats import Seats
from broker.monitoring.settings import Settings
from broker.monitoring.web_sockets import MESSAGE_BYTES_MAX

UVICORN = logging.getLogger("uvicorn")


class OneRequest(H11Protocol):
    """A connection for one request, which ends in time (``deadlines``)."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        deadlines.begin(self.client, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        deadlines.end(self.client)
        super().connection_lost(exc)


class CountedWebSocket(AutoWebSocketsProtocol):  # type: ignore[misc,valid-type]
    """A WebSocket whose bytes are counted until its message is whole (``unread``)."""

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        unread.take(self.client, len(data))
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what has come: cycles hold the parser until they are collected."""
        super().connection_lost(exc)
        if hasattr(self, "conn") and hasattr(self.conn, "reader"):
            self.conn.reader.discard()
            self.frames: list[bytes] = []


async def serve(bound: socket.socket, settings: Settings) -> None:
    """Serve the pages of a broker until standard input ends, or a signal."""
    seats = Seats(settings)
    users = {one.token: one.name for one in settings.users if one.token is not None}
    entry = Entry(settings.token, users=users, takes_keys=bool(settings.keys))
    api = Api(entry, seats)
    app = pages(seats.of(OPERATOR).looks, os.getppid(), api)
    config = uvicorn.Config(
        Doorway(app, entry, settings.names, settings.proxies),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,  # broker.monitoring.doorway
        http=OneRequest,
        ws=CountedWebSocket,
        ws_max_size=MESSAGE_BYTES_MAX,
        ws_per_message_deflate=False,
        headers=HEADERS,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)

    def end() -> None:
        if not os.read(sys.stdin.fileno(), 1):
            logging.getLogger("uvicorn.error").disabled = True  # requests that are cut short now
            server.should_exit = True

    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), end)
    try:
        await server.serve(sockets=[bound])
    finally:
        await api.close()


def _first_line() -> bytes:
    """The first line of standard input, and nothing beyond it."""
    read = b""
    while not read.endswith(b"\n") and (one := os.read(sys.stdin.fileno(), 1)):
        read += one
    return read


def _log_as_brokers_do(form: str) -> None:
    """Write uvicorn's lines in the form of the broker's, and no more of them."""
    handler = Bounded(sys.stderr)
    handler.setFormatter(Fields(FORMS[form], {"part": "http"}))
    UVICORN.handlers[:] = [handler]
    UVICORN.propagate = False
    UVICORN.setLevel(logging.WARNING)


def main() -> None:
    """Serve what the command line says."""
    settings = Settings.read(_first_line())
    _log_as_brokers_do(settings.log_format)
    asyncio.run(serve(socket.socket(fileno=int(sys.argv[1])), settings))


if __name__ == "__main__":
    main()

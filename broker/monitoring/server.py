"""The process that serves a broker's pages.

``python -m broker.monitoring.server FD ENDPOINT FORM``: FORM is that of its log, a key of
``broker.log.FORMS``. The first line of its standard input has the keys that it is let in by, if
there are any. It takes over the socket that the broker has bound, and ends with the broker, whose
end of its standard input it holds: a broker that is killed leaves nobody behind.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from broker.client.address import Address
from broker.log import FORMS, Bounded, Fields
from broker.monitoring.looks import Looks
from broker.monitoring.pages import pages
from broker.security.keys import Curve, KeyPair

CONNECTIONS_MAX = 100
"""Requests beyond so many connections are answered 503."""
CONNECTION_S = 10
"""Seconds after which a connection is cut, whatever its request or answer has come to."""
UVICORN = logging.getLogger("uvicorn")


class OneRequest(H11Protocol):
    """A connection for one request, which ends in time: a hundred that say nothing, or do not read
    what is answered, would else keep everybody out for good.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and be cut after ``CONNECTION_S``."""
        super().connection_made(transport)
        self.loop.call_later(CONNECTION_S, transport.abort)


async def serve(bound: socket.socket, address: Address) -> None:
    """Serve the pages of the broker at ``address`` until standard input ends, or a signal."""
    looks = Looks(address)
    config = uvicorn.Config(
        pages(looks, os.getppid()),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        limit_concurrency=CONNECTIONS_MAX,
        http=OneRequest,
        headers=[("Connection", "close")],
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
        await looks.close()


def _first_line() -> str:
    """The first line of standard input, and nothing beyond it."""
    read = b""
    while not read.endswith(b"\n") and (one := os.read(sys.stdin.fileno(), 1)):
        read += one
    return read.decode()


def _log_as_brokers_do(form: str) -> None:
    """Write uvicorn's lines in the form of the broker's, and no more of them."""
    handler = Bounded(sys.stderr)
    handler.setFormatter(Fields(FORMS[form], {"part": "http"}))
    UVICORN.handlers[:] = [handler]
    UVICORN.propagate = False
    UVICORN.setLevel(logging.WARNING)


def main() -> None:
    """Serve what the command line says."""
    descriptor, endpoint, log_format = sys.argv[1:]
    _log_as_brokers_do(log_format)
    curve = None
    if keys := _first_line().split():
        public, secret, server = keys
        curve = Curve(KeyPair(public, secret), server)
    asyncio.run(serve(socket.socket(fileno=int(descriptor)), Address(endpoint, curve)))


if __name__ == "__main__":
    main()

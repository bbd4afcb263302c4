"""The process that serves a broker's pages: ``python -m broker.monitoring.server FD ENDPOINT``.

The first line of its standard input has the keys that it is let in by, if there are any. It takes
over the socket that the broker has bound, and ends with the broker, whose end of its
standard input it holds: a broker that is killed leaves nobody behind.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

import uvicorn

from broker.client.address import Address
from broker.monitoring.looks import Looks
from broker.monitoring.pages import pages
from broker.security.keys import Curve, KeyPair

CONNECTIONS_MAX = 100
"""Requests beyond so many connections are answered 503."""
IDLE_S = 5
"""Seconds after which a connection without a request is closed."""


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
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)

    def end() -> None:
        if not os.read(sys.stdin.fileno(), 1):
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


def main() -> None:
    """Serve what the command line says."""
    descriptor, endpoint = sys.argv[1:]
    curve = None
    if keys := _first_line().split():
        public, secret, server = keys
        curve = Curve(KeyPair(public, secret), server)
    asyncio.run(serve(socket.socket(fileno=int(descriptor)), Address(endpoint, curve)))


if __name__ == "__main__":
    main()

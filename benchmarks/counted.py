"""Links whose bytes are counted: a relay of TCP before each endpoint that brokers link to.

Bytes are those of the connection, with the few that ZMTP puts before each frame.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

CHUNK = 65_536


class Counted:
    """Relays, one for each endpoint that ``before`` was asked for; ``bytes`` in both directions."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lock = threading.Lock()
        self._relays: dict[str, str] = {}
        self._sockets: list[socket.socket] = []

    def before(self, endpoint: str) -> str:
        """The endpoint of the relay that leads to ``endpoint``, ``tcp://HOST:PORT``."""
        if endpoint not in self._relays:
            listener = socket.create_server(("127.0.0.1", 0))
            self._sockets.append(listener)
            self._relays[endpoint] = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
            _begin(self._accept, listener, endpoint)
        return self._relays[endpoint]

    def close(self) -> None:
        """End all relays."""
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self, listener: socket.socket, endpoint: str) -> None:
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection((host, int(port)))
                for one in (near, far):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets += (near, far)
                _begin(self._carry, near, far)
                _begin(self._carry, far, near)

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                with self._lock:
                    self.bytes += len(data)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def _begin(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()

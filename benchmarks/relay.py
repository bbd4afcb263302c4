"""A link that can fail: a relay of TCP between two brokers, which is told what the network does.

    cut      connections end, and none comes about
    stall    nothing arrives; what is sent waits on the way
    drop     what is sent vanishes; the connections end, too late, when the network is mended

Bytes in the midst of a TCP connection never vanish alone: so a connection that has lost some is
ended, as one is whose host was out of reach for too long.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum, auto

CHUNK = 65_536
_ABORT = struct.pack("ii", 1, 0)
"""SO_LINGER: closing resets the connection."""


class Weather(StrEnum):
    """State of the network that a relay stands for."""

    FAIR = auto()
    CUT = auto()
    STALL = auto()
    DROP = auto()


class Relay:
    """A relay to ``tcp://HOST:PORT``; others connect to ``endpoint``."""

    def __init__(self, target: str) -> None:
        host, _, port = target.removeprefix("tcp://").rpartition(":")
        self._target = host, int(port)
        self._changed = threading.Condition()
        self._weather = Weather.FAIR
        self._open: set[socket.socket] = set()
        self._has_lost: set[socket.socket] = set()
        self._is_closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        _begin(self._accept)

    def become(self, weather: Weather) -> None:
        """Change the weather."""
        with self._changed:
            self._weather = weather
            ended = self._open if weather is Weather.CUT else self._has_lost
            for one in list(ended):
                self._end(one)
            self._changed.notify_all()

    def close(self) -> None:
        """End all that is there."""
        with self._changed:
            self._is_closed = True
        self.become(Weather.CUT)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    # --- threads: one that accepts, two for each connection ---

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._is_closed:
                near, _ = self._listener.accept()
                _begin(self._connect, near)

    def _connect(self, near: socket.socket) -> None:
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._weather not in (Weather.STALL, Weather.DROP))
                if self._weather is Weather.CUT:
                    raise ConnectionError
            far = socket.create_connection(self._target)
        except OSError:
            near.close()
            return
        with self._changed:
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.add(one)
                if self._weather is Weather.CUT:
                    self._end(one)
        _begin(self._carry, near, far)
        _begin(self._carry, far, near)

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                with self._changed:
                    self._changed.wait_for(lambda: self._weather is not Weather.STALL)
                    if is_lost := self._weather is Weather.DROP:
                        self._has_lost |= {source, target}
                if not is_lost:
                    target.sendall(data)
        with self._changed:
            self._end(source)
            self._end(target)

    def _end(self, one: socket.socket) -> None:
        """Reset a connection, and have the threads that wait for it go on."""
        with suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            one.shutdown(socket.SHUT_RDWR)
        one.close()
        self._open.discard(one)
        self._has_lost.discard(one)


def _begin(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()

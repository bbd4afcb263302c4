"""ZeroMQ's wire form, as far as a DEALER needs it: ZMTP 3.0, the NULL mechanism, whole messages.

A message is a list of frames. https://rfc.zeromq.org/spec/23 is the whole story.
"""

import select
import socket

MORE, LONG, COMMAND = 1, 2, 4  # bits of a frame's first byte
GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)


class Link:
    """A connection to a ROUTER; ``ConnectionError`` when it is gone."""

    def __init__(self, host: str, port: int, timeout_s: float = 10.0) -> None:
        self.socket = socket.create_connection((host, port), timeout_s)
        self.received = bytearray()
        self.frames: list[bytes] = []  # of the message that is coming
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(GREETING)
        signature = self._take(64)
        if signature[:1] != b"\xff" or signature[9:10] != b"\x7f" or signature[10] < 3:
            raise ConnectionError("what answers does not speak ZMTP 3")
        ready = b"\x05READY" + _property(b"Socket-Type", b"DEALER")
        self.socket.sendall(bytes([COMMAND, len(ready)]) + ready)
        flags, body = self._frame()
        if not flags & COMMAND or body[:6] != b"\x05READY":
            raise ConnectionError(f"the handshake was refused: {body!r}")

    def send(self, frames: list[bytes]) -> None:
        """Send one message."""
        last = len(frames) - 1
        self.socket.sendall(
            b"".join(_head(MORE * (place < last), f) + f for place, f in enumerate(frames))
        )

    def receive(self, wait_s: float) -> list[bytes] | None:
        """The next message, or None if nothing comes for so long."""
        while self.received or select.select([self.socket], [], [], wait_s)[0]:
            flags, body = self._frame()
            if flags & COMMAND:
                if body[:5] == b"\x04PING":  # two bytes of time to live, then what to repeat
                    pong = b"\x04PONG" + body[7:]
                    self.socket.sendall(bytes([COMMAND, len(pong)]) + pong)
                continue
            self.frames.append(body)
            if not flags & MORE:
                message, self.frames = self.frames, []
                return message
        return None

    def close(self) -> None:
        self.socket.close()

    def _frame(self) -> tuple[int, bytes]:
        flags = self._take(1)[0]
        return flags, self._take(int.from_bytes(self._take(8 if flags & LONG else 1), "big"))

    def _take(self, count: int) -> bytes:
        while len(self.received) < count:
            arrived = self.socket.recv(1 << 16)
            if not arrived:
                raise ConnectionError("the broker has closed the connection")
            self.received += arrived
        taken = bytes(self.received[:count])
        del self.received[:count]
        return taken


def _head(flags: int, frame: bytes) -> bytes:
    if len(frame) < 256:
        return bytes([flags, len(frame)])
    return bytes([flags | LONG]) + len(frame).to_bytes(8, "big")


def _property(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value

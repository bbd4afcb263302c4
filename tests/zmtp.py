"""Peers that speak ZMTP by hand, well or badly, over a plain socket."""

import contextlib
import random
import socket
import struct

SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
MORE, LARGE, COMMAND = 1, 2, 4
"""Flags of a frame."""


def greeting(mechanism: bytes = b"NULL", version: tuple[int, int] = (3, 0)) -> bytes:
    return SIGNATURE + bytes(version) + mechanism.ljust(20, b"\0") + b"\0" + bytes(31)


def frame(body: bytes, flags: int = 0) -> bytes:
    if len(body) > 255 or flags & LARGE:
        return bytes([flags | LARGE]) + len(body).to_bytes(8, "big") + body
    return bytes([flags, len(body)]) + body


def command(name: bytes, body: bytes = b"") -> bytes:
    return frame(bytes([len(name)]) + name + body, COMMAND)


def named(name: bytes, value: bytes) -> bytes:
    """A property of READY."""
    return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value


def ready(identity: bytes = b"", socket_type: bytes = b"DEALER") -> bytes:
    return command(b"READY", named(b"Socket-Type", socket_type) + named(b"Identity", identity))


def connect(endpoint: str) -> socket.socket:
    host, port = endpoint.removeprefix("tcp://").split(":")
    peer = socket.create_connection((host, int(port)), 5)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def greeted(endpoint: str, identity: bytes = b"") -> socket.socket:
    """A peer with its handshake behind it: libzmq hangs up on one that does not wait for that."""
    peer = connect(endpoint)
    peer.sendall(greeting() + ready(identity))
    assert await_ready(peer)
    return peer


def await_ready(peer: socket.socket) -> bool:
    """Read up to the other's READY; whether it has come."""
    received = b""
    with contextlib.suppress(OSError):
        while b"\x05READY" not in received and (some := peer.recv(4096)):
            received += some
    return b"\x05READY" in received


def reset(peer: socket.socket) -> None:
    """Hang up as a host that crashes does: by RST."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


# --- anything that a stranger may say -----------------------------------------------------------


def conversation(rng: random.Random) -> list[bytes]:
    """What one peer sends, in pieces: a greeting, a handshake, frames; some of it mutated."""
    said = [_greeting(rng), _handshake(rng)]
    said += [_frames(rng) for _ in range(rng.randrange(4))]
    if rng.random() < 0.4:
        place = rng.randrange(len(said))
        said[place] = _mutated(said[place], rng)
    if rng.random() < 0.1:
        rng.shuffle(said)
    return said


def say(peer: socket.socket, said: list[bytes], rng: random.Random) -> None:
    """Send it whole or in fragments, read some of what comes, and hang up in one way or other."""
    peer.settimeout(0.2)
    with contextlib.suppress(OSError):
        for number, piece in enumerate(said):
            if number == 2 and rng.random() < 0.9:
                await_ready(peer)
            while piece:
                size = len(piece) if rng.random() < 0.7 else rng.randint(1, 40)
                peer.sendall(piece[:size])
                piece = piece[size:] if rng.random() < 0.97 else b""
            if rng.random() < 0.3:
                peer.settimeout(0.01)
                with contextlib.suppress(TimeoutError):
                    peer.recv(4096)
                peer.settimeout(0.2)
        if rng.random() < 0.2:
            peer.shutdown(rng.choice([socket.SHUT_WR, socket.SHUT_RD]))
    if rng.random() < 0.5:
        reset(peer)
    else:
        peer.close()


def _greeting(rng: random.Random) -> bytes:
    mechanism = rng.choice([b"NULL"] * 12 + [b"PLAIN", b"CURVE", b"GSSAPI", b"", b"X" * 20])
    version = rng.choice([(3, 0), (3, 0), (3, 1), (3, 1), (3, 255), (4, 0), (255, 0)])
    old = (
        SIGNATURE + b"\x00",  # 1.0
        SIGNATURE + b"\x01" + bytes([rng.randrange(13)]),  # 2.0, and a type of socket
        b"\x01\x00",  # 1.0 before there were signatures: no name
        b"\x06\x00" + rng.randbytes(5),  # the same, and a name
    )
    return rng.choice(old) if rng.random() < 0.3 else greeting(mechanism, version)


def _handshake(rng: random.Random) -> bytes:
    identity = rng.choice(
        [b"", b"\0", b"\0" + rng.randbytes(4), b"same", rng.randbytes(255), rng.randbytes(70_000)]
    )
    kind = rng.choice([b"DEALER"] * 8 + [b"REQ", b"ROUTER", b"SUB", b"XPUB", b"STREAM", b"", b"?"])
    odd = (
        command(b"READY"),
        command(b"READY", named(b"", b"") * rng.randint(1, 50)),
        command(b"READY", named(b"Identity", identity) * 2),
        command(b"READY", b"\x0bSocket-Type" + rng.choice([b"", b"\xff\xff\xff\xff", bytes(4)])),
        ready(identity, kind) * 2,
        command(b"ERROR", rng.choice([b"", b"\xff", b"\x03400", b"\x05x"])),
        command(b"HELLO", b"\x01u\x01p"),
        command(b"INITIATE", rng.randbytes(rng.randrange(300))),
        frame(identity, rng.choice([0, MORE, COMMAND, LARGE])),  # a name as ZMTP 2.0 has it
        frame(b"", COMMAND),
        b"",
    )
    return rng.choice(odd) if rng.random() < 0.4 else ready(identity, kind)


def _frames(rng: random.Random) -> bytes:
    huge = rng.choice([2**40, 2**63 - 1, 2**63, 2**64 - 1, 2**28, 2**28 + 1, 0])
    context = rng.randbytes(rng.choice([0, 1, 16, 17, 300]))
    choices = (
        frame(rng.randbytes(rng.choice([0, 1, 32, 33, 255, 256, 20_000])), rng.choice([0, MORE])),
        frame(b"x", MORE) * rng.randint(1, 400),
        frame(b"") * rng.randint(1, 400),
        command(b"PING", rng.choice([b"", b"\0", b"\0\0", b"\0\1", b"\xff\xff"]) + context),
        command(b"PONG", context),
        command(b"SUBSCRIBE", context),
        command(b"CANCEL", context),
        command(rng.randbytes(rng.randrange(20)), context),
        frame(b"\xff", COMMAND | MORE),
        (frame(b"x") * 5 + command(b"PING", b"\0\0")) * 4_000,  # more than a pipe holds
        bytes([LARGE | rng.choice([0, MORE, COMMAND])]) + huge.to_bytes(8, "big") + context,
        rng.randbytes(rng.randrange(200)),
    )
    return rng.choice(choices)


def _mutated(said: bytes, rng: random.Random) -> bytes:
    changed = bytearray(said)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(changed) + 1)
        match rng.randrange(4):
            case 0:
                del changed[place : place + rng.randint(1, 8)]
            case 1:
                changed[place:place] = rng.randbytes(rng.randint(1, 8))
            case 2 if place < len(changed):
                changed[place] ^= 1 << rng.randrange(8)
            case _:
                changed[place:] = changed[: rng.randrange(64)]
    return bytes(changed)

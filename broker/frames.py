"""Messages through a pyzmq socket, frame by frame, at the least cost.

Between two events of a slow stream the caches grow cold, and every step costs several times what
it does in a loop; so these few lines go the shortest way that pyzmq offers. Whether a frame is
the message's last one comes with the frame, where asking the socket would make an enumeration's
member each time; whether there is one at all is tried, for who asks has mostly been woken by it;
and frames are sent without the outermost layer, which looks for the options of
draft sockets first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import zmq

MORE, AT_ONCE = int(zmq.SNDMORE), int(zmq.NOBLOCK)
"""Flags, as plain numbers: arithmetic on enumerations would cost as much as a call."""
MORE_AT_ONCE = MORE | AT_ONCE
FRAMES_MAX = 5
"""Frames of a message that are kept, a peer's identity among them: messages have at most three, and
one more says that there were too many. The others have to be received, since libzmq gives nothing
else before; so whoever goes on sending such messages is hung up on (broker.transport).
"""
Frame: TypeAlias = "bytes | memoryview"
SendFrame: TypeAlias = Callable[[Frame, int], object]
"""Sends a frame, given the flags. Raises zmq.ZMQError."""


def sender(socket: zmq.Socket[bytes]) -> SendFrame:
    """A function that sends frames through this socket."""
    send: SendFrame = super(zmq.Socket, socket).send
    return send


def owner_of(frame: zmq.Frame) -> str:
    """The public key of the other end of the connection that a frame came by (``User-Id``)."""
    return str(frame.get("User-Id"))


def descriptor_of(frame: zmq.Frame) -> int:
    """The file descriptor of the connection that a frame came by."""
    return int(frame.get(zmq.SRCFD))


def receive_owned(socket: zmq.Socket[bytes]) -> tuple[zmq.Frame, list[bytes]] | None:
    """The first frame of the next message, which knows the sender, and ``receive_at_once``."""
    receive = socket.recv
    try:
        first = frame = receive(AT_ONCE, False)
        frames = [frame.bytes]
        while frame.more:
            frame = receive(AT_ONCE, False)
            if len(frames) < FRAMES_MAX:
                frames.append(frame.bytes)
    except zmq.Again:
        return None
    return first, frames


def receive_at_once(socket: zmq.Socket[bytes]) -> list[bytes] | None:
    """The frames of the next message, or None when there is none now.

    There may be none though a poll has just found one: libzmq drops what was not read of a
    connection whose end it notices in between, and would wait for ever.
    """
    receive = socket.recv
    try:
        frame = receive(AT_ONCE, False)
        frames = [frame.bytes]
        while frame.more:
            frame = receive(AT_ONCE, False)
            if len(frames) < FRAMES_MAX:
                frames.append(frame.bytes)
    except zmq.Again:
        return None
    return frames

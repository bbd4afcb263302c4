"""Frames in, frames out: one ROUTER socket that listens on every endpoint of a broker.

A peer has the identity that libzmq gave its connection. One that has chosen another is refused: the
broker calls links to others and sinks of several clients by such names, and the identity
``durable/billing`` would have a stranger act for billing.

With keys, a peer is the key as well: whoever has the identity of another one, who has gone a moment
ago, is told to say Hello, and the other's link has ended.
"""

from __future__ import annotations

import ctypes
import errno
import math
import secrets
import socket as sockets
import stat
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import zmq
from zmq.backend import zmq_poll

from broker import names
from broker.connections import Connection
from broker.errors import AddressTaken, ConfigurationError
from broker.frames import (
    FRAMES_MAX,
    MORE,
    MORE_AT_ONCE,
    Frame,
    descriptor_of,
    owner_of,
    receive_owned,
    sender,
)
from broker.log import log
from broker.security.access import Peer
from broker.security.gate import Gate, objection
from broker.silent import SilentConnections
from broker.sockets import bound, refuse_port_beyond_range
from routing import wire
from routing.messages import EVERYTHING, Code, Goodbye, Rights

CLOSED_PEERS_MAX = 10_000
"""How many closed peers are remembered."""
STRAY_MAX = 1_000
"""Messages of a closed peer that are dropped before it is hung up on: it has been told by then."""
GIVEN_BYTES = 5
"""The length of the identities that libzmq gives, which begin with a zero byte."""
CHOSEN = "this client has chosen a ZeroMQ identity (routing id): connect without one"
DROPPED_MAX = 1_000
"""Messages of closed peers that are dropped at once; timers and signals are then looked at."""


class Owner(NamedTuple):
    """The owner of a connection: whose its key was when it was let in."""

    key: str
    owner: Peer | None
    connection: Connection | None
    """None of a Unix socket, or where it had ended by then."""


class Transport:
    """The socket of a broker. Used by one thread.

    A peer is the routing identity that ZeroMQ gave its connection, so a peer that reconnects is
    another peer. A peer that was closed stays closed: what it still sends is dropped unread, and
    one that goes on is hung up on. Nothing here blocks: a peer that does not take what is sent to
    it, credit or no credit, fills its pipe and is lost. What waits to be read is bounded by credit
    and windows of the protocols alone (``sockets.bound``).
    """

    def __init__(self, gate: Gate | None = None) -> None:
        """``gate``: who is let in; None for everybody."""
        self._context = zmq.Context()
        _seed()
        self._socket = self._context.socket(zmq.ROUTER)
        self._gate = gate
        self._owners: dict[bytes, Owner] = {}
        """The owners of peers that were let in."""
        self._socket.set(zmq.ROUTER_MANDATORY, 1)
        bound(self._socket)
        # Any name will do: nobody is asked to authenticate, but libzmq refuses peers that speak
        # ZMTP before 3.0. One that is at such a handshake while the socket closes ends the process.
        self._socket.set(zmq.ZAP_DOMAIN, b"rexmq")
        self._silent: SilentConnections | None = None
        """With keys, the connections that have said nothing."""
        if gate is not None:
            gate.serve(self._context, self._socket)
            self._silent = SilentConnections(self._context, self._socket)
        self._send = sender(self._socket)
        self.gave_up = False
        """Whether ``receive`` gave None though there may be more, behind much that it dropped."""
        self._readable = False
        """Whether ``wait`` has found that a client's message can be received."""
        self.is_readable = False
        """Whether ``wait`` has found anything to be received."""
        self._ended: list[bytes] = []
        self.has_ended = False
        """Whether ``take_ended`` has something to give."""
        self._ready: list[tuple[object, int]] = []
        """The events that ``wait`` has found, as the poller tells them."""
        self._closed: OrderedDict[bytes, int] = OrderedDict()
        """Peers that were closed, with how many messages each has sent since."""
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)

    def listen(self, endpoint: str) -> str:
        """Listen on ``endpoint`` too and give its resolved form (``:*`` picks a free port).

        Raises AddressTaken, or ConfigurationError for an endpoint that cannot be listened on.
        """
        if endpoint.startswith("ipc://"):
            _refuse_living_file(endpoint)
        refuse_port_beyond_range(endpoint)
        families = names.families(endpoint)
        try:
            self._socket.set(zmq.IPV6, families == {sockets.AF_INET6})
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            if error.errno == zmq.EADDRINUSE:
                raise AddressTaken(f"{endpoint}: another process listens on it") from None
            reason = (
                f"{error.strerror}; expected an endpoint such as tcp://127.0.0.1:7461 or "
                f"ipc:///run/rexmq.sock"
            )
            if not families and error.errno == errno.ENODEV:
                reason = names.unknown(endpoint)
            raise ConfigurationError(f"{endpoint}: cannot listen there: {reason}") from None
        resolved = self._socket.get(zmq.LAST_ENDPOINT)
        assert isinstance(resolved, bytes)
        return resolved.rstrip(b"\0").decode()

    def watch(self, descriptor: int) -> None:
        """Let ``wait`` return when this file descriptor is readable, too."""
        self._poller.register(descriptor, zmq.POLLIN)

    def wait(self, seconds: float | None) -> bool:
        """Sleep until something can be received, a watched descriptor is readable, or so long.

        Gives whether a watched descriptor is readable.
        """
        pause_ms = None if seconds is None else math.ceil(seconds * 1000) if seconds > 0 else 0
        self._readable = self.is_readable = is_woken = False
        ready = self._ready = zmq_poll(self._poller.sockets, -1 if pause_ms is None else pause_ms)
        for one, _ in ready:
            if type(one) is int:
                is_woken = True
            else:
                self.is_readable = True
                if one is self._socket:
                    self._readable = True
        return is_woken

    def receive(self) -> tuple[bytes, list[bytes]] | None:
        """The message that ``wait`` has found, peer and frames; None when there is none.

        ``wait`` is to be asked before each message: to ask the socket costs an exception whenever
        it is empty, which is after nearly every event of a slow stream.
        """
        self.gave_up = False
        for _ in range(DROPPED_MAX):
            if not self._readable:
                return None
            received = receive_owned(self._socket)
            if received is None:
                self._readable = False
                continue
            said_by, frames = received
            peer = frames.pop(0)
            if len(peer) != GIVEN_BYTES or peer[0]:
                self._refuse_chosen(peer, said_by, frames)
            elif peer in self._closed:
                self._drop(peer, said_by, frames)
            elif self._gate is None or self._may_say(peer, said_by, frames):
                self._readable = False
                return peer, frames
        self._readable, self.gave_up = False, True
        return None

    def _may_say(self, peer: bytes, said_by: zmq.Frame, frames: Sequence[Frame]) -> bool:
        """Whether a peer may say that; it is closed if not."""
        assert self._gate is not None
        key, known = owner_of(said_by), self._owners.get(peer)
        owner = self._gate.owner(key)
        if known is None:
            descriptor = descriptor_of(said_by)
            known = Owner(key, owner, Connection.of(descriptor))
            assert self._silent is not None
            self._silent.hear(descriptor)
        elif known.key != key:
            self._end_former(peer)
            return False
        reason = objection(owner, frames)
        if reason is None:
            self._owners[peer] = known
        else:
            self._refuse(peer, known, reason)
        return reason is None

    def _drop(self, peer: bytes, said_by: zmq.Frame, frames: Sequence[Frame]) -> None:
        """Drop what a closed peer says; hang up on one that says much, for that costs time, too."""
        self._closed[peer] += 1
        if self._closed[peer] == STRAY_MAX or len(frames) >= FRAMES_MAX - 1:
            connection = Connection.of(descriptor_of(said_by))
            if connection is not None:
                connection.hang_up()

    def _refuse_chosen(self, peer: bytes, said_by: zmq.Frame, frames: Sequence[Frame]) -> None:
        """Refuse what a peer says that has chosen its identity, which may be a link's name."""
        Transport.send(self, peer, wire.encode(Goodbye(CHOSEN, Code.NOT_ALLOWED)))
        if peer in self._closed:
            self._drop(peer, said_by, frames)
        else:
            log("warning", "refused", {"peer": peer.hex(), "reason": CHOSEN})
            Transport.close_peer(self, peer)

    def _end_former(self, peer: bytes) -> None:
        """Another key has said something under a peer's identity: its link has ended."""
        log("warning", "another key on the identity of a client", {"peer": peer.hex()})
        self._note_ended(peer)
        reason = "another client was known by this identity: say Hello"
        self.send(peer, wire.encode(Goodbye(reason, Code.UNKNOWN)))

    def _refuse(self, peer: bytes, owner: Owner, reason: str) -> None:
        log("warning", "refused", {"peer": peer.hex(), "reason": reason})
        self._note_ended(peer)
        self.close_peer(peer)
        if owner.connection is not None:
            owner.connection.hang_up()

    @property
    def has_users(self) -> bool:
        """Whether peers have keys, and so are users or brokers."""
        return self._gate is not None

    def user_of(self, peer: bytes) -> str:
        """The user who is at the other end; "" for a broker, and where there are no keys."""
        known = self._owners.get(peer)
        owner = None if known is None else known.owner
        return "" if owner is None or owner.is_broker else owner.name

    def rights_of(self, peer: bytes) -> Rights:
        """The rights of who is at the other end; everything where there are no keys."""
        if self._gate is None:
            return EVERYTHING
        known = self._owners.get(peer)
        return self._gate.rights(None if known is None else known.owner)

    def look_again(self) -> None:
        """Refuse the peers whose keys are not whose they were, after the gate has changed.

        One that says nothing would else be sent events for as long as it likes, and one that says
        much be read.
        """
        for peer, known in list(self._owners.items() if self._gate is not None else ()):
            assert self._gate is not None
            if self._gate.owner(known.key) != known.owner:
                self._refuse(peer, known, f"its key is not that of {known.owner} any more")

    def look_at_silent(self) -> None:
        """Hang up on connections that say nothing: once a second, when all has been received."""
        if self._silent is not None:
            self._silent.look()

    def send(self, peer: bytes, frames: Sequence[Frame]) -> bool:
        """Send a message; False when the peer has gone or does not take its messages."""
        send = self._send
        try:
            send(peer, MORE_AT_ONCE)
            for frame in frames[:-1]:
                send(frame, MORE)
            send(frames[-1], 0)
        except zmq.ZMQError as error:
            if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                return False
            raise
        return True

    def take_ended(self) -> Sequence[bytes]:
        """The peers that are found to have gone, or have said what is not theirs to say; that most
        have gone shows when something is sent.
        """
        ended, self._ended, self.has_ended = self._ended, [], False
        return ended

    def _note_ended(self, peer: bytes) -> None:
        self._ended.append(peer)
        self.has_ended = True

    def forget(self, peer: bytes) -> None:
        """A peer's link has ended: whoever comes by its identity is another one."""
        self._owners.pop(peer, None)

    def close_peer(self, peer: bytes) -> None:
        """Read nothing more from this peer, which has some seconds to hang up."""
        self._closed[peer] = 0
        known = self._owners.pop(peer, None)
        if self._silent is not None and known is not None and known.connection is not None:
            self._silent.give_time(known.connection)
        if len(self._closed) > CLOSED_PEERS_MAX:
            self._closed.popitem(last=False)

    def close(self, linger_s: float) -> None:
        """Stop listening; what was sent has ``linger_s`` seconds to leave."""
        if self._silent is not None:
            self._silent.end()
        self._socket.close(linger=int(linger_s * 1000))
        if self._gate is not None:
            self._gate.end()
        self._context.term()


def _seed() -> None:
    """Let the names that libzmq gives to peers begin at random, in the next ROUTER socket.

    libzmq 4.3.5 takes the first one from the C library's generator, which it does not seed, and
    counts up. A peer may choose its own name; one that has the next name ends the process.
    """
    ctypes.CDLL(None).srand(secrets.randbits(32))


def _refuse_living_file(endpoint: str) -> None:
    """Raise AddressTaken when someone listens behind an ipc file, or it is no socket at all. libzmq
    would unlink a living broker's file and take its place without a word.
    """
    name = endpoint.removeprefix("ipc://")
    path = Path(name)
    if name.startswith("@") or not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise AddressTaken(f"{endpoint}: the file exists and is no socket")
    with sockets.socket(sockets.AF_UNIX) as probe:
        try:
            probe.connect(name)
        except ConnectionRefusedError:
            return  # left behind by a broker that was killed
        except OSError as error:
            raise AddressTaken(f"{endpoint}: {error.strerror}") from None
    raise AddressTaken(f"{endpoint}: another process listens on it")

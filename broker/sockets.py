"""Sockets of brokers and of clients: how much each holds, and how long it waits for a lost host."""

from __future__ import annotations

import struct

import zmq

from broker.errors import ConfigurationError

PORT_MAX = 65_535
PIPE_MESSAGES_MAX = 10_000
"""Messages that wait to be sent to one peer before its pipe counts as full."""
MESSAGE_BYTES_MAX = 256 * 2**20
"""A larger frame costs its sender the connection (libzmq's own limit)."""
KEEPALIVE_S = 2
"""How often the system probes an idle connection, and thus notices a vanished host."""
KEEPALIVE_PROBES = 3
"""So many probes without an answer end a connection."""
CONNECTED_MISSED_MAX = 15
"""Heartbeat intervals in silence after which a peer is lost whose connection stands. A process that
has ended, or a host that has vanished, is noticed without: one that is busy is not taken for dead.
"""
_EVENT = struct.Struct("=hi")
"""An event's number and its value (zmq_socket_monitor); pyzmq's reading of it imports asyncio."""


def bound(socket: zmq.Socket[bytes]) -> None:
    """Set how much a socket holds, and how long it waits for a host that has vanished.

    libzmq 4.3.5 ends the whole process when a heartbeat of its own is due, or a peer's command
    PING is to be answered, on a connection that was cut while its pipe of received messages was
    full. So its heartbeats stay off, and that pipe has no limit: clients and brokers have no more
    under way than their credit and windows allow, and a stranger could fill the memory anyway, by
    one message of frames without end.
    """
    socket.set(zmq.SNDHWM, PIPE_MESSAGES_MAX)
    socket.set(zmq.RCVHWM, 0)
    socket.set(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
    socket.set(zmq.TCP_KEEPALIVE, 1)
    socket.set(zmq.TCP_KEEPALIVE_IDLE, KEEPALIVE_S)
    socket.set(zmq.TCP_KEEPALIVE_INTVL, KEEPALIVE_S)
    socket.set(zmq.TCP_KEEPALIVE_CNT, KEEPALIVE_PROBES)
    socket.set(zmq.TCP_MAXRT, KEEPALIVE_S * KEEPALIVE_PROBES * 1000)
    socket.set(zmq.LINGER, 0)


def next_event(monitor: zmq.Socket[bytes]) -> tuple[int, int]:
    """The number of the next event of a socket's monitor, and its value."""
    event, value = _EVENT.unpack(monitor.recv_multipart()[0])
    return event, value


def refuse_port_beyond_range(endpoint: str) -> None:
    """Raise ConfigurationError for a port that libzmq would take modulo 65536, in silence."""
    port = endpoint.rpartition(":")[2]
    if endpoint.startswith("tcp://") and port.isdecimal() and int(port) > PORT_MAX:
        raise ConfigurationError(f"{endpoint}: expected a port of at most {PORT_MAX}")

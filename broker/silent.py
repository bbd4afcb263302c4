"""Connections that say nothing are hung up on: nobody holds file descriptors for nothing.

libzmq's ROUTER sockets count no connections. Their monitor tells which descriptor is accepted and
which is closed, and the first message of a peer tells its descriptor (broker.transport).

A broker looks once a second, when it has read all that has come. ``LOOKS_MAX`` looks find a silent
connection, and the next one hangs up on it; clients and brokers greet at once. Example: the broker
was busy for a minute, and alice's Hello waits. It reads that before it looks.
"""

from __future__ import annotations

from typing import Any

import zmq

from broker.connections import Connection
from broker.sockets import next_event

LOOKS_MAX = 10
_ADDRESS = "inproc://connections"


class SilentConnections:
    """The connections of a listening socket by which nothing has come yet. ``end`` goes before the
    socket's end.
    """

    def __init__(self, context: zmq.Context[Any], socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        socket.monitor(_ADDRESS, zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        self._events: zmq.Socket[bytes] = context.socket(zmq.PAIR)
        self._events.set(zmq.RCVHWM, 0)  # else libzmq's own thread would wait for this one
        self._events.connect(_ADDRESS)
        self._silent: dict[int, tuple[Connection, int]] = {}
        """By descriptor, with the looks that have found it silent."""

    def hear(self, descriptor: int) -> None:
        """Something has come by a connection."""
        self._take_events()
        self._silent.pop(descriptor, None)

    def give_time(self, connection: Connection) -> None:
        """Take a connection for a silent one from now on, whatever comes by it."""
        self._silent[connection.descriptor] = connection, 0

    def look(self) -> None:
        """Hang up on who has been silent for too long."""
        self._take_events()
        for descriptor, (connection, looks) in list(self._silent.items()):
            if looks < LOOKS_MAX:
                self._silent[descriptor] = connection, looks + 1
            else:
                del self._silent[descriptor]
                connection.hang_up()

    def end(self) -> None:
        """Look no more."""
        self._socket.disable_monitor()
        self._events.close(linger=0)

    def _take_events(self) -> None:
        while self._events.poll(0):
            event, descriptor = next_event(self._events)
            connection = Connection.of(descriptor) if event == zmq.EVENT_ACCEPTED else None
            if connection is None:
                self._silent.pop(descriptor, None)
            else:
                self._silent[descriptor] = connection, 0

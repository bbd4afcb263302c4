"""One connection of a client to its broker: frames out, frames in, and whether it still stands.

A link lives for one connection. libzmq's own reconnection is off: it would hide from the session
that messages were lost between two connections, and the session's sequences are what makes a
reconnection exact. A monitor tells at once when the connection ends or cannot be made.

Both descriptors of a link are edge-triggered: whoever wakes by one of them, or has sent
something, must read until ``receive`` gives None.
"""

from __future__ import annotations

from collections.abc import Sequence

import zmq
from zmq.backend import zmq_poll

from broker.errors import ConfigurationError
from broker.frames import AT_ONCE, MORE_AT_ONCE, Frame, receive_at_once, sender
from broker.transport import bound, refuse_port_beyond_range

_POLLIN = int(zmq.POLLIN)
_ENDS = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_CONNECT_RETRIED


class Link:
    """A DEALER socket. One thread at a time uses it, under the client's lock.

    ``context``: None for the one that all clients of the process share. Raises ConfigurationError
    when ``endpoint`` is none.
    """

    def __init__(
        self, endpoint: str, context: zmq.Context[zmq.Socket[bytes]] | None = None
    ) -> None:
        refuse_port_beyond_range(endpoint)
        context = context or zmq.Context.instance()
        self._socket: zmq.Socket[bytes] = context.socket(zmq.DEALER)
        self._socket.set(zmq.RECONNECT_IVL, -1)
        bound(self._socket)
        self._send = sender(self._socket)
        self._monitor: zmq.Socket[bytes] = self._socket.get_monitor_socket(_ENDS)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.close(0)
            raise ConfigurationError(
                f"{endpoint}: {error.strerror}; expected an endpoint such as "
                f"tcp://127.0.0.1:7461 or ipc:///run/rexmq.sock"
            ) from None

    @property
    def sockets(self) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
        """The sockets to poll for something to look at."""
        return self._socket, self._monitor

    @property
    def descriptors(self) -> tuple[int, int]:
        """File descriptors that become readable when there is something to look at."""
        return self._socket.fileno(), self._monitor.fileno()

    def send(self, frames: Sequence[Frame]) -> bool:
        """Send a message; False when the connection has ended or is stuck."""
        send = self._send
        try:
            for frame in frames[:-1]:
                send(frame, MORE_AT_ONCE)
            send(frames[-1], AT_ONCE)
        except zmq.Again:
            return False
        return True

    def receive(self) -> list[bytes] | None:
        """The frames of the next message, or None when there is none now."""
        return receive_at_once(self._socket)

    @property
    def ended(self) -> bool:
        """Whether the connection has ended. Ask after everything was received."""
        # Asking for the socket's EVENTS would make members of two enumerations each time.
        if not zmq_poll([(self._monitor, _POLLIN)], 0):
            return False
        self._monitor.recv_multipart()  # which of the ends it was is all the same
        return True

    def close(self, linger_s: float) -> None:
        """End the connection; what was sent has ``linger_s`` seconds to leave."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=int(linger_s * 1000))

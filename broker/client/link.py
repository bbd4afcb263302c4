"""One connection of a client to its broker: frames out, frames in, and whether it still stands.

A link lives for one connection. libzmq's own reconnection is off: it would hide from the session
that messages were lost between two connections, and the session's sequences are what makes a
reconnection exact. A monitor tells at once when the connection ends or cannot be made.

Both descriptors of a link are edge-triggered: whoever wakes by one of them, or has sent
something, must read until ``receive`` gives None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import or_

import zmq
from zmq.backend import zmq_poll

from broker import names
from broker.errors import ConfigurationError
from broker.frames import AT_ONCE, MORE_AT_ONCE, Frame, receive_at_once, sender
from broker.security.keys import Curve
from broker.sockets import bound, next_event, refuse_port_beyond_range

_POLLIN = int(zmq.POLLIN)
_NOT_LET_IN = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL,
)
_ENDS = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_CONNECT_RETRIED
_HEARD = reduce(or_, _NOT_LET_IN, _ENDS)


class Link:
    """A DEALER socket. One thread at a time uses it, under the client's lock.

    ``context``: None for the one that all clients of the process share. ``curve``: its keys, where
    the broker has some. ``waiting_max``: messages that may wait to be received before the broker
    waits with more; 0 for any number. Raises ConfigurationError when ``endpoint`` is none.
    """

    def __init__(
        self,
        endpoint: str,
        context: zmq.Context[zmq.Socket[bytes]] | None = None,
        curve: Curve | None = None,
        waiting_max: int = 0,
    ) -> None:
        refuse_port_beyond_range(endpoint)
        context = context or zmq.Context.instance()
        self._socket: zmq.Socket[bytes] = context.socket(zmq.DEALER)
        self._socket.set(zmq.RECONNECT_IVL, -1)
        bound(self._socket)
        self._socket.set(zmq.RCVHWM, waiting_max)
        self._socket.set(zmq.IPV6, names.uses_ipv6(endpoint))
        self._endpoint = endpoint
        self.obstacle = ""
        """The reason why the broker does not let it in; "" while it may."""
        self._has_keys = curve is not None
        if curve is not None:
            curve.apply(self._socket)
        self._send = sender(self._socket)
        self.receive: Callable[[], list[bytes] | None] = partial(receive_at_once, self._socket)
        """Gives the frames of the next message, or None when there is none now."""
        self._monitor: zmq.Socket[bytes] = self._socket.get_monitor_socket(_HEARD)
        self._watched = [(socket, _POLLIN) for socket in self.sockets]
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

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to look at: neither a message nor the connection's end. To ask
        costs half of what it costs to receive in vain, which ends in an exception.
        """
        return not zmq_poll(self._watched, 0)

    @property
    def ended(self) -> bool:
        """Whether the connection has ended. Ask after everything was received."""
        # Asking for the socket's EVENTS would make members of two enumerations each time.
        if not zmq_poll([(self._monitor, _POLLIN)], 0):
            return False
        event, _ = next_event(self._monitor)
        if event in _NOT_LET_IN:
            self.obstacle = self._explain(event)
        elif event != zmq.EVENT_DISCONNECTED:
            names.note_failure(self._endpoint)
        return True

    def _explain(self, event: int) -> str:
        if not self._has_keys:
            return "it asks for keys (key, server_key)"
        if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            return "it does not take this key"
        return "it has another key than the one expected, or none"

    def close(self, linger_s: float) -> None:
        """End the connection; what was sent has ``linger_s`` seconds to leave."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=int(linger_s * 1000))

"""TCP connections that the broker hangs up on, for which libzmq's ROUTER sockets have no call.

libzmq says by which descriptor a message came (``ZMQ_SRCFD``), and nothing when that is closed; by
then it may be another connection's. So a connection is ended where the address at its other end is
still what it was when the first message was read: alice came by descriptor 15 from 10.0.0.7:41010,
and 15 is a link to b2 when she has no key any more: nothing happens.
"""

from __future__ import annotations

import os
import socket as sockets
from contextlib import suppress
from typing import NamedTuple


class Connection(NamedTuple):
    """A connection of this process, by its descriptor, and the address at its other end."""

    descriptor: int
    address: object

    @classmethod
    def of(cls, descriptor: int) -> Connection | None:
        """The TCP connection of a descriptor; None where it has ended, or is another kind."""
        with suppress(OSError), _opened(descriptor) as socket:
            if socket.family in (sockets.AF_INET, sockets.AF_INET6):
                return cls(descriptor, socket.getpeername())
        return None

    def hang_up(self) -> None:
        """End it, if it stands: whoever reads or writes it finds that the other end has gone."""
        with suppress(OSError), _opened(self.descriptor) as socket:
            if socket.getpeername() == self.address:
                socket.shutdown(sockets.SHUT_RDWR)


def _opened(descriptor: int) -> sockets.socket:
    """A socket over a copy of a descriptor, which libzmq may close meanwhile. Raises OSError."""
    copy = os.dup(descriptor)
    try:
        return sockets.socket(fileno=copy)
    except OSError:  # no socket
        os.close(copy)
        raise

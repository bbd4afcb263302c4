"""The links that a broker makes to others: a DEALER socket each, to the other's ROUTER."""

from __future__ import annotations

from collections.abc import Sequence

import zmq

from broker import names
from broker.client.link import Link
from broker.frames import Frame
from broker.log import log
from broker.security.gate import Gate, objection
from broker.transport import Transport

GOODBYE_S = 0.2
"""How long, in seconds, the last messages over a connection have to leave it."""
_PREFIX = b"\0"
"""A prefix that no client can choose for its identity; libzmq's own are five bytes long."""


def peer_of(endpoint: str) -> bytes:
    """The name of the link to an endpoint, for the protocol core."""
    return _PREFIX + endpoint.encode()


class LinkedTransport(Transport):
    """A Transport that is linked to other brokers, too.

    Raises ConfigurationError for what is no endpoint.

    A link is called by its endpoint, and outlives its connections. It is made by the first message
    that is sent over it and made anew by the first one after it has ended, so the protocol core's
    own greetings are what tries again, at the core's own pace. libzmq's reconnection is off, as in
    clients (broker.client.link): it would hide that messages were lost. Clients and links are read
    in turns.
    """

    def __init__(self, endpoints: Sequence[str], gate: Gate | None = None) -> None:
        super().__init__(gate)
        self._endpoints = {peer_of(endpoint): endpoint for endpoint in endpoints}
        self._links: dict[bytes, Link] = {}
        self._by_socket: dict[object, bytes] = {}
        self._links_first = False
        self._nameless: set[str] = set()
        """The endpoints whose hosts have no address."""

    def receive(self) -> tuple[bytes, list[bytes]] | None:
        """The next message, of a client or over a link, or None when ``wait`` has found none."""
        # In turns, so that busy clients do not make the neighbours wait, nor the other way round.
        self._links_first = not self._links_first
        if self._links_first:
            return self._receive_over_links() or super().receive()
        return super().receive() or self._receive_over_links()

    def send(self, peer: bytes, frames: Sequence[Frame]) -> bool:
        """Send a message; False when the peer has gone or does not take its messages."""
        endpoint = self._endpoints.get(peer)
        if endpoint is None:
            return super().send(peer, frames)
        link = self._links.get(peer)
        if link is None:
            link = self._open(peer, endpoint)
        if link.send(frames):
            return True
        self._end(peer, 0)
        return False

    def close_peer(self, peer: bytes) -> None:
        """Read nothing more from this peer; a link's connection ends."""
        if peer in self._endpoints:
            self._end(peer, GOODBYE_S)
        else:
            super().close_peer(peer)

    def close(self, linger_s: float) -> None:
        """End every connection; what was sent has ``linger_s`` seconds to leave."""
        for peer in list(self._links):
            self._end(peer, linger_s)
        super().close(linger_s)

    def _receive_over_links(self) -> tuple[bytes, list[bytes]] | None:
        ready = [self._by_socket[one] for one, _ in self._ready if one in self._by_socket]
        if len(ready) > 1:  # both sockets of a link may be, and which link is next goes by turns
            ready = [peer for peer in self._links if peer in ready]
        for peer in ready:
            link = self._links[peer]
            frames = link.receive()
            if frames is not None:
                if self._gate is not None and (reason := self._objection(peer, frames)):
                    log("warning", "refused", {"link": self._endpoints[peer], "reason": reason})
                    self._end(peer, 0)
                    self._note_ended(peer)
                    continue
                self._links[peer] = self._links.pop(peer)  # the others come before it next time
                return peer, frames
            if link.ended:  # and all that came before was received
                self._end(peer, 0)
                self._note_ended(peer)
        return None

    def _objection(self, peer: bytes, frames: Sequence[Frame]) -> str | None:
        """The reason why who is at the other end of a link may not say this; None for none."""
        assert self._gate is not None
        return objection(self._gate.at(self._endpoints[peer]), frames)

    def _open(self, peer: bytes, endpoint: str) -> Link:
        curve = None if self._gate is None else self._gate.curve(endpoint)
        link = self._links[peer] = Link(endpoint, self._context, curve)
        self._note_name(endpoint)
        for socket in link.sockets:
            self._poller.register(socket, zmq.POLLIN)
            self._by_socket[socket] = peer
        return link

    def _note_name(self, endpoint: str) -> None:
        """Log that the host of a link has no address, once until it has one."""
        reason = names.problem(endpoint)
        if reason and endpoint not in self._nameless:
            log("warning", "cannot link", {"link": endpoint, "reason": reason})
        (self._nameless.add if reason else self._nameless.discard)(endpoint)

    def _end(self, peer: bytes, linger_s: float) -> None:
        link = self._links.pop(peer, None)
        if link is not None:
            for socket in link.sockets:
                self._poller.unregister(socket)
                del self._by_socket[socket]
            link.close(linger_s)

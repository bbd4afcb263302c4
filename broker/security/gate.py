"""The gate of a broker with keys: it answers ZeroMQ whose connections are let in, and knows whose
each of them is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import zmq

from broker.errors import ConfigurationError
from broker.frames import Frame
from broker.log import log
from broker.security.access import Access, Peer
from broker.security.keys import Curve, KeyPair, new_pair
from routing import wire
from routing.errors import WireError
from routing.messages import Hello, LinkHello, Rights

if TYPE_CHECKING:
    from zmq.auth.thread import ThreadAuthenticator

ZAP_DOMAIN = "rexmq"
KEY_SHOWN = 8
"""So many characters of a key are logged."""


class Gate:
    """Decision whether a peer is let in to a broker that has the keys ``own``, by ``access``.

    ``links``: the endpoints that it is linked to. Raises ConfigurationError where ``access`` does
    not say whose one of them is.
    """

    def __init__(self, own: KeyPair, access: Access, links: Sequence[str] = ()) -> None:
        self.own = own
        self._links = tuple(links)
        self._access = self._checked(access)
        self._more: dict[str, Peer] = {}
        self._stand_ins: dict[str, KeyPair] = {}
        """Keys that act for users of the access file, by name."""
        self._acting: dict[str, str] = {}
        """The names of these users, by the public keys."""
        self._authenticator: ThreadAuthenticator | None = None

    def serve(self, context: zmq.Context[Any], socket: zmq.Socket[bytes]) -> None:
        """Guard a listening socket that is not yet bound."""
        from zmq.auth.thread import ThreadAuthenticator  # asyncio is not for brokers without keys

        self._authenticator = ThreadAuthenticator(context)
        self._authenticator.start()
        self._authenticator.configure_curve_callback(ZAP_DOMAIN, self)
        socket.set(zmq.ZAP_DOMAIN, ZAP_DOMAIN.encode())
        socket.set(zmq.CURVE_SERVER, 1)
        socket.set(zmq.CURVE_SECRETKEY, self.own.secret.encode())

    def end(self) -> None:
        """Answer no more; the context may end."""
        if self._authenticator is not None:
            self._authenticator.stop()
            self._authenticator = None

    def callback(self, domain: str, key: bytes) -> bool:
        """Whether the owner of a public key is let in: asked by the authenticator's thread. The
        thread decides by the public key alone, and reads nothing else.
        """
        text = key.decode()
        if self.owner(text) is not None:
            return True
        log("warning", "key refused", {"key": f"{text[:KEY_SHOWN]}..."}, "security")
        return False

    def owner(self, key: str) -> Peer | None:
        """The owner of a public key; None of one that nobody has."""
        owner = self._access.owners.get(key) or self._more.get(key)
        name = self._acting.get(key)
        if owner is None and name is not None and name in self._access.rights:
            return Peer(name)
        return owner

    @property
    def tokens(self) -> Mapping[str, str]:
        """The users who may sign in at the pages, by the SHA-256 of their tokens."""
        return self._access.tokens

    @property
    def users(self) -> Mapping[str, Rights]:
        """The rights of the users of the access file, by name."""
        return self._access.rights

    def rights(self, owner: Peer | None) -> Rights:
        """The rights of a key's owner: of whom the broker itself admits, all."""
        if owner is None:
            return Rights(grants=())
        found = self._access.rights.get(owner.name)
        if found is not None:  # whoever else bears the name of a user may not do more
            return found
        return Rights(owner.name, None if owner in self._more.values() else ())

    def admit(self, name: str) -> KeyPair:
        """Keys for a user of this name, made for as long as the broker runs."""
        pair = new_pair()
        self._more[pair.public] = Peer(name)
        return pair

    def stand_in(self, name: str) -> KeyPair:
        """Keys that act for the user of this name, for as long as the access file has it."""
        pair = self._stand_ins.get(name)
        if pair is None:
            pair = self._stand_ins[name] = new_pair()
            self._acting[pair.public] = name
        return pair

    @property
    def keys(self) -> Mapping[str, tuple[str, ...]]:
        """The public keys of the users of the access file, by name; of one with none, none."""
        found: dict[str, tuple[str, ...]] = dict.fromkeys(self._access.rights, ())
        for key, owner in self._access.owners.items():
            if not owner.is_broker:
                found[owner.name] += (key,)
        return found

    def change(self, access: Access) -> None:
        """Let in by another access file from now on. Raises ConfigurationError, as above. The
        connections of a user who has no key any more end then (``Transport.look_again``), whether
        it says something or not.
        """
        self._access = self._checked(access)

    def curve(self, endpoint: str) -> Curve:
        """The keys of a link that this broker makes to another one."""
        return Curve(self.own, self._access.servers[endpoint])

    def at(self, endpoint: str) -> Peer | None:
        """The broker that this one is linked to at ``endpoint``."""
        return self.owner(self._access.servers[endpoint])

    def _checked(self, access: Access) -> Access:
        for endpoint in self._links:
            if endpoint not in access.servers:
                raise ConfigurationError(
                    f"link {endpoint}: whose is it? expected a [broker.NAME] of the access file "
                    f'with endpoint = "{endpoint}"'
                )
        return access


def objection(owner: Peer | None, frames: Sequence[Frame]) -> str | None:
    """The reason why a message is not for the owner of its connection to say; None for none. A
    connection has one owner, whom ZeroMQ names with each message (``User-Id``). One that is a
    user's may not greet as a broker, nor may broker ``b2`` greet as ``b3``: such a message is
    dropped, and its connection with it.
    """
    if owner is None:
        return "its key is nobody's any more"
    if owner.is_broker and wire.looks_like(frames, Hello):
        return f"{owner} is no user"
    if not wire.looks_like(frames, LinkHello):
        return None
    if owner.name != _greeting_name(frames):
        return f"{owner} may not link as another broker"
    return None if owner.is_broker else f"{owner} is no broker"


def _greeting_name(frames: Sequence[Frame]) -> str | None:
    try:
        message = wire.decode(frames)
    except WireError:
        return None
    return message.name if isinstance(message, LinkHello) else None

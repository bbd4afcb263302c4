"""Settings of the process that serves the pages, as the broker writes them to its standard input.

One line of JSON, so that keys and the token are on no command line, where others can read them.

>>> Settings.read(Settings("tcp://127.0.0.1:7461", token="a-long-secret-one").line).token
'a-long-secret-one'
"""

from __future__ import annotations

import msgspec

from broker.client.address import Address
from broker.security.keys import Curve, KeyPair


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user who may sign in by keys of its own (``own``, the public ones), or by a token, of which
    it is the SHA-256 in hex; and ``keys``, the public and the secret one, which act for the user at
    the broker.
    """

    name: str
    token: str | None
    own: tuple[str, ...]
    keys: tuple[str, str]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``endpoint``: where the broker is reached. ``keys``: the public and secret one of the process
    that serves, and the broker's public one; none where the broker has none. ``users``: those who
    may sign in. ``data``: the folder of the broker's store, where it has one. ``names`` and
    ``proxies``: as Doorway takes them.
    """

    endpoint: str
    log_format: str = "text"
    keys: tuple[str, ...] = ()
    token: str | None = None
    users: tuple[User, ...] = ()
    data: str | None = None
    names: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()

    @property
    def address(self) -> Address:
        """The broker, and the keys that it is reached by."""
        if not self.keys:
            return Address(self.endpoint, None)
        public, secret, server = self.keys
        return Address(self.endpoint, Curve(KeyPair(public, secret), server))

    def address_of(self, user: str) -> Address:
        """The broker, and the keys that it is reached by for a user. KeyError for no such one."""
        pairs = {one.name: KeyPair(*one.keys) for one in self.users}
        return Address(self.endpoint, Curve(pairs[user], self.keys[-1]))

    @property
    def line(self) -> bytes:
        """The settings as a line."""
        return msgspec.json.encode(self) + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Settings:
        """The settings of a line."""
        return msgspec.json.decode(line, type=cls)

"""Where a client finds its broker, and the keys by which the two know one another.

A client that is told nothing goes by the environment: REXMQ_BROKER, REXMQ_KEY, REXMQ_SERVER_KEY.

Several brokers of one network are written with commas between them, ``tcp://a:7461,tcp://b:7461``,
and so are their keys, one for each or one for all: the client takes the first that lets it in, and
goes on at another where that one sends it away.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.client.endpoint import KEY_VARIABLE, SERVER_KEY_VARIABLE, endpoint_or_default
from broker.errors import ConfigurationError
from broker.security.keys import Curve, load_pair, public_key


@dataclass(frozen=True, slots=True)
class Address:
    """An endpoint, and the keys for it; ``curve`` None where the broker has none.

    ``others``: of other brokers that will do as well, in order.
    """

    endpoint: str
    curve: Curve | None = None
    others: tuple[Address, ...] = ()

    @property
    def all(self) -> Sequence[Address]:
        """The addresses in the order in which they are tried."""
        return (self, *self.others)


def address_of(
    endpoint: str | Address | None,
    key: str | Path | None = None,
    server_key: str | Path | None = None,
) -> Address:
    """The address of a client's broker, by what it is told and by the environment.

    ``key``: the file of the client's secret key. ``server_key``: the broker's public key, or the
    file of it. Raises ConfigurationError where one is given without the other, where there are more
    or fewer of them than brokers, and for what is no key.
    """
    if isinstance(endpoint, Address):
        return endpoint
    places = _parts(endpoint_or_default(endpoint))
    own = str(key or os.environ.get(KEY_VARIABLE) or "")
    servers = _keys(str(server_key or os.environ.get(SERVER_KEY_VARIABLE) or ""))
    if not own and not servers:
        return _first_of([Address(place) for place in places])
    if not own or not servers:
        given, missing = ("key", "server_key") if own else ("server_key", "key")
        raise ConfigurationError(f"{given} is given, and no {missing}: expected both, or none")
    if len(servers) not in (1, len(places)):
        raise ConfigurationError(
            f"server_key: expected one key, or {len(places)} as there are brokers, found "
            f"{len(servers)}"
        )
    pair = load_pair(Path(own))
    every = servers * len(places) if len(servers) == 1 else servers
    curves = [Curve(pair, public_key(server, "server_key")) for server in every]
    return _first_of([Address(*one) for one in zip(places, curves, strict=True)])


def _first_of(addresses: Sequence[Address]) -> Address:
    first, *others = addresses
    return Address(first.endpoint, first.curve, tuple(others))


def _parts(text: str) -> list[str]:
    """The parts between commas; the text itself where there are none."""
    return [part for one in text.split(",") if (part := one.strip())] or [text]


def _keys(text: str) -> list[str]:
    """The keys in a text. Z85, in which keys are written, has no comma."""
    return _parts(text) if text else []

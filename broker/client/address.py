"""Where a client finds its broker, and the keys by which the two know one another.

A client that is told nothing goes by the environment: REXMQ_BROKER, REXMQ_KEY, REXMQ_SERVER_KEY.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from broker.client.endpoint import KEY_VARIABLE, SERVER_KEY_VARIABLE, endpoint_or_default
from broker.errors import ConfigurationError
from broker.security.keys import Curve, load_pair, public_key


@dataclass(frozen=True, slots=True)
class Address:
    """An endpoint, and the keys for it; ``curve`` None where the broker has none."""

    endpoint: str
    curve: Curve | None = None


def address_of(
    endpoint: str | Address | None,
    key: str | Path | None = None,
    server_key: str | Path | None = None,
) -> Address:
    """The address of a client's broker, by what it is told and by the environment.

    ``key``: the file of the client's secret key. ``server_key``: the broker's public key, or the
    file of it. Raises ConfigurationError where one is given without the other, and for what is no
    key.
    """
    if isinstance(endpoint, Address):
        return endpoint
    place = endpoint_or_default(endpoint)
    own = str(key or os.environ.get(KEY_VARIABLE) or "")
    server = str(server_key or os.environ.get(SERVER_KEY_VARIABLE) or "")
    if not own and not server:
        return Address(place)
    if not own or not server:
        given, missing = ("key", "server_key") if own else ("server_key", "key")
        raise ConfigurationError(f"{given} is given, and no {missing}: expected both, or none")
    return Address(place, Curve(load_pair(Path(own)), public_key(server, "server_key")))

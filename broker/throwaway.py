"""Keys for brokers that last as long as one command: in a folder that goes with them.

Each broker has a pair of its own, and so has one user, ``client``, who may do everything. Brokers
b1 and b2 of ``rexmq network --secure`` let this user in, link to one another, and nobody else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from broker.client.address import Address
from broker.security.keys import PUBLIC_SUFFIX, SECRET_SUFFIX, Curve, create, load_pair, public_key

CLIENT = "client"


class ThrowawayKeys:
    """The keys of brokers, which find one another at these ``endpoints``, by their names."""

    def __init__(self, folder: Path, endpoints: Mapping[str, str]) -> None:
        self._files = {name: f"broker-{place}" for place, name in enumerate(endpoints, 1)}
        self._folder = folder
        self._access = folder / "access.toml"
        lines = [f'[user.{CLIENT}]\nkey = "{CLIENT}{PUBLIC_SUFFIX}"']
        create(CLIENT, folder)
        for name, file in self._files.items():
            create(file, folder)
            lines.append(f'[broker.{json.dumps(name)}]\nkey = "{file}{PUBLIC_SUFFIX}"')
            lines.append(f"endpoint = {json.dumps(endpoints[name])}")
        self._access.write_text("\n".join(lines), "utf-8")

    def flags(self, name: str) -> tuple[str, ...]:
        """The options of a broker."""
        secret = self._folder / f"{self._files[name]}{SECRET_SUFFIX}"
        return "--secret-key", str(secret), "--access", str(self._access)

    @property
    def client_key(self) -> Path:
        """The file of the user's secret key."""
        return self._folder / f"{CLIENT}{SECRET_SUFFIX}"

    def server_key(self, name: str) -> Path:
        """The file of a broker's public key."""
        return self._folder / f"{self._files[name]}{PUBLIC_SUFFIX}"

    def address(self, name: str, endpoint: str) -> Address:
        """The address of a broker for the user."""
        server = public_key(str(self.server_key(name)), name)
        return Address(endpoint, Curve(load_pair(self.client_key), server))

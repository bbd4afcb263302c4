"""The access file: whose keys are whose. TOML, read whole or refused whole.

::

    [user.alice]
    key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

    [user.bob]
    key = ["bob.key", "bob-2027.key"]      # several, while one takes the place of another

    [broker.b2]
    key = "b2.key"
    endpoint = "tcp://second.example:7461" # for who links to it

A key is given as such or by the file of a public key, as seen from the folder of the access file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.documents import document_of
from broker.errors import ConfigurationError
from broker.security.keys import public_key

KINDS: Mapping[str, frozenset[str]] = {
    "user": frozenset({"key"}),
    "broker": frozenset({"key", "endpoint"}),
}
"""Tables of the file, each with what may be said in it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The owner of a key: a user, or a broker."""

    name: str
    is_broker: bool = False

    def __str__(self) -> str:
        return f"{'broker' if self.is_broker else 'user'} {self.name!r}"


@dataclass(frozen=True, slots=True)
class Access:
    """The owners of keys, by public key, and the keys of brokers by endpoint."""

    owners: Mapping[str, Peer]
    servers: Mapping[str, str]


def load_access(file: Path) -> Access:
    """The access file. Raises ConfigurationError, which names the place and what was expected."""
    document = document_of(file)
    owners: dict[str, Peer] = {}
    servers: dict[str, str] = {}
    for kind, name, table in _tables(document, file):
        place = f"{file}: [{kind}.{name}]"
        peer = Peer(name, kind == "broker")
        keys = list(_keys(table, file.parent, place))
        for key in keys:
            if key in owners:
                raise ConfigurationError(f"{place}: {owners[key]} has this key, too")
            owners[key] = peer
        if "endpoint" in table:
            servers[_text(table["endpoint"], f"{place} endpoint")] = keys[-1]
    if not owners:  # a file that is being written, say: it would keep everybody out
        raise ConfigurationError(f"{file}: expected at least one [user.NAME] or [broker.NAME]")
    return Access(owners, servers)


def _tables(
    document: Mapping[str, Any], file: Path
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for kind, tables in document.items():
        if kind not in KINDS or not isinstance(tables, dict):
            raise ConfigurationError(
                f"{file}: unknown table or key {kind!r}; expected [user.NAME] or [broker.NAME]"
            )
        for name, table in tables.items():
            place = f"{file}: [{kind}.{name}]"
            if not isinstance(table, dict):
                raise ConfigurationError(f"{place}: expected a table")
            for key in table:
                if key not in KINDS[kind]:
                    expected = " or ".join(sorted(KINDS[kind]))
                    raise ConfigurationError(f"{place} has no key {key!r}; expected {expected}")
            yield kind, name, table


def _keys(table: Mapping[str, Any], folder: Path, place: str) -> Iterator[str]:
    given = table.get("key")
    texts = given if isinstance(given, list) else [given]
    if not texts:
        raise ConfigurationError(f"{place} key: expected at least one")
    for text in texts:
        named = _text(text, f"{place} key")
        file = folder / named
        yield public_key(str(file) if os.path.exists(file) else named, f"{place} key")


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{place}: expected a text")
    return value

"""The access file: whose keys are whose, and what users may do. TOML, read whole or refused whole.

::

    [user.alice]
    key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
    groups = ["traders"]
    token_sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"  # of one

    [user.bob]
    key = ["bob.key", "bob-2027.key"]      # several, while one takes the place of another
    publish = ["Smoke", 'Temp(sensor = "s7")']
    sources = ["bob", "fridge-*"]          # names of sources that are his alone

    [group.traders]
    subscribe = ['Trade(desk = "fx")', "Rate*"]

    [broker.b2]
    key = "b2.key"
    endpoint = "tcp://second.example:7461" # for who links to it
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from broker.documents import parsed, text_of
from broker.errors import ConfigurationError
from broker.keys import LINK
from broker.security.grants import ACTS, grants_of
from broker.security.keys import public_key
from broker.security.tables import lines_of
from routing.messages import UNLIMITED, Limits, Permit, Rights
from routing.names import is_printable

LIMITS = Limits.__struct_fields__
"""The limits that a table may set, by key."""
USER, GROUP, BROKER = "user", "group", "broker"
TOKEN, SOURCES = "token_sha256", "sources"
_DIGEST = re.compile("[0-9a-f]{64}")
KINDS: Mapping[str, tuple[str, ...]] = {
    USER: ("key", TOKEN, "groups", *ACTS, SOURCES, *LIMITS),
    GROUP: (*ACTS, SOURCES, *LIMITS),
    BROKER: ("key", "endpoint"),
}
"""Tables of the file, each with what may be said in it."""
LIMIT_MAX = 2**31
EXPECTED = "[user.NAME], [group.NAME] or [broker.NAME]"


@dataclass(frozen=True, slots=True)
class Peer:
    """The owner of a key: a user, or a broker."""

    name: str
    is_broker: bool = False

    def __str__(self) -> str:
        return f"{'broker' if self.is_broker else 'user'} {self.name!r}"


@dataclass(frozen=True, slots=True)
class Access:
    """The owners of keys, by public key, the keys of brokers by endpoint, and users' rights."""

    owners: Mapping[str, Peer]
    servers: Mapping[str, str]
    rights: Mapping[str, Rights] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    """Names of users who may sign in at the pages, by the SHA-256 of their tokens, in hex."""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the file, ``[user.alice]``."""

    file: Path
    kind: str
    name: str
    content: Mapping[str, Any]
    lines: Mapping[tuple[str, str], int]

    @property
    def title(self) -> str:
        return f"[{self.kind}.{self.name}]"

    def line(self, key: str = "") -> int:
        """The line of a key, or of the table's header; 0 where it was not found."""
        path = f"{self.kind}.{self.name}"
        return self.lines.get((path, key)) or self.lines.get((path, ""), 0)

    def place(self, key: str = "") -> str:
        """The place of a key, or of the table, as messages say it."""
        line = self.line(key)
        where = f"{self.file}, line {line}" if line else str(self.file)
        return f"{where}: {self.title}{f' {key}' if key else ''}"


def load_access(file: Path, limits: Limits = UNLIMITED) -> Access:
    """The access file; users for whom it says no others have these ``limits``.

    Raises ConfigurationError, which names the place and what was expected.
    """
    text = text_of(file)
    tables = list(_tables(parsed(text, file), file, lines_of(text)))
    owners: dict[str, Peer] = {}
    servers: dict[str, str] = {}
    tokens: dict[str, str] = {}
    for table in tables:
        if table.kind == GROUP:
            continue
        peer = Peer(table.name, table.kind == BROKER)
        keys = list(_keys(table)) if "key" in table.content or TOKEN not in table.content else []
        if TOKEN in table.content:
            _add_token(table, tokens)
        for key in keys:
            if key in owners:
                raise ConfigurationError(f"{table.place('key')}: {owners[key]} has this key, too")
            owners[key] = peer
        if "endpoint" in table.content:
            endpoint = _text(table.content["endpoint"], table.place("endpoint"))
            if not LINK.fullmatch(endpoint):
                raise ConfigurationError(
                    f"{table.place('endpoint')}: expected an endpoint such as "
                    f"tcp://first.example:7461, found {endpoint!r}"
                )
            servers[endpoint] = keys[-1]
    if not (owners or tokens):  # a file that is being written, say: it would keep everybody out
        raise ConfigurationError(f"{file}: expected at least one [user.NAME] or [broker.NAME]")
    return Access(owners, servers, _rights(tables, limits), tokens)


def _add_token(table: _Table, tokens: dict[str, str]) -> None:
    said, place = table.content[TOKEN], table.place(TOKEN)
    if not isinstance(said, str) or not _DIGEST.fullmatch(said):
        raise ConfigurationError(f"{place}: expected a SHA-256 in 64 hexadecimal digits")
    if said in tokens:
        raise ConfigurationError(f"{place}: user {tokens[said]!r} has this token, too")
    tokens[said] = table.name


def _rights(tables: list[_Table], limits: Limits) -> Mapping[str, Rights]:
    """The rights of each user: those of its own table and those of its groups. A file without any
    lets all users do everything; once any table says ``publish`` or another right, nobody may do
    what no line allows.
    """
    for table in tables:
        _check_limits(table)
    own = {table.title: _grants(table) for table in tables}
    groups = {table.name: table for table in tables if table.kind == GROUP}
    users = {table.name: table for table in tables if table.kind == USER}
    are_limited = any(not ACTS.keys().isdisjoint(table.content) for table in tables)
    found = {}
    for name, user in users.items():
        belongs = [user, *_groups(user, groups)]
        grants = tuple(grant for table in belongs for grant in own[table.title])
        titles = tuple(f"{table.title} (line {table.line()})" for table in belongs)
        found[name] = _sendable(
            user,
            name,
            grants if are_limited else None,
            user.file.name,
            titles,
            _limits(user, belongs[1:], limits),
            _sources(belongs),
        )
    return found


def _sendable(user: _Table, *fields: Any) -> Rights:
    """Rights of a user that other brokers can be sent. ConfigurationError for what is too long."""
    try:
        return msgspec.msgpack.decode(msgspec.msgpack.encode(fields), type=Rights)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{user.place()}: {error}") from None


def _limits(user: _Table, groups: list[_Table], others: Limits) -> Limits:
    """The limits of a user: of its own table, else the greatest of its groups, else those of the
    broker's configuration.
    """

    def most(name: str) -> int | None:
        own = user.content.get(name)
        said = [group.content[name] for group in groups if name in group.content]
        other: int | None = getattr(others, name)
        return own if own is not None else max(said, default=other)

    return Limits(**{name: most(name) for name in LIMITS})


def _sources(tables: list[_Table]) -> tuple[str, ...] | None:
    """The names that are bound to a user (routing.serving.source_names); None where no table says
    any. Such names are no right.
    """
    saying = [table for table in tables if SOURCES in table.content]
    for table in saying:
        names = table.content[SOURCES]
        if not isinstance(names, list) or not all(isinstance(one, str) and one for one in names):
            example = '["fridge-*"]'
            raise ConfigurationError(
                f"{table.place(SOURCES)}: expected a list of names such as {example}"
            )
    return tuple(name for table in saying for name in table.content[SOURCES]) if saying else None


def _check_limits(table: _Table) -> None:
    for name in LIMITS:
        most = table.content.get(name, 1)
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most < LIMIT_MAX:
            raise ConfigurationError(
                f"{table.place(name)}: expected a whole number from 1 to {LIMIT_MAX - 1}, "
                f"found {most!r}"
            )


def _grants(table: _Table) -> tuple[Permit, ...]:
    said = (key for key in table.content if key in ACTS)
    return tuple(
        grant
        for key in said
        for grant in grants_of(ACTS[key], table.content[key], table.line(key), table.place(key))
    )


def _groups(user: _Table, groups: Mapping[str, _Table]) -> Iterator[_Table]:
    names = user.content.get("groups", [])
    if not isinstance(names, list):
        raise ConfigurationError(f'{user.place("groups")}: expected a list such as ["traders"]')
    for name in names:
        if not isinstance(name, str) or name not in groups:
            known = ", ".join(sorted(groups)) or "none: there is no [group.NAME]"
            raise ConfigurationError(
                f"{user.place('groups')}: there is no group {name!r}; expected one of {known}"
            )
        yield groups[name]


def _tables(
    document: Mapping[str, Any], file: Path, lines: Mapping[tuple[str, str], int]
) -> Iterator[_Table]:
    for kind, tables in document.items():
        if kind not in KINDS or not isinstance(tables, dict):
            raise ConfigurationError(f"{file}: unknown table or key {kind!r}; expected {EXPECTED}")
        for name, content in tables.items():
            if not isinstance(content, dict):
                raise ConfigurationError(f"{file}: [{kind}.{name}]: expected a table")
            if not (name and is_printable(name)):
                raise ConfigurationError(
                    f"{file}: a {kind}'s name that is empty or cannot be printed: {name!r}"
                )
            table = _Table(file, kind, name, content, lines)
            for key in content:
                if key not in KINDS[kind]:
                    expected = ", ".join(KINDS[kind])
                    raise ConfigurationError(
                        f"{table.place(key).removesuffix(f' {key}')} has no key {key!r}; "
                        f"expected {expected}"
                    )
            yield table


def _keys(table: _Table) -> Iterator[str]:
    given, place = table.content.get("key"), table.place("key")
    texts = given if isinstance(given, list) else [given]
    if not texts:
        raise ConfigurationError(f"{place}: expected at least one")
    for text in texts:
        named = _text(text, place)
        file = table.file.parent / named
        yield public_key(str(file) if os.path.exists(file) else named, place)


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{place}: expected a text")
    return value

"""A broker's configuration: one table of keys, and four places to set them.

Every key can be set in the TOML file (in its table), as ``REXMQ_<KEY>`` in the environment and as
``--<key>`` on the command line; later ones win, and the defaults are the protocol core's own. A
configuration is taken whole or refused whole; a refusal names the place, the key and what was
expected.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.client.endpoint import DEFAULT_ENDPOINT
from broker.documents import document_of
from broker.errors import ConfigurationError
from broker.keys import BY_NAME, KEYS, Key
from broker.node_store import StoreChoices
from broker.sockets import CONNECTED_MISSED_MAX
from broker.store import Sync
from matcher.matching import ON_PROCESSOR, Matching
from routing.config import Late, NodeConfig, Ordering
from routing.messages import Limits
from routing.overlay.config import FORGET_S, OverlayConfig
from rules.engine import verify

Values = dict[str, Any]

USER_LIMITS = {
    f"user_{name}" if name in ("subscriptions_max", "rules_max") else name: name
    for name in Limits.__struct_fields__
}
"""The keys of limits of users, and how the access file calls each."""

_OWN = {
    "listen": (DEFAULT_ENDPOINT,),
    "engine": "auto",
    "threads": 1,
    "matcher": ON_PROCESSOR.matcher,
    "device": ON_PROCESSOR.device,
    "log_format": "text",
    "log_level": "info",
    "http": None,
    "http_token": None,
    "http_names": (),
    "http_proxies": (),
    "secret_key": None,
    "access": None,
    "insecure": False,
    "data": None,
    "sync": "full",
    "retain": None,
    "retain_bytes": None,
    "trace_events_max": 0,
    "link": (),
    "strategy": None,
    **dict.fromkeys(USER_LIMITS),
    "forget_s": FORGET_S,
    "heartbeats_missed_max": CONNECTED_MISSED_MAX,
}
_NODE = {field.name: field.default for field in dataclasses.fields(NodeConfig)}


@dataclass(frozen=True, slots=True)
class Configuration:
    """A broker's configuration: the value of every key."""

    values: Mapping[str, Any]

    @property
    def listen(self) -> tuple[str, ...]:
        """The endpoints to listen on."""
        endpoints: tuple[str, ...] = self.values["listen"]
        return endpoints

    @property
    def engine(self) -> str:
        """The name that ``rules.engine.make`` takes."""
        engine: str = self.values["engine"]
        return engine

    @property
    def threads(self) -> int:
        """On how many threads it detects, as ``broker.parallel.engine_of`` takes it."""
        threads: int = self.values["threads"]
        return threads

    @property
    def device(self) -> str:
        """Where it computes: ``cpu``, ``gpu``, or by what each costs (``auto``)."""
        device: str = self.values["device"]
        return device

    @property
    def log_format(self) -> str:
        """The form of the log's lines, a key of ``broker.log.FORMS``."""
        form: str = self.values["log_format"]
        return form

    @property
    def log_level(self) -> str:
        """The least level of the log."""
        level: str = self.values["log_level"]
        return level

    @property
    def http(self) -> tuple[str, int] | None:
        """The host and port of its pages; None where it has none."""
        address: tuple[str, int] | None = self.values["http"]
        return address

    @property
    def http_token(self) -> Path | None:
        """The file of the token that its pages ask for; None where they ask for none."""
        file = self.values["http_token"]
        return None if file is None else Path(file)

    @property
    def trace_events_max(self) -> int:
        """Of how many events it keeps the path; 0 where it traces nothing."""
        most: int = self.values["trace_events_max"]
        return most

    @property
    def is_insecure(self) -> bool:
        """Whether other machines may reach a broker without keys."""
        insecure: bool = self.values["insecure"]
        return insecure

    @property
    def security_files(self) -> tuple[Path, Path] | None:
        """The files of its secret key and of access; None for a broker without keys."""
        key, access = self.values["secret_key"], self.values["access"]
        return None if key is None else (Path(key), Path(access))

    @property
    def store(self) -> StoreChoices | None:
        """Its store; None for a broker that keeps all in memory."""
        directory = self.values["data"]
        if directory is None:
            return None
        return StoreChoices(
            Path(directory),
            Sync(self.values["sync"]),
            self.values["retain"],
            _whole(self.values["retain_bytes"]),
        )

    @property
    def user_limits(self) -> Limits:
        """The limits of users for whom the access file says no others."""
        return Limits(**{name: self.values[key] for key, name in USER_LIMITS.items()})

    @property
    def links(self) -> tuple[str, ...]:
        """The endpoints of the brokers to be linked to, each once."""
        links: tuple[str, ...] = self.values["link"]
        return tuple(dict.fromkeys(links))

    @property
    def strategy(self) -> str | None:
        """The name that ``routing.network.strategy.make`` takes; None where none is said."""
        strategy: str | None = self.values["strategy"]
        return strategy

    @property
    def forget_s(self) -> float:
        """After how long brokers out of reach are forgotten."""
        forget_s: float = self.values["forget_s"]
        return forget_s

    def overlay(self, incarnation: int) -> OverlayConfig:
        """The part of the overlay, for a broker that starts at ``incarnation`` microseconds."""
        names = ("name", "heartbeat_s", "heartbeats_missed_max", "forget_s")
        return OverlayConfig(incarnation=incarnation, **{name: self.values[name] for name in names})

    @property
    def node(self) -> NodeConfig:
        """The protocol core's part. Raises ConfigurationError when it makes no sense."""
        chosen = {name: value for name, value in self.values.items() if name in _NODE}
        try:
            verify(self.engine, self.device, self.threads)
            choices = {
                "late": Late(chosen["late"]),
                "ordering": Ordering(chosen["ordering"]),
                "matching": Matching(self.values["matcher"], self.device),
                "durable_bytes_max": _whole(chosen["durable_bytes_max"]),
            }
            return NodeConfig(**{**chosen, **choices})
        except ValueError as error:
            raise ConfigurationError(str(error)) from None

    def toml(self) -> str:
        """The effective values, as a file that would give them."""
        lines: list[str] = []
        table = None
        for key in KEYS:
            if key.table != table:
                lines += ["", f"[{key.table}]"] if lines else [f"[{key.table}]"]
                table = key.table
            lines.append(f"{key.name} = {_printed(key, self.values[key.name])}  # {key.help}")
        return "\n".join(lines)


def load(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]
) -> Configuration:
    """The configuration that the three give. Raises ConfigurationError."""
    values: Values = {key.name: _default(key.name) for key in KEYS}
    if file is not None:
        values |= from_file(file)
    values |= from_environment(environment)
    values |= from_flags(flags)
    configuration = Configuration(values)
    configuration.node  # noqa: B018 - refused now, not when the broker starts
    _check_forgetting(configuration)
    _check_security(configuration)
    _check_store(configuration)
    return configuration


def _check_forgetting(configuration: Configuration) -> None:
    """ConfigurationError where brokers would forget others before all have noticed their absence;
    what is as it is without being said is taken.
    """
    own = configuration.overlay(1)
    if own.forgets_too_soon:
        raise ConfigurationError(
            f"forget_s: expected at least {own.least_forget_s:g} seconds where heartbeat_s is "
            f"{own.heartbeat_s:g} and heartbeats_missed_max {own.heartbeats_missed_max}, "
            f"found {own.forget_s:g}"
        )


def _check_security(configuration: Configuration) -> None:
    """ConfigurationError where a key is given without an access file, or the other way round."""
    given = [name for name in ("secret_key", "access") if configuration.values[name] is not None]
    if len(given) == 1:
        expected = "expected secret_key and access, or neither"
        raise ConfigurationError(f"{given[0]} is given alone: {expected}")


def _check_store(configuration: Configuration) -> None:
    """ConfigurationError where there is nothing that a store could keep."""
    values = configuration.values
    if values["data"] is not None and values["ordering"] == Ordering.ARRIVAL.value:
        raise ConfigurationError(
            'data: by arrival (ordering = "arrival") an event has no time of its own by which it '
            "could be evaluated again; expected none"
        )
    for name in ("retain", "retain_bytes"):
        if values["data"] is None and values[name] is not None:
            raise ConfigurationError(f"{name} is given without data, the folder of a store")


def from_file(file: Path) -> Values:
    """The keys that a TOML file sets."""
    document = document_of(file)
    tables = {key.table for key in KEYS}
    values: Values = {}
    for table, content in document.items():
        if table not in tables or not isinstance(content, dict):
            expected = ", ".join(f"[{name}]" for name in sorted(tables))
            raise ConfigurationError(f"{file}: unknown table or key {table!r}; expected {expected}")
        for name, value in content.items():
            key = BY_NAME.get(name)
            if key is None or key.table != table:
                expected = ", ".join(key.name for key in KEYS if key.table == table)
                raise ConfigurationError(
                    f"{file}: [{table}] has no key {name!r}; expected one of {expected}"
                )
            values[name] = key.parse(value, f"{file}: [{table}] {name}")
    return values


def from_environment(environment: Mapping[str, str]) -> Values:
    """The keys that ``REXMQ_<KEY>`` variables set."""
    return {
        key.name: key.parse(environment[key.variable], key.variable)
        for key in KEYS
        if key.variable in environment
    }


def from_flags(flags: Mapping[str, Any]) -> Values:
    """The keys that the command line sets; None stands for a flag that was not given."""
    return {
        name: BY_NAME[name].parse(value, BY_NAME[name].flag)
        for name, value in flags.items()
        if value is not None
    }


def _whole(size: float | None) -> int | None:
    return None if size is None else int(size)


def _default(name: str) -> Any:
    default = _OWN[name] if name in _OWN else _NODE[name]
    return default.value if isinstance(default, enum.Enum) else default


def _printed(key: Key, value: Any) -> str:
    if value is None:
        return json.dumps(key.kind.none)
    return json.dumps(key.kind.text(value))

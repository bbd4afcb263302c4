"""The file of ``rexmq connect``: sources and sinks, read whole or refused whole."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from broker.client.address import Address, address_of
from broker.connect.bodies import PACKAGES, Decode, decoder_of
from broker.connect.dead_letters import DeadLetters
from broker.connect.pumps import SinkPump, SourcePump
from broker.connect.reading import Reading
from broker.connect.systems import Giver, Taker
from broker.connect.templates import Template
from broker.connect.writing import STRUCTURED, Writing
from broker.documents import document_of
from broker.errors import ConfigurationError
from matcher.formats.layout import Layout
from matcher.formats.timeform import TimeForm
from matcher.model import EventType
from routing.names import name_fault
from rules.errors import RuleErrors
from rules.language import load

SYSTEMS = {
    "mqtt": "paho",
    "nats": "nats",
    "redis": "redis",
    "kafka": "confluent_kafka",
    "amqp": "aio_pika",
    "webhook": "http",
    "files": "glob",
    "postgres": "psycopg",
    "http": "uvicorn",
}
"""The systems, each with the package that its module needs, from the extra of its name."""
DISORDER_S = 5.0
"""Seconds that messages with times may be late, where nothing is said."""
WINDOW = 1_000
"""Messages that a source has under way, unless its system says another number."""
_Name = Annotated[str, Meta(min_length=1)]
_Count = Annotated[int, Meta(ge=1, le=65_535)]
_Settings: TypeAlias = dict[str, Any] | None
Table = TypeVar("Table", bound=Struct)


class BrokerTable(Struct, frozen=True, forbid_unknown_fields=True):
    """``[broker]``: where the events go, and come from."""

    endpoint: str | None = None
    key: str | None = None
    server_key: str | None = None


class _Connector(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Tables of systems, of which a source or a sink has one."""

    mqtt: _Settings = None
    nats: _Settings = None
    redis: _Settings = None
    kafka: _Settings = None
    amqp: _Settings = None

    def system(self) -> tuple[str, Any, Mapping[str, Any]]:
        """The name, the module and the table of the system. Raises ConfigurationError."""
        said = {name: value for name in SYSTEMS if (value := getattr(self, name, None)) is not None}
        if len(said) != 1:
            known = [name for name in SYSTEMS if hasattr(self, name)]
            found = " and ".join(said) or "none"
            raise ConfigurationError(f"expected one of {', '.join(known)}, found {found}")
        ((name, settings),) = said.items()
        if importlib.util.find_spec(SYSTEMS[name]) is None:
            raise ConfigurationError(f"{name}: needs pip install 'rexmq[{name}]'")
        return name, importlib.import_module(f"broker.connect.{name}"), settings


class SourceTable(_Connector, frozen=True, kw_only=True):
    """One ``[[source]]``."""

    name: _Name
    topic: _Name
    events: Annotated[tuple[str, ...], Meta(min_length=1)]
    dead_letter: _Name
    files: _Settings = None
    postgres: _Settings = None
    http: _Settings = None
    body: Literal["json", "csv", "cloudevents", "text", "avro", "protobuf"] = "json"
    schema: str = ""
    message: str = ""
    skip_bytes: Annotated[int, Meta(ge=0)] = 0
    type: str | None = None
    pattern: str = ""
    columns: dict[str, str] = {}
    time_column: str | None = None
    id_column: str | None = None
    type_column: str | None = None
    time_unit: str = "s"
    time_format: str | None = None
    time_zone: str | None = None
    disorder_s: Annotated[float, Meta(gt=0)] | None = None
    window: _Count | None = None


class SinkTable(_Connector, frozen=True, kw_only=True):
    """One ``[[sink]]``."""

    name: _Name
    filters: Annotated[tuple[str, ...], Meta(min_length=1)]
    topic: str
    dead_letter: _Name
    webhook: _Settings = None
    body: str = STRUCTURED
    headers: dict[str, str] = {}
    key: str | None = None
    durable: bool = True
    window: _Count = 100


class Connectors(Struct, frozen=True):
    """The broker, and the pumps of a file."""

    address: Address
    sources: tuple[SourcePump, ...]
    sinks: tuple[SinkPump, ...]


def connectors_of(file: Path) -> Connectors:
    """The connectors of a file. Raises ConfigurationError. The error names the file, the table and
    the key, and what was expected: ``plant.toml: [[source]] 2: type: expected one of Temp, found
    'Smoke'``.
    """
    document = document_of(file)
    if unknown := document.keys() - {"broker", "source", "sink"}:
        raise ConfigurationError(
            f"{file}: expected [broker], [[source]] and [[sink]], found {sorted(unknown)[0]!r}"
        )
    own = _converted(document.get("broker", {}), BrokerTable, f"{file}: [broker]")
    sources = _all(document, "source", file, SourceTable, _source)
    sinks = _all(document, "sink", file, SinkTable, _sink)
    if not sources and not sinks:
        raise ConfigurationError(f"{file}: expected a [[source]] or a [[sink]]")
    names = [pump.name for pump in (*sources, *sinks)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigurationError(f"{file}: name: {twice[0]!r} is given twice")
    folder = file.resolve().parent
    keys = [None if key is None else str(folder / key) for key in (own.key, own.server_key)]
    return Connectors(address_of(own.endpoint, *keys), tuple(sources), tuple(sinks))


def _all(
    document: Mapping[str, Any],
    kind: str,
    file: Path,
    table: type[Table],
    make: Callable[[Table, Path], Any],
) -> list[Any]:
    made = []
    tables = document.get(kind, [])
    if not isinstance(tables, list):
        raise ConfigurationError(f"{file}: expected [[{kind}]], found [{kind}]")
    for number, one in enumerate(tables, 1):
        place = f"{file}: [[{kind}]] {number}"
        converted = _converted(one, table, place)
        try:
            made.append(make(converted, file.resolve().parent))
        except ConfigurationError as error:
            raise ConfigurationError(f"{place}: {error}") from None
    return made


def _converted(value: object, table: type[Table], place: str) -> Table:
    try:
        return msgspec.convert(value, table)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$.")
        key = f"{where.rstrip('`')}: " if where else ""
        raise ConfigurationError(f"{place}: {key}{reason}") from None


def _source(table: SourceTable, folder: Path) -> SourcePump:
    system, module, said = table.system()
    if fault := name_fault(table.name):
        raise ConfigurationError(f"name: {fault}")
    if table.body == "csv" and system != "files":
        raise ConfigurationError("body: csv is expected with files alone")
    with _key("events"):
        types = _declared(table.events)
    type_name = table.type
    if type_name is None and table.type_column is None and len(types) == 1:
        (type_name,) = types
    if type_name is not None and type_name not in types:
        raise ConfigurationError(f"type: expected one of {', '.join(types)}, found {type_name!r}")
    with _key(""):  # which the message begins with, as an option
        layout = _layout(table)
    with _key("topic"):
        topic = Template(table.topic, module.LEVEL)
    decode = _decoder(table, folder)
    with _key("pattern"):
        reading = Reading(topic, table.body, types, type_name, layout, table.pattern, decode)
    settings = _converted(said, module.Settings, system)
    window = table.window or int(getattr(module, "WINDOW", WINDOW))
    with _key(system):
        own = {"has_heading": table.body == "csv"} if system == "files" else {}
        giver: Giver = module.Source(table.name, settings, folder, topic, window, **own)
    letters = DeadLetters(folder / table.dead_letter, table.name)
    is_timed = table.time_column is not None or table.body == "cloudevents"
    disorder_s = table.disorder_s or (DISORDER_S if is_timed else None)
    return SourcePump(table.name, giver, reading, letters, types, window, disorder_s)


def _sink(table: SinkTable, folder: Path) -> SinkPump:
    system, module, said = table.system()
    if table.key is not None and system != "kafka":
        raise ConfigurationError("key: expected with kafka alone")
    with _key("topic"):
        topic = Template(table.topic)
    with _key("body"):
        writing = Writing(topic, table.body, table.headers, table.key)
    settings = _converted(said, module.Settings, system)
    with _key(system):
        taker: Taker = module.Sink(table.name, settings, folder, table.window)
    letters = DeadLetters(folder / table.dead_letter, table.name)
    own = table.filters, table.window, table.durable
    return SinkPump(table.name, taker, writing, letters, *own)


def _decoder(table: SourceTable, folder: Path) -> Decode | None:
    if table.body not in PACKAGES:
        if said := [key for key in ("schema", "message", "skip_bytes") if getattr(table, key)]:
            raise ConfigurationError(f"{said[0]}: expected with body avro or protobuf alone")
        return None
    if not table.schema:
        raise ConfigurationError(f"schema: expected the file of a schema, with body {table.body}")
    return decoder_of(table.body, folder / table.schema, table.message, table.skip_bytes)


def _layout(table: SourceTable) -> Layout:
    times = TimeForm(table.time_unit, table.time_zone, table.time_format)
    columns = tuple(table.columns.items())
    roles = table.time_column, table.id_column, "", table.type_column
    return Layout(*roles, columns, times, flat=True)


def _declared(texts: tuple[str, ...]) -> dict[str, EventType]:
    """Types by their declarations, as a rule's: ``Temp(area: string, value: float)``."""
    return dict(load("\n".join(f"event {text}" for text in texts)).schemas)


@contextmanager
def _key(name: str) -> Iterator[None]:
    """Errors of the value of a key, as ConfigurationErrors that name it."""
    try:
        yield
    except (ValueError, OSError, re.error, RuleErrors) as error:
        text = error.problems[0].message if isinstance(error, RuleErrors) else str(error)
        option, colon, reason = text.partition(": ")
        if option.startswith("--") and colon:
            raise ConfigurationError(f"{option[2:].replace('-', '_')}: {reason}") from None
        raise ConfigurationError(f"{name}: {text}") from None

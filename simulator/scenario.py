"""Scenario files: TOML, read whole or refused with the place and what was expected there.

A file may spell its brokers and links out, generate them by ``[topology]``, or both: what is
spelled out is added. docs/scenarios.md documents every key.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import networkx as nx

from simulator.faults import Fault
from simulator.lanes import Quality
from simulator.topology import Topology, graph_of

STRATEGIES = (
    "centralized",
    "distributed-st",
    "distributed-mt",
    "push-pull-st",
    "push-pull-mt",
    "adaptive",
)
"""The strategies of the contract; the first two are there yet."""
ORDERINGS = ("watermark", "arrival")


class ScenarioError(ValueError):
    """A scenario file is refused: which file, where in it, and what was expected."""


# --- the tables of a file ----------------------------------------------------------------------


class BrokerTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[broker]]``. ``listen``, ``http`` and ``data`` are for networks of processes."""

    name: str
    listen: str | None = None
    http: str | None = None
    data: str | None = None


class LinkTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[link]]``."""

    between: tuple[str, str]
    delay_ms: float = 5.0
    bandwidth_mbps: float | None = None
    loss: float = 0.0


class SourceTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[source]]``. ``type``: that of a file of tables without a column for it."""

    name: str
    broker: str
    events: str
    type: str | None = None


class SinkTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[sink]]``."""

    name: str
    broker: str
    subscribe: tuple[str, ...]


class FaultTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[fault]]``."""

    kind: str
    at_s: float
    for_s: float | None = None
    links: tuple[tuple[str, str], ...] = ()
    brokers: tuple[str, ...] = ()
    value: float | None = None


class TopologyTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[topology]``."""

    kind: str
    brokers: int = 20
    degree: float = 5.0
    delay_ms: float = 5.0
    file: str | None = None


class ProtocolTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[protocol]``: what brokers and clients are told to do."""

    heartbeat_s: float | None = None
    message_cost_us: float = 0.0
    byte_cost_ns: float = 0.0


class ScenarioTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    seed: int = 0
    strategy: str = "centralized"
    ordering: str = "watermark"
    rules: str | None = None
    duration_s: float | None = None
    engine: str = "auto"
    topology: TopologyTable | None = None
    protocol: ProtocolTable = ProtocolTable()
    broker: tuple[BrokerTable, ...] = ()
    link: tuple[LinkTable, ...] = ()
    source: tuple[SourceTable, ...] = ()
    sink: tuple[SinkTable, ...] = ()
    fault: tuple[FaultTable, ...] = ()


# --- what a file says ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Link:
    """Two brokers, and what both lanes between them are like."""

    between: tuple[str, str]
    quality: Quality


@dataclass(frozen=True, slots=True)
class Source:
    """Publishes the events of a file at a broker; their own sources say under which names."""

    name: str
    broker: str
    events: Path
    type_name: str | None = None


@dataclass(frozen=True, slots=True)
class Sink:
    """Subscribes at a broker."""

    name: str
    broker: str
    subscribe: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One experiment. Intervals are in seconds; ``duration_s`` None: until all is settled."""

    file: Path
    seed: int
    strategy: str
    ordering: str
    engine: str
    rules: Path | None
    duration_s: float | None
    heartbeat_s: float
    message_cost_s: float
    byte_cost_s: float
    brokers: tuple[str, ...]
    links: tuple[Link, ...]
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    faults: tuple[Fault, ...]


QUIET_HEARTBEAT_S = 600.0
"""The heartbeats of a run in which nothing fails: they would only be counted."""


def read(file: Path, seed: int | None = None) -> Scenario:
    """The scenario of a file; ``seed`` goes before the file's own. ScenarioError, OSError."""
    data = file.read_bytes()
    try:
        document = tomllib.loads(data.decode())
        table = msgspec.convert(document, ScenarioTable, strict=True)
        return _Reader(file, table, seed).scenario()
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{file}: not UTF-8: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{file}: {error}") from None
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{file}: {_place_first(str(error))}") from None
    except ValueError as error:
        raise ScenarioError(f"{file}: {error}") from None


def _place_first(text: str) -> str:
    """``broker[2].name: Expected `str`...`` from ``Expected `str`... - at `$.broker[1].name```."""
    message, _, place = text.partition(" - at `$")
    place = re.sub(
        r"\[(\d+)\]", lambda found: f"[{int(found[1]) + 1}]", place.strip("`").strip(".")
    )
    message = message[:1].lower() + message[1:]
    return f"{place}: {message}" if place else message


class _Reader:
    """Checks what the tables say against one another."""

    def __init__(self, file: Path, table: ScenarioTable, seed: int | None) -> None:
        self._file = file
        self._table = table
        self._seed = table.seed if seed is None else seed

    def scenario(self) -> Scenario:
        """The scenario; ValueError where something does not fit."""
        table, protocol = self._table, self._table.protocol
        _one_of("strategy", table.strategy, STRATEGIES)
        _one_of("ordering", table.ordering, ORDERINGS)
        _positive("duration_s", table.duration_s)
        _positive("protocol.heartbeat_s", protocol.heartbeat_s)
        brokers, links = self._network()
        faults = tuple(
            self._fault(place, one, brokers, links) for place, one in enumerate(table.fault, 1)
        )
        heartbeat_s = protocol.heartbeat_s or (1.0 if faults else QUIET_HEARTBEAT_S)
        return Scenario(
            self._file,
            self._seed,
            table.strategy,
            table.ordering,
            table.engine,
            None if table.rules is None else self._path(table.rules),
            table.duration_s,
            heartbeat_s,
            protocol.message_cost_us / 1e6,
            protocol.byte_cost_ns / 1e9,
            brokers,
            links,
            tuple(self._source(place, one, brokers) for place, one in enumerate(table.source, 1)),
            tuple(self._sink(place, one, brokers) for place, one in enumerate(table.sink, 1)),
            faults,
        )

    def _path(self, name: str) -> Path:
        return self._file.parent / name

    def _network(self) -> tuple[tuple[str, ...], tuple[Link, ...]]:
        graph = self._generated()
        for place, broker in enumerate(self._table.broker, 1):
            _named(f"broker[{place}].name", broker.name, graph)
            graph.add_node(broker.name)
        links = [
            Link((one, other), Quality(delay_s))
            for one, other, delay_s in graph.edges(data="delay_s")
        ]
        for place, table in enumerate(self._table.link, 1):
            links.append(self._link(f"link[{place}]", table, graph))
        if len(graph) == 0:
            raise ValueError("expected a [[broker]] or a [topology]")
        if not nx.is_connected(graph):
            first, second, *_ = (sorted(part) for part in nx.connected_components(graph))
            raise ValueError(f"no link joins {first[0]} and {second[0]}")
        return tuple(graph), tuple(links)

    def _generated(self) -> nx.Graph:
        table = self._table.topology
        if table is None:
            return nx.Graph()
        file = None if table.file is None else self._path(table.file)
        try:
            topology = Topology(table.kind, table.brokers, table.degree, table.delay_ms, file)
            return graph_of(topology, Random(f"{self._seed}/topology"))
        except ValueError as error:
            raise ValueError(f"topology.{error}") from None

    def _link(self, place: str, table: LinkTable, graph: nx.Graph) -> Link:
        one, other = table.between
        for name in (one, other):
            _known(f"{place}.between", name, graph)
        if one == other:
            raise ValueError(f"{place}.between: a broker is not linked to itself")
        if graph.has_edge(one, other):
            raise ValueError(f"{place}.between: {one} and {other} are linked already")
        graph.add_edge(one, other)
        bandwidth = None if table.bandwidth_mbps is None else table.bandwidth_mbps * 125_000
        try:
            return Link((one, other), Quality(table.delay_ms / 1e3, bandwidth, loss=table.loss))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None

    def _source(self, place: int, table: SourceTable, brokers: tuple[str, ...]) -> Source:
        _known(f"source[{place}].broker", table.broker, brokers)
        return Source(table.name, table.broker, self._path(table.events), table.type)

    def _sink(self, place: int, table: SinkTable, brokers: tuple[str, ...]) -> Sink:
        earlier = {one.name for one in self._table.sink[: place - 1]}
        _named(f"sink[{place}].name", table.name, earlier)
        _known(f"sink[{place}].broker", table.broker, brokers)
        return Sink(table.name, table.broker, table.subscribe)

    def _fault(
        self, place: int, table: FaultTable, brokers: tuple[str, ...], links: tuple[Link, ...]
    ) -> Fault:
        linked = {frozenset(link.between) for link in links}
        for name in table.brokers:
            _known(f"fault[{place}].brokers", name, brokers)
        for pair in table.links:
            if frozenset(pair) not in linked:
                raise ValueError(
                    f"fault[{place}].links: there is no link between {' and '.join(pair)}"
                )
        fields: dict[str, Any] = msgspec.structs.asdict(table)
        try:
            return Fault(**fields)
        except ValueError as error:
            raise ValueError(f"fault[{place}]: {error}") from None


def _one_of(place: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{place}: expected one of {', '.join(choices)}, found {value!r}")


def _positive(place: str, value: float | None) -> None:
    if value is not None and value <= 0:
        raise ValueError(f"{place}: expected a positive number, found {value}")


def _named(place: str, name: str, taken: Any) -> None:
    if not name or not name.isprintable():
        raise ValueError(f"{place}: expected a name that can be printed, found {name!r}")
    if name in taken:
        raise ValueError(f"{place}: there are two of the name {name!r}")


def _known(place: str, name: str, brokers: Any) -> None:
    if name not in brokers:
        raise ValueError(f"{place}: there is no broker {name!r}")

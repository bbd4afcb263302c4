"""A scenario's network as a host sees it that runs it as processes (``rexmq network``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from matcher.matching import Matching
from simulator import scenario
from simulator.scenario import ScenarioError
from simulator.tables import BrokerTable


@dataclass(frozen=True, slots=True)
class Blueprint:
    """Brokers by name, each with the endpoint that it is to listen on, if the file says one.

    ``flags``: what else ``rexmq broker`` is told of some, by name.
    """

    strategy: str
    ordering: str
    engine: str
    brokers: tuple[tuple[str, str | None], ...]
    links: tuple[tuple[str, str], ...]
    flags: Mapping[str, tuple[str, ...]]


def blueprint(file: Path, refuse: type[Exception] = ScenarioError) -> Blueprint:
    """The network of a scenario file. Raises ``refuse`` for a bad one, OSError."""
    try:
        return _blueprint(file)
    except ScenarioError as error:
        raise refuse(str(error)) from None


def _blueprint(file: Path) -> Blueprint:
    document = scenario.parse(file)
    if "sweep" in document:
        raise ScenarioError(f"{file}: sweep: is for rexmq simulate; expected one network")
    read = scenario.of(document, file)
    tables = {
        table.name: table
        for table in msgspec.convert(document.get("broker", ()), tuple[BrokerTable, ...])
    }
    for place, table in enumerate(tables.values(), 1):
        if table.data is not None:
            raise ScenarioError(f"{file}: broker[{place}].data: comes later")
    return Blueprint(
        read.strategy,
        read.ordering,
        read.engine,
        tuple((name, tables[name].listen if name in tables else None) for name in read.brokers),
        tuple(link.between for link in read.links),
        {name: _flags(read.matching.get(name), tables.get(name)) for name in read.brokers},
    )


def _flags(matching: Matching | None, table: BrokerTable | None) -> tuple[str, ...]:
    """The words that one broker alone is told."""
    flags: tuple[str, ...] = ()
    if matching is not None:
        flags = ("--matcher", matching.matcher, "--device", matching.device)
    if table is not None and table.http is not None:
        flags += ("--http", table.http)
    return flags

"""A scenario's network as a host sees it that runs it as processes (``rexmq network``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

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
        for key in ("http", "data"):
            if getattr(table, key) is not None:
                raise ScenarioError(f"{file}: broker[{place}].{key}: comes later")
    return Blueprint(
        read.strategy,
        read.ordering,
        read.engine,
        tuple((name, tables[name].listen if name in tables else None) for name in read.brokers),
        tuple(link.between for link in read.links),
        {
            name: ("--matcher", one.matcher, "--device", one.device)
            for name, one in read.matching.items()
        },
    )

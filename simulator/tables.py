"""The tables of a scenario file, as TOML has them: names, types and defaults of all keys.

What they mean together is checked in ``scenario``; docs/scenarios.md documents every key.
"""

from __future__ import annotations

import msgspec

from simulator.mishaps import Mishaps
from simulator.workload import Workload


class BrokerTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[broker]]``. ``listen``, ``http`` and ``data`` are for networks of processes."""

    name: str
    matcher: str = "auto"
    device: str = "cpu"
    listen: str | None = None
    http: str | None = None
    data: str | None = None


class LinkTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[link]]``."""

    between: tuple[str, str]
    delay_ms: float = 5.0
    bandwidth_mbps: float | None = None
    loss: float = 0.0


class MoveTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One of a source's ``moves``; without a broker it stays where it is."""

    at_s: float
    broker: str | None = None
    away_s: float = 0.0
    goodbye: bool = True


class SourceTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[source]]``. ``type``: that of a file of tables without a column for it."""

    name: str
    broker: str
    events: str
    type: str | None = None
    at_s: float | None = None
    moves: tuple[MoveTable, ...] = ()


class ThenTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One of what a sink wants ``then``, more than before and no more."""

    at_s: float
    subscribe: tuple[str, ...] = ()
    unsubscribe: tuple[str, ...] = ()


class SinkTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[sink]]``."""

    name: str
    broker: str
    subscribe: tuple[str, ...]
    at_s: float | None = None
    for_s: float | None = None
    then: tuple[ThenTable, ...] = ()
    durable: bool = False


class FaultTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[fault]]``."""

    kind: str
    at_s: float
    for_s: float | None = None
    links: tuple[tuple[str, str], ...] = ()
    brokers: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    value: float | None = None


class ChangeTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[[change]]``: rules that are deployed in mid-stream, or one that is removed."""

    at_s: float
    broker: str
    rules: str | None = None
    remove: str | None = None
    since_s: float | None = None


class TopologyTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[topology]``."""

    kind: str
    brokers: int = 20
    degree: float = 5.0
    delay_ms: float = 5.0
    bandwidth_mbps: float | None = None
    loss: float = 0.0
    file: str | None = None


class ProtocolTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[protocol]``: what brokers and clients are told to do."""

    heartbeat_s: float | None = None
    lead_s: float = 10.0
    message_cost_us: float = 0.0
    byte_cost_ns: float = 0.0
    source_silence_max_s: float | None = None
    forget_s: float | None = None
    source_lead_max_s: float | None = None
    publish_credit: int | None = None
    window_max: int | None = None
    buffer_max: int | None = None
    delivery_events_max: int | None = None
    unasked_events_max: int | None = None
    processing: str | None = None


class ScenarioTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    seed: int = 0
    strategy: str = "centralized"
    ordering: str = "watermark"
    rules: str | None = None
    duration_s: float | None = None
    checks: tuple[str, ...] | None = None
    engine: str = "auto"
    warm_up_s: float = 0.0
    topology: TopologyTable | None = None
    workload: Workload | None = None
    faults: Mishaps | None = None
    protocol: ProtocolTable = ProtocolTable()
    broker: tuple[BrokerTable, ...] = ()
    link: tuple[LinkTable, ...] = ()
    source: tuple[SourceTable, ...] = ()
    sink: tuple[SinkTable, ...] = ()
    fault: tuple[FaultTable, ...] = ()
    change: tuple[ChangeTable, ...] = ()

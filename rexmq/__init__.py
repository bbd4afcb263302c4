"""All that a program imports, under one name (docs/dataframes.md, docs/clients.md).

>>> import rexmq
>>> engine = rexmq.Engine("event Temp(value: float) define Hot() from Temp(value > 45)")

The names are imported when they are first used, so that ``import rexmq`` costs nothing but this
file.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker import (
        AsyncPublisher,
        AsyncReceipt,
        AsyncRuleManager,
        AsyncSubscriber,
        BrokerError,
        BrokerUnreachable,
        ClientClosed,
        LateEvents,
        PublishBlocked,
        Publisher,
        Receipt,
        RefusedError,
        RuleManager,
        Subscriber,
    )
    from matcher.errors import BadEvent, EventError, SchemaError
    from matcher.formats.layout import Layout
    from matcher.formats.tables import Table, Tables
    from matcher.formats.timeform import TimeForm
    from matcher.model import Event, EventBatch, EventType
    from matcher.rows import batch_of
    from rexmq.found import Found
    from rexmq.recordings import detect
    from rules import Engine, RuleErrors, TooManyComposites, explain, load, summarise

_HOMES = {
    "AsyncPublisher": "broker",
    "AsyncReceipt": "broker",
    "AsyncRuleManager": "broker",
    "AsyncSubscriber": "broker",
    "BadEvent": "matcher.errors",
    "BrokerError": "broker",
    "BrokerUnreachable": "broker",
    "ClientClosed": "broker",
    "Engine": "rules",
    "Event": "matcher.model",
    "EventBatch": "matcher.model",
    "EventError": "matcher.errors",
    "EventType": "matcher.model",
    "Found": "rexmq.found",
    "LateEvents": "broker",
    "Layout": "matcher.formats.layout",
    "PublishBlocked": "broker",
    "Publisher": "broker",
    "Receipt": "broker",
    "RefusedError": "broker",
    "RuleErrors": "rules",
    "RuleManager": "broker",
    "SchemaError": "matcher.errors",
    "Subscriber": "broker",
    "Table": "matcher.formats.tables",
    "Tables": "matcher.formats.tables",
    "TimeForm": "matcher.formats.timeform",
    "TooManyComposites": "rules",
    "batch_of": "matcher.rows",
    "detect": "rexmq.recordings",
    "explain": "rules",
    "load": "rules",
    "summarise": "rules",
}

__all__ = [
    "AsyncPublisher",
    "AsyncReceipt",
    "AsyncRuleManager",
    "AsyncSubscriber",
    "BadEvent",
    "BrokerError",
    "BrokerUnreachable",
    "ClientClosed",
    "Engine",
    "Event",
    "EventBatch",
    "EventError",
    "EventType",
    "Found",
    "LateEvents",
    "Layout",
    "PublishBlocked",
    "Publisher",
    "Receipt",
    "RefusedError",
    "RuleErrors",
    "RuleManager",
    "SchemaError",
    "Subscriber",
    "Table",
    "Tables",
    "TimeForm",
    "TooManyComposites",
    "batch_of",
    "detect",
    "explain",
    "load",
    "summarise",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rexmq' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]

"""The live host of the protocol core: ZeroMQ and the wall clock, the clients, the command line.

The names exported here are imported when they are first used, so that ``import broker``, and with
it ``rexmq --help``, costs nothing but this file.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.client.async_publisher import AsyncPublisher
    from broker.client.manager import AsyncRuleManager, RuleManager
    from broker.client.publisher import Publisher
    from broker.client.receipt import AsyncReceipt, Receipt
    from broker.client.subscriber import AsyncSubscriber, Subscriber
    from broker.errors import (
        BrokerError,
        BrokerUnreachable,
        ClientClosed,
        LateEvents,
        PublishBlocked,
        RefusedError,
    )

_HOMES = {
    "AsyncPublisher": "broker.client.async_publisher",
    "AsyncReceipt": "broker.client.receipt",
    "AsyncRuleManager": "broker.client.manager",
    "AsyncSubscriber": "broker.client.subscriber",
    "BrokerError": "broker.errors",
    "BrokerUnreachable": "broker.errors",
    "ClientClosed": "broker.errors",
    "LateEvents": "broker.errors",
    "PublishBlocked": "broker.errors",
    "Publisher": "broker.client.publisher",
    "Receipt": "broker.client.receipt",
    "RefusedError": "broker.errors",
    "RuleManager": "broker.client.manager",
    "Subscriber": "broker.client.subscriber",
}

__all__ = [
    "AsyncPublisher",
    "AsyncReceipt",
    "AsyncRuleManager",
    "AsyncSubscriber",
    "BrokerError",
    "BrokerUnreachable",
    "ClientClosed",
    "LateEvents",
    "PublishBlocked",
    "Publisher",
    "Receipt",
    "RefusedError",
    "RuleManager",
    "Subscriber",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'broker' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)

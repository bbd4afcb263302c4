"""The live host of the protocol core: ZeroMQ and the wall clock, the clients, the command line.

The names exported here are imported when they are first used, so that ``import broker``, and with
it ``rexmq --help``, costs nothing but this file.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.errors import BrokerError as BrokerError
    from broker.errors import BrokerUnreachable as BrokerUnreachable
    from broker.errors import RefusedError as RefusedError

_HOMES = {
    "BrokerError": "broker.errors",
    "BrokerUnreachable": "broker.errors",
    "RefusedError": "broker.errors",
}

__all__ = ["BrokerError", "BrokerUnreachable", "RefusedError"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'broker' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)

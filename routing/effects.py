"""Effects that a Node or a Session wants: its only outputs (protocol.md section 8).

``Send`` is a struct of msgspec, as are the messages that bear events: one is made for every event
of a live link, and a frozen dataclass takes many times as long to make. Python's collector need
not look at them (``gc=False``): they are values, which hold no cycles.

The host carries effects out in their order and reports nothing back, but for two: a peer that
cannot be reached is reported as lost (``Node.lose``, ``Session.lose``), and what a store has kept
is reported when it has (``Broker.stored``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec import Struct

from routing.messages import Message
from routing.storage import StoreChange

Peer: TypeAlias = bytes
"""The host's name for a link, opaque to the core. A Session's only peer is ``BROKER``."""

BROKER: Peer = b""


class Send(Struct, frozen=True, gc=False):
    """Encode ``message`` with ``wire.encode`` and send it to ``peer``."""

    peer: Peer
    message: Message


@dataclass(frozen=True, slots=True)
class Close:
    """Close the link, once what was sent before has gone out. Nothing more comes for it."""

    peer: Peer
    reason: str


@dataclass(frozen=True, slots=True)
class Log:
    """A line for the log; ``level`` is a name of the logging module in lower case."""

    level: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class Store(Struct, frozen=True, eq=False, gc=False):
    """Keep these changes, together and behind those of the numbers before."""

    number: int
    changes: tuple[StoreChange, ...]


Effect: TypeAlias = Send | Close | Log | Store

"""States and results of one end of a link."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from routing.effects import Peer
from routing.messages import Carried, Routed


class ChannelState(enum.Enum):
    """Where the conversation with the neighbour stands (channel)."""

    GREETING = "greeting"
    UP = "up"
    CLOSED = "closed"


CHANNEL_MOVES: Mapping[ChannelState, Mapping[ChannelState, str]] = {
    ChannelState.GREETING: {
        ChannelState.UP: "LinkHello of the neighbour",
        ChannelState.CLOSED: "this broker leaves, Goodbye",
    },
    ChannelState.UP: {
        ChannelState.GREETING: (
            "silence, Goodbye, a lost connection, or another incarnation of either end"
        ),
        ChannelState.CLOSED: "this broker leaves, Goodbye",
    },
    ChannelState.CLOSED: {},
}
"""The next states of each, and what leads there. docs/brokers.md shows them drawn."""


@dataclass(frozen=True, slots=True)
class Up:
    """The neighbour is there; ``fresh`` when it knows nothing of what it was told before."""

    name: str
    fresh: bool


@dataclass(frozen=True, slots=True)
class Down:
    """The neighbour is not there any more."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class DelayKnown:
    """The link's delay is known from now on."""


@dataclass(frozen=True, slots=True)
class Piling:
    """Messages that wait for the neighbour, or are not acknowledged, begin to pile up, or no longer
    do.
    """

    name: str


class Sent(Struct, gc=False):
    """A packet under way. ``again``: it was sent more than once."""

    sequence: int
    message: Routed
    at: float
    again: bool = False


class Heard(Struct, frozen=True, eq=False, gc=False):
    """A neighbour has sent something."""

    neighbour: str
    message: Carried


LinkResult: TypeAlias = Up | Down | DelayKnown | Piling | Routed
"""Results of a link: the neighbour is up or down, the delay is known, messages pile up, or one has
come."""


def tag_of(sender: int, receiver: int) -> int:
    """The tag of the packets from one incarnation to another."""
    return (sender * 0x9E3779B1 + receiver * 0x85EBCA77) % 2**32


def link_text(peer: Peer) -> str:
    """A link, for the log: as the host has named it, where that can be read."""
    name = peer.removeprefix(b"\0")
    return name.decode() if name.isascii() and name.decode().isprintable() else peer.hex()

"""What can be said of one end of a link: where it stands, and what has come of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from routing.effects import Peer
from routing.messages import Carried, Routed


class State(enum.Enum):
    """Where the conversation with the neighbour stands (channel, Law 3)."""

    GREETING = "greeting"
    UP = "up"
    CLOSED = "closed"


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


class Sent(Struct, gc=False):
    """A packet under way."""

    sequence: int
    message: Routed
    at: float


class Heard(Struct, frozen=True, eq=False, gc=False):
    """A neighbour has sent something."""

    neighbour: str
    message: Carried


Result: TypeAlias = Up | Down | Routed
"""What comes of a link: the neighbour, and what it sends."""


def tag_of(sender: int, receiver: int) -> int:
    """The tag of the packets from one life to another."""
    return (sender * 0x9E3779B1 + receiver * 0x85EBCA77) % 2**32


def link_text(peer: Peer) -> str:
    """A link, for the log: as the host has named it, where that can be read."""
    name = peer.removeprefix(b"\0")
    return name.decode() if name.isascii() and name.decode().isprintable() else peer.hex()

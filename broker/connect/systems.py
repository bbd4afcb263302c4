"""Other systems, as pumps see them: one that gives messages, and one that takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from broker.errors import BrokerError


class SystemLost(BrokerError):
    """Another system cannot be reached, or refuses; the message names it."""


class Message(Struct, frozen=True, eq=False):
    """A message that has come: its topic, subject or path, its body, and its acknowledgement."""

    topic: str
    body: bytes
    acknowledge: Callable[[], None]


class Outgoing(Struct, frozen=True):
    """A message that is to leave, with the id of its event, for consumers that drop repeats."""

    topic: str
    body: bytes
    id: str


class Giver(Protocol):
    """A system that gives messages."""

    async def open(self) -> None:
        """Connect. Raises SystemLost."""

    async def receive(self) -> Message:
        """The next message. Raises SystemLost once the system is lost for good."""

    async def close(self) -> None:
        """Hang up; what was not acknowledged comes again."""


class Taker(Protocol):
    """A system that takes messages."""

    async def open(self) -> None:
        """Connect. Raises SystemLost."""

    async def send(self, message: Outgoing) -> None:
        """Give a message to the system, and wait until it has confirmed it. Raises BadEvent for one
        that it will never take, SystemLost once it is lost for good.
        """

    async def close(self) -> None:
        """Hang up."""

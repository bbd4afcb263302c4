"""The client's side of the protocol, without sockets, clocks or threads (architecture.md 4).

A Session outlives its links: ``connect`` on a fresh link says Hello; once welcomed, it advertises
and subscribes again and sends again what was not acknowledged. Outcomes come out of
``take_results`` as the broker's own messages, in order, with ``Lost`` where a link ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from matcher.model import TIME_MIN, EventBatch, EventType
from routing.config import SessionConfig
from routing.effects import Effect
from routing.messages import (
    Acknowledged,
    Code,
    Confirmed,
    Delivery,
    FromBroker,
    Refused,
    Rejected,
    Welcome,
    WhenFull,
)

NO_TIME = TIME_MIN
"""The time of an event that ``publish`` is to stamp."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The link is gone: the host may ``connect`` again (after a pause that grows).

    ``retry`` is False when that would be refused again (another version, a bad name).
    """

    code: Code
    reason: str
    retry: bool


Result: TypeAlias = Welcome | Confirmed | Refused | Acknowledged | Rejected | Delivery | Lost


class Session:
    """One client. ``now`` is in seconds since the epoch (it stamps events) and never goes back."""

    def __init__(self, config: SessionConfig) -> None:
        raise NotImplementedError

    # --- the link ---

    @property
    def ready(self) -> bool:
        """Whether the broker has welcomed this session on its present link."""
        raise NotImplementedError

    def connect(self, now: float) -> None:
        """Start on a fresh link: says Hello."""
        raise NotImplementedError

    def receive(self, message: FromBroker, now: float) -> None:
        """Take in one message."""
        raise NotImplementedError

    def receive_frames(self, frames: Sequence[bytes], now: float) -> None:
        """Decode and take in one message; malformed frames end the link (``Lost``)."""
        raise NotImplementedError

    def lose(self, now: float, reason: str = "the link broke") -> None:
        """The link broke."""
        raise NotImplementedError

    def handle_timer(self, now: float) -> None:
        """Do what is due: heartbeats, promises of a live source, a silent broker."""
        raise NotImplementedError

    def next_timer(self) -> float | None:
        """When ``handle_timer`` is due next; None when not connected."""
        raise NotImplementedError

    def close(self, now: float, reason: str = "") -> None:
        """Say Goodbye: a source has then published everything. Publish or flush before."""
        raise NotImplementedError

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        raise NotImplementedError

    def take_results(self) -> list[Result]:
        """The outcomes since the last call, in order."""
        raise NotImplementedError

    # --- a source ---

    @property
    def room(self) -> int:
        """How many events ``publish`` takes now; 0 until acknowledgements come."""
        raise NotImplementedError

    @property
    def unacknowledged(self) -> int:
        """How many events are published, or wait for credit, and are not acknowledged."""
        raise NotImplementedError

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last event given to ``publish``."""
        raise NotImplementedError

    def advertise(self, types: Sequence[EventType]) -> int:
        """Announce types (again after each reconnection); gives the request's number."""
        raise NotImplementedError

    def unadvertise(self, names: Sequence[str]) -> int:
        """Announce that these types will be published no more."""
        raise NotImplementedError

    def publish(self, batch: EventBatch, now: float, promise: int | None = None) -> tuple[int, int]:
        """Publish events; gives their first and last sequence number.

        The batch's source and sequence numbers are replaced by the session's own; its text ids
        are kept, and where there are none the sequence number is the id. Events with time
        ``NO_TIME`` are stamped with ``now``. ``promise``: nothing earlier will follow.

        Raises SessionFull when ``room`` is less than the batch's length, SessionError when the
        times do not increase as configured or the type was not advertised.
        """
        raise NotImplementedError

    def publish_all(
        self, batches: Sequence[EventBatch], now: float, promise: int | None = None
    ) -> tuple[int, int]:
        """The same for batches of several types that belong to one promise.

        The batches' own ``ids.sequence`` gives the order in which their events are meant.
        """
        raise NotImplementedError

    def promise(self, mark: int) -> None:
        """Nothing earlier than ``mark`` (microseconds) will follow."""
        raise NotImplementedError

    # --- a sink ---

    def subscribe(
        self, text: str, when_full: WhenFull = WhenFull.BLOCK, limit: int = 65_536
    ) -> tuple[int, int]:
        """Ask for events (again after each reconnection); gives (request, subscription number)."""
        raise NotImplementedError

    def unsubscribe(self, number: int) -> int:
        """End a subscription."""
        raise NotImplementedError

    def consume(self, events: int) -> None:
        """The application has taken ``events`` delivered events: grants the broker new credit."""
        raise NotImplementedError

    # --- a rule manager ---

    def deploy(self, text: str, replace: bool = False, file: str = "<rules>") -> int:
        """Deploy rules; Confirmed.detail has ``rules``, ``since`` and ``version``."""
        raise NotImplementedError

    def remove(self, name: str) -> int:
        """Remove a rule."""
        raise NotImplementedError

    def list_rules(self) -> int:
        """Ask for the rules and their states."""
        raise NotImplementedError

    def show_rule(self, name: str) -> int:
        """Ask for one rule's canonical text."""
        raise NotImplementedError

    def status(self) -> int:
        """Ask for the broker's status."""
        raise NotImplementedError

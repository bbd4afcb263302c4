"""Acknowledgements that wait until all that follows from events has come where it is going.

Law: a Publish that asks for it (``Acks.COMMITTED``) is acknowledged once its events have come to
all sinks that want them, or to the stores of durable ones, and so have the composite events of all
rules that take their types, up to their times. s publishes Smoke of 40 s: fire, which Temp
completes, is found up to 38 s, and s waits; Temp is promised up to 41 s, fire is found up to there,
has come to its sinks, and s hears that Smoke is committed.

Each link's are answered in the order in which they came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from matcher.model import EventBatch
from routing.effects import Peer
from routing.order import greatest_time

LOOK_S, LOOK_MAX_S = 0.01, 1.0
"""Seconds after which it is asked again, at first and in the end."""


class Uncommitted(NamedTuple):
    """Events of one Publish: the last number of their source by then, their types, their greatest
    time, and how many events of all sources had come to the broker with them.
    """

    sequence: int
    types: frozenset[str]
    time: int
    place: int


class Committing:
    """Events that wait to be committed, by the link of their source."""

    def __init__(self, settle: Callable[[], None]) -> None:
        """``settle``: looks again, when it is time to."""
        self._settle = settle
        self._waiting: dict[Peer, deque[Uncommitted]] = {}
        self._after_s = LOOK_S
        self.due_at: float | None = None
        """In a network: when it is asked again how far all have come; None while nothing waits, or
        nobody has asked."""

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._waiting)

    def must_ask(self, now: float) -> bool:
        """Whether it is time to ask how far all have come; asking again is put off the longer, the
        longer nothing is committed.
        """
        if not self._waiting:
            self.due_at = None
        elif self.due_at is None or self.due_at <= now:
            self.due_at = now + self._after_s
            self._after_s = min(2 * self._after_s, LOOK_MAX_S)
            return True
        return False

    def handle_timer(self) -> None:
        """It is time to ask."""
        self._settle()

    def add(self, peer: Peer, batches: Sequence[EventBatch], sequence: int, place: int) -> None:
        """Events have come whose source waits until they are committed."""
        types = frozenset(batch.type.name for batch in batches)
        one = Uncommitted(sequence, types, max(map(greatest_time, batches)), place)
        self._waiting.setdefault(peer, deque()).append(one)
        self._after_s = LOOK_S

    def leave(self, peer: Peer) -> None:
        """The link has gone."""
        self._waiting.pop(peer, None)

    def take(self, is_committed: Callable[[Uncommitted], bool]) -> Iterator[tuple[Peer, int]]:
        """Give the links of which more is committed than before, and up to which number."""
        for peer, waiting in list(self._waiting.items()):
            number = None
            while waiting and is_committed(waiting[0]):
                number = waiting.popleft().sequence
            if not waiting:
                del self._waiting[peer]
            if number is not None:
                self._after_s = LOOK_S
                yield peer, number

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
from itertools import chain
from typing import NamedTuple

from matcher.model import EventBatch
from routing.effects import Peer
from routing.order import greatest_time
from routing.serving.deployment import Deployed, Deployments


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

    def __init__(self, deployments: Deployments, committed: Callable[[Deployed], int]) -> None:
        """``committed``: gives up to where a rule's composite events have come."""
        self._deployments = deployments
        self._committed = committed
        self._waiting: dict[Peer, deque[Uncommitted]] = {}

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._waiting)

    def add(self, peer: Peer, batches: Sequence[EventBatch], sequence: int) -> None:
        """Events have come whose source waits until they are committed."""
        types = frozenset(batch.type.name for batch in batches)
        one = Uncommitted(sequence, types, max(map(greatest_time, batches)), self.place)
        self._waiting.setdefault(peer, deque()).append(one)

    def leave(self, peer: Peer) -> None:
        """The link has gone."""
        self._waiting.pop(peer, None)

    @property
    def place(self) -> int:
        """How many events have come here, where that matters."""
        return 0

    def is_committed(self, one: Uncommitted) -> bool:
        """Whether all that follows from events has come where it is going."""
        following = chain.from_iterable(map(self._deployments.resting_on, one.types))
        return all(begin > one.time or self._is_beyond(rule, one.time) for begin, rule in following)

    def _is_beyond(self, rule: str, time: int) -> bool:
        deployed = self._deployments.find(rule)
        if deployed is None or deployed.end <= time:
            return True
        committed = self._committed(deployed)
        return committed > time or committed >= deployed.end

    def take(self) -> Iterator[tuple[Peer, int]]:
        """Give the links of which more is committed than before, and up to which number."""
        for peer, waiting in list(self._waiting.items()):
            number = None
            while waiting and self.is_committed(waiting[0]):
                number = waiting.popleft().sequence
            if not waiting:
                del self._waiting[peer]
            if number is not None:
                yield peer, number

"""Commits: acknowledgements that wait until all that follows from events has come to its sinks.

Law 1: a Publish that asks for it (``Acks.COMMITTED``) is acknowledged once its events have come to
all sinks that want them, or to the stores of durable ones, and so have the composite events of all
rules that take their types, up to their times. s publishes Smoke of 40 s: fire, which Temp
completes, is found up to 38 s, and s waits; Temp is promised up to 41 s, fire is found up to there,
has come to its sinks, and s hears that Smoke is committed.

Law 2: that is so once a checkpoint that began after the events came, and follows them on every way,
has been concluded, and says that the rules have come so far; each broker's part of the answer
speaks of what its store has (network.brokers.surveying). It is asked at once, again after LOOK_S,
and then the later the longer nothing is committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from matcher.model import TIME_MIN, EventBatch
from routing.effects import Peer
from routing.messages import Acknowledged
from routing.network.brokers.context import BrokerContext
from routing.order import greatest_time

LOOK_S, LOOK_MAX_S = 0.01, 1.0
"""Seconds after which it is asked again, at first and in the end."""


class Uncommitted(NamedTuple):
    """Events of one Publish: the last number of their source by then, their types, their greatest
    time, and how many events of own sources had come to the broker with them.
    """

    sequence: int
    types: frozenset[str]
    time: int
    place: int


class Commits:
    """Events that wait to be committed, by the link of their source."""

    def __init__(self, context: BrokerContext, settle: Callable[[], None]) -> None:
        """``settle``: has the broker look at what is to be done."""
        self._context = context
        self._detection = context.detection
        self.waiting: dict[Peer, deque[Uncommitted]] = {}
        self._after_s = LOOK_S
        self.due_at: float | None = None
        """When it is asked again; None while nothing waits."""
        self.handle_timer = settle

    def add(self, peer: Peer, batches: Sequence[EventBatch], sequence: int) -> None:
        """Events have come whose source waits until they are committed."""
        types = frozenset(batch.type.name for batch in batches)
        place = self._detection.replay_buffer.place
        one = Uncommitted(sequence, types, max(map(greatest_time, batches)), place)
        self.waiting.setdefault(peer, deque()).append(one)
        self._after_s = LOOK_S

    def look(self) -> None:
        """Acknowledge what is committed, and have it asked how far all have come for the rest, if
        it is time to (Law 2).
        """
        self._answer()
        now = self._context.moment.now
        if not self.waiting:
            self.due_at = None
        elif self.due_at is None or self.due_at <= now:
            self.due_at = now + self._after_s
            self._after_s = min(2 * self._after_s, LOOK_MAX_S)
            self._detection.replay_buffer.look_soon()

    def _answer(self) -> None:
        """Acknowledge, of each link, what is committed, in the order in which it came."""
        for peer, waiting in list(self.waiting.items()):
            number = None
            while waiting and self._is_committed(waiting[0]):
                number = waiting.popleft().sequence
            is_gone = self._context.links.by_peer.get(peer) is None
            if is_gone or not waiting:
                del self.waiting[peer]
            if number is not None and not is_gone:
                self._context.outlet.send(peer, Acknowledged(number))

    def _is_committed(self, one: Uncommitted) -> bool:
        if one.place > self._detection.replay_buffer.passed:
            return False
        following = chain.from_iterable(map(self._context.deployments.resting_on, one.types))
        return all(begin > one.time or self._is_beyond(rule, one.time) for begin, rule in following)

    def _is_beyond(self, rule: str, time: int) -> bool:
        """Whether a rule's composite events up to a time have come where they are going."""
        deployed = self._context.deployments.find(rule)
        if deployed is None or deployed.end <= time:
            return True
        committed = self._detection.committed.get(rule, TIME_MIN)
        return committed > time or committed >= deployed.end

"""Commits in a network: the broker asks how far all have come, by a survey, until that is enough.

Law: events are committed once a survey that began after they came has been concluded, which
follows them on every way, and says that what they are to bring has come (serving.committing). A
broker's part of the answer speaks of what its store has (network.brokers.surveying). It is asked at
once, and again after LOOK_S, then the later the longer nothing is committed. Smoke of 40 s comes to
b3, whose survey says that fire has come to 38 s; 10 ms later another one says 41 s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matcher.model import TIME_MIN, EventBatch
from routing.effects import Peer
from routing.network.evaluation.divided import DividedDetection
from routing.serving.committing import Committing, Uncommitted
from routing.serving.deployment import Deployments
from routing.serving.moment import Moment

LOOK_S, LOOK_MAX_S = 0.01, 1.0
"""Seconds after which it is asked again, at first and in the end."""


class NetworkCommits(Committing):
    """Events that wait to be committed in the whole network."""

    def __init__(
        self,
        deployments: Deployments,
        detection: DividedDetection,
        moment: Moment,
        settle: Callable[[], None],
    ) -> None:
        """``settle``: has the broker look at what is to be done."""
        super().__init__(deployments, lambda one: detection.committed.get(one.rule.name, TIME_MIN))
        self._buffer = detection.replay_buffer
        self._moment = moment
        self._after_s = LOOK_S
        self.due_at: float | None = None
        """When it is asked again; None while nothing waits."""
        self.handle_timer = settle

    @property
    def place(self) -> int:
        """How many events of own sources have come."""
        return self._buffer.place

    def add(self, peer: Peer, batches: Sequence[EventBatch], sequence: int) -> None:
        """Events have come whose source waits until they are committed."""
        super().add(peer, batches, sequence)
        self._after_s = LOOK_S

    def is_committed(self, one: Uncommitted) -> bool:
        """Whether all that follows from events has come where it is going."""
        return one.place <= self._buffer.passed and super().is_committed(one)

    def ask(self) -> None:
        """Have it asked how far all have come, if it is time to."""
        now = self._moment.now
        if not self:
            self.due_at = None
        elif self.due_at is None or self.due_at <= now:
            self.due_at = now + self._after_s
            self._after_s = min(2 * self._after_s, LOOK_MAX_S)
            self._buffer.look_soon()

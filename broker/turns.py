"""The message to be read next: work has an owner.

Law 1: the time that messages take is charged to the users who have sent them. While a user has
taken more than SHARE of the last second, others come first: its messages are read when nothing of
anybody else is there. So others wait for one of its messages at a time, and the broker never idles
while something waits. Example: Bob sends ten texts of 50 ms each, Alice an event each 10 ms. Each
of her events is read behind one of his texts at the most. What is done once for several messages
(broker.host) is done for such users or for others, never for both (``is_busy``): her event is
delivered before his next one is read.

Law 2: all that a user says is read, in its order, unless its link is ended before. At most
WAITING_MAX of its messages wait here, then the first of them has its turn. Brokers, and clients of
a broker without keys, have no user, and are read as they come.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

Arrived: TypeAlias = tuple[bytes, Sequence[bytes]]
"""A message: the peer that it is from, and its frames."""
SHARE = 0.25
SPAN_S = 1.0
"""Work counts for so long, fading."""
LOOK = 32
"""So many messages are looked at for one of a user who may go first."""
WAITING_MAX = 1_000


class _Work(NamedTuple):
    """Seconds of work of the last SPAN_S, as they were at ``at``."""

    recent: float
    at: float

    def left(self, now: float) -> float:
        return self.recent * math.exp(min(0.0, self.at - now) / SPAN_S)


_NONE = _Work(0.0, 0.0)


class Turns:
    """The messages of users, and the work that each of them has made."""

    def __init__(
        self,
        receive: Callable[[], Arrived | None],
        look_on: Callable[[], object],
        user_of: Callable[[bytes], str],
    ) -> None:
        """``receive``: the next message that has come, if any, as the last look has found.
        ``look_on``: looks again. ``user_of``: a peer's user, or "" if it has none.
        """
        self._receive = receive
        self._look_on = look_on
        self._user_of = user_of
        self._waiting: dict[str, deque[Arrived]] = {}
        self._work: dict[str, _Work] = {}
        self._served = ""
        """The user of the message that is worked at, since ``_since``."""
        self._since = 0.0
        self.is_busy = False
        """Whether the user of the message that ``next`` gave last has taken more than SHARE."""
        self.spent_s: dict[str, float] = {}
        """Seconds of work in all, by user."""

    @property
    def has_waiting(self) -> bool:
        """Whether messages wait that have been received."""
        return bool(self._waiting)

    def next(self, now: float) -> Arrived | None:
        """The message to be read next; what was read before has been done."""
        self.rest(now)
        message = self._first(now)
        if message is not None:
            self._served, self._since = self._user_of(message[0]), now
            self.is_busy = self._recent(self._served, now) > SHARE
        return message

    def put_back(self, message: Arrived) -> None:
        """Let ``next`` give once more what it gave last."""
        self._waiting.setdefault(self._served, deque()).appendleft(message)
        self._served = ""

    def forget(self, peer: bytes) -> None:
        """Leave unread what a peer has said whose link was ended: another may bear its name."""
        for user, waiting in list(self._waiting.items()):
            left = deque(one for one in waiting if one[0] != peer)
            if left:
                self._waiting[user] = left
            else:
                del self._waiting[user]

    def rest(self, now: float) -> None:
        """Charge what was read, which has been done."""
        if user := self._served:
            spent = max(0.0, now - self._since)
            self.spent_s[user] = self.spent_s.get(user, 0.0) + spent
            self._work[user] = _Work(self._recent(user, now) + spent, now)
            self._served = ""

    def _first(self, now: float) -> Arrived | None:
        if self._waiting:
            user = self._least_busy(now)
            if self._recent(user, now) <= SHARE:
                return self._pop(user)
            user = max(self._waiting, key=lambda user: len(self._waiting[user]))
            if len(self._waiting[user]) >= WAITING_MAX:
                return self._pop(user)
        for _ in range(LOOK):
            message = self._receive()
            if message is None:
                break
            user = self._user_of(message[0])
            waiting = self._waiting.get(user)
            if waiting is None:
                if not user or self._recent(user, now) <= SHARE:
                    return message
                waiting = self._waiting[user] = deque()
            waiting.append(message)
            self._look_on()
        return self._pop(self._least_busy(now)) if self._waiting else None

    def _pop(self, user: str) -> Arrived:
        waiting = self._waiting[user]
        message = waiting.popleft()
        if not waiting:
            del self._waiting[user]
        return message

    def _least_busy(self, now: float) -> str:
        return min(self._waiting, key=lambda user: self._recent(user, now))

    def _recent(self, user: str, now: float) -> float:
        return self._work.get(user, _NONE).left(now)

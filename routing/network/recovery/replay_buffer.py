"""Events that entered here, kept while they may be needed again (brokers.md section 5).

Law 1: an event is kept until a checkpoint that began after it came is known to have reached all
brokers, so that it has arrived wherever it was going; and, if rules use its type, until no
composite event that is still under way can depend on it (``horizons``). A Temp of 30 s stays while
fire, which reaches 5 min, is due from 40 s.

Law 2: at most ``events_max`` events are kept, and as many KiB. The oldest give way beyond that, and
the buffer counts them: what is then under way when the tree is rebuilt may be lost. With 1,000 at
most, Temp 1,001 drives the first one out.

They are kept and let go of in blocks (evaluation.blocks), somewhat later than they might be.
"""

from __future__ import annotations

from collections.abc import Mapping

from matcher.model import TIME_MIN
from routing.evaluation.blocks import KeptEvents

APART = 16
"""Between two checkpoints so many times the events come that come while one is under way."""
UNASKED_BYTES = 2**23
"""So many bytes are kept without asking whether they are needed."""


class ReplayBuffer(KeptEvents):
    """The events of a broker's own sources, in the order in which they came."""

    def __init__(self, events_max: int, least: int) -> None:
        """``least``: so many are kept without asking whether they are needed."""
        super().__init__(events_max, least)
        self.let_go_before = TIME_MIN
        """As ``let_go``, of all types, of a broker that has been started again."""
        self._least = least
        self._look_at = self._interval(0)
        """The place from which on it is time to ask what is still needed."""
        self._look_size = UNASKED_BYTES
        """The bytes from which on it is, too."""
        self._marked = self.passed = self._arrived = 0
        """Places: at the last checkpoint, at the last one that was committed, at the one before."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to ask what is still needed."""
        return len(self) > 0 and (self.place >= self._look_at or self.size >= self._look_size)

    def look_soon(self) -> None:
        """Let it be time to ask, however little is kept, until the next checkpoint."""
        self._look_at = 0

    def probe(self) -> None:
        """A checkpoint has come by: it follows on every way what came before it."""
        self._marked = self.place

    def commit(self, horizons: Mapping[str, int]) -> None:
        """The checkpoint was committed: drop what has arrived and is earlier than its type's
        horizon.

        That all have what came before it is known when the next one is committed, asked for at once
        after a change of the tree, for another may be near. No rule uses a type without a horizon.
        """
        is_first = self._arrived == self.passed < self._marked
        self._arrived, self.passed = self.passed, self._marked
        held = self.let_go_of(self._arrived, horizons)
        meanwhile = self.place - self.passed
        more = self._interval(max(held, APART * meanwhile))
        self._look_at = self.place + (max(1, self._least - len(self)) if is_first else more)
        self._look_size = max(UNASKED_BYTES, 2 * self.size)

    def _interval(self, events: int) -> int:
        """How many more events may come until it is time to ask: so many, within bounds. What has
        come since the checkpoint before is none of them, else each would be later than the last.
        """
        return min(max(self._least, events), max(1, self.events_max // 4))

    def begin_anew(self) -> None:
        """The tree is another: checkpoints that are under way will not be committed."""
        self._marked = self.passed = self._arrived

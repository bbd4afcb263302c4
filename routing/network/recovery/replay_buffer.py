"""Events that entered here, kept while they may be needed again (brokers.md section 5).

Law 1: an event is kept until a checkpoint that began after it came is known to have reached all
brokers, so that it has arrived wherever it was going; and, if rules use its type, until no
composite event that is still under way can depend on it (``horizons``). A Temp of 30 s stays while
fire, which reaches 5 min, is due from 40 s.

Law 2: at most ``events_max`` events are kept. The oldest give way beyond that, and the buffer
counts them: what is then under way when the tree is rebuilt may be lost. With 1,000 at most, Temp
1,001 drives the first one out.

They are kept and let go of in blocks (evaluation.blocks), somewhat later than they might be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from matcher.model import TIME_MIN, EventBatch, EventType
from routing.evaluation.blocks import BLOCK_EVENTS, Block

APART = 16
"""Between two checkpoints so many times the events come that come while one is under way."""


class ReplayBuffer:
    """The events of a broker's own sources, in the order in which they came."""

    def __init__(self, events_max: int, least: int) -> None:
        """``least``: so many are kept without asking whether they are needed."""
        self.events_max = events_max
        self.given_up = 0
        """Events that gave way (Law 2) though they may be needed again."""
        self.let_go: dict[str, int] = {}
        """By type, the time behind the last event that nobody needed any more."""
        self.let_go_before = TIME_MIN
        """The same of all types, of a broker that has been started again."""
        self._blocks: deque[Block] = deque()
        self._place = 0
        self._kept = 0
        self._least = least
        self._look_at = self._interval(0)
        """The place from which on it is time to ask what is still needed."""
        self._marked = self.passed = self._arrived = 0
        """Places: at the last checkpoint, at the last one that was committed, at the one before."""

    def __len__(self) -> int:
        """How many events are kept."""
        return self._kept

    def __iter__(self) -> Iterator[tuple[EventBatch, ...]]:
        """Iterate over the events kept, message by message."""
        return chain.from_iterable(block.messages for block in self._blocks)

    def fitting(self, schemas: Mapping[str, EventType]) -> Iterator[tuple[EventBatch, ...]]:
        """The events kept, message by message, but for those of a type that has another schema by
        now: nobody could take them in.
        """
        for batches in self:
            yield tuple(one for one in batches if schemas.get(one.type.name, one.type) == one.type)

    @property
    def place(self) -> int:
        """How many events have come so far."""
        return self._place

    @property
    def first(self) -> int:
        """How many events had come before the first that is kept."""
        return self._blocks[0].place if self._blocks else self._place

    @property
    def is_full(self) -> bool:
        """Whether it is time to ask what is still needed."""
        return self._place >= self._look_at and self._kept > 0

    def look_soon(self) -> None:
        """Let it be time to ask, however little is kept, until the next checkpoint."""
        self._look_at = 0

    def add(self, batches: Sequence[EventBatch], *, is_sent: bool = True) -> None:
        """Events have come, and have been sent along all trees, or wait to be."""
        events = sum(map(len, batches))
        self._block_for(events).add(tuple(batches), events, is_sent=is_sent)
        self._place += events
        self._kept += events
        while self._kept > self.events_max and len(self._blocks) > 1:
            given_up = self._blocks.popleft().events
            self._kept -= given_up
            self.given_up += given_up

    def _block_for(self, events: int) -> Block:
        """The last block, if it has room for so many; else a new one, and that is packed."""
        last = self._blocks[-1] if self._blocks else None
        room = min(BLOCK_EVENTS, self._least, self.events_max // 2)
        if last is None or last.end - last.place + events > room:
            if last is not None:
                last.pack()
            last = Block(self._place, self._place)
            self._blocks.append(last)
        return last

    def probe(self) -> None:
        """A checkpoint has come by: it follows on every way what came before it."""
        self._marked = self._place

    def commit(self, horizons: Mapping[str, int]) -> None:
        """The checkpoint was committed: drop what has arrived and is earlier than its type's
        horizon.

        That all have what came before it is known when the next one is committed, asked for at once
        after a change of the tree, for another may be near. No rule uses a type without a horizon.
        """
        is_first = self._arrived == self.passed < self._marked
        self._arrived, self.passed = self.passed, self._marked
        held = 0
        for block in self._blocks:
            if block.end > self._arrived:
                break
            for name, time in block.let_go(horizons).items():
                self.let_go[name] = max(time + 1, self.let_go.get(name, TIME_MIN))
            held += block.events
        self._blocks = deque(block for block in self._blocks if block.messages)
        self._kept = sum(block.events for block in self._blocks)
        meanwhile = self._place - self.passed
        more = self._interval(max(held, APART * meanwhile))
        self._look_at = self._place + (max(1, self._least - self._kept) if is_first else more)

    def _interval(self, events: int) -> int:
        """How many more events may come until it is time to ask: so many, within bounds. What has
        come since the checkpoint before is none of them, else each would be later than the last.
        """
        return min(max(self._least, events), max(1, self.events_max // 4))

    def drop(self, is_far: Callable[[str, int], bool]) -> None:
        """Drop events that nobody may be sent again: by type, from which time on."""
        for block in self._blocks:
            block.drop(is_far)
        self._kept = sum(block.events for block in self._blocks)

    def begin_anew(self) -> None:
        """The tree is another: checkpoints that are under way will not be committed."""
        self._marked = self.passed = self._arrived

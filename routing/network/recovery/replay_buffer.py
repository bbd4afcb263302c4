"""Events that entered here, kept while they may be needed again (brokers.md section 5).

Law 1: an event is kept until a checkpoint that began after it came is known to have reached all
brokers, so that it has arrived wherever it was going; and, if rules use its type, until no
composite event that is still under way can depend on it (``horizons``). A Temp of 30 s stays while
fire, which reaches 5 min, is due from 40 s.

Law 2: at most ``events_max`` events are kept. The oldest give way beyond that, and the buffer
counts them: what is then under way when the tree is rebuilt may be lost. With 1,000 at most, Temp
1,001 drives the first one out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from matcher.model import TIME_MAX, TIME_MIN, EventBatch, EventType
from routing.order import greatest_time

APART = 16
"""Between two checkpoints so many times the events come that come while one is under way."""


class BufferedMessage(Struct, frozen=True, eq=False, gc=False):
    """Events that came with one message, and their place: how many events came before it."""

    place: int
    batches: tuple[EventBatch, ...]
    events: int


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
        self._entries: deque[BufferedMessage] = deque()
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
        return (entry.batches for entry in self._entries)

    def fitting(self, schemas: Mapping[str, EventType]) -> Iterator[tuple[EventBatch, ...]]:
        """The events kept, message by message, but for those of a type that has another schema by
        now: nobody could take them in.
        """
        for entry in self._entries:
            yield tuple(
                one for one in entry.batches if schemas.get(one.type.name, one.type) == one.type
            )

    @property
    def place(self) -> int:
        """How many events have come so far."""
        return self._place

    @property
    def first(self) -> int:
        """How many events had come before the first that is kept."""
        return self._entries[0].place if self._entries else self._place

    @property
    def is_full(self) -> bool:
        """Whether it is time to ask what is still needed."""
        return self._place >= self._look_at and self._kept > 0

    def look_soon(self) -> None:
        """Let it be time to ask, however little is kept, until the next checkpoint."""
        self._look_at = 0

    def add(self, batches: Sequence[EventBatch]) -> None:
        """Events have come."""
        events = sum(map(len, batches))
        self._entries.append(BufferedMessage(self._place, tuple(batches), events))
        self._place += events
        self._kept += events
        while self._kept > self.events_max and len(self._entries) > 1:
            events = self._entries.popleft().events
            self._kept -= events
            self.given_up += events

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
        gone, kept = list[BufferedMessage](), list[BufferedMessage]()
        for entry in self._entries:
            has_arrived = entry.place + entry.events <= self._arrived
            (gone if has_arrived and _is_past(entry.batches, horizons) else kept).append(entry)
        self._note_gone(batch for entry in gone for batch in entry.batches)
        self._entries = deque(kept)
        self._kept = sum(entry.events for entry in kept)
        held = sum(entry.events for entry in kept if entry.place + entry.events <= self._arrived)
        meanwhile = self._place - self.passed
        more = self._interval(max(held, APART * meanwhile))
        self._look_at = self._place + (max(1, self._least - self._kept) if is_first else more)

    def _interval(self, events: int) -> int:
        """How many more events may come until it is time to ask: so many, within bounds. What has
        come since the checkpoint before is none of them, else each would be later than the last.
        """
        return min(max(self._least, events), max(1, self.events_max // 4))

    def _note_gone(self, batches: Iterable[EventBatch]) -> None:
        for one in batches:
            name = one.type.name
            self.let_go[name] = max(greatest_time(one) + 1, self.let_go.get(name, TIME_MIN))

    def drop(self, is_far: Callable[[str, int], bool]) -> None:
        """Drop events that nobody may be sent again: by type, from which time on."""
        for place, entry in enumerate(self._entries):
            if any(is_far(one.type.name, greatest_time(one)) for one in entry.batches):
                kept = [_but(one, is_far) for one in entry.batches]
                batches = tuple(one for one in kept if len(one))
                self._entries[place] = BufferedMessage(entry.place, batches, entry.events)

    def begin_anew(self) -> None:
        """The tree is another: checkpoints that are under way will not be committed."""
        self._marked = self.passed = self._arrived


def _but(batch: EventBatch, is_far: Callable[[str, int], bool]) -> EventBatch:
    name = batch.type.name
    return batch.take(np.array([not is_far(name, time) for time in batch.time.tolist()], np.bool_))


def _is_past(batches: Iterable[EventBatch], horizons: Mapping[str, int]) -> bool:
    return all(greatest_time(one) < horizons.get(one.type.name, TIME_MAX) for one in batches)

"""Events that are kept in the order in which they came, in blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from matcher.model import TIME_MAX, TIME_MIN, EventBatch, EventType
from matcher.single import packed
from routing.order import greatest_time
from routing.wire.extent import extent_of

BLOCK_EVENTS, BLOCK_BYTES = 256, 2**18
"""Events and bytes of a block at most, unless a single message has more."""
BYTES_EACH = 1_024
"""Bytes that may be kept for each event that may be kept."""


@dataclass(slots=True)
class Block:
    """Messages that came one after another. ``place`` and ``end``: how many events had come before
    the first, and with the last.
    """

    place: int
    end: int
    is_sent: bool = True
    """Whether all of it had been sent when it came."""
    events: int = 0
    size: int = 0
    """Bytes, by and large."""
    messages: list[tuple[EventBatch, ...]] = field(default_factory=list)
    latest: dict[str, int] = field(default_factory=dict)
    """By type, the greatest time of its events."""

    def add(self, batches: tuple[EventBatch, ...], events: int, *, is_sent: bool) -> None:
        """A message comes behind the others."""
        self.messages.append(batches)
        self.end += events
        self.events += events
        self.size += extent_of(batches)
        self.is_sent &= is_sent
        self._note(batches)

    def pack(self) -> None:
        """Pack what came one by one, if it has been sent: what has not is counted in messages."""
        if self.is_sent and len(self.messages) > 1:
            self.messages = [tuple(packed(chain.from_iterable(self.messages)))]

    def let_go(self, horizons: Mapping[str, int]) -> Mapping[str, int]:
        """Let go of the types of which all is past; gives these, with their greatest times."""
        gone = {
            name: time for name, time in self.latest.items() if time < horizons.get(name, TIME_MAX)
        }
        if gone or not self.latest:
            left = (
                tuple(one for one in batches if one.type.name not in gone)
                for batches in self.messages
            )
            self._keep([batches for batches in left if batches])
        return gone

    def drop(self, is_far: Callable[[str, int], bool]) -> None:
        """Drop events, by type and time; messages stay, if without any."""
        if any(is_far(name, time) for name, time in self.latest.items()):
            self._keep([_but(batches, is_far) for batches in self.messages])

    def _keep(self, messages: list[tuple[EventBatch, ...]]) -> None:
        self.messages, self.latest = messages, {}
        for batches in messages:
            self._note(batches)
        self.events = sum(map(len, chain.from_iterable(messages)))
        self.size = sum(map(extent_of, messages))

    def _note(self, batches: Sequence[EventBatch]) -> None:
        for one in batches:
            name, time = one.type.name, greatest_time(one)
            self.latest[name] = max(time, self.latest.get(name, time))


class KeptEvents:
    """Events in the order in which they came: at most ``events_max``, and as many KiB; the oldest
    give way beyond that. ``least``: blocks have no more. To look at them costs little for each
    block, and to let go
    of events what these cost: of 200,000 Temps that came one by one there are 800 blocks. So the
    events of a type go from a block together, when the last may; and those of a full block that
    have been sent are packed, for they take a quarter of the memory then.
    """

    def __init__(self, events_max: int, least: int) -> None:
        self.events_max = events_max
        self.given_up = 0
        """Events that gave way."""
        self.let_go: dict[str, int] = {}
        """By type, the time behind the last event that was let go of."""
        self.place = 0
        """How many events have come so far."""
        self._blocks: deque[Block] = deque()
        self._kept = 0
        self.size = 0
        """Bytes that are kept, by and large."""
        self._room = min(BLOCK_EVENTS, least)

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
    def first(self) -> int:
        """How many events had come before the first that is kept."""
        return self._blocks[0].place if self._blocks else self.place

    def add(self, batches: Sequence[EventBatch], *, is_sent: bool = True) -> None:
        """Events have come, and have been sent along all trees, or wait to be."""
        events = sum(map(len, batches))
        block = self._block_for(events)
        self.size -= block.size
        block.add(tuple(batches), events, is_sent=is_sent)
        self.size += block.size
        self.place += events
        self._kept += events
        bytes_max = self.events_max * BYTES_EACH
        while (self._kept > self.events_max or self.size > bytes_max) and len(self._blocks) > 1:
            given_up = self._blocks.popleft()
            self._kept -= given_up.events
            self.size -= given_up.size
            self.given_up += given_up.events

    def _block_for(self, events: int) -> Block:
        """The last block, if it has room for so many; else a new one, and that is packed."""
        last = self._blocks[-1] if self._blocks else None
        room = min(self._room, self.events_max // 2)
        if last is None or last.end - last.place + events > room or last.size > BLOCK_BYTES:
            if last is not None:
                last.pack()
            last = Block(self.place, self.place)
            self._blocks.append(last)
        return last

    def let_go_of(self, place: int, horizons: Mapping[str, int]) -> int:
        """Let go of what came before a place, and is earlier than its type's horizon; gives how
        many events that came before the place are kept.
        """
        held = 0
        for block in self._blocks:
            if block.end > place:
                break
            for name, time in block.let_go(horizons).items():
                self.let_go[name] = max(time + 1, self.let_go.get(name, TIME_MIN))
            held += block.events
        self._blocks = deque(block for block in self._blocks if block.messages)
        self._count()
        return held

    def drop(self, is_far: Callable[[str, int], bool]) -> None:
        """Drop events that nobody may be sent again: by type, from which time on."""
        for block in self._blocks:
            block.drop(is_far)
        self._count()

    def _count(self) -> None:
        self._kept = sum(block.events for block in self._blocks)
        self.size = sum(block.size for block in self._blocks)


def _but(
    batches: Sequence[EventBatch], is_far: Callable[[str, int], bool]
) -> tuple[EventBatch, ...]:
    """The same without the events that are far."""
    kept = list[EventBatch]()
    for one in batches:
        far = [is_far(one.type.name, time) for time in one.time.tolist()]
        kept.append(one if not any(far) else one.take(~np.array(far, np.bool_)))
    return tuple(one for one in kept if len(one))

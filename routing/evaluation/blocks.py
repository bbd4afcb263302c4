"""Events that are kept in the order in which they came, in blocks.

Law: to look at what is kept costs little for each block, and to let go of events what these cost:
of 200,000 Temps that came one by one there are 800 blocks. So the events of a type go from a block
together, when the last may; and those of a full block that have been sent are packed, for they take
a quarter of the memory then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from matcher.model import TIME_MAX, EventBatch
from matcher.single import packed
from routing.order import greatest_time

BLOCK_EVENTS = 256
"""Events of a block at most, unless a single message has more."""


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
    messages: list[tuple[EventBatch, ...]] = field(default_factory=list)
    latest: dict[str, int] = field(default_factory=dict)
    """By type, the greatest time of its events."""

    def add(self, batches: tuple[EventBatch, ...], events: int, *, is_sent: bool) -> None:
        """A message comes behind the others."""
        self.messages.append(batches)
        self.end += events
        self.events += events
        self.is_sent &= is_sent
        for one in batches:
            name, time = one.type.name, greatest_time(one)
            self.latest[name] = max(time, self.latest.get(name, time))

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
        self.messages, self.events, self.latest = messages, 0, {}
        for one in chain.from_iterable(messages):
            self.events += len(one)
            name, time = one.type.name, greatest_time(one)
            self.latest[name] = max(time, self.latest.get(name, time))


def _but(
    batches: Sequence[EventBatch], is_far: Callable[[str, int], bool]
) -> tuple[EventBatch, ...]:
    """The same without the events that are far."""
    kept = list[EventBatch]()
    for one in batches:
        far = [is_far(one.type.name, time) for time in one.time.tolist()]
        kept.append(one if not any(far) else one.take(~np.array(far, np.bool_)))
    return tuple(one for one in kept if len(one))

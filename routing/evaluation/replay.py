"""Events that are sent along a tree once more, or late, slice by slice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from matcher.model import TIME_MAX, EventBatch
from matcher.single import packed
from routing.evaluation.outbox import message_sized
from routing.order import least_time
from routing.wire.extent import fitting

SLICE_EVENTS = 4_096
"""Events of a slice, unless a single message has more."""

_Parts = list[tuple[EventBatch, ...]]
"""Events in parts, each of which fits into a message."""
HasRoom = Callable[[str], bool]
"""Whether the link to a neighbour takes more for now."""


class Unread(Protocol):
    """Events that are yet to be read."""

    def __bool__(self) -> bool:
        """Whether anything may be unread."""
        ...

    @property
    def bounds(self) -> Mapping[str, int]:
        """By type, a time that nothing unread is earlier than."""
        ...

    def take(self) -> Sequence[Sequence[EventBatch]]:
        """Read a slice of it, which may have nothing."""
        ...


@dataclass(slots=True)
class _Slice:
    """Messages that follow one another, and the least time of each type in them."""

    is_fresh: bool
    messages: list[Sequence[EventBatch]] = field(default_factory=list)
    events: int = 0
    least: dict[str, int] = field(default_factory=dict)

    def add(self, batches: Sequence[EventBatch]) -> None:
        """One message more."""
        self.messages.append(batches)
        for batch in batches:
            self.events += len(batch)
            _lower(self.least, batch.type.name, least_time(batch))


class Replay:
    """The events that wait to be sent along one tree.

    What waits is handed over in the order in which it came, about SLICE_EVENTS events at a time,
    and what comes meanwhile stands behind it. So nobody beyond ever holds all of it at once, and
    the broker looks at its links between two slices. What everybody has got who wanted it is sent
    once more for rules alone: it is not ``fresh``. fire moves to b1: the Temps of b3 go there
    again, and to no sinks.
    """

    def __init__(self) -> None:
        self._slices: deque[_Slice] = deque()
        self._least: dict[str, int] | None = None
        """Of each type the least time that waits; None where that is to be worked out."""
        self._unread: Unread | None = None

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return self._unread is not None or bool(self._slices)

    @property
    def fresh_messages(self) -> int:
        """How many of the messages that wait are fresh."""
        return sum(len(one.messages) for one in self._slices if one.is_fresh)

    def add(self, batches: Sequence[EventBatch], *, fresh: bool = True) -> None:
        """A message waits behind all others."""
        last = self._slices[-1] if self._slices else None
        if last is None or last.is_fresh is not fresh or last.events >= SLICE_EVENTS:
            last = _Slice(fresh)
            self._slices.append(last)
        last.add([one for one in batches if len(one)])
        self._least = None

    def begin_with(self, unread: Unread | None) -> None:
        """Have this, if there is anything, read before all that waits: fire holds since yesterday,
        and the log of b3 is read, then the Temps go that b3 keeps.
        """
        self._unread = unread

    def take(self) -> tuple[_Parts, bool]:
        """Give the next slice, and whether it is fresh."""
        if self._unread is not None:
            messages = self._unread.take()
            if not self._unread:
                self._unread = None
            return packed_parts(messages), False
        first = self._slices.popleft()
        self._least = None
        return packed_parts(first.messages), first.is_fresh

    def bounded(self, marks: Mapping[str, int]) -> Mapping[str, int]:
        """Marks of types, none of them beyond what waits: Temp is promised up to 40 s, and the
        first Temp that waits is of 7 s: 7 s is said. So windows that are complete are let go
        meanwhile.
        """
        if self._unread is None and not self._slices:  # common
            return marks
        if self._least is None:
            self._least = {}
            for one in self._slices:
                for name, time in one.least.items():
                    _lower(self._least, name, time)
        found = _bounded(marks, self._least)
        return found if self._unread is None else _bounded(found, self._unread.bounds)


def packed_parts(messages: Iterable[Sequence[EventBatch]]) -> _Parts:
    """The events of several messages, in parts that fit into one; events that came one by one are
    packed, for a second's worth of them would take as long again as they took then.
    """
    batches = packed(batch for message in messages for batch in message)
    return list(message_sized(fitting(batches)))


def _bounded(marks: Mapping[str, int], least: Mapping[str, int]) -> Mapping[str, int]:
    return {name: min(mark, least.get(name, TIME_MAX)) for name, mark in marks.items()}


def _lower(least: dict[str, int], name: str, time: int) -> None:
    least[name] = min(time, least.get(name, TIME_MAX))

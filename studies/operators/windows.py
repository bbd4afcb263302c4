"""Windows: the last events of a stream, by number or by time, in a ring.

Law 1: events of a stream come in order of time, from batch to batch too (:class:`Order`): that is
what makes a window a range of their numbers.

Law 2: what a window holds after a batch is the sequential definition's: the last ``events`` of all
that came, or those that are not older than ``duration`` before the last. The ring keeps at least
these, and what a batch under way still reads; it grows when they are more, up to ``WINDOW_MAX``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from matcher.model import TIME_MIN, EventBatch, Int64s
from studies.operators.places import Place, Turn, Words

UNBOUNDED = -1
"""In place of a length or a duration that a window has not."""
WINDOW_MAX = 2**26
"""Events of a window, those of a batch included."""
CAPACITY_MIN = 256


@dataclass(frozen=True, slots=True)
class Length:
    """The last ``events`` of a stream."""

    events: int

    def __post_init__(self) -> None:
        if not 1 <= self.events <= WINDOW_MAX:
            raise ValueError(f"a window of {self.events} events: from 1 to {WINDOW_MAX}")


@dataclass(frozen=True, slots=True)
class Time:
    """The events of the last ``duration`` microseconds, both ends included."""

    duration: int

    def __post_init__(self) -> None:
        if not 0 <= self.duration < 2**62:
            raise ValueError(f"a window of {self.duration} us: from 0 on")


Extent: TypeAlias = Length | Time


def length_of(extent: Extent) -> int:
    """Its events; UNBOUNDED where they are not limited."""
    return extent.events if isinstance(extent, Length) else UNBOUNDED


def duration_of(extent: Extent) -> int:
    """Its duration; UNBOUNDED where that is not limited."""
    return extent.duration if isinstance(extent, Time) else UNBOUNDED


class WindowFull(ValueError):
    """A window would hold more than WINDOW_MAX events; nothing of the batch was taken in."""


@dataclass(slots=True)
class Order:
    """The time of the last event of some streams that come in one order."""

    latest: int = TIME_MIN

    def check(self, batch: EventBatch) -> int:
        """The time of the last event once a batch has come; ValueError where it is out of order."""
        if not len(batch):
            return self.latest
        times = batch.time
        if int(times[0]) < self.latest or (np.diff(times) < 0).any():
            raise ValueError(
                f"events of {batch.type.name} are not in order of time: an operator takes each "
                f"event no earlier than those before it"
            )
        return int(times[-1])


class Ring:
    """The events that a window holds, as columns of words on a place, by their number."""

    def __init__(self, place: Place, columns: int, extent: Extent, more: int = UNBOUNDED) -> None:
        """``more``: a duration that bounds what is asked of the window further."""
        self.place, self.columns, self.extent = place, columns, extent
        self.length, self.duration = length_of(extent), duration_of(extent)
        if more != UNBOUNDED:
            self.duration = more if self.duration == UNBOUNDED else min(more, self.duration)
        self.capacity = CAPACITY_MIN
        if self.length != UNBOUNDED:
            self.capacity = power_of_two(min(2 * self.length, WINDOW_MAX))
        self.words: Words = place.words(columns * self.capacity)
        self.start = self.end = 0
        self.held = 0
        """The first event that a batch under way may still read."""
        self._moved_from: Words = None
        """A ring that a kernel may still read: its memory must not be given to another."""
        self._marks: deque[tuple[int, int]] = deque()

    def __len__(self) -> int:
        return self.end - self.start

    def check(self, count: int) -> None:
        """WindowFull where so many events more cannot be held."""
        if self.end + count - self.held > WINDOW_MAX:
            raise WindowFull(
                f"a window of more than {WINDOW_MAX} events, those of a batch included; "
                f"shorten it, or bound it by a number of events"
            )

    def reserve(self, turn: Turn, count: int) -> bool:
        """Make room for so many events more; whether all were moved for that."""
        self._moved_from = None  # what moved it is done: see Operator._begin
        if self.end + count - self.held <= self.capacity:
            return False
        capacity = power_of_two(2 * (self.end + count - self.held))
        words = self.place.words(self.columns * capacity)
        live = self.end - self.held
        turn.run("move", live, self.words, self.capacity, words, capacity, self.columns, self.held)
        self._moved_from = self.words
        self.words, self.capacity = words, capacity
        return True

    def advance(self, count: int, latest: int) -> None:
        """Let so many events have come, the last of them at ``latest``: forget what is too old."""
        self.held = self.start
        self.end += count
        if count and self.duration != UNBOUNDED:
            self._marks.append((self.end, latest))
        start = self.start
        if self.length != UNBOUNDED:
            start = max(start, self.end - self.length)
        if self.duration != UNBOUNDED:
            while self._marks and self._marks[0][1] < latest - self.duration:
                start = max(start, self._marks.popleft()[0])
        while self._marks and self._marks[0][0] <= start:
            self._marks.popleft()
        self.start = start

    def release(self) -> None:
        """No batch is under way any more."""
        self.held = self.start

    def column(self, column: int) -> Int64s:
        """The words of a column for all events that are held: for what is done seldom."""
        whole = self.place.array(self.words, column * self.capacity, self.capacity)
        held: Int64s = whole[np.arange(self.held, self.end) & (self.capacity - 1)]
        return held

    def replace(self, column: int, values: Int64s) -> None:
        """Write the words of a column for all events that are held."""
        whole = self.place.array(self.words, column * self.capacity, self.capacity)
        whole[np.arange(self.held, self.end) & (self.capacity - 1)] = values
        self.place.overwrite(self.words, column * self.capacity, whole)


def power_of_two(number: int) -> int:
    """The least power of two that is no less than a number, nor than CAPACITY_MIN."""
    return max(CAPACITY_MIN, 1 << max(number - 1, 0).bit_length())

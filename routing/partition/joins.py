"""Events by key and time, and relations in which events of one side wait for partners.

Nothing here is ever looked through from end to end: a search is a bisection, and an event that
waits leaves as soon as it has met a partner, so that what a search takes out it never meets again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from matcher.model import TIME_MAX, TIME_MIN
from routing.partition.windows import Span

Key: TypeAlias = Hashable
Interval: TypeAlias = tuple[int, int]
"""The first and the last of a stretch of time, both included."""


@dataclass(slots=True, eq=False)
class Seen:
    """An event of a member, or of a role: its time and row, and the values that keys need.

    ``missing`` and ``offered`` are the links along which it lacks a partner, and those along which
    it has been offered as one, ``is_joined`` whether it lacks none; see ``assignments``.
    """

    time: int
    row: int
    values: tuple[Any, ...]
    member: int = -1
    missing: set[int] = field(default_factory=set)
    offered: set[int] = field(default_factory=set)
    is_joined: bool = False


TimelineEntry: TypeAlias = tuple[int, int, Seen]


class Timeline:
    """Events under keys, in the order of time."""

    def __init__(self) -> None:
        self._entries: dict[Key, list[TimelineEntry]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def add(self, key: Key, seen: Seen) -> None:
        """Enter an event. Most come in the order of time, which costs least."""
        insort(self._entries.setdefault(key, []), (seen.time, seen.row, seen))

    def has(self, key: Key, span: Interval, but: int) -> bool:
        """Whether there is an event between two times, both included, other than row ``but``."""
        entries = self._entries.get(key)
        if not entries:
            return False
        least, most = span
        place = bisect_left(entries, (least,))
        if place < len(entries) and entries[place][1] == but:
            place += 1
        return place < len(entries) and entries[place][0] <= most

    def take(self, key: Key, span: Interval, but: int) -> list[Seen]:
        """Take out the events between two times, both included, other than row ``but``."""
        entries = self._entries.get(key)
        if not entries:
            return []
        start, end = _cut(entries, span)
        taken = [seen for _, row, seen in entries[start:end] if row != but]
        entries[start:end] = [entry for entry in entries[start:end] if entry[1] == but]
        return taken

    def first(self, key: Key, span: Interval, count: int) -> list[Seen]:
        """The first so many between two times, and what is simultaneous with the last of them."""
        entries = self._entries.get(key, [])
        start, end = _cut(entries, span)
        stop = min(end, start + count)
        while start < stop < end and entries[stop][0] == entries[stop - 1][0]:
            stop += 1
        return [seen for _, _, seen in entries[start:stop]]

    def last(self, key: Key, span: Interval, count: int) -> list[Seen]:
        """The last so many between two times, and what is simultaneous with the first of them."""
        entries = self._entries.get(key, [])
        start, end = _cut(entries, span)
        begin = max(start, end - count)
        while start < begin < end and entries[begin - 1][0] == entries[begin][0]:
            begin -= 1
        return [seen for _, _, seen in entries[begin:end]]

    def forget(self, before: int) -> None:
        """Drop what is earlier than a time."""
        for key in list(self._entries):
            entries = self._entries[key]
            del entries[: bisect_left(entries, (before,))]
            if not entries:
                del self._entries[key]


def _cut(entries: list[TimelineEntry], span: Interval) -> tuple[int, int]:
    """The places of the first between two times, and behind the last."""
    least, most = span
    return bisect_left(entries, (least,)), bisect_left(entries, (most + 1,))


class Occurrences:
    """The times of events that may rule partners out (S6)."""

    def __init__(self) -> None:
        self._times: list[int] = []

    def add(self, time: int) -> None:
        """There is one more."""
        insort(self._times, time)

    def last_until(self, time: int) -> int:
        """The time of the last one up to a time, itself included; TIME_MIN when there is none."""
        place = bisect_left(self._times, time + 1)
        return self._times[place - 1] if place else TIME_MIN

    def first_after(self, time: int) -> int:
        """The time of the first one after a time; TIME_MAX when there is none."""
        place = bisect_left(self._times, time + 1)
        return self._times[place] if place < len(self._times) else TIME_MAX

    def forget(self, before: int) -> None:
        """Drop what is earlier than a time."""
        del self._times[: bisect_left(self._times, before)]


class IntervalJoin:
    """Events of a first and of a second side: ``span`` bounds t(second) - t(first).

    ``absent`` may not occur after the second and up to the first, which is the later one then.
    ``distinct`` when an event is no partner for itself.
    """

    def __init__(
        self, span: Span, absent: Sequence[Occurrences] = (), *, distinct: bool = True
    ) -> None:
        self._span = span
        self._distinct = distinct
        self._absent = absent
        self._waiting = Timeline(), Timeline()
        self._offered = Timeline(), Timeline()

    def ask(self, side: int, key: Key, seen: Seen) -> bool:
        """Whether a partner for an event of a side is there; if not, it waits for one."""
        if self._offered[1 - side].has(key, self._around(side, seen.time), self._but(seen)):
            return True
        self._waiting[side].add(key, seen)
        return False

    def offer(self, side: int, key: Key, seen: Seen) -> list[Seen]:
        """Offer an event of a side as a partner; gives those of the other that waited for it."""
        self._offered[side].add(key, seen)
        return self._waiting[1 - side].take(key, self._around(side, seen.time), self._but(seen))

    def forget(self, before: int) -> None:
        """Drop what is earlier than a time."""
        for timeline in (*self._waiting, *self._offered):
            timeline.forget(before)

    def _but(self, seen: Seen) -> int:
        return seen.row if self._distinct else -1

    def _around(self, side: int, time: int) -> Interval:
        """The times of partners for an event of a side."""
        if side == 0:
            least, most = time + self._span.least, time + self._span.most
            for occurrences in self._absent:
                least = max(least, occurrences.last_until(time))
        else:
            least, most = time - self._span.most, time - self._span.least
            for occurrences in self._absent:
                most = min(most, occurrences.first_after(time) - 1)
        return least, most

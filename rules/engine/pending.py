"""Events that wait for their types' marks, and how they leave in the order of (time, E4).

Law 1: an event waits until its type's mark has passed it. What has been passed leaves at once and
together, as words (``inbox``) and where in them each event begins (``arrivals``), in order.

Law 2: an event that waits alone needs no order: it leaves through places made beforehand, for
single events a broker has all the time, and arrays for each cost more than what is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from matcher.model import TIME_MAX, AnyArray, Int64s
from rules.engine.kernels import layout

_PRIMITIVE, _COMPOSITE = 0, 1  # classes of E4; ticks are merged before both
NO_ARRIVALS: AnyArray = np.empty(0, layout.ARRIVING)


class _Rows(NamedTuple):
    """Events of one type, and the least and the greatest of their times."""

    rows: Int64s
    least: int
    greatest: int


class _Lone(NamedTuple):
    """The words of one event, in bytes."""

    type_number: int
    time: int
    words: bytes


class Pending:
    """Owner of the events that wait."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[_Rows]] = {}  # by type
        self._lone: _Lone | None = None  # only while nothing else waits
        self.fit(layout.HEADER)
        self.lone_arrival: AnyArray = np.zeros(1, layout.ARRIVING)

    def fit(self, width: int) -> None:
        """Have room for one row of so many words."""
        self.lone_inbox: Int64s = np.zeros(width, np.int64)
        self._lone_bytes = self.lone_inbox.data.cast("B")

    def __bool__(self) -> bool:
        return self._lone is not None or bool(self._waiting)

    def __len__(self) -> int:
        self._join()
        return sum(len(one.rows) for some in self._waiting.values() for one in some)

    def rows(self, type_number: int) -> Iterable[Int64s]:
        """The rows of a type that wait."""
        self._join()
        return [one.rows for one in self._waiting.get(type_number, ())]

    def forget(self, type_number: int) -> None:
        """Drop what waits of a type."""
        self._join()
        self._waiting.pop(type_number, None)

    def add(self, type_number: int, rows: Int64s, least: int, greatest: int) -> None:
        """Let rows wait, of which these are the least and the greatest time."""
        self._join()
        self._waiting.setdefault(type_number, []).append(_Rows(rows, least, greatest))

    def add_one(self, type_number: int, time: int, words: bytes) -> None:
        """Let one event wait, given by the words of its row."""
        if self._lone is None and not self._waiting:
            self._lone = _Lone(type_number, time, words)
        else:
            row = np.frombuffer(words, np.int64).reshape(1, -1)
            self.add(type_number, row, time, time)

    def _join(self) -> None:
        """Let what waits alone wait like others."""
        if self._lone is not None:
            (number, time, words), self._lone = self._lone, None
            row = np.frombuffer(words, np.int64).reshape(1, -1)
            self._waiting[number] = [_Rows(row, time, time)]

    def take_lone(self, floor: int, mark_of: Callable[[int], int]) -> bool:
        """Whether the only event that waits has been passed by the mark of its type; it stands in
        ``lone_inbox`` and ``lone_arrival`` then, and waits no more. No mark is below ``floor``.
        """
        if self._lone is None:
            return False
        number, time, words = self._lone
        if time >= floor:
            mark = mark_of(number)
            if mark <= time and mark != TIME_MAX:
                return False
        self._lone = None
        self._lone_bytes[: len(words)] = words
        self.lone_arrival["type"] = number
        return True

    def take(self, mark_of: Callable[[int], int], ranks: Int64s) -> tuple[AnyArray, Int64s]:
        """Events that the marks of their types have passed: layout.ARRIVING[n] in order, and the
        words that they stand in.

        ``mark_of`` gives the mark of a type by its number, ``ranks`` the place of a source in E4.
        """
        self._join()
        chosen: list[tuple[int, Int64s]] = []
        for number in list(self._waiting):
            mark = mark_of(number)
            left = []
            for one in self._waiting.pop(number):
                if one.greatest < mark or mark == TIME_MAX:
                    chosen.append((number, one.rows))
                elif one.least >= mark:
                    left.append(one)
                else:
                    ready = one.rows[:, layout.ROW_TIME] < mark
                    chosen.append((number, one.rows[ready]))
                    rest = one.rows[~ready]
                    left.append(_Rows(rest, int(rest[:, layout.ROW_TIME].min()), one.greatest))
            if left:
                self._waiting[number] = left
        return in_order(chosen, ranks)


def in_order(chosen: Sequence[tuple[int, Int64s]], ranks: Int64s) -> tuple[AnyArray, Int64s]:
    """Rows of several types as one array of words, and the events in it by (time, E4)."""
    if not chosen:
        return NO_ARRIVALS, np.empty(0, np.int64)
    inbox = np.concatenate([rows.ravel() for _, rows in chosen])
    arrivals = np.empty(sum([len(rows) for _, rows in chosen]), layout.ARRIVING)
    types, places = arrivals["type"], arrivals["offset"]
    start, first = 0, 0
    for number, rows in chosen:
        count, width = rows.shape
        types[start : start + count] = number
        places[start : start + count] = np.arange(first, first + rows.size, width)
        start, first = start + count, first + rows.size
    times = inbox[places + layout.ROW_TIME]
    order = np.argsort(times, kind="stable")  # it finds what is in order already, batch by batch
    sorted_times = times[order]
    if (sorted_times[1:] == sorted_times[:-1]).any():
        classes = np.where(
            inbox[places + layout.ROW_ID] == layout.ID_IS_DIGEST, _COMPOSITE, _PRIMITIVE
        )
        sequences, sources = inbox[places + layout.ROW_SEQUENCE], inbox[places + layout.ROW_SOURCE]
        order = np.lexsort((sequences, ranks[sources], classes, times))
    return arrivals[order], inbox


def with_ticks(
    arrivals: AnyArray, inbox: Int64s, ticks: Int64s, timer: int
) -> tuple[AnyArray, Int64s]:
    """Arrivals and words with the rows of timer ticks among them, each before what is simultaneous
    (E4).
    """
    words = np.concatenate([inbox, ticks.ravel()])
    both = np.empty(len(ticks) + len(arrivals), layout.ARRIVING)
    both["type"][: len(ticks)] = timer
    both["offset"][: len(ticks)] = len(inbox) + ticks.shape[1] * np.arange(len(ticks))
    both[len(ticks) :] = arrivals
    order = np.argsort(words[both["offset"] + layout.ROW_TIME], kind="stable")
    return both[order], words

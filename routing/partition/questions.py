"""Questions and answers between nodes about rules that are pulled (thesis 7.3.7).

What is asked for are spans of masters, and the windows around them: Awakenings, numbered one after
the other for each rule and link. A span may be of masters with certain values alone (Pull.values),
and then only what has to be equal to these is asked for. An answer, a number and a mark, says: of
all masters before the mark that were asked for up to that number, everything before the mark has
been sent. That is the thesis's End, for many windows at once, and for parts of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from matcher.model import TIME_MAX, Int64s, Value

Values = tuple[Value, ...]
ANY: Values = ()
"""Masters of whatever values."""
Spans = tuple[tuple[int, int, Values], ...]
"""First and last times of masters, both included, and their values."""


class MasterSpan(NamedTuple):
    """The same, and a mark: for instants before it nothing depends on these masters any more."""

    first: int
    last: int
    mark: int
    values: Values = ANY


def starting(spans: Iterable[tuple[int, int, Values]]) -> Iterator[MasterSpan]:
    """Spans on whose masters nothing depends before they begin."""
    return (MasterSpan(first, last, first, values) for first, last, values in spans)


AskedSpans = tuple[tuple[str, Spans, int], ...]
"""The content of an Awakening: rules, spans of masters, and from when on there may be more."""
Answers = tuple[tuple[str, int, int], ...]
"""Rules, the number of the last Awakening that was heeded, and the mark."""


class OpenSpans:
    """The spans of one rule and one link that are not answered.

    ``after``: how far beyond a master anything is asked for, in microseconds. Columns, since a
    link that falls behind has many of them, and each answer is for all.
    """

    def __init__(self, after: int) -> None:
        self.after = after
        self._open: Int64s = np.zeros((5, 0), np.int64)
        """A column for each: the number of its Awakening, its first and last time, its mark, and up
        to where it has been answered."""
        self.number = 0
        """How many Awakenings there were."""

    def __len__(self) -> int:
        return int(self._open.shape[1])

    @property
    def mark(self) -> int:
        """Up to where all is answered that instants depend on; TIME_MAX when nothing is open."""
        return int(self._open[_MARK].min()) if len(self) else TIME_MAX

    @property
    def answered(self) -> int:
        """The same, but what no instant depends on any more counts, too: before the masters that
        came behind their own mark not everything is here that was asked for.
        """
        return int(self._open[_ANSWERED].min()) if len(self) else TIME_MAX

    def add(self, spans: Iterable[MasterSpan]) -> None:
        """One more Awakening."""
        self.number += 1
        rows = [(self.number, first, last, mark, first) for first, last, mark, _ in spans]
        if rows:
            self._open = np.concatenate((self._open, np.array(rows, np.int64).T), axis=1)

    def answer(self, number: int, mark: int) -> bool:
        """Take in an answer: what was asked for up to a number has come up to a mark. Whether it is
        news.
        """
        if not len(self):
            return False
        numbers, _, last, marks, answered = self._open
        heeded = numbers <= number
        passed, risen = heeded & (last < mark - self.after), heeded & (answered < mark)
        answered[risen] = mark
        marks[risen] = np.maximum(marks[risen], mark)
        if passed.any():
            self._open = self._open[:, ~passed]
            return True
        return bool(risen.any())


_MARK, _ANSWERED = 3, 4


def united(spans: Iterable[MasterSpan], slack: int = 0) -> list[MasterSpan]:
    """Spans in order, those of like values that are no further apart than ``slack`` made one."""
    found: list[MasterSpan] = []
    last: dict[Values, int] = {}  # the places of the last spans
    for one in sorted(spans, key=lambda one: one[:3]):
        place = last.get(one.values)
        if place is not None and one.first <= found[place].last + slack:
            before = found[place]
            first, latest, mark = before.first, max(before.last, one.last), before.mark
            found[place] = MasterSpan(first, latest, min(mark, one.mark), one.values)
        else:
            last[one.values] = len(found)
            found.append(one)
    return found

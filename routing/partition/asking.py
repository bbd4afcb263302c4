"""Questions and answers between nodes about rules that are pulled (thesis 7.3.7).

What is asked for are spans of masters, and the windows around them: Awakenings, numbered one after
the other for each rule and link. A span may be of masters with certain values alone (Pull.values),
and then only what has to be equal to these is asked for. An answer, a number and a mark, says: of
all masters before the mark that were asked for up to that number, everything before the mark has
been sent. That is the thesis's End, for many windows at once, and for parts of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from matcher.model import TIME_MAX, Value

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


@dataclass(slots=True)
class _Open:
    """A span of masters that has not been answered whole, and up to where it has been."""

    number: int
    first: int
    last: int
    mark: int
    values: Values
    answered: int


class OpenSpans:
    """The spans of one rule and one link that are not answered.

    ``after``: how far beyond a master anything is asked for, in microseconds.
    """

    def __init__(self, after: int) -> None:
        self.after = after
        self._open: list[_Open] = []
        self.number = 0
        """How many Awakenings there were."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def mark(self) -> int:
        """Up to where all is answered that instants depend on; TIME_MAX when nothing is open."""
        return min((one.mark for one in self._open), default=TIME_MAX)

    @property
    def answered(self) -> int:
        """The same, but what no instant depends on any more counts, too: before the masters that
        came behind their own mark not everything is here that was asked for.
        """
        return min((one.answered for one in self._open), default=TIME_MAX)

    @property
    def spans(self) -> Iterator[MasterSpan]:
        """All that are open."""
        return (MasterSpan(one.first, one.last, one.mark, one.values) for one in self._open)

    def add(self, spans: Iterable[MasterSpan]) -> None:
        """One more Awakening."""
        self.number += 1
        self._open += (_Open(self.number, *span, span.first) for span in spans)

    def answer(self, number: int, mark: int) -> bool:
        """Take in an answer: what was asked for up to a number has come up to a mark. Whether it is
        news.
        """
        is_news = False
        left = []
        for one in self._open:
            if one.number <= number and mark > one.last + self.after:
                is_news = True
                continue
            if one.number <= number and one.answered < mark:
                one.answered, one.mark, is_news = mark, max(mark, one.mark), True
            left.append(one)
        self._open = left
        return is_news


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

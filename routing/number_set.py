"""Sets of numbers, as runs: which events of a durable sink were given, or are dealt with."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from matcher.model import Bools, Int64s

NumberRun: TypeAlias = tuple[int, int]
"""The first and the last of numbers that follow one another."""


class NumberSet:
    """The numbers of some runs. ``runs_max``: how many it has at most; None: any number. A set is
    the same whatever the order, and the pieces, in which numbers were added: its runs rise, and no
    two of them touch. It takes as much room as it has gaps; beyond its bound it forgets the lowest.
    """

    def __init__(self, runs: Iterable[NumberRun] = (), runs_max: int | None = None) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._runs_max = runs_max
        for run in runs:
            self.add(*run)

    def __iter__(self) -> Iterator[NumberRun]:
        return zip(self._firsts, self._lasts, strict=True)

    @property
    def count(self) -> int:
        """How many runs it has."""
        return len(self._firsts)

    def add(self, first: int, last: int) -> int:
        """Add the numbers of a run; gives how many of them are new."""
        if first > last:
            return 0
        begin, end = bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)
        if begin < end:
            first, last = min(first, self._firsts[begin]), max(last, self._lasts[end - 1])
        known = sum(self._lasts[begin:end]) - sum(self._firsts[begin:end]) + end - begin
        self._firsts[begin:end], self._lasts[begin:end] = [first], [last]
        if self._runs_max is not None and len(self._firsts) > self._runs_max:
            del self._firsts[0], self._lasts[0]
        return last - first + 1 - known

    def discard(self, first: int, last: int) -> None:
        """Take the numbers of a run out."""
        begin, end = bisect_left(self._lasts, first), bisect_right(self._firsts, last)
        if begin < end:
            sides = (self._firsts[begin], first - 1), (last + 1, self._lasts[end - 1])
            left = [(low, high) for low, high in sides if low <= high]
            self._firsts[begin:end] = [low for low, _ in left]
            self._lasts[begin:end] = [high for _, high in left]

    def has_all(self, first: int, last: int) -> bool:
        """Whether it has all numbers of a run."""
        if first > last:
            return True
        place = bisect_left(self._lasts, last)
        return place < len(self._lasts) and self._firsts[place] <= first

    def within(self, first: int, last: int) -> Iterator[NumberRun]:
        """Its runs as far as they are in another one."""
        for place in range(bisect_left(self._lasts, first), bisect_right(self._firsts, last)):
            yield max(first, self._firsts[place]), min(last, self._lasts[place])

    def gaps(self, first: int, last: int) -> Iterator[NumberRun]:
        """The runs of the numbers of a run that it has not."""
        for begin, end in self.within(first, last):
            if first < begin:
                yield first, begin - 1
            first = end + 1
        if first <= last:
            yield first, last

    def missing(self, first: int, last: int) -> int:
        """How many numbers of a run it has not."""
        return last - first + 1 - sum(end - begin + 1 for begin, end in self.within(first, last))

    def lacks(self, numbers: Int64s) -> Bools:
        """bool[n]: whether it has not each of some numbers."""
        is_new: Bools = numbers == numbers
        for first, last in self.within(int(numbers.min()), int(numbers.max())):
            is_new &= (numbers < first) | (numbers > last)
        return is_new

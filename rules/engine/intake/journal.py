"""Explicit numbers that came, and what their events hold: the host's side of their journal."""

from __future__ import annotations

from collections import deque

import numpy as np

from matcher.model import TIME_MIN, AnyArray, Int64s, UInt64s
from rules.engine.intake.blocks import Explicit
from rules.engine.kernels.layout import JOURNALED
from rules.engine.kernels.seen import compare, settle
from runtime.memory import zeros

CHUNK = 1 << 13
"""Numbers of a chunk; one that is made for more has just these."""
FREE_MIN = 8
"""Up to so many chunks are kept for use."""


class Journal:
    """Owner of the explicit numbers. ``chunk`` is the one that is written, by kernels too.

    Numbers are written on, in chunks of memory that are used again, and are read only when one
    repeats; then all of them move to the table of :class:`.blocks.Explicit`. So a stream without
    repeats pays for writing, and one with repeats for finding each number once.
    """

    def __init__(self, table: Explicit) -> None:
        self._table = table
        self._full: deque[tuple[int, AnyArray]] = deque()  # with the greatest time of each
        self._free: list[AnyArray] = []
        self._open(zeros((1,), JOURNALED))

    def __len__(self) -> int:
        """How many blocks of numbers there are in the table."""
        return len(self._table)

    def kept(self) -> Explicit:
        """All of them, as a table; shares no memory with this."""
        self._settle()
        return self._table.since(TIME_MIN)

    def reserve(self, count: int) -> None:
        """Have room in the chunk for so many more."""
        if self._top() + count < len(self.chunk):
            return
        self._close()
        if count > CHUNK:
            self._open(zeros((count + 1,), JOURNALED))
        else:
            self._open(self._free.pop() if self._free else zeros((CHUNK + 1,), JOURNALED))

    def add(self, sources: Int64s, numbers: Int64s, times: Int64s, contents: UInt64s) -> None:
        """Enter numbers that are new, with the times and the digests of their events."""
        count = len(numbers)
        self.reserve(count)
        top = self._top()
        records = self.chunk[top : top + count]
        records["source"], records["number"] = sources, numbers
        records["time"], records["contents"] = times, contents
        self._tops[-1] = top + count

    def compare(self, sources: Int64s, numbers: Int64s, contents: UInt64s) -> tuple[Int64s, Int64s]:
        """The verdicts on events whose numbers came before (kernels.seen), and of those in conflict
        when the other event was.
        """
        self._settle()
        verdicts, before = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int64)
        table = self._table
        compare(table.held, table.known, sources, numbers, contents, verdicts, before)
        return verdicts, before

    def drop(self, before: int) -> None:
        """Drop the first chunks, if they have no event from ``before`` on."""
        while self._full and self._full[0][0] < before:
            self._use_again([self._full.popleft()[1]])

    def forget(self, before: int) -> None:
        """Forget what has no event from ``before`` on: whole blocks, and whole chunks. No more
        chunks are kept for use than there are left.
        """
        self._table = self._table.since(before)
        self._close()
        old = [chunk for newest, chunk in self._full if newest < before]
        self._full = deque(one for one in self._full if one[0] >= before)
        self._use_again(old)

    def _settle(self) -> None:
        """Move all that is written to the table."""
        self._close()
        chunks = [chunk for _, chunk in self._full]
        for chunk in chunks:
            done = 0
            count = len(_used(chunk))
            while (done := settle(self._table.held, self._table.known, chunk, done)) < count:
                self._table = self._table.since(TIME_MIN)  # which has room for more
        self._full.clear()
        self._use_again(chunks)

    def _open(self, chunk: AnyArray) -> None:
        chunk[-1]["number"] = 0
        self.chunk = chunk
        self._tops: Int64s = chunk["number"]  # the last of which says how many are in use

    def _top(self) -> int:
        return self._tops.item(-1)

    def _close(self) -> None:
        """Put the chunk with those that are full, unless nothing was written."""
        if self._top():
            self._full.append((int(_used(self.chunk)["time"].max()), self.chunk))
            self._open(zeros((1,), JOURNALED))

    def _use_again(self, chunks: list[AnyArray]) -> None:
        free = self._free + [chunk for chunk in chunks if len(chunk) == CHUNK + 1]
        self._free = free[: max(FREE_MIN, len(self._full))]


def _used(chunk: AnyArray) -> AnyArray:
    """The records of a chunk that are in use."""
    found: AnyArray = chunk[: chunk[-1]["number"]]
    return found

"""Arrays that grow at their end without a pause, for kernels to read. Room is doubled, so that an
append is cheap whatever there is.
"""

from __future__ import annotations

import math
import mmap

import numpy as np
import numpy.typing as npt

from runtime.memory import Array, grown, is_guarded, zeros
from runtime.pages import LARGE, SMALL, WRITABLE, advise, mapped, resized

ROOM_MIN = 16
MOVED_MIN = 1 << 18
"""Bytes of an array whose pages are moved."""
AHEAD = 1 << 16
"""Bytes behind the rows in use whose pages are asked for at once."""


def with_room(array: Array, rows: int) -> Array:
    """The array, or a copy of at least twice its length, with room for so many rows."""
    if rows <= len(array):
        return array
    least = rows if is_guarded() else max(rows, 2 * len(array), ROOM_MIN)
    return grown(array, least)


class Growing:
    """``rows[:size]`` are in use, what lies behind is room: zeros, until it is used.

    Growing takes the same short time whatever there is. Beyond MOVED_MIN bytes the pages of memory
    are moved to where there is room for more of them; doubling a hundred megabytes by a copy would
    be a pause of some tens of milliseconds. Where the system cannot do that, or somebody still
    looks at the array, it is copied.
    """

    def __init__(self, dtype: npt.DTypeLike, *shape: int, room: int = 0) -> None:
        self._dtype, self._shape = np.dtype(dtype), shape
        self._row_bytes = self._dtype.itemsize * math.prod(shape)
        self._pages: mmap.mmap | None = None
        self._at_once = False
        self._ready = 0  # rows up to which pages have been asked for
        self.rows: Array = zeros((0, *shape), dtype)
        self.size = 0
        self.make_room(room)

    def extend(self, rows: Array) -> int:
        """Append rows; the place of the first."""
        first = self.reserve(len(rows))
        self.rows[first : self.size] = rows
        return first

    def reserve(self, count: int) -> int:
        """Append so many rows, of any content; the place of the first."""
        first = self.size
        self.size += count
        if self.size > self._ready:
            self.make_room(self.size)
            self.make_ready(self.size)
        return first

    def make_ready(self, used: int) -> None:
        """Ask for the pages of what will come next behind so many rows in use, if it is time. One
        that is met when it is written to doubles what a filter takes that comes, and one filter in
        twenty met one.
        """
        if used <= self._ready:
            return
        self._ready = len(self.rows)
        if self._pages is not None and not self._at_once:
            self._ready = min(self._ready, used + AHEAD // self._row_bytes)
            begin, end = used * self._row_bytes, self._ready * self._row_bytes
            advise(self._pages, WRITABLE, begin, end)

    def expect(self) -> None:
        """Rows come at once until ``settle``: what is grown into begins with large pages. Addresses
        are found sooner in these.
        """
        self._at_once = True

    def settle(self, used: int) -> None:
        """Rows come one by one from now on, behind so many that are in use. What is grown into
        begins with small pages: to fill one large page with zeros takes 0.2 ms, or 20 where a
        virtual machine has to be given it first.
        """
        if self._at_once and self._pages is not None:
            advise(self._pages, SMALL, used * self._row_bytes)
        self._at_once, self._ready = False, used

    def make_room(self, count: int) -> None:
        """Have room for so many rows in all."""
        if count <= len(self.rows):
            return
        length = max(count, 2 * len(self.rows), ROOM_MIN)
        if length * self._row_bytes < MOVED_MIN or is_guarded():
            self.rows = with_room(self.rows, count if is_guarded() else length)
        elif not self._move(length):
            old = self.rows
            self._pages = mapped(length * self._row_bytes)
            self._look(self._pages)
            self.rows[: len(old)] = old

    def _move(self, length: int) -> bool:
        """Move the pages to where there is room for more; whether that could be done."""
        pages = self._pages
        if pages is None:
            return False
        size = len(pages)
        self.rows = self.rows[:0].copy()  # nobody may look at pages that move
        advise(pages, LARGE)  # all of one sort, or they cannot move
        has_moved = resized(pages, length * self._row_bytes)
        if has_moved and not self._at_once:
            advise(pages, SMALL, size)
        self._look(pages)
        return has_moved

    def _look(self, pages: mmap.mmap) -> None:
        self.rows = np.frombuffer(pages, self._dtype).reshape(-1, *self._shape)

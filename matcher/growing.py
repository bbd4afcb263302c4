"""What grows without a pause: arrays that grow at their end, for kernels to read, and the places
of what is in them by identifier. Room is doubled, so that an append is cheap whatever there is.

Law: growing takes the same short time whatever there is. Beyond MOVED_MIN bytes the pages of memory
are moved to where there is room for more of them, and what is in them is not touched; doubling a
hundred megabytes by a copy would be a pause of some tens of milliseconds. Where the system cannot
do that, or somebody still looks at the array, it is copied. What comes at once stands in large
pages, which are sooner found; what comes one by one begins with small ones, since to fill one large
page with zeros takes 0.2 ms, or 20 where a virtual machine has to be given it first. Small pages
are asked for some at a time before they are used: one that is met when it is written to doubles
what a filter takes that comes, and one filter in twenty met one.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain

import numpy as np
import numpy.typing as npt

from matcher.model import AnyArray

ROOM_MIN = 16
MOVED_MIN = 1 << 18
"""Bytes of an array whose pages are moved."""
AHEAD = 1 << 16
"""Bytes behind the rows in use whose pages are asked for at once."""
SHARDS = 1_024
"""Dictionaries that what comes one by one is spread over."""
TOGETHER_MAX = 2**14
"""Words in one dictionary: to double it takes a third of a millisecond."""
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_LARGE = getattr(mmap, "MADV_HUGEPAGE", None)
_SMALL = getattr(mmap, "MADV_NOHUGEPAGE", None)
_WRITABLE = 23 if sys.platform == "linux" else None
"""MADV_POPULATE_WRITE, of Linux 5.14 and later, which mmap has no name for."""


def with_room(array: AnyArray, rows: int) -> AnyArray:
    """The array, or a copy of at least twice its length, with room for so many rows."""
    if rows <= len(array):
        return array
    larger = np.zeros((max(rows, 2 * len(array), ROOM_MIN), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


class Places:
    """Places by identifier: a dictionary that can grow by one without a pause.

    What comes at once is in one dictionary. What comes one by one is in another one, and beyond
    TOGETHER_MAX spread over SHARDS others, because a dictionary moves all that it has whenever it
    doubles.
    """

    def __init__(self) -> None:
        self._at_once: dict[int, int] = {}
        self._together: dict[int, int] = {}
        self._one_by_one: list[dict[int, int]] = [{} for _ in range(SHARDS)]
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, identifier: int) -> bool:
        return (
            identifier in self._at_once
            or identifier in self._together
            or identifier in self._shard(identifier)
        )

    def __getitem__(self, identifier: int) -> int:
        place = self._together.get(identifier)
        if place is None:
            place = self._shard(identifier).get(identifier)
        return self._at_once[identifier] if place is None else place

    def __iter__(self) -> Iterator[int]:
        """The places, in no order."""
        every = (self._at_once, self._together, *self._one_by_one)
        return chain.from_iterable(map(dict.values, every))

    def add(self, identifier: int, place: int) -> None:
        """Add an identifier that is not there."""
        few = len(self._together) < TOGETHER_MAX
        (self._together if few else self._shard(identifier))[identifier] = place
        self._size += 1

    def add_all(self, identifiers: Sequence[int], places: Iterable[int]) -> None:
        """Add identifiers that are not there."""
        self._at_once.update(zip(identifiers, places, strict=True))
        self._size += len(identifiers)

    def pop(self, identifier: int) -> int:
        """Take an identifier out; KeyError when it is not there."""
        place = self._together.pop(identifier, None)
        if place is None:
            place = self._shard(identifier).pop(identifier, None)
        if place is None:
            place = self._at_once.pop(identifier)
        self._size -= 1
        return place

    def _shard(self, identifier: int) -> dict[int, int]:
        return self._one_by_one[identifier % SHARDS]


class Growing:
    """``rows[:size]`` are in use, what lies behind is room: zeros, until it is used."""

    def __init__(self, dtype: npt.DTypeLike, *shape: int, room: int = 0) -> None:
        self._dtype, self._shape = np.dtype(dtype), shape
        self._row_bytes = self._dtype.itemsize * math.prod(shape)
        self._pages: mmap.mmap | None = None
        self._at_once = False
        self._ready = 0  # rows up to which pages have been asked for
        self.rows: AnyArray = np.zeros((0, *shape), dtype)
        self.size = 0
        self.make_room(room)

    def extend(self, rows: AnyArray) -> int:
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
        """Ask for the pages of what will come next behind so many rows in use, if it is time."""
        if used <= self._ready:
            return
        self._ready = len(self.rows)
        if self._pages is not None and not self._at_once:
            self._ready = min(self._ready, used + AHEAD // self._row_bytes)
            begin, end = used * self._row_bytes, self._ready * self._row_bytes
            _advise(self._pages, _WRITABLE, begin, end)

    def expect(self) -> None:
        """Rows come at once until ``settle``: what is grown into begins with large pages."""
        self._at_once = True

    def settle(self, used: int) -> None:
        """Rows come one by one from now on, behind so many that are in use."""
        if self._at_once and self._pages is not None:
            _advise(self._pages, _SMALL, used * self._row_bytes)
        self._at_once, self._ready = False, used

    def make_room(self, count: int) -> None:
        """Have room for so many rows in all."""
        if count <= len(self.rows):
            return
        length = max(count, 2 * len(self.rows), ROOM_MIN)
        if length * self._row_bytes < MOVED_MIN:
            self.rows = with_room(self.rows, length)
        elif not self._move(length):
            old = self.rows
            self._pages = mmap.mmap(-1, length * self._row_bytes, flags=_PRIVATE)
            _advise(self._pages, _LARGE)
            self._look(self._pages)
            self.rows[: len(old)] = old

    def _move(self, length: int) -> bool:
        """Move the pages to where there is room for more; whether that could be done."""
        pages = self._pages
        if pages is None:
            return False
        size = len(pages)
        self.rows = self.rows[:0].copy()  # nobody may look at pages that move
        _advise(pages, _LARGE)  # all of one sort, or they cannot move
        try:
            pages.resize(length * self._row_bytes)
        except (BufferError, OSError, SystemError, ValueError):
            length = 0
        else:
            if not self._at_once:
                _advise(pages, _SMALL, size)
        self._look(pages)
        return length > 0

    def _look(self, pages: mmap.mmap) -> None:
        self.rows = np.frombuffer(pages, self._dtype).reshape(-1, *self._shape)


def _advise(pages: mmap.mmap, sort: int | None, begin: int = 0, end: int | None = None) -> None:
    """Ask for pages of a sort from a byte on, or up to another, which is a favour."""
    begin = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    end = len(pages) if end is None else end
    if sort is not None and begin < end:
        with suppress(OSError):
            pages.madvise(sort, begin, end - begin)

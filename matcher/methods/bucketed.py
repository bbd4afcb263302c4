"""The table of buckets of an index (:mod:`matcher.kernels.buckets`), of its parts and room."""

from __future__ import annotations

import numpy as np

from matcher.kernels.buckets import grow_part
from matcher.kernels.layout import BEGIN, FREE, LAST, PARTS, STATE, TOP
from matcher.model import Int64s
from runtime.growing import Growing

PART_MIN = 4


class Buckets:
    """``table`` int64[places, 2] and ``parts`` int64[PARTS, 3]. The table grows by one part at a
    time, so a key that comes alone moves one in PARTS of those that there are. What parts leave
    behind is used by others that grow.
    """

    def __init__(self) -> None:
        self._table = Growing(np.int64, 2, room=PARTS * PART_MIN)
        self.parts: Int64s = np.zeros((PARTS, 3), np.int64)
        self.parts[:, BEGIN] = np.arange(PARTS) * PART_MIN
        self.parts[:, LAST] = PART_MIN - 1
        self._state = _no_free_segments(PARTS * PART_MIN)

    @property
    def table(self) -> Int64s:
        """The places of all parts, and unused ones between them."""
        return self._table.rows

    def grow(self, part: int, arena: Int64s, state: Int64s) -> None:
        """Make room in a part. ``arena`` and ``state``: of the entries, whose dead segments go."""
        while not grow_part(self.table, self._state, self.parts, part, arena, state):
            self._table.make_room(len(self.table) + 1)

    def pack(self) -> None:
        """Give back what parts have left behind, if that is much."""
        lengths = self.parts[:, LAST] + 1
        size = int(lengths.sum())
        if 4 * int(self._state[TOP]) < 5 * size:
            return
        old, packed = self.table, Growing(np.int64, 2, room=size)
        begins = np.cumsum(lengths) - lengths
        for begin, length, to in zip(self.parts[:, BEGIN], lengths, begins, strict=True):
            packed.rows[to : to + length] = old[begin : begin + length]
        self.parts[:, BEGIN] = begins
        self._table, self._state = packed, _no_free_segments(size)


def _no_free_segments(top: int) -> Int64s:
    state = np.zeros(STATE, np.int64)
    state[FREE:] = -1
    state[TOP] = top
    return state

"""Arrays that grow at their end, for kernels to read: room is doubled, so that an append is cheap
whatever there is already.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matcher.model import AnyArray

ROOM_MIN = 16


def with_room(array: AnyArray, rows: int) -> AnyArray:
    """The array, or a copy of at least twice its length, with room for so many rows."""
    if rows <= len(array):
        return array
    larger = np.zeros((max(rows, 2 * len(array), ROOM_MIN), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


class Growing:
    """``rows[:size]`` are in use, what lies behind is room."""

    def __init__(self, dtype: npt.DTypeLike, *shape: int) -> None:
        self.rows: AnyArray = np.zeros((0, *shape), dtype)
        self.size = 0

    def extend(self, rows: AnyArray) -> int:
        """Append rows; the place of the first."""
        first = self.reserve(len(rows))
        self.rows[first : self.size] = rows
        return first

    def reserve(self, count: int) -> int:
        """Append so many rows, of any content; the place of the first."""
        first = self.size
        self.size += count
        self.rows = with_room(self.rows, self.size)
        return first

"""Memory for what leaves the engine, lent again when nobody holds what stood in it any more.

Memory that comes fresh from the system is cleared page by page while it is first written to, and
threads wait for one another meanwhile: that can take as long as detection does. What an advance
wrote is seldom held longer than until the next one, so its memory serves again.
"""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np
import numpy.typing as npt

from runtime.guarded import PATTERN
from runtime.memory import filled, is_guarded

SMALL = 1 << 16
"""Pieces of fewer bytes are not kept: the allocator has those at hand."""
KEPT_MAX = 1 << 26
"""Bytes that wait to be lent again, at most."""

Bytes = npt.NDArray[np.uint8]


class Pool:
    """Owner of the pieces that wait, by the logarithms of their sizes.

    The last array over a piece may go on any thread and between any two steps of another, so
    what concerns pieces are single steps of a deque, which no other thread sees half done.
    """

    def __init__(self) -> None:
        self._waiting: tuple[deque[Bytes], ...] = tuple(deque() for _ in range(64))
        self._asked = [0] * 64  # for each size, after how many others it was last asked for
        self._lent = 0

    @property
    def kept(self) -> int:
        """Bytes that wait to be lent again. Beyond KEPT_MAX the sizes that were not asked for for
        longest go to the system.
        """
        return sum(len(pieces) << size for size, pieces in enumerate(self._waiting))

    def lend(self, length: int) -> Bytes:
        """``length`` bytes that hold anything at all. They come back when the last array over them
        is gone, on whatever thread that is; nobody gives them back by hand, so nobody can do so too
        early.
        """
        if is_guarded():
            return filled(length, PATTERN, np.uint8)
        if length < SMALL:
            return np.empty(length, np.uint8)
        size = (length - 1).bit_length()
        self._lent += 1
        self._asked[size] = self._lent
        try:
            piece = self._waiting[size].pop()
        except IndexError:
            piece = np.empty(1 << size, np.uint8)
        # Slices of an array over a buffer name that array as their base, and not the piece.
        lent = np.frombuffer(piece.data, np.uint8)
        weakref.finalize(lent, self._take_back, size, piece).atexit = False
        return lent[:length]

    def _take_back(self, size: int, piece: Bytes) -> None:
        self._waiting[size].append(piece)
        while self.kept > KEPT_MAX:
            held = [one for one, pieces in enumerate(self._waiting) if pieces]
            try:
                self._waiting[min(held, key=self._asked.__getitem__)].popleft()
            except (IndexError, ValueError):
                return  # another thread was quicker

"""Memory for chunks: workers ask for it while they run, and it stays until the rule goes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from matcher.model import Int64s
from runtime.memory import zeros

FIRST_WORDS, MOST_WORDS = 1 << 13, 1 << 22
"""Words that are found at once, more each time."""


class ChunkMemory:
    """Owner of pieces of memory, each twice as large as the one before.

    ``address`` is that of a function which kernels call, one thread at a time: it gives the address
    of more memory, whose first word says how many bytes there are, or 0. What went wrong then is
    kept in ``error``.
    """

    def __init__(self) -> None:
        self._pieces: list[Int64s] = []
        self._function: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(self._find)
        self.address = int(ctypes.cast(self._function, ctypes.c_void_p).value or 0)
        self.error: BaseException | None = None

    @property
    def words(self) -> int:
        """How many words there are."""
        return sum(map(len, self._pieces))

    def _find(self, least: int) -> int:
        try:
            words = min(FIRST_WORDS << len(self._pieces), MOST_WORDS)
            piece = zeros((max(words, least),), np.int64)
            piece[0] = piece.nbytes
            self._pieces.append(piece)
            return piece.ctypes.data
        except BaseException as error:
            self.error = error
            return 0

"""Memory of arrays that kernels read by their addresses.

``zeros`` makes an array and ``grown`` gives one more room. A large array grows where it is: memory
that is mapped is given more addresses and takes pages as they are written to, while a copy takes
the system's pages for all of it once more (``rexmq bench growth``).

Invariant: whoever keeps the address of an array gets it anew when the array has grown, for the
array may have moved. In guarded memory (:mod:`runtime.guarded`) it always has.

>>> array = grown(zeros((2,), np.int64), 4)
>>> array.tolist()
[0, 0, 0, 0]
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from runtime import guarded, pages
from runtime.guarded import Side
from runtime.pages import mapped, resized

Array = npt.NDArray[Any]
MAPPED_MIN = 1 << 20
"""So many bytes are mapped, if the system can map more behind them (Linux)."""
_LINE = 64  # bytes
_side: Side | None = None  # of guarded memory; None for memory without guards


def is_guarded() -> bool:
    """Whether arrays are made in guarded memory."""
    return _side is not None


def guard(side: Side | None) -> None:
    """Make arrays in guarded memory from now on, flush with a side of it; None for no guards."""
    global _side
    _side = side


@contextmanager
def guarding(side: Side | None) -> Iterator[None]:
    """Make arrays in guarded memory meanwhile; None: in memory without guards."""
    before = _side
    guard(side)
    try:
        yield
    finally:
        guard(before)


def first_length(length: int) -> int:
    """The length of an array that grows when it is full: one item in guarded memory, so that it
    grows in every test.
    """
    return 1 if is_guarded() else length


def zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Zeros that begin with a line of memory: a record of 64 bytes is then in one line. Guarded
    memory may end with them instead.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if _side is not None:
        return guarded.memory_of(size, _side).view(dtype).reshape(shape)
    if size >= MAPPED_MIN and pages.LARGE is not None:
        flat: Array = np.frombuffer(mapped(size), dtype)
        return flat if len(shape) == 1 else flat.reshape(shape)
    held = np.zeros(size + _LINE, np.uint8)
    start = -held.ctypes.data % _LINE
    return held[start : start + size].view(dtype).reshape(shape)


def filled(length: int, value: int, dtype: npt.DTypeLike = np.int64) -> Array:
    """``length`` items of one value, in memory as that of ``zeros``."""
    array = zeros((length,), dtype)
    array.fill(value)
    return array


def sheltered(array: Array) -> Array:
    """An array that was made elsewhere and that only kernels write to from now on: itself, or a
    copy in guarded memory.
    """
    if not is_guarded() or guarded.holds(array):
        return array
    copy = zeros(array.shape, array.dtype)
    copy[...] = array
    return copy


def grown(array: Array, length: int) -> Array:
    """An array with room for ``length`` items, at least as many as there are; zeros are behind the
    old ones. It is the old memory if that is mapped and nobody but the caller's expression has a
    reference to it, else a copy.
    """
    dtype = array.dtype
    memory = getattr(array.base, "obj", None)
    if isinstance(memory, mmap.mmap) and not is_guarded():
        del array  # memory that is referred to does not grow
        resized(memory, length * dtype.itemsize)
        array = np.frombuffer(memory, dtype)
    if len(array) < length:
        larger = zeros((length, *array.shape[1:]), dtype)
        larger[: len(array)] = array
        return larger
    return array

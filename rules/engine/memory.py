"""Memory of arrays that grow.

Law: what is large grows where it is. A copy of 256 MiB takes the system's pages for all of it
once more, a tenth of a second on a quick machine and most of a second on a slow one, in which a
broker does nothing else. Memory that is mapped is given more addresses instead, and takes pages as
these are written to.
"""

from __future__ import annotations

import math
import mmap
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from matcher.model import AnyArray

LARGE = 1 << 20
"""So many bytes are mapped, where the system can map more behind them (Linux)."""
_LINE = 64  # bytes


def grown(array: AnyArray, length: int) -> AnyArray:
    """An array with room for ``length`` items, at least as many as there are; zeros are behind the
    old ones. It is the old memory where that is mapped and nobody but the caller's expression has
    a reference to it, else a copy.
    """
    dtype = array.dtype
    memory = getattr(array.base, "obj", None)
    if isinstance(memory, mmap.mmap):
        del array  # memory that is referred to does not grow
        with suppress(BufferError, OSError):
            memory.resize(length * dtype.itemsize)
        array = np.frombuffer(memory, dtype)
    if len(array) < length:
        larger = zeros((length, *array.shape[1:]), dtype)
        larger[: len(array)] = array
        return larger
    return array


def zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> AnyArray:
    """Zeros that begin with a line of memory: a record of 64 bytes is then in one line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size >= LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # the system may have no large pages
            memory.madvise(mmap.MADV_HUGEPAGE)
        flat: AnyArray = np.frombuffer(memory, dtype)
        return flat if len(shape) == 1 else flat.reshape(shape)
    held = np.zeros(size + _LINE, np.uint8)
    start = -held.ctypes.data % _LINE
    return held[start : start + size].view(dtype).reshape(shape)

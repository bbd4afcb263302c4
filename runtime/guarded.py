"""Guarded memory, for tests: pages that nobody may touch stand before and behind each array.

An access outside an array ends the process, and so does one by an address that is kept after the
array has grown or gone: its memory is given back to the system at once. An array stands flush with
the page before it (Side.FRONT) or with the page behind it (Side.END), so tests run with each.

>>> memory_of(3, Side.END).tolist()
[0, 0, 0]
"""

from __future__ import annotations

import ctypes
import mmap
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

PATTERN = 0xDB
"""Every byte of memory that is given back to be used again: no length, place or time that is
right.
"""
_NOBODY = 0  # PROT_NONE


class Side(Enum):
    """The page that arrays are flush with."""

    FRONT = "front"
    END = "end"


def memory_of(size: int, side: Side) -> npt.NDArray[np.uint8]:
    """``size`` zeroed bytes of their own, between two guards. Raises OSError without mprotect."""
    pages = max(1, -(-size // mmap.PAGESIZE))
    memory = mmap.mmap(-1, (pages + 2) * mmap.PAGESIZE)
    held = np.frombuffer(memory, np.uint8)
    behind = (pages + 1) * mmap.PAGESIZE
    for place in (0, behind):
        if _protect()(held.ctypes.data + place, mmap.PAGESIZE, _NOBODY):
            raise OSError(ctypes.get_errno(), "no page can be guarded")
    start = mmap.PAGESIZE if side is Side.FRONT else behind - size
    return held[start : start + size]


def holds(array: npt.NDArray[Any]) -> bool:
    """Whether an array stands in mapped memory, which all guarded memory is."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(getattr(base, "obj", base), mmap.mmap)


@cache
def _protect() -> Any:
    """The system's mprotect."""
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return function

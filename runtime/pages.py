"""Pages of memory that can be given more pages where they are, and advice on their sort.

Advice is a favour: a system that knows none, or will not, changes nothing but time.
"""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress

LARGE = getattr(mmap, "MADV_HUGEPAGE", None)
SMALL = getattr(mmap, "MADV_NOHUGEPAGE", None)
WRITABLE = 23 if sys.platform == "linux" else None
"""MADV_POPULATE_WRITE, of Linux 5.14 and later, which mmap has no name for."""


def mapped(size: int) -> mmap.mmap:
    """``size`` bytes of zeros, in large pages if the system has them."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    advise(pages, LARGE)
    return pages


def resized(pages: mmap.mmap, size: int) -> bool:
    """Give pages room for ``size`` bytes, at addresses that may be others; what is in them is not
    touched. False if the system cannot, or somebody looks at them.
    """
    try:
        pages.resize(size)
    except (BufferError, OSError, SystemError, ValueError):
        return False
    return True


def advise(pages: mmap.mmap, sort: int | None, begin: int = 0, end: int | None = None) -> None:
    """Ask for pages of a sort from a byte on, or up to another."""
    begin = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    end = len(pages) if end is None else end
    if sort is not None and begin < end:
        with suppress(OSError):
            pages.madvise(sort, begin, end - begin)

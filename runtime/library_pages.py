"""Pages of a library that has done its work, given back until it has more.

LLVM, which loads kernels, is 70 of a broker's 170 MB, and idle once they are loaded.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LLVM = "libllvmlite"
_MAPS = Path("/proc/self/smaps")
_MAPPING = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) (\S+) .*/(\S+)\n((?:[A-Z]\w+:.*\n)*)", re.MULTILINE
)
_DONT_NEED = 4
"""Of madvise(2) in Linux: the pages may go."""


def give_back(library: str = LLVM) -> None:
    """Give back the pages of a library, by the beginning of its file's name. Only what nobody can
    have written is given back, and the library's file holds it: its next use reads it again. Where
    the system does not say what a mapping holds, nothing is.
    """
    with suppress(OSError, AttributeError):
        advise = ctypes.CDLL(None).madvise
        for start, size in _unwritten(_MAPS.read_text(), library):
            advise(ctypes.c_void_p(start), ctypes.c_size_t(size), _DONT_NEED)


def _unwritten(maps: str, library: str) -> Iterator[tuple[int, int]]:
    """Where mappings of a library are, and how long, that cannot be written and never were."""
    for found in _MAPPING.finditer(maps):
        start, end, rights, name, says = found.groups()
        if name.startswith(library) and "w" not in rights and _is_clean(says):
            yield int(start, 16), int(end, 16) - int(start, 16)


def _is_clean(says: str) -> bool:
    own = re.search(r"^Anonymous: +(\d+) kB", says, re.MULTILINE)
    return own is not None and own[1] == "0"

"""How kernels are compiled: once, without the interpreter's lock, and kept on disk.

Numba keeps what it compiled as long as the file of the function itself is unchanged; what it
inlined from other files it does not look at, so an edit of a called kernel would go unnoticed. A
kernel here is therefore stamped with all the files that kernels are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., object])

_FOLDER = Path(__file__).parent
_SOURCES = [*sorted(_FOLDER.glob("*.py")), _FOLDER.parent.parent / "plan.py"]
STAMP = tuple((path.name, path.stat().st_mtime, path.stat().st_size) for path in _SOURCES)
"""Changes whenever any source of the kernels does."""


def kernel(function: Function) -> Function:
    """Compile a function for all kernels to call; cached on disk, stamped with every source."""
    dispatcher = numba.njit(cache=True, nogil=True)(function)
    # Numba offers no way to name further sources, so its index is told in the one place it keeps.
    dispatcher._cache._cache_file._source_stamp = STAMP
    return dispatcher  # type: ignore[no-any-return]

"""The kernels of detection, each stamped with the sources of all (:mod:`runtime.compiling`)."""

from __future__ import annotations

from pathlib import Path

from matcher import contents
from runtime.compiling.cache import KernelCache, stamp_of
from runtime.compiling.compiled import Function, compiled

__all__ = ["STAMP", "KernelCache", "kernel", "making", "part"]

_FOLDER = Path(__file__).parent
_PLANNING = _FOLDER.parent.parent / "planning"
_OTHERS = [_PLANNING / "plan.py", _PLANNING / "program.py", Path(contents.__file__)]
STAMP = stamp_of([*sorted(_FOLDER.glob("*.py")), *_OTHERS])
"""Changes whenever any source of the kernels does."""


def kernel(function: Function) -> Function:
    """Compile a function for all kernels to call, which makes no array."""
    return compiled(function, STAMP, counting=False)


def making(function: Function) -> Function:
    """Compile a function that makes an array."""
    return compiled(function, STAMP)


def part(function: Function) -> Function:
    """Compile a small function that hot kernels are made of: no call of it is left in them."""
    return compiled(function, STAMP, counting=False, inline=True)

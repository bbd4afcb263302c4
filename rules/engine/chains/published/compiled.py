"""The kernels of AIP as published, each stamped with the sources of all, and those they call."""

from __future__ import annotations

from pathlib import Path

from rules.engine.kernels.compiled import STAMP as OF_ENGINES
from runtime.compiling.cache import stamp_of
from runtime.compiling.compiled import Function, compiled

_SOURCES = ("layout", "pools", "advancing", "joining", "kernels")
STAMP = (*OF_ENGINES, *stamp_of([Path(__file__).parent / f"{one}.py" for one in _SOURCES]))
"""Changes whenever any source of the kernels does."""


def kernel(function: Function) -> Function:
    """Compile a function for kernels to call, which makes no array."""
    return compiled(function, STAMP, counting=False)

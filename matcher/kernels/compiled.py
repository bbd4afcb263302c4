"""The kernels of matching, each stamped with the sources of all (:mod:`runtime.compiling`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime.compiling.cache import stamp_of
from runtime.compiling.compiled import compiled

STAMP = stamp_of(sorted(Path(__file__).parent.glob("*.py")))


def kernel(function: Callable[..., object]) -> Any:
    """Compile a function that makes no arrays, for kernels and Python to call.

    It does not count references: who calls it holds the arrays. Counting took most of the time
    of loops that look at little in many arrays.
    """
    return compiled(function, STAMP, counting=False)


def inlined(function: Callable[..., object]) -> Any:
    """The same for a function that becomes part of each kernel that calls it."""
    return compiled(function, STAMP, counting=False, inline=True)


def making(function: Callable[..., object]) -> Any:
    """Compile a function that makes arrays."""
    return compiled(function, STAMP)

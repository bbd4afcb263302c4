"""The kernels of matching, each stamped with the sources of all (:mod:`matcher.compiling`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matcher.compiling import compiled, stamp_of

STAMP = stamp_of(sorted(Path(__file__).parent.glob("*.py")))


def kernel(function: Callable[..., object]) -> Any:
    """Compile a function for kernels and Python to call."""
    return compiled(function, STAMP)


def inlined(function: Callable[..., object]) -> Any:
    """Compile a small function into each kernel that calls it."""
    return compiled(function, STAMP, inline=True)

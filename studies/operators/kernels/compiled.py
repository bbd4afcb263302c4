"""The kernels of operators, each stamped with the sources of all (:mod:`runtime.compiling`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rules.engine.kernels.compiled import STAMP as OF_ENGINES
from runtime.compiling.cache import stamp_of
from runtime.compiling.compiled import compiled

STAMP = (*OF_ENGINES, *stamp_of(sorted(Path(__file__).parent.glob("*.py"))))
"""Changes whenever a source of these kernels does, or of those of detection, which they call."""


def kernel(function: Callable[..., object]) -> Any:
    """Compile a function for all kernels of operators to call."""
    return compiled(function, STAMP)

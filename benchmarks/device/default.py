"""The default scenario of the thesis's section 6.4 by all engines: a part of its own, beside which
all else is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.device.detection import SWEEPS, figures
from benchmarks.report import Row


def run(quick: bool) -> Iterator[Row]:
    """Figure 6.5."""
    yield from figures(SWEEPS[:1], quick)

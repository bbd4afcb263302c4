"""The matchers of chapter 4 that run on the CPU, and ours, under the thesis's names."""

from __future__ import annotations

import os
from collections.abc import Callable

from matcher.choose import AutoMatcher
from matcher.counting import CountingMatcher
from matcher.pcm import PcmMatcher
from matcher.tabled import TableMatcher

CORES = os.cpu_count() or 1
SFF, OCM_1, OCM, AUTO = "SFF", "OCM, 1 thread", f"OCM, {CORES} threads", "auto"
DISTINCT = "OCM, 1 thread, each constraint once"
METHODS: dict[str, Callable[[], TableMatcher]] = {
    SFF: CountingMatcher,
    OCM_1: PcmMatcher,
    OCM: lambda: PcmMatcher(threads=CORES),
    AUTO: AutoMatcher,
}

"""Those of all figures."""
MAKERS = {**METHODS, DISTINCT: lambda: CountingMatcher(plain=True)}
"""And one of a table alone."""


def ms(method: str) -> str:
    """The name of a method's column."""
    return f"{method} [ms]"


def speedup(method: str) -> str:
    """The name of the column of a method's speed as a multiple of SFF's."""
    return f"{method} / SFF"

"""What the machine gives just then: by it the figures of two runs can be held together.

Most of what is measured here waits for memory or runs Python, and a virtual machine has neighbours
who want both. So every benchmark is preceded by two figures of nothing of ours: a read that no
cache can foresee, and a step of a loop of Python's. Where they differ between two runs, the other
figures will.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numba import njit

from benchmarks.report import Row, seconds_of
from matcher.model import AnyArray

ENTRIES = 1 << 25
"""Of eight bytes: 256 MiB, more than caches hold."""
READS = 2_000_000
STEPS = 1_000_000
REPEATS = 3
SEED = 7


def run(quick: bool) -> list[Row]:
    """The machine as a benchmark of its own."""
    return state("", quick)


def state(before: str, quick: bool) -> list[Row]:
    """Nanoseconds of CPU time, the least of some runs; ``before``: what is measured next."""
    entries, reads, steps = (1 << 16, 100_000, 100_000) if quick else (ENTRIES, READS, STEPS)
    circle = _circle(entries)
    label = f"machine before {before}/" if before else "machine/"
    return [
        Row(
            f"{label}a read of {circle.nbytes >> 10:,} KiB, at random",
            _nanoseconds(lambda: _follow(circle, reads), reads),
            "ns",
        ),
        Row(f"{label}a step of a loop of Python", _nanoseconds(lambda: _count(steps), steps), "ns"),
    ]


def _circle(entries: int) -> AnyArray:
    """Each entry says which is next, so that one pass visits all in an order by chance."""
    order = np.random.default_rng(SEED).permutation(entries)
    circle = np.empty(entries, np.int64)
    circle[order] = np.roll(order, -1)
    return circle


@njit(cache=True)  # type: ignore[untyped-decorator]
def _follow(circle: AnyArray, reads: int) -> int:
    place = 0
    for _ in range(reads):
        place = circle[place]
    return place


def _count(steps: int) -> int:
    total = 0
    for step in range(steps):
        total += step
    return total


def _nanoseconds(action: Callable[[], object], steps: int) -> float:
    """Of CPU time, for each step of an action that takes so many."""
    return seconds_of(action, repeats=REPEATS, clock=time.process_time) / steps * 1e9

"""Ascending sequence numbers as runs, and what sequences begin with in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matcher.model import Int64s

RUNS_MAX = 1_000
"""Runs of sequence numbers named in one Rejected; further ones are told as one run."""


def runs(numbers: Int64s, runs_max: int = RUNS_MAX) -> tuple[tuple[int, int], ...]:
    """Ascending numbers as runs of (first, last), so many of them at most."""
    breaks = np.flatnonzero(np.diff(numbers) != 1)
    firsts = numbers[np.concatenate(([0], breaks + 1))]
    lasts = numbers[np.concatenate((breaks, [len(numbers) - 1]))]
    if len(firsts) > runs_max:
        firsts, lasts = firsts[:runs_max], lasts[: runs_max - 1]
        lasts = np.append(lasts, numbers[-1])
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))


def common_start(one: Sequence[object], other: Sequence[object]) -> int:
    """How many items two sequences begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    different = (place for place, (mine, its) in pairs if mine is not its and mine != its)
    return next(different, min(len(one), len(other)))

"""Ascending sequence numbers as runs."""

from __future__ import annotations

import numpy as np

from matcher.model import Int64s

RUNS_MAX = 1_000
"""Runs of sequence numbers named in one Rejected; further ones are told as one run."""


def runs(numbers: Int64s) -> tuple[tuple[int, int], ...]:
    """Ascending numbers as runs of (first, last), at most RUNS_MAX of them."""
    breaks = np.flatnonzero(np.diff(numbers) != 1)
    firsts = numbers[np.concatenate(([0], breaks + 1))]
    lasts = numbers[np.concatenate((breaks, [len(numbers) - 1]))]
    if len(firsts) > RUNS_MAX:
        firsts, lasts = firsts[:RUNS_MAX], lasts[: RUNS_MAX - 1]
        lasts = np.append(lasts, numbers[-1])
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))

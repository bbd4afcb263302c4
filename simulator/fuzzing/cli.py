"""``rexmq simulate --fuzz``: a campaign, told as it goes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from simulator.fuzzing.campaign import Failure, cases_of, failures, smallest, strategies

SHRUNK_MAX = 5
"""Failures that are made small and written; the others are only named."""


def fuzz(seeds: range, names: Sequence[str], out: Path) -> int:
    """Run every seed with every strategy (all, if none is named); how many failed.

    The first failures are made small and written to ``out``, a folder each.
    """
    found = 0
    for failure in failures(cases_of(seeds, names or strategies()), os.cpu_count() or 1):
        found += 1
        case = failure.case
        print(f"seed {case.seed}, {case.strategy}: fails", flush=True)
        if found <= SHRUNK_MAX:
            small = smallest(failure)
            path = small.case.write(out / f"seed-{case.seed}-{case.strategy}")
            print("\n".join(_told(small, path)), flush=True)
        else:
            print(f"  {failure.differences[0]}", flush=True)
    told = "all as the oracle" if not found else f"{found} failed"
    print(f"{len(seeds)} seeds with {', '.join(names or strategies())}: {told}")
    return found


def _told(small: Failure, path: Path) -> list[str]:
    return [*(f"  {line}" for line in small.differences), f"  rexmq simulate {path} --check"]

"""Run-based parallelism (RIP): the stream is cut into runs, which cores take in turn.

A run has the terminators of its time, and all events before that a match may need: so it overlaps
the run before by the window, and what is found there is found once more, in vain. Each run is
worked off by one core as the machine does it alone.

Law: a match belongs to the run of its terminator, so all runs together find what one core finds.
Example: runs of 10 s and a window of 4 s: the second has the terminators from 10 s to 20 s, and
events from 6 s on.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rules.engine.chains.hybrid.pipeline import Crew
from studies.multicore.chains import Chain, agents_of
from studies.multicore.costs import ChainCosts, StepCosts
from studies.multicore.machine import Arrival, Detection, detect

ALONE = Crew()
"""One thread."""
RUNS_PER_CORE = 8
"""So many at most, fewer where they would be shorter than the window."""


def edges_of(chain: Chain, cores: int) -> list[int]:
    """The instants between runs, the first and the last included."""
    span = chain.last + 1 - chain.first
    runs = max(1, min(RUNS_PER_CORE * cores, span // chain.window))
    return [int(one) for one in np.linspace(chain.first, chain.last + 1, runs + 1)]


def detect_by_runs(
    chain: Chain,
    steps: StepCosts,
    costs: ChainCosts,
    cores: int,
    *,
    arrival: Arrival | None = None,
) -> Detection:
    """Work a stream off by so many cores, the runs given to one after another."""
    ready, peaks, busy = [0.0] * cores, [0] * cores, 0.0
    found: list[Detection] = []
    for number, (begin, end) in enumerate(pairwise(edges_of(chain, cores))):
        part = chain.between(begin, end)
        done = detect(part, steps, costs, ALONE, agents=agents_of(part))
        core = number % cores
        comes = arrival(part.last) / 1e9 if arrival is not None and part.events else 0.0
        begun = max(ready[core], comes)
        ready[core] = begun + done.seconds
        peaks[core] = max(peaks[core], done.chunk_bytes)
        busy += done.pairing_s
        found.append(_later(done, begun))
    return Detection(
        max(ready),
        busy,
        (),
        np.concatenate([one.created for one in found]),
        np.concatenate([one.terminators for one in found]),
        sum(peaks),
        tuple(counts for one in found for counts in one.slices),
    )


def _later(done: Detection, begun: float) -> Detection:
    return Detection(
        begun + done.seconds,
        done.pairing_s,
        done.work,
        done.created + begun,
        done.terminators,
        done.chunk_bytes,
        done.slices,
    )

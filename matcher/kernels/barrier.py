"""A barrier: threads that wait for one another."""

from __future__ import annotations

from matcher.kernels.compiled import inlined
from runtime.instructions.atomics import add, let_others_run, load, place_of

ARRIVED, GENERATION = 0, 8
"""Places of a barrier in its array, on cache lines of their own."""
BARRIER = 16
"""So many items it has."""
SPINS = 200
"""So often a thread looks before it lets others have the core."""


@inlined
def wait_for_all(barrier, threads):
    """Return when so many threads have called this, and see all that they did before."""
    arrived, passed = place_of(barrier, ARRIVED), place_of(barrier, GENERATION)
    generation = load(passed)
    if add(arrived, 1) == threads - 1:
        add(arrived, -threads)
        add(passed, 1)
        return
    spins = 0
    while load(passed) == generation:
        spins += 1
        if spins > SPINS:
            let_others_run()

"""Operations that threads do on shared arrays without one in the other's way, and a barrier.

Numba has none for processors: these are LLVM's own instructions, sequentially consistent. An index
counts items of a contiguous array as it lies in memory.
"""

from __future__ import annotations

from numba.core import types
from numba.extending import intrinsic

from matcher.kernels.compiled import inlined

ARRIVED, GENERATION = 0, 8
"""Places of a barrier in its array, on cache lines of their own."""
BARRIER = 16
"""So many items it has."""
SPINS = 200
"""So often a thread looks before it lets others have the core."""
_ORDER = "seq_cst"
_sched_yield = types.ExternalFunction("sched_yield", types.int32())


def _place(context, builder, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


@intrinsic
def fetch_add(_context, array, index, more):
    """Add to an item of an array of int64; gives what it was."""

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature.args[0], *arguments[:2])
        return builder.atomic_rmw("add", place, arguments[2], _ORDER)

    return types.int64(array, types.intp, types.int64), generate


@intrinsic
def fetch(_context, array, index):
    """An item of an array of int64 as it is now."""

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature.args[0], *arguments)
        return builder.load_atomic(place, _ORDER, 8)

    return types.int64(array, types.intp), generate


@inlined
def wait_for_all(barrier, threads):
    """Return when so many threads have called this, and see all that they did before."""
    generation = fetch(barrier, GENERATION)
    if fetch_add(barrier, ARRIVED, 1) == threads - 1:
        fetch_add(barrier, ARRIVED, -threads)
        fetch_add(barrier, GENERATION, 1)
        return
    spins = 0
    while fetch(barrier, GENERATION) == generation:
        spins += 1
        if spins > SPINS:
            _sched_yield()

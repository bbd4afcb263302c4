"""Exclusive sums on a device: from the lengths of parts, the place where each part begins.

Many threads write what they find in the order of their candidates: they count, the counts
are summed up, then they write. No place is contended for, and results do not depend on how threads
run.
Example: the counts 2, 0, 3 become 0, 2, 2, 5: part 2 begins at place 2, and there are 5 in all.

One launch of one block, which needs nothing of the host in between: it can be recorded.
"""

from __future__ import annotations

from numba import cuda, int64

from matcher.gpu.device import Buffer, Device, Lane

SCAN_THREADS = 1_024
"""Threads of the block, at most; a power of two."""
PARTS, PART_THREADS = 64, 256
"""Blocks, and threads of each, that many counts are shared out among."""


def sum_up(on: Device, counts: Buffer, length: Buffer, place: int, lane: Lane) -> None:
    """Turn ``counts`` int64[n + 1] into n + 1 exclusive sums, in place; the last is the total.

    n stands in ``length`` int64 at ``place``, for it may be known to the device alone. The
    simulator makes shared memory once a thread, now and then: one thread does it all there.
    """
    threads = 1 if on.simulated else SCAN_THREADS
    on.launch(exclusive_sums, (1, 1), threads, lane, counts, length, place)


def sum_up_wide(
    on: Device, counts: Buffer, parts: Buffer, length: Buffer, place: int, lane: Lane
) -> None:
    """Do as :func:`sum_up`, by many blocks in two launches: for thousands of counts. ``parts``
    int64[PARTS] is working memory.
    """
    blocks, threads = (2, 1) if on.simulated else (PARTS, PART_THREADS)
    on.launch(part_sums, (blocks, 1), threads, lane, counts, parts, length, place)
    on.launch(wide_sums, (blocks, 1), threads, lane, counts, parts, length, place)


@cuda.jit(device=True)
def lesser(one, other):
    """The lesser of two ints: of some versions of numba no device knows ``min``."""
    return one if one < other else other


@cuda.jit(device=True)
def greater(one, other):
    """The greater of two ints."""
    return one if one > other else other


@cuda.jit
def exclusive_sums(counts, length, place):
    """As :func:`sum_up`; each thread takes a run of neighbours."""
    sums = cuda.shared.array(SCAN_THREADS, int64)
    size = length[place]
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    share = (size + threads - 1) // threads
    first = lesser(thread * share, size)
    last = lesser(first + share, size)
    own = int64(0)
    for at in range(first, last):
        own += counts[at]
    sums[thread] = own
    cuda.syncthreads()
    step = 1
    while step < threads:
        before = int64(0)
        if thread >= step:
            before = sums[thread - step]
        cuda.syncthreads()
        sums[thread] += before
        cuda.syncthreads()
        step *= 2
    start = sums[thread] - own
    for at in range(first, last):
        count = counts[at]
        counts[at] = start
        start += count
    if thread == threads - 1:
        counts[size] = sums[thread]


@cuda.jit
def part_sums(counts, parts, length, place):
    """The sum of each block's run of neighbours."""
    sums = cuda.shared.array(PART_THREADS, int64)
    size = int64(length[place])
    share = (size + cuda.gridDim.x - 1) // cuda.gridDim.x
    first = lesser(cuda.blockIdx.x * share, size)
    last = lesser(first + share, size)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    own = int64(0)
    for at in range(first + thread, last, threads):
        own += counts[at]
    sums[thread] = own
    cuda.syncthreads()
    step = threads // 2
    while step > 0:
        if thread < step:
            sums[thread] += sums[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        parts[cuda.blockIdx.x] = sums[0]


@cuda.jit
def wide_sums(counts, parts, length, place):
    """Exclusive sums of each block's run, above the sums of the runs before; tile by tile."""
    sums = cuda.shared.array(PART_THREADS, int64)
    size = int64(length[place])
    share = (size + cuda.gridDim.x - 1) // cuda.gridDim.x
    first = lesser(cuda.blockIdx.x * share, size)
    last = lesser(first + share, size)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    before = int64(0)
    for block in range(cuda.blockIdx.x):
        before += parts[block]
    if cuda.blockIdx.x == cuda.gridDim.x - 1 and thread == 0:
        counts[size] = before + parts[cuda.blockIdx.x]
    tile = first
    while tile < last:
        at = tile + thread
        own = counts[at] if at < last else int64(0)
        sums[thread] = own
        cuda.syncthreads()
        step = 1
        while step < threads:
            other = sums[thread - step] if thread >= step else int64(0)
            cuda.syncthreads()
            sums[thread] += other
            cuda.syncthreads()
            step *= 2
        if at < last:
            counts[at] = before + sums[thread] - own
        before += sums[threads - 1]
        cuda.syncthreads()
        tile += threads

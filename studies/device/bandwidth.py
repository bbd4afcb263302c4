"""How fast a device's memory is, by a kernel that copies, and what it takes to begin a kernel, to
bring bytes over, and to get memory: by these the figures of all other kernels are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from numba import cuda

from benchmarks.report import Row, attempted, seconds_of
from matcher.gpu.device import WORD, Device, Lane, device
from rules.engine.gpu.heap import Heap

WORDS = 2**27
"""Words of eight bytes: 1 GiB, far beyond what a device caches."""
HOST_WORDS = 2**23
"""Words that are brought over at once: 64 MiB."""
THREADS, BLOCKS = 256, 132 * 16
LAUNCHES = 20
PAGES = 1, 64
"""Pages that memory is taken in."""
SMALL = 32
"""The one size under the simulator."""


@cuda.jit
def copy(source, target):
    """Copy a buffer, neighbouring threads neighbouring words."""
    for place in range(cuda.grid(1), len(source), cuda.gridsize(1)):
        target[place] = source[place]


@cuda.jit
def nothing(target):
    """Do nothing."""


@cache
def bytes_a_second(on: Device) -> float:
    """Bytes read and written a second by a copy within the device's memory."""
    words, threads, blocks = (SMALL, 4, 1) if on.simulated else (WORDS, THREADS, BLOCKS)
    source, target, lane = on.zeros(words, np.int64), on.zeros(words, np.int64), on.lane()
    spent = timed(on, lane, lambda: on.launch(copy, (blocks, 1), threads, lane, source, target))
    return (source.bytes + target.bytes) / spent


def share(moved: float, seconds: float, bandwidth: float) -> str:
    """Bytes moved in so many seconds, in words: how many, how fast, and beside a copy."""
    return (
        f"moves {moved / 1e6:.3g} MB at least: {moved / seconds / 1e9:.3g} GB/s, "
        f"{100 * moved / seconds / bandwidth:.3g} % of a copy's"
    )


def of_kernel(line: str, seconds: float, moved: float, bandwidth: float) -> Iterator[Row]:
    """The rows of a kernel: its time, the bytes that it moves at least, where these are known, and
    its share of the bandwidth of a copy.
    """
    is_known = moved > 0 and seconds > 0
    note = share(moved, seconds, bandwidth) if is_known else ""
    yield Row(line, seconds * 1e6, "us", note=note)
    if moved:
        yield Row(f"{line}, moved", moved / 1e6, "MB")
    if is_known:
        yield Row(f"{line}, share of bandwidth", 100 * moved / seconds / bandwidth, "%")


def timed(on: Device, lane: Lane, work: Callable[[], None]) -> float:
    """Seconds for each of some times that work is put into a lane, one behind the other."""
    launches = 1 if on.simulated else LAUNCHES

    def again() -> None:
        for _ in range(launches):
            work()
        lane.wait()

    return seconds_of(again, repeats=3) / launches


def run(quick: bool) -> Iterator[Row]:
    """The device's memory, its launches, and the way to it."""
    on = device()
    yield from attempted("bandwidth/copy on the device", lambda: _copying(on))
    yield from attempted("bandwidth/launches", lambda: _launches(on))
    yield from attempted("bandwidth/to and from the host", lambda: _bringing(on))
    yield from attempted("bandwidth/memory", lambda: _taking(on))


def _copying(on: Device) -> Iterator[Row]:
    yield Row("bandwidth/copy on the device", bytes_a_second(on) / 1e9, "GB/s")


def _launches(on: Device) -> Iterator[Row]:
    lane, target = on.lane(), on.zeros(1, np.int64)

    def begin() -> None:
        on.launch(nothing, (1, 1), 1, lane, target)

    def begin_and_wait() -> None:
        begin()
        lane.wait()

    yield Row("bandwidth/a kernel, launched", timed(on, lane, begin) * 1e6, "us")
    yield Row("bandwidth/a kernel, and waiting for it", timed(on, lane, begin_and_wait) * 1e6, "us")
    again = on.recorded(begin, lane)

    def again_and_wait() -> None:
        again()
        lane.wait()

    yield Row("bandwidth/a kernel, by graph", timed(on, lane, again) * 1e6, "us")
    spent = timed(on, lane, again_and_wait) * 1e6
    yield Row("bandwidth/a kernel, by graph, and waiting for it", spent, "us")


def _bringing(on: Device) -> Iterator[Row]:
    lane, words = on.lane(), SMALL if on.simulated else HOST_WORDS
    for name, count in (("a word", 1), (f"{8 * words / 1e6:.3g} MB", words)):
        host, buffer = on.pinned(count, np.int64), on.zeros(count, np.int64)
        for way, work in (
            ("to", lambda host=host, buffer=buffer: on.upload(buffer, 0, host, lane)),
            ("from", lambda host=host, buffer=buffer: on.download(host, buffer, lane)),
        ):

            def there(work: Callable[[], None] = work) -> None:
                work()
                lane.wait()

            spent = timed(on, lane, there)
            moved = f"{host.nbytes / spent / 1e9:.3g} GB/s"
            yield Row(f"bandwidth/{name} {way} the device", spent * 1e6, "us", note=moved)


def _taking(on: Device) -> Iterator[Row]:
    """What it takes to put pages behind addresses, and to take as many away."""
    for pages in PAGES:
        heap, size = Heap(on, on.lane()), pages * on.page
        if size > on.room:  # no pages: all there is room for is one
            return

        def turn(heap: Heap = heap, size: int = size) -> None:
            heap.turn()
            heap.extend(heap.begin + size)
            heap.give_back()

        name = f"bandwidth/{WORD * size / 1e6:.3g} MB of memory, taken and given back"
        yield Row(name, seconds_of(turn, repeats=5) * 1e6, "us", note=on.without_pages)

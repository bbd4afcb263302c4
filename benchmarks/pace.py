"""How long matching takes: batches of events, single actions, threads and processes.

Law: what disturbs a measurement, other programs and other machines on the same host above all,
only ever adds to it. So each batch counts with the least time of several passes; a pass goes over
all events, that none is met while the caches still hold what the last one looked at.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from queue import SimpleQueue
from threading import Barrier, Thread
from typing import Any

import numpy as np

from benchmarks.report import Row
from matcher.filters.encoded import EncodedEvents
from matcher.methods.tabled import TableMatcher
from matcher.model import AnyArray

BATCH = 256
PASSES = 3


def rate(matcher: TableMatcher, encoded: EncodedEvents, *, filters: bool = False) -> float:
    """Events a second of CPU time."""
    passes = [one_pass(matcher, encoded, filters=filters) for _ in range(PASSES)]
    return len(encoded) / float(np.minimum.reduce(passes).sum())


def one_pass(matcher: TableMatcher, encoded: EncodedEvents, *, filters: bool = False) -> AnyArray:
    """Seconds of CPU time for each batch of BATCH events, all of them in a row."""
    batches = [encoded.take(slice(at, at + BATCH)) for at in range(0, len(encoded), BATCH)]
    matcher.match(batches[0], filters=filters)
    ends = [time.process_time()]
    for batch in batches:
        matcher.match(batch, filters=filters)
        ends.append(time.process_time())
    return np.diff(ends)


def percentiles(label: str, actions: Sequence[Callable[[], object]]) -> Iterator[Row]:
    """The median, the 99th percentile and the most of the time that each action takes."""
    gc.disable()
    spent = []
    for action in actions:
        begun = time.perf_counter_ns()
        action()
        spent.append(time.perf_counter_ns() - begun)
    gc.enable()
    for percentile in (50, 99):
        yield Row(f"{label}, p{percentile}", float(np.percentile(spent, percentile)) / 1e3, "us")
    yield Row(f"{label}, longest", max(spent) / 1e3, "us")


def clocked(work: Callable[[], float], count: int, *, apart: bool = False) -> tuple[float, float]:
    """Seconds from when so many threads begin together until all are done, and the least of what
    they say themselves; ``apart``: processes, which have the memory of this one between them.
    """
    fork = get_context("fork")
    make: Any = fork.Process if apart else Thread
    ready: Any = (fork.Barrier if apart else Barrier)(count + 1)
    said: Any = (fork.SimpleQueue if apart else SimpleQueue)()

    def one_of_them() -> None:
        ready.wait()
        said.put(work())

    running = [make(target=one_of_them) for _ in range(count)]
    for one in running:
        one.start()
    ready.wait()
    begun = time.perf_counter()
    for one in running:
        one.join()
    return time.perf_counter() - begun, min(said.get() for _ in running)

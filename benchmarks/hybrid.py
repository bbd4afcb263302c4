"""One heavy rule on several threads: hybrid parallelism beside the other ways to share it out.

Figures are events a second of the wall clock, from the first event to the last result, each the
best of some runs in turn; the machine has to be quiet, and ``threads`` of it free. The baseline is
a sequential engine in the same run: AIP as published, or ``cdp`` for a rule with runs of events,
which AIP as published refuses. Beside it:

- ``hybrid``: on one thread and on more, by roles;
- ``runs`` (RIP): the stream is cut into runs, each with what comes before it within the window, and
  threads take one after another; terminators of other runs are no terminators there;
- ``rules in parallel``: threads share out whole rules, of which there is one;
- ``by key``: where all events of a match have a key in common, each thread has its keys;
- ``cdp`` and ``aip``: today's engines, which have indexes, on one thread.

Every way has to find as many composite events. At last, what a lock costs: ours, and Python's.

::

    python -m benchmarks.hybrid [--quick] [--threads N] [--only NAME]
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise

import numpy as np

from benchmarks.hybrid_workloads import Stream, streams
from benchmarks.report import Row, attempted, table
from broker.parallel import AtOnce, engine_of, workers
from matcher.model import TIME_MAX, EventBatch
from rules import load
from rules.engine import Detector
from rules.engine.chains.hybrid.compiled import kernel
from rules.engine.chains.hybrid.engine import HybridEngine
from rules.engine.chains.hybrid.locks import lock, unlock
from rules.engine.chains.hybrid.pipeline import Crew
from rules.engine.threads.part import types_of
from rules.errors import RuleErrors
from rules.pattern import RuleSet

THREADS, REPEATS, RUNS_PER_THREAD = 2, 3, 8
LOCKS = 1_000_000
SEQUENTIAL, SEQUENTIAL_OF_RUNS = "aip-published", "cdp"

Way = Callable[[Stream, RuleSet], int]
"""A way to detect what a stream's rule finds: how many composite events."""


def run(quick: bool, threads: int = THREADS, only: str = "") -> Iterator[Row]:
    for stream in streams(quick=quick):
        if only in stream.name:
            name = f"hybrid/{stream.name}"
            yield from attempted(name, lambda one=stream: measure(one, quick, threads))
    yield from attempted("hybrid/lock", lambda: measure_locks(quick))


def measure(stream: Stream, quick: bool, threads: int) -> Iterator[Row]:
    """Events a second in every way, beside the sequential one."""
    rules = load(stream.rule)
    sequential = sequential_of(rules)
    ways = dict(ways_of(stream, threads, sequential))
    best = dict.fromkeys(ways, float("inf"))
    counts = {name: way(stream, rules) for name, way in ways.items()}  # this compiles, too
    for _ in range(1 if quick else REPEATS):
        for name, way in ways.items():
            begun = time.perf_counter()
            way(stream, rules)
            best[name] = min(best[name], time.perf_counter() - begun)
    for name, seconds in best.items():
        note = f"{counts[name]:,} composite events, {seconds:.2f} s"
        if counts[name] != counts[sequential]:
            note = f"WRONG: {note}"
        rate, other = stream.events / seconds, stream.events / best[sequential]
        baseline = ("", None) if name == sequential else ("sequential", other)
        yield Row(f"hybrid/{stream.name}, {name}", rate, "events/s", *baseline, note)


def sequential_of(rules: RuleSet) -> str:
    """The sequential engine that these rules are compared with."""
    try:
        engine_of(SEQUENTIAL, 1).deploy(rules)
    except RuleErrors:
        return SEQUENTIAL_OF_RUNS
    return SEQUENTIAL


def ways_of(stream: Stream, threads: int, sequential: str) -> Iterator[tuple[str, Way]]:
    """The ways that are compared, the sequential one first."""
    at_once = workers(threads)
    yield sequential, by_engine(lambda: engine_of(sequential, 1))
    yield "hybrid, 1 thread", by_engine(lambda: engine_of("hybrid", 1))
    for roles in ("full", "state", "static"):
        crew = Crew(threads, roles, at_once)
        yield f"hybrid {roles}, {threads} threads", by_engine(lambda crew=crew: HybridEngine(crew))
    crew = Crew(threads, at_once=at_once, tickets=False)
    name = f"hybrid without tickets, {threads} threads"
    yield name, by_engine(lambda crew=crew: HybridEngine(crew))
    yield f"runs, {threads} threads", by_runs(sequential, at_once, threads)
    parted = by_engine(lambda: engine_of(sequential, threads))
    yield f"rules in parallel, {threads} threads", parted
    if stream.key:
        yield f"by key, {threads} threads", by_key(sequential, at_once, threads)
    for name in sorted({"cdp", "aip"} - {sequential}):
        yield name, by_engine(lambda name=name: engine_of(name, 1))


def by_engine(make: Callable[[], Detector]) -> Way:
    """The whole stream through one engine, chunk by chunk."""

    def detect(stream: Stream, rules: RuleSet) -> int:
        return detected(make(), rules, stream.chunks)

    return detect


def detected(engine: Detector, rules: RuleSet, chunks: Sequence[Sequence[EventBatch]]) -> int:
    """How many composite events an engine finds."""
    engine.deploy(rules)
    return fed(engine, chunks)


def fed(engine: Detector, chunks: Sequence[Sequence[EventBatch]]) -> int:
    """How many composite events an engine finds that has its rules."""
    count = 0
    for chunk in chunks:
        for batch in chunk:
            engine.push(batch)
        if chunk:
            count += len(engine.advance(max(int(batch.time[-1]) for batch in chunk)))
    return count + len(engine.advance(TIME_MAX))


def by_runs(name: str, at_once: AtOnce, threads: int) -> Way:
    """Run-based parallelism: a run's engine has the run's terminators, and all that is in reach."""

    def detect(stream: Stream, rules: RuleSet) -> int:
        used = types_of(rules.rules)  # a run has no use for other events, and does not cut them out
        batches = [batch for batch in chain(*stream.chunks) if batch.type.name in used]
        first = min(int(batch.time[0]) for batch in batches)
        last = max(int(batch.time[-1]) for batch in batches)
        edges = np.linspace(first, last + 1, threads * RUNS_PER_THREAD + 1).astype(np.int64)
        runs = iter(list(pairwise(edges.tolist())))

        def work(_: int) -> int:
            return sum(_of_run(name, stream, rules, batches, begin, end) for begin, end in runs)

        return sum(at_once(work, range(threads)))

    return detect


def _of_run(
    name: str, stream: Stream, rules: RuleSet, batches: Sequence[EventBatch], begin: int, end: int
) -> int:
    engine = engine_of(name, 1)
    engine.deploy(rules)
    engine.advance(begin)  # what is earlier is no terminator
    for batch in batches:
        low, high = np.searchsorted(batch.time, (begin - stream.window, end))
        if low < high:
            engine.push(batch.take(slice(low, high)))
    return len(engine.advance(end))


def by_key(name: str, at_once: AtOnce, threads: int) -> Way:
    """Every thread has an engine of its own, and the events of its keys."""

    def detect(stream: Stream, rules: RuleSet) -> int:
        def work(number: int) -> int:
            chunks = [
                [batch.take(batch.columns[0] % threads == number) for batch in chunk]
                for chunk in stream.chunks
            ]
            chunks = [[batch for batch in chunk if len(batch)] for chunk in chunks]
            return detected(engine_of(name, 1), rules, chunks)

        return sum(at_once(work, range(threads)))

    return detect


# --- locks ---------------------------------------------------------------------------------------


@kernel
def take_turns(address: int, count: int) -> None:
    """Take a lock, and let go of it, so many times."""
    for _ in range(count):
        lock(address)
        unlock(address)


def measure_locks(quick: bool) -> Iterator[Row]:
    """Nanoseconds to take a lock that nobody else wants, and let go of it."""
    count = LOCKS // 10 if quick else LOCKS
    words, other = np.zeros(8, np.int64), threading.Lock()
    take_turns(words.ctypes.data, 1)
    begun = time.process_time()
    take_turns(words.ctypes.data, count)
    ours = time.process_time() - begun
    begun = time.process_time()
    for _ in range(count):
        with other:
            pass
    theirs = time.process_time() - begun
    yield Row("hybrid/lock", ours / count * 1e9, "ns", "Python's", theirs / count * 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--only", default="", help="streams whose names contain this")
    options = parser.parse_args()
    print(table(list(run(options.quick, options.threads, options.only))))


if __name__ == "__main__":
    main()

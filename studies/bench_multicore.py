"""What the steps of hybrid parallelism cost: the table of the simulated multicore.

The engine detects on one thread, and this thread's clock runs while its worker works a slice off;
the simulated machine says of how many steps the slice consists. These are equations in the costs of
steps, solved by least squares without negative parts; each stream has the same weight. Streams
differ in their conditions, so each has a cost of a pair of its own. The least of some runs counts.

What is left of a run's time is that of the host: by events, composite events, sequences looked at
and slices, solved in the same way over the runs.

A word that two threads want is measured with two threads; on a machine of one core it seems cheaper
than it is. Without a file the figures are printed alone::

    python -m studies.bench_multicore --out studies/multicore/measured.toml
"""

from __future__ import annotations

import argparse
import datetime
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.hybrid import fed, take_turns
from benchmarks.hybrid_workloads import Stream, correlated, sensors, walks
from benchmarks.processing_costs import machine_name
from benchmarks.report import Row, table
from broker.calibration import least_squares
from broker.parallel import workers
from rules import load
from rules.engine.chains.hybrid.compiled import kernel
from rules.engine.chains.hybrid.engine import HybridEngine
from rules.engine.chains.hybrid.pipeline import Crew
from runtime.instructions.atomics import add
from studies.multicore.costs import ChainCosts, CostTable, Counts, StepCosts
from studies.multicore.machine import detect
from studies.multicore_chains import chain_of

REPEATS = 5
LOCKS = 1_000_000
WORDS_OF_A_TAKE = 3
"""Words that a worker has for itself for each take: a queue's, the next ticket, what is left."""
FREE = StepCosts(*[0.0] * len(StepCosts.__struct_fields__))
STEPS = ("take_ns", "visit_ns", "try_ns", "put_ns")
OF_HOST = ("slice_ns", "stored_ns", "composite_ns")

Making = Callable[[int, int], Stream]
"""A stream of so many minutes or events, and a window."""


def changes(size: int, window: int, length: int = 6, seed: int = 11) -> Stream:
    return walks("changes", ["change < later.change"], size, window, length, seed)


def correlation(size: int, window: int, length: int = 6, seed: int = 11) -> Stream:
    return walks("correlation", [correlated(0.6)], size, window, length, seed)


def activities(size: int, window: int, length: int = 6, seed: int = 11) -> Stream:
    return sensors(size, window, length, seed, mean=6, signs="<")


STREAMS: dict[str, tuple[Making, int, tuple[int, ...]]] = {
    "changes": (changes, 1_800, (6, 12, 18)),
    "correlation": (correlation, 1_200, (6, 10, 14)),
    "sensors": (activities, 12_000, (80, 100, 120)),
}
"""How each kind is made, how large, and with which windows."""


@dataclass(frozen=True, slots=True)
class Run:
    """A stream worked off by one thread: nanoseconds of each slice's worker and of the host, and
    the steps of each.
    """

    name: str
    window: int
    events: int
    worker_ns: Sequence[int]
    host_ns: int
    slices: Sequence[Counts]


class Clocked:
    """A way to run workers one after another that notes how long each slice took, by this thread's
    clock.
    """

    def __init__(self) -> None:
        self.spent: list[int] = []

    def __call__(self, work: Callable[[int], None], parts: Sequence[int]) -> list[None]:
        begun = time.thread_time_ns()
        for part in parts:
            work(part)
        self.spent.append(time.thread_time_ns() - begun)
        return []


def measured(name: str, stream: Stream, repeats: int) -> Run:
    """The least of some runs of the engine, and the steps by the simulated machine."""
    rules, workers_ns, host_ns = load(stream.rule), [], []
    for _ in range(repeats):
        clocked = Clocked()
        engine = HybridEngine(Crew(at_once=clocked))
        engine.deploy(rules)
        begun = time.thread_time_ns()
        found = fed(engine, stream.chunks)
        all_ns = time.thread_time_ns() - begun
        workers_ns.append(clocked.spent)
        host_ns.append(all_ns - sum(clocked.spent))
    done = detect(chain_of(stream), FREE, ChainCosts(0.0, 0.0), Crew())
    if done.composites != found or len(done.slices) != len(workers_ns[0]):
        raise AssertionError(
            f"{name}: the engine found {found} in {len(workers_ns[0])} slices, "
            f"the machine {done.composites} in {len(done.slices)}"
        )
    least = np.array(workers_ns).min(axis=0).tolist()
    return Run(name, stream.window, stream.events, least, min(host_ns), done.slices)


def runs(quick: bool) -> Iterator[Run]:
    """All streams, with all windows."""
    for name, (make, size, windows) in STREAMS.items():
        for window in windows:
            yield measured(name, make(size // (4 if quick else 1), window), 2 if quick else REPEATS)


# --- equations -----------------------------------------------------------------------------------


def solved(found: Sequence[Run], lock_ns: float, line_ns: float, wake_ns: float) -> CostTable:
    """The costs that explain the times best."""
    names = list(dict.fromkeys(one.name for one in found))
    of_workers = _solution([_of_workers(one, names) for one in found])
    of_host = _solution([_of_host(one, names) for one in found])
    steps = dict(zip(STEPS, of_workers, strict=False))
    steps["take_ns"] = max(0.0, steps["take_ns"] - WORDS_OF_A_TAKE * lock_ns)
    steps |= dict(zip(OF_HOST, of_host, strict=False))
    chains = {
        name: ChainCosts(of_workers[len(STEPS) + place], of_host[len(OF_HOST) + place])
        for place, name in enumerate(names)
    }
    words = StepCosts(lock_ns=lock_ns, line_ns=line_ns, wake_ns=wake_ns, **steps)
    return CostTable(machine_name(), datetime.date.today(), words, chains)


def _solution(equations: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    matrix = np.concatenate([rows / times.sum() for rows, times in equations])
    times = np.concatenate([times / times.sum() for _, times in equations])
    scale = np.maximum(matrix.max(axis=0), 1e-30)
    return (least_squares(matrix / scale, times) / scale).tolist()


def _of_workers(run: Run, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    rows = [
        [
            *(one.takes, one.visits, one.tries, one.puts),
            *(one.pairs if name == run.name else 0 for name in names),
        ]
        for one in run.slices
    ]
    return np.array(rows, float), np.array(run.worker_ns, float)


def _of_host(run: Run, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    row = [
        *(len(run.slices), sum(one.stored for one in run.slices)),
        sum(one.composites for one in run.slices),
        *(run.events if name == run.name else 0 for name in names),
    ]
    return np.array([row], float), np.array([run.host_ns], float)


# --- what threads share --------------------------------------------------------------------------


@kernel
def add_often(address: int, count: int) -> None:
    """Add to a word so many times."""
    for _ in range(count):
        add(address, 1)


def lock_ns(count: int) -> float:
    """Nanoseconds to take a lock that nobody else wants, and let go of it."""
    words = np.zeros(8, np.int64)
    take_turns(words.ctypes.data, 1)
    return min(_clocked(lambda: take_turns(words.ctypes.data, count)) for _ in range(5)) / count


def line_ns(count: int) -> float:
    """Nanoseconds for an addition to a word while another thread adds to it too, by the clock of
    either: the most of some runs, as in the others the two did not run at the same time.
    """
    words, spent = np.zeros(8, np.int64), list[float]()
    add_often(words.ctypes.data, 1)

    def work() -> None:
        spent.append(_clocked(lambda: add_often(words.ctypes.data, count)))

    for _ in range(15):
        both = [threading.Thread(target=work) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join()
    return max(spent) / count


def wake_ns(threads: int = 4, count: int = 300) -> float:
    """Nanoseconds to have one more thread begin and end, the least of many."""
    at_once, alone = workers(threads), workers(1)
    several = min(_elapsed(lambda: at_once(_nothing, range(threads))) for _ in range(count))
    one = min(_elapsed(lambda: alone(_nothing, range(1))) for _ in range(count))
    return (several - one) / (threads - 1)


def _nothing(_: int) -> None:
    return None


def _clocked(work: Callable[[], object]) -> float:
    begun = time.thread_time_ns()
    work()
    return time.thread_time_ns() - begun


def _elapsed(work: Callable[[], object]) -> float:
    begun = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - begun


# --- the command ---------------------------------------------------------------------------------


def measured_here(quick: bool) -> tuple[CostTable, list[Run]]:
    """The table of this machine, and what it was made of."""
    count = LOCKS // 10 if quick else LOCKS
    shared = lock_ns(count), line_ns(10 * count), wake_ns()
    found = list(runs(quick))
    return solved(found, *shared), found


def run(quick: bool) -> Iterator[Row]:
    """What steps cost."""
    yield from _rows(measured_here(quick)[0])


def _rows(costs: CostTable) -> Iterator[Row]:
    for name in StepCosts.__struct_fields__:
        yield Row(name.removesuffix("_ns"), getattr(costs.steps, name), "ns")
    for name, of_chain in costs.chains.items():
        yield Row(f"{name}, pair", of_chain.pair_ns, "ns")
        yield Row(f"{name}, event", of_chain.event_ns, "ns")


def written(costs: CostTable) -> str:
    """The table as TOML."""
    lines = [
        "# What the steps of hybrid parallelism cost, by python -m studies.bench_multicore.",
        f"machine = {json.dumps(costs.machine)}",
        f"date = {costs.date.isoformat()}",
        "",
        "[steps]",
        *(f"{name} = {getattr(costs.steps, name):.3f}" for name in StepCosts.__struct_fields__),
    ]
    for name, one in costs.chains.items():
        lines += ["", f"[chains.{name}]"]
        lines += [f"{cost} = {getattr(one, cost):.3f}" for cost in ChainCosts.__struct_fields__]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    costs, _ = measured_here(asked.quick)
    print(table(list(_rows(costs))))
    if asked.out is not None:
        asked.out.write_text(written(costs), "utf-8")


if __name__ == "__main__":
    main()

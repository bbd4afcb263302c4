"""Runs of the hybrid experiments: simulated ones, each made once, and real ones beside them.

A *pattern* is a stream and a rule. What several experiments ask for, of one pattern on as many
cores, is run once in a process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from benchmarks.hybrid import fed
from benchmarks.hybrid_workloads import Stream
from broker.parallel import engine_of, workers
from rules import load
from rules.engine.chains.hybrid.engine import HybridEngine
from rules.engine.chains.hybrid.pipeline import Crew
from studies.bench_multicore import STREAMS
from studies.multicore.chains import AgentPairs, Chain, agents_of
from studies.multicore.costs import CostTable, read
from studies.multicore.machine import Arrival, Detection, detect
from studies.multicore.printed import AS_BUILT, Printed
from studies.multicore.runs import detect_by_runs
from studies.multicore_chains import chain_of

REPEATED, REPEATS = 2, 3
"""Of patterns with Kleene closure: the place that repeats, and how often in a row at most."""
OFFERED = 1.25
"""Where latency is measured, events come so many times as fast as one core works them off."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A rule over a stream: its kind (``multicore_costs.STREAMS``), how large it is, the window in
    minutes (of sensors: seconds), the states, and whether one of them repeats.
    """

    kind: str
    size: int
    window: int
    states: int
    is_kleene: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run came to: seconds, of these while workers run, mean latency, the most bytes; the
    composite events, those that were lost, and the most workers without an input.
    """

    seconds: float
    pairing_s: float
    latency_s: float
    megabytes: float
    composites: int
    lost: int
    idle: int


@lru_cache(maxsize=4)
def stream_of(pattern: Pattern) -> Stream:
    make, _, _ = STREAMS[pattern.kind]
    return make(pattern.size, pattern.window, pattern.states)


@lru_cache(maxsize=4)
def paired(pattern: Pattern) -> tuple[Chain, Sequence[AgentPairs]]:
    """The chain of a pattern, and its pairs."""
    repeated = (REPEATED, REPEATS) if pattern.is_kleene else (0, 1)
    chain = chain_of(stream_of(pattern), *repeated)
    return chain, agents_of(chain)


@cache
def costs() -> CostTable:
    return read()


# --- simulated -----------------------------------------------------------------------------------


@cache
def hybrid(
    pattern: Pattern,
    cores: int,
    roles: str = "full",
    units_max: int | None = None,
    is_offered: bool = False,
    printed: Printed = AS_BUILT,
) -> Figures:
    """A pattern on so many simulated cores; ``is_offered``: events come one after another."""
    chain, agents = paired(pattern)
    arrival = arrival_of(pattern) if is_offered else None
    table, crew = costs(), Crew(cores, roles)
    done = detect(
        chain,
        table.steps,
        table.chains[pattern.kind],
        crew,
        units_max=units_max,
        arrival=arrival,
        agents=agents,
        printed=printed,
    )
    return _figures(done, arrival)


@cache
def rip(pattern: Pattern, cores: int, is_offered: bool = False) -> Figures:
    """A pattern by runs on so many simulated cores."""
    chain, _ = paired(pattern)
    arrival = arrival_of(pattern) if is_offered else None
    table = costs()
    done = detect_by_runs(chain, table.steps, table.chains[pattern.kind], cores, arrival=arrival)
    return _figures(done, arrival)


def sequential(pattern: Pattern, is_offered: bool = False) -> Figures:
    """The same pipeline on one core."""
    return hybrid(pattern, 1, is_offered=is_offered)


def arrival_of(pattern: Pattern) -> Arrival:
    """When events come, in nanoseconds: by their times, all within the time that OFFERED says."""
    chain, _ = paired(pattern)
    first = chain.first
    pace = sequential(pattern).seconds * 1e9 / OFFERED / (chain.last - first)
    return lambda time: (time - first) * pace


def _figures(done: Detection, arrival: Arrival | None) -> Figures:
    latency_s = 0.0 if arrival is None else done.latency_s(arrival)
    return Figures(
        done.seconds,
        done.pairing_s,
        latency_s,
        done.chunk_bytes / 1e6,
        done.composites,
        done.lost,
        done.idle,
    )


# --- real ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Real:
    """A real run: seconds, of these while workers run, and the composite events."""

    seconds: float
    pairing_s: float
    composites: int


@cache
def real(pattern: Pattern, engine: str, threads: int = 1, repeats: int = 3) -> Real:
    """The best of some runs of an engine: processor time of one thread, else the wall clock."""
    stream = stream_of(pattern)
    rules = load(stream.rule)
    found = []
    for _ in range(1 + repeats):  # the first compiles what is not compiled yet
        now = time.process_time if threads == 1 else time.perf_counter
        clock = _Clock(threads, now)
        if engine == "hybrid":
            made = HybridEngine(Crew(threads, at_once=clock.at_once))
        else:
            made = engine_of(engine, threads)
        made.deploy(rules)
        begun = now()
        composites = fed(made, stream.chunks)
        found.append(Real(now() - begun, clock.spent, composites))
    return min(found[1:], key=lambda one: one.seconds)


class _Clock:
    """A crew's way to run at once that adds up the time in which it runs."""

    def __init__(self, threads: int, now: Callable[[], float]) -> None:
        self._workers, self._now = workers(threads), now
        self.spent = 0.0

    def at_once(self, work: Callable[[int], None], parts: Sequence[int]) -> list[None]:
        begun = self._now()
        done = list(self._workers(work, parts))
        self.spent += self._now() - begun
        return done

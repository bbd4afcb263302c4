"""Events in parallel, and the whole system of the thesis's figure 4.5 in one process.

The thesis's has a remote client behind a network; here nothing crosses a socket. The system is
three threads: the first decodes events from their wire form as they come and puts them into a queue
of 100, dropping what finds it full; the second matches; the third encodes the answers. What is
measured is how many events the second does in a second.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np

from benchmarks.matching import Scenario, events_of, filters_of
from matcher.filters.encoded import EncodedEvents
from matcher.filters.mixed import FilterBatch, MixedEvents
from matcher.methods.tabled import TableMatcher
from studies.reproduction.experiment import Chart, Experiment, Outcome, Table
from studies.reproduction.matching_claims import of_parallel, of_system
from studies.reproduction.methods import (
    ATOMIC,
    AUTO,
    BATCHED,
    CCM,
    CORES,
    MAKERS,
    METHODS,
    OCM,
    SFF,
    ccm_together,
    made,
    ms,
)
from studies.reproduction.seeds import Mean, halves, table_of, told

SEEDS = tuple(range(1, 6))
"""The thesis has ten."""
QUEUE = 100
AT_ONCE = (1, 2, 5, 10, 50, 100)
RATES = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
SECONDS = 1.0
SYSTEMS = {
    "SFF": (SFF, 1),
    "OCM": (OCM, 1),
    "OCM, atomic counts": (ATOMIC, 1),
    "CCM": (CCM, 1),
    "CCM, several at once": (CCM, 10),
    "auto": (AUTO, 1),
    "auto, all queued": (AUTO, 100),
    "batched, all queued": (BATCHED, 100),
}
"""By line of figure 4.14: the matcher, and how many events it takes at once."""


def parallel(scenario: Scenario, events: int, seeds: Sequence[int]) -> Outcome:
    """Milliseconds for 1,000 events, so many at a time (4.5.2)."""
    runs = [parallel_once(scenario, events, seed) for seed in seeds]
    return parallel_told(of_runs("events at once", AT_ONCE, seeds, runs))


def of_runs(
    first: str,
    places: Sequence[int],
    seeds: Sequence[int],
    runs: Sequence[Mapping[str, Sequence[float]]],
) -> Table:
    """The table of columns that each seed gave."""
    return table_of(
        *(first, places, seeds),
        {
            name: [Mean.of(of_place) for of_place in zip(*(run[name] for run in runs), strict=True)]
            for name in runs[0]
        },
    )


def parallel_once(scenario: Scenario, events: int, seed: int) -> dict[str, list[float]]:
    """The same with one seed, by column."""
    rng = np.random.default_rng(seed)
    wanted, mixed = filters_of(scenario, rng), events_of(scenario, events, rng)
    methods = [one for one in (SFF, OCM, ATOMIC, CCM, AUTO) if one in METHODS]
    columns: dict[str, list[float]] = {}
    with ThreadPoolExecutor(CORES) as pool:
        for method in methods:
            if method == CCM:
                columns[ms(method)] = [together(wanted, mixed, size) for size in AT_ONCE]
                continue
            # A matcher of its own for each thread: those that count keep their counts apart.
            copies = [METHODS[method]() for _ in range(CORES if method == SFF else 1)]
            for copy in copies:
                copy.add_all(wanted)
            encoded = copies[0].encode(mixed)
            columns[ms(method)] = [_spread(pool, copies, encoded, size) for size in AT_ONCE]
    return columns


def parallel_told(table: Table) -> Outcome:
    """What is drawn and said of figure 4.13."""
    lines, intervals = lines_of(table)
    chart = Chart(lines, "ms for 1,000 events", (True, True), intervals)
    return Outcome(table, (chart,), of_parallel(table))


def together(wanted: FilterBatch, mixed: MixedEvents, size: int) -> float:
    """Milliseconds for 1,000 events by CCM, each group of ``size`` by one kernel."""
    matcher = ccm_together(size)
    matcher.add_all(wanted)
    with ThreadPoolExecutor(1) as pool:
        return _spread(pool, [matcher], matcher.encode(mixed), size)


def lines_of(table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that were timed, and those of half their intervals."""
    lines = tuple(one for one in table.columns[1:] if "+-" not in one)
    return lines, halves(table, lines)


def _spread(
    pool: ThreadPoolExecutor, copies: list[TableMatcher], encoded: EncodedEvents, size: int
) -> float:
    """Milliseconds for 1,000 events, each group of ``size`` shared out among the copies."""
    groups = [encoded.take(slice(at, at + size)) for at in range(0, len(encoded), size)]
    copies[0].match(groups[0])
    begun = time.perf_counter()
    for group in groups:
        share = -(-len(group) // len(copies))
        parts = [group.take(slice(at, at + share)) for at in range(0, len(group), share)]
        if len(parts) == 1:
            copies[0].match(parts[0])
        else:
            list(pool.map(lambda copy, part: copy.match(part), copies, parts))
    return (time.perf_counter() - begun) / len(encoded) * 1e6


def system(scenario: Scenario, seconds: float, seeds: Sequence[int]) -> Outcome:
    """Events processed a second as more are offered (4.5.3)."""
    there = [name for name, (method, _) in SYSTEMS.items() if method in MAKERS]
    runs = [
        {
            f"{name} [1/s]": rates
            for name, rates in processed(scenario, there, RATES, seconds, seed=seed)
        }
        for seed in seeds
    ]
    return system_told(of_runs("input rate [1/s]", RATES, seeds, runs))


def processed(
    scenario: Scenario,
    lines: Iterable[str],
    rates: Sequence[int],
    seconds: float,
    events: int = 512,
    seed: int = 1,
) -> Iterator[tuple[str, list[float]]]:
    """For each of some lines of SYSTEMS the events that it processes a second, by how many of
    them are offered, for so many seconds each.
    """
    rng = np.random.default_rng(seed)
    wanted, mixed = filters_of(scenario, rng), events_of(scenario, events, rng)
    wire = [msgspec.json.encode(mixed.data(place)) for place in range(len(mixed))]
    for name in lines:
        method, at_once = SYSTEMS[name]
        several = method == CCM and at_once > 1
        matcher = ccm_together(at_once) if several else made(method)
        matcher.add_all(wanted)
        matcher.match(mixed)
        yield name, [_processed(matcher, wire, rate, at_once, seconds) for rate in rates]


def system_told(table: Table) -> Outcome:
    """What is drawn and said of figure 4.14."""
    lines, intervals = lines_of(table)
    chart = Chart(lines, "events processed a second", (True, True), intervals)
    return Outcome(table, (chart,), of_system(table))


def _processed(
    matcher: TableMatcher, wire: list[bytes], rate: int, at_once: int, seconds: float
) -> float:
    """Events a second that come out of the three threads."""
    incoming: queue.Queue[dict[str, object] | None] = queue.Queue(QUEUE)
    outgoing: queue.Queue[list[list[int]] | None] = queue.Queue(QUEUE * 100)
    done = 0

    def receive() -> None:
        begun = time.perf_counter()
        for number in range(int(rate * seconds)):
            ahead = begun + number / rate - time.perf_counter()
            if ahead > 0:
                time.sleep(ahead)
            event = msgspec.json.decode(wire[number % len(wire)])
            if not incoming.full():
                incoming.put(event)
        incoming.put(None)

    def send() -> None:
        for answer in iter(outgoing.get, None):
            msgspec.json.encode(answer)

    threads = [threading.Thread(target=receive), threading.Thread(target=send)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for group in _groups(incoming, at_once):
        outgoing.put(matcher.match(MixedEvents.of(group)).interface_lists())
        done += len(group)
    spent = time.perf_counter() - begun
    outgoing.put(None)
    for thread in threads:
        thread.join()
    return done / spent


def _groups(
    incoming: queue.Queue[dict[str, object] | None], at_once: int
) -> Iterator[list[dict[str, object]]]:
    """What is queued, up to so many at once, until the end."""
    while True:
        group = [incoming.get()]
        while group[-1] is not None and len(group) < at_once and not incoming.empty():
            group.append(incoming.get())
        found = list(itertools.takewhile(lambda event: event is not None, group))
        if found:
            yield found
        if len(found) < len(group):
            return


def experiments(
    page: str, default: Scenario, quick_default: Scenario
) -> tuple[Experiment, Experiment]:
    """Figures 4.13 and 4.14 in a default scenario."""

    def of(run: Callable[..., Outcome], full: float, rough: float) -> Callable[[bool], Outcome]:
        return lambda quick: (
            run(quick_default, rough, SEEDS[:1]) if quick else run(default, full, SEEDS)
        )

    return (
        Experiment(
            "thesis-4.13",
            page,
            "processing events in parallel",
            "The default scenario, 1,000 events, so many shared out among threads at once; CCM "
            "takes them by one kernel, `auto` as one batch on one thread.",
            of(parallel, 1_000, 100),
            judge=parallel_told,
            seeds=told(SEEDS),
        ),
        Experiment(
            "thesis-4.14",
            page,
            "overall system performance",
            "Not the thesis's system, which a remote client drives over a network: the default "
            "scenario in three threads of one process, without a socket: decoding, a queue of 100 "
            "events that drops what finds it full, matching, encoding. Events are JSON, which "
            "Python's one lock makes the threads share a core for.",
            of(system, SECONDS, 0.1),
            judge=system_told,
            seeds=told(SEEDS),
        ),
    )

"""Chapter 4 of the thesis again: matching time as one parameter of Table 4.1 changes.

Each experiment matches up to 1,000 events one by one, as the thesis does, and gives the mean of
wall-clock milliseconds an event. The methods are those of the thesis on the CPU,
and ours: SFF's idea (sequential counting, each distinct constraint once, interfaces pruned), OCM
(PCM on one thread and on all cores) and ``auto``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.matching import Scenario, events_of, filters_of
from matcher.filters.encoded import EncodedEvents
from matcher.filters.mixed import FilterBatch, MixedEvents
from matcher.methods.tabled import TableMatcher
from studies.reproduction import system
from studies.reproduction.experiment import Chart, Claim, Experiment, Outcome, Table
from studies.reproduction.matching_claims import (
    DEFAULT_MS,
    DEPLOYED_MS,
    SIZE_MB,
    ZIPF_MS,
    numbers,
    of_attributes,
    of_constraints,
    of_filters,
    of_interfaces,
    of_kinds,
    of_names,
    of_parts,
    of_table_4_2,
)
from studies.reproduction.methods import (
    AUTO,
    CCM,
    MAKERS,
    MEMSET,
    METHODS,
    SFF,
    made,
    ms,
    speedup,
)
from studies.reproduction.seeds import Mean, halves, table_of, told
from studies.reproduction.system import SEEDS
from studies.reproduction.turns import SECONDS_MAX, TURN_S, take_turns
from studies.reproduction.verdicts import RULE

PAGE = "matching"
INTRODUCTION = (
    "# Matching on the CPU, beside the thesis's chapter 4\n\n"
    "Made by `rexmq reproduce`; each section is one figure or table of section 4.5. Times are "
    "wall-clock milliseconds an event, events one by one, as in the thesis.\n\n"
    "**The chapter's headline was not found.** In the thesis OCM, on six cores, is 4.92 times as "
    "fast as SFF; in the one run here, on two, it takes longer. So there was no advantage of OCM "
    "that could grow or fall.\n\n"
    "**One run.** In these tables filters and events were drawn once (the thesis: ten seeds, "
    "intervals below 1 %), and a method was given 0.7 s at each point, or less if it was done with "
    "1,000 events. So there are no intervals, and nothing that is timed can be told. On a busy "
    "machine times by the clock jump by a factor of two. `rexmq reproduce` now takes five seeds, "
    "the methods in turns of 5 ms; it needs a machine whose cores are all idle, since OCM has "
    "them all.\n\n"
    f"{RULE}\n\n"
    "**Other programs.** The thesis's machine had six cores of 2.8 GHz from 2010 and its programs "
    "were C++; ours are compiled Python, so shapes and ratios can be compared, not milliseconds. "
    "`SFF` stands for a sequential counting matcher of the same idea, written here "
    "(`matcher/methods/counting.py`); the original is not used. `OCM` shares out whole filters "
    "among threads; the thesis's shares out constraints, with atomic counts, and so does the line "
    "that says so (`matcher/methods/ocm.py`). Sentences are judged by the latter where it has been "
    "measured, else by the former. CCM, the matcher for GPUs, and its variants (reset by memset, "
    "ordered constraints, each constraint once, several events by one kernel) have lines where a "
    "device was there, and so has the batched matcher in table 4.2 and figure 4.14. `auto` is "
    "ours, and no sentence is judged by it."
)
EVENTS, QUICK_EVENTS = 1_000, 50
QUICK_FILTERS = 2_000
DEFAULT = Scenario("default")


def filters(scenario: Scenario, count: int) -> Scenario:
    """The scenario with so many filters."""
    return replace(scenario, constraints=count * sum(scenario.per_filter) // 2)


# --- measuring ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """One method in one scenario, over the seeds; times in ms, ``size`` in MB."""

    event: Mean
    deployment: Mean
    size: Mean


def measure(
    scenario: Scenario, methods: Sequence[str], events: int, seeds: Sequence[int]
) -> dict[str, Measured]:
    """Each method over the seeds, by so many events at most; they take turns, seed by seed."""
    for method in methods:  # compiles what is not compiled yet
        small, rng = made(method), np.random.default_rng(0)
        deploy(small, filters_of(replace(scenario, constraints=1_000), rng))
    every = [_measure_once(scenario, methods, events, seed) for seed in seeds]
    return {
        method: Measured(*map(Mean.of, zip(*(one[method] for one in every), strict=True)))
        for method in methods
    }


def _measure_once(
    scenario: Scenario, methods: Sequence[str], count: int, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Each method's milliseconds an event and for its deployment, and its size in MB."""
    rng = np.random.default_rng(seed)
    wanted = filters_of(scenario, rng)
    events = events_of(scenario, count, rng)
    deployments, turns = {}, {}
    for method in methods:
        matcher = made(method)
        begun = time.perf_counter()
        deploy(matcher, wanted)
        deployments[method] = (time.perf_counter() - begun) * 1e3
        turns[method] = Turns(matcher, matcher.encode(events))
    take_turns(turns.values())
    return {
        method: (one.result, deployments[method], one.megabytes) for method, one in turns.items()
    }


def deploy(matcher: TableMatcher, wanted: FilterBatch) -> None:
    """Give a matcher its filters; one on a device has them there, too, when this returns."""
    matcher.add_all(wanted)
    if "device" in matcher.figures:
        matcher.match(MixedEvents.of([{}]))


class Turns:
    """A matcher with its filters; it matches events one by one for TURN_S at a turn."""

    def __init__(self, matcher: TableMatcher, encoded: EncodedEvents) -> None:
        self._matcher = matcher
        singles = [encoded.take(slice(place, place + 1)) for place in range(len(encoded))]
        matcher.match(encoded.take(slice(0, 256)))  # as auto needs, to choose; and compiles
        matcher.match(singles[0])
        self._left = iter(singles)
        self._spent, self._done = 0.0, 0

    def turn(self) -> bool:
        """Match events; False once all are matched, or SECONDS_MAX are over."""
        begun, spent = time.perf_counter(), 0.0
        for single in self._left:
            self._matcher.match(single)
            self._done += 1
            spent = time.perf_counter() - begun
            if spent > TURN_S:
                self._spent += spent
                return self._spent <= SECONDS_MAX
        self._spent += spent
        return False

    @property
    def result(self) -> float:
        """Mean milliseconds an event."""
        return self._spent / self._done * 1e3

    @property
    def megabytes(self) -> float:
        """Of the matcher's arrays."""
        return int(self._matcher.figures["bytes"]) / 1e6


# --- one parameter after the other --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sweep:
    """A figure of the thesis: the times as one parameter changes, and what it says of them."""

    name: str
    title: str
    parameter: str
    points: tuple[int, ...]
    scenario: Callable[[int], Scenario]
    claims: Callable[[Table], tuple[Claim, ...]]
    setting: str
    log_x: bool = False

    def experiment(self) -> Experiment:
        return Experiment(
            *(self.name, PAGE, self.title, self.setting, self.run),
            judge=self.outcome,
            seeds=told(SEEDS),
        )

    def run(self, quick: bool) -> Outcome:
        points = (self.points[0], self.points[-1]) if quick else self.points
        seeds = SEEDS[:1] if quick else SEEDS
        means: dict[str, list[Mean]] = {ms(method): [] for method in METHODS}
        for point in points:
            scenario = self.scenario(point)
            if quick:
                scenario = filters(scenario, QUICK_FILTERS)
            measured = measure(scenario, tuple(METHODS), QUICK_EVENTS if quick else EVENTS, seeds)
            for method in METHODS:
                means[ms(method)].append(measured[method].event)
        return self.outcome(with_speedups(table_of(self.parameter, points, seeds, means)))

    def outcome(self, table: Table) -> Outcome:
        """What is drawn and said of a table of this figure, measured now or read again."""
        times = tuple(ms(one) for one in METHODS if ms(one) in table.columns)
        intervals = halves(table, times)
        drawn = (speedup(one) for one in METHODS if one not in (SFF, AUTO))
        speeds = tuple(one for one in drawn if one in table.columns)
        charts = (
            Chart(times, "ms an event", (self.log_x, True), intervals),
            Chart(speeds, "times SFF's speed", (self.log_x, False)),
        )
        return Outcome(table, charts, self.claims(table))


def with_speedups(table: Table) -> Table:
    """The table with the columns of speedups, as the thesis's figures (b)."""
    base = numbers(table, ms(SFF))
    more = [base / numbers(table, ms(method)) for method in METHODS if method != SFF]
    columns = (*table.columns, *(speedup(method) for method in METHODS if method != SFF))
    extra = np.array(more).T.tolist()
    rows = tuple((*row, *own) for row, own in zip(table.rows, extra, strict=True))
    return Table(columns, rows, table.runs)


def interfaces(count: int) -> Scenario:
    """The default's 25,000 filters for each of them."""
    return filters(replace(DEFAULT, interfaces=count), 25_000 * count)


SWEEPS = (
    Sweep(
        "thesis-4.7",
        "number of attributes",
        "attributes",
        (1, 3, 5, 7, 9),
        lambda point: replace(DEFAULT, attributes=(point, point)),
        of_attributes,
        "The default scenario, every event with so many attributes.",
    ),
    Sweep(
        "thesis-4.8",
        "number of constraints a filter",
        "constraints",
        (1, 2, 3, 5, 7, 9),
        lambda point: filters(replace(DEFAULT, per_filter=(point, point)), 250_000),
        of_constraints,
        "The default scenario, 250,000 filters of so many constraints.",
    ),
    Sweep(
        "thesis-4.9",
        "number of filters an interface",
        "filters",
        (250, 1_000, 5_000, 25_000, 50_000, 100_000),
        lambda point: filters(DEFAULT, 10 * point),
        of_filters,
        "The default scenario, 10 interfaces of so many filters; the thesis goes on to 250,000.",
        log_x=True,
    ),
    Sweep(
        "thesis-4.10",
        "number of interfaces",
        "interfaces",
        (10, 20, 30, 40),
        interfaces,
        of_interfaces,
        "25,000 filters for each interface; the thesis goes on to 100 interfaces.",
    ),
    Sweep(
        "thesis-4.11",
        "number of names",
        "names",
        (10, 30, 100, 300, 1_000),
        lambda point: replace(DEFAULT, names=point),
        of_names,
        "The default scenario, names of constraints and attributes among so many.",
        log_x=True,
    ),
    Sweep(
        "thesis-4.12",
        "type of constraints",
        "numeric [%]",
        (0, 25, 50, 75, 100),
        lambda point: replace(DEFAULT, numeric=point / 100),
        of_kinds,
        "The default scenario, such a share of constraints and attributes being numbers.",
    ),
)


# --- the others ---------------------------------------------------------------------------------


def table_4_2(quick: bool) -> Outcome:
    """Processing time, deployment and size in the default scenario; time with Zipf names."""
    default, zipf = DEFAULT, replace(DEFAULT, zipf=1.0)
    if quick:
        default, zipf = filters(default, QUICK_FILTERS), filters(zipf, QUICK_FILTERS)
    methods = tuple(method for method in MAKERS if method != MEMSET)
    events, seeds = (QUICK_EVENTS, SEEDS[:1]) if quick else (EVENTS, SEEDS)
    plain, skewed = (measure(one, methods, events, seeds) for one in (default, zipf))
    columns = {
        DEFAULT_MS: [plain[method].event for method in methods],
        ZIPF_MS: [skewed[method].event for method in methods],
        DEPLOYED_MS: [plain[method].deployment for method in methods],
        SIZE_MB: [plain[method].size for method in methods],
    }
    return table_told(table_of("method", methods, seeds, columns, (SIZE_MB,)))


def table_told(table: Table) -> Outcome:
    """What is drawn and said of table 4.2."""
    times = (DEFAULT_MS, ZIPF_MS)
    chart = Chart(times, "ms an event", (False, True), halves(table, times))
    return Outcome(table, (chart,), of_table_4_2(table))


def figure_4_6(quick: bool) -> Outcome:
    """Where the time of one event goes."""
    scenario = filters(DEFAULT, QUICK_FILTERS) if quick else DEFAULT
    rng = np.random.default_rng(SEEDS[0])
    count = QUICK_EVENTS if quick else 300
    wanted, events = filters_of(scenario, rng), events_of(scenario, count, rng)
    singles = [events.take(slice(place, place + 1)) for place in range(len(events))]
    rows = []
    for method in dict.fromkeys((*METHODS, *(one for one in (MEMSET,) if one in MAKERS))):
        matcher = MAKERS[method]()
        matcher.add_all(wanted)
        matcher.match(events)
        spent = np.zeros(3)
        for single in singles:
            marks = [time.perf_counter()]
            encoded = matcher.encode(single)
            marks.append(time.perf_counter())
            found = matcher.match(encoded)
            marks.append(time.perf_counter())
            found.interface_lists()
            marks.append(time.perf_counter())
            spent += np.diff(marks)
        rows.append((method, *(spent / len(singles) * 1e3).tolist()))
    lines = ("encoding [ms]", "matching [ms]", "reading out [ms]")
    return parts_told(Table(("method", *lines), tuple(rows)))


def parts_told(table: Table) -> Outcome:
    """What is drawn and said of figure 4.6."""
    chart = Chart(table.columns[1:], "ms an event", (False, True))
    return Outcome(table, (chart,), of_parts(table, CCM, MEMSET))


EXPERIMENTS = (
    Experiment(
        "thesis-table-4.2",
        PAGE,
        "matching algorithms in the default scenario",
        "Table 4.1's scenario: 250,000 filters, a million constraints, 100 names. `size` is that "
        "of the arrays; ours hold what adding and removing single filters needs, too.",
        table_4_2,
        judge=table_told,
        seeds=told(SEEDS),
    ),
    Experiment(
        "thesis-4.6",
        PAGE,
        "where the time of one event goes",
        "The thesis splits the time of CCM into copies and kernel. On the CPU encoding stands "
        "for the copy in, and reading the interfaces out as a list for the copy out.",
        figure_4_6,
        judge=parts_told,
    ),
    *(sweep.experiment() for sweep in SWEEPS),
    *system.experiments(PAGE, DEFAULT, filters(DEFAULT, QUICK_FILTERS)),
)

"""The simulation study of the thesis's chapter 7 again: figures 7.9 to 7.18, simulated.

What is measured is what brokers send one another, everything included, and how long it takes from
the last primitive event of a composite one to each of its sinks, after the warm-up. Processing
takes no time, as in the thesis, whose processing times were lost in the links' delays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from benchmarks.reproduction import distribution_claims as claims
from benchmarks.reproduction.distribution_runs import (
    QUICK,
    THESIS,
    WHOLE,
    Settings,
    Size,
    Spread,
    Study,
    scenario,
    told_seeds,
)
from benchmarks.reproduction.experiment import (
    Chart,
    Experiment,
    Figure,
    Gathered,
    Outcome,
    Table,
)
from benchmarks.reproduction.gathering import Row

PAGE = "distribution-study"
SMALL = {"rules": 6, "subscriptions": 3, "rates": [0.5, 10.0]}
"""What a quick run has less of, and more: so something is detected."""
DEFAULT = Size(brokers=10)
"""That of figure 7.9."""
BAR_COLUMNS = (
    "strategy",
    "seeds",
    "delay [ms]",
    "delay ±",
    "traffic [kB/s]",
    "traffic ±",
    "messages [1/s]",
    "memory [MB]",
)
BAR_CHARTS = (
    Chart(("delay [ms]",), "delay to the sink [ms]"),
    Chart(("traffic [kB/s]",), "traffic between brokers [kB/s]"),
)
"""Those of a figure with a row a strategy."""
ORDERINGS = {"watermark": "", "arrival": ", by arrival"}
"""How results are ordered, and what is said of it behind the strategy's name."""
INTRODUCTION = f"""# The simulation study of chapter 7, again

What the thesis found when it compared its deployment strategies in a simulator (7.4), beside what
this project's simulator finds, for every strategy that is registered. How rules are divided is
told in [distribution.md](distribution.md).

The default scenario of the thesis has 20 brokers with 5 neighbours each on average, links of 5 ms
on average, 120 types of primitive events with rates from 0.001 to 10 events a second (exponential),
100 rules of 3 events with `last` and windows of 1 minute, and 10 subscriptions a broker; it was
measured over more than a day. Here events are published for
{WHOLE.warm_up_s + WHOLE.measured_s:.0f} seconds, of which the first {WHOLE.warm_up_s:.0f} are not
measured, for {WHOLE.seeds} seeds of each strategy at each point. Figure 7.9 has
{DEFAULT.brokers} brokers, and {THESIS.brokers} in a section of its own; the variations have a
default of {WHOLE.brokers} brokers. All have as many types and rules for each broker as the thesis,
so {6 * WHOLE.brokers} types and {5 * WHOLE.brokers} rules in the variations. The horizon is as long
as a window, so what takes part in few matches weighs less than in the long run, and the rarest
types hardly occur.

A figure is a mean over the seeds; ± is half the width of its 95 % interval (Student's t, which is
wide for two). Traffic is all that brokers send one another: events, requests, marks,
acknowledgements, 1 kB being 1,000 bytes. Results are exact and ordered (`ordering = "watermark"`):
sources promise the time of their next event, so results wait until marks have travelled, but for
no clock. The thesis's systems, which deliver as things arrive, send no such marks: figure 7.9
has the strategies by arrival, too (`ordering = "arrival"`), and the difference is what exactness
costs. `rexmq reproduce thesis-7.9 ...
thesis-7.18` measures anew; `rexmq simulate` runs any other scenario
([scenarios](../scenarios.md)). A figure without a section here has not been run yet; those of the
thesis's size are on [a page of their own](distribution-study-full.md), as far as they have been.

**Going on with the study.** `rexmq reproduce thesis-7.9 ... thesis-7.18 --size full --rows ROWS`
runs all figures with the thesis's default scenario: {THESIS.brokers} brokers, {6 * THESIS.brokers}
types, {5 * THESIS.brokers} rules, {THESIS.seeds} seeds, {THESIS.measured_s:.0f} seconds after
{THESIS.warm_up_s:.0f} of warm-up. `thesis-7.9-long` is the default scenario until the rarest type
has occurred 100 times. Each run becomes a line of ROWS as it ends: its scenario's hash and
settings, strategy, seed, figures, CPU time, and a digest of what the code sends in a small run with
all that the workloads here are made of. As long as that is the same the row counts, and the run is
not made again. How many are missing, and about how many processor hours they take, is said before
the first begins. Whoever interrupts it loses the runs that are under way. `--runs N` makes N of
them at most, and what is written says how many seeds each point has.

The rows of this page are in [benchmarks/results/study.jsonl](../../benchmarks/results/study.jsonl);
`--size whole --rows` with that file goes on with them.

What that takes is about this much CPU time with
[compiled protocols](../decisions/0018-compiled-core.md): measured for a run of 60 seconds of the
default scenario with 20 brokers, for one part in 29 of `thesis-7.9-long`, and for the rest in
proportion. Interpreted it is two to three times as much.

| strategy | a run of the default scenario | all runs of the figures | `thesis-7.9-long` |
| --- | --- | --- | --- |
| `centralized` | 3.2 s | 330: 0.8 h | 29: 2.5 h |
| `distributed-st` | 4.4 s | 330: 1 h | 29: 2.5 h |
| `distributed-mt` | 18 s | 330: 2 h | 29: 13 h |
| `push-pull-st` | 7.9 s | 330: 1.5 h | 29: 3 h |
| `push-pull-mt` | 25 s | 330: 3 h | 29: 15 h |
| `adaptive` | 6.1 s | 330: 1.5 h | 29: 2.2 h |"""


FULL_PAGE = f"{PAGE}-full"
FULL_INTRODUCTION = f"""# The simulation study of chapter 7, at the thesis's size

The figures of [the study](distribution-study.md) with the thesis's default scenario and
{THESIS.seeds} seeds: {THESIS.brokers} brokers, {6 * THESIS.brokers} types,
{5 * THESIS.brokers} rules. Events are published for {THESIS.warm_up_s + THESIS.measured_s:.0f}
seconds, of which the first {THESIS.warm_up_s:.0f} are not measured. A table says how many seeds
each of its points has by now: of all strategies, and of those that have fewer. `rexmq reproduce
thesis-7.9 ... thesis-7.18 --size full --rows ROWS` goes on with it."""


@lru_cache
def study_of(size: Size) -> Study:
    """One for all figures, which share runs."""
    return Study(size)


def figure(name: str, title: str, setting: str, gathered: Gathered) -> Experiment:
    """An experiment of this page that is made of such runs."""

    def run(quick: bool) -> Outcome:
        study = study_of(QUICK if quick else WHOLE)
        study.run(gathered.settings(study.size))
        return gathered.outcome(study)

    return Experiment(name, PAGE, title, setting, run, gathered)


@dataclass(frozen=True, slots=True)
class Point:
    """Where on the x-axis, and how the default scenario is changed there."""

    place: float
    change: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure: what varies, its points, what the thesis says.

    ``whole``: the points where the default scenario is the thesis's. ``measured_s``: for how many
    seconds, where those of the other figures are too few for what varies to matter.
    """

    varied: str
    points: tuple[Point, ...]
    whole: tuple[Point, ...]
    claims: Callable[[claims.Readings], Iterator[claims.Claim]]
    has_memory: bool = False
    measured_s: float | None = None

    def settings(self, size: Size) -> list[Settings]:
        """The scenarios of its points."""
        own = size
        if self.measured_s is not None and size is not QUICK:
            own = replace(size, measured_s=self.measured_s)
        return [scenario(own, **point.change) for point in self.points_of(size)]

    def points_of(self, size: Size) -> tuple[Point, ...]:
        """Its points, of which a quick run has the ends."""
        if size is QUICK:
            return tuple(_small(point) for point in (self.points[0], self.points[-1]))
        return self.whole if size is THESIS else self.points

    def outcome(self, study: Study) -> Outcome:
        """What the rows that are there come to."""
        places = [point.place for point in self.points_of(study.size)]
        table = _table(self, places, study.found(self.settings(study.size)), study.strategies)
        return Outcome(table, _charts(study.strategies), tuple(self.claims(claims.Readings(table))))


def _small(point: Point) -> Point:
    """The point in a network of three brokers, with fewer rules and subscriptions."""
    few = {name: 3 for name in ("brokers", "rules", "subscriptions") if name in point.change}
    return Point(point.place, {**SMALL, **point.change, **few, "classes": 1})


def _table(
    plot: Plot,
    places: Sequence[float],
    found: Sequence[dict[str, list[Row]]],
    strategies: Sequence[str],
) -> Table:
    columns = [plot.varied, "seeds", "delivered [1/s]"]
    for name in strategies:
        columns += [f"{name} delay [ms]", f"{name} delay ±", f"{name} traffic [kB/s]"]
        columns += [f"{name} traffic ±", f"{name} messages [1/s]"]
        columns += [f"{name} memory [MB]"] if plot.has_memory else []
    rows = []
    for place, by_strategy in zip(places, found, strict=True):
        known = next((rows for rows in by_strategy.values() if rows), [])
        row: list[Figure] = [place, told_seeds(by_strategy), _rate(known, "delivered").mean]
        for name in strategies:
            row += _cells(by_strategy[name], plot.has_memory)
        rows.append(tuple(row))
    return Table(tuple(columns), tuple(rows))


def _cells(rows: Sequence[Row], has_memory: bool) -> list[Figure]:
    """Delay, traffic and messages of a strategy at a point, and the memory of a broker."""
    delay = Spread.of([row["delay_ms_mean"] for row in rows if row["delay_ms_mean"] is not None])
    traffic = _rate(rows, "bytes", 1e3)
    cells = [delay.mean, delay.half, traffic.mean, traffic.half, _rate(rows, "messages").mean]
    known = [row["memory_mb_node"] for row in rows if row["memory_mb_node"] is not None]
    return [*cells, Spread.of(known).mean] if has_memory else cells


def _rate(rows: Sequence[Row], name: str, unit: float = 1.0) -> Spread:
    return Spread.of([row[name] / row["measured_s"] / unit for row in rows])


def _charts(strategies: Sequence[str]) -> tuple[Chart, ...]:
    return tuple(
        Chart(
            tuple(f"{name} {what} [{unit}]" for name in strategies),
            label,
            intervals=tuple(f"{name} {what} ±" for name in strategies),
        )
        for what, unit, label in (
            ("delay", "ms", "delay to the sink [ms]"),
            ("traffic", "kB/s", "traffic between brokers [kB/s]"),
        )
    )


@dataclass(frozen=True, slots=True)
class Bars:
    """Figure 7.9: a row a strategy; ``own``: the size that it has among figures of the WHOLE size.

    ``orderings``: those that it shows, and what is said of each behind the strategy's name.
    """

    own: Size
    orderings: Mapping[str, str]

    def settings(self, size: Size) -> list[Settings]:
        """The default scenario with each ordering."""
        point = scenario(size, **SMALL) if size is QUICK else scenario(self._size(size))
        # What is the default is not named, so that figures share these runs.
        others = [{**point, "ordering": one} for one in self.orderings if one != "watermark"]
        return [point, *others]

    def _size(self, size: Size) -> Size:
        return self.own if size is WHOLE else size

    def outcome(self, study: Study) -> Outcome:
        """What the rows that are there come to."""
        found = study.found(self.settings(study.size))
        rows = [
            (name + told, len(by_strategy[name]), *_cells(by_strategy[name], True))
            for told, by_strategy in zip(self.orderings.values(), found, strict=True)
            for name in study.strategies
        ]
        table = Table(BAR_COLUMNS, tuple(rows))
        return Outcome(table, BAR_CHARTS, tuple(claims.default(table)))


def _points(name: str, places: Sequence[float], **others: Any) -> tuple[Point, ...]:
    return tuple(Point(place, {name: place, **others}) for place in places)


def _shares(*shares: float) -> tuple[Point, ...]:
    return tuple(
        Point(share, {"selection": {"last": 1 - share / 100, "each": share / 100}})
        for share in shares
    )


def _local(*counts: int) -> tuple[Point, ...]:
    return tuple(
        Point(count, {"brokers": count, "classes": count // 2, "publisher_locality": 0.8})
        for count in counts
    )


def _rates(*rates: float) -> tuple[Point, ...]:
    """Their least rate."""
    return tuple(Point(1 / least, {"rates": [least, 10.0]}) for least in rates)


NODES, NODES_WHOLE = (3, 6, 12), (5, 10, 20, 30, 50)
PLOTS = {
    "7.10": Plot(
        "rules",
        _points("rules", (15, 30, 60)),
        _points("rules", (50, 100, 150, 200)),
        claims.composites,
    ),
    "7.11": Plot(
        "subscriptions a broker",
        _points("subscriptions", (2, 10, 20)),
        _points("subscriptions", (2, 5, 10, 20)),
        claims.subscriptions,
    ),
    "7.12": Plot("share of each [%]", _shares(0, 30), _shares(0, 10, 20, 30), claims.selection),
    "7.13": Plot(
        "window [s]",
        _points("window_s", (30.0, 60.0, 120.0)),
        _points("window_s", (30.0, 60.0, 90.0, 120.0)),
        claims.windows,
        measured_s=120.0,  # no window that is longer than a run makes a difference
    ),
    "7.14": Plot(
        "values of an attribute",
        _points("values", (1, 3, 10)),
        _points("values", (1, 2, 5, 10)),
        claims.filtering,
    ),
    "7.15": Plot(
        "brokers",
        _points("brokers", NODES),
        _points("brokers", NODES_WHOLE),
        claims.nodes,
        has_memory=True,
    ),
    "7.16": Plot("brokers", _local(*NODES[1:]), _local(*NODES_WHOLE), claims.locality),
    "7.17": Plot(
        "brokers",
        _points("brokers", NODES[1:], values=10),
        _points("brokers", NODES_WHOLE, values=10),
        claims.nodes_filtered,
    ),
    "7.18": Plot(
        "seconds between the rarest events",
        _rates(0.2, 0.001, 0.0001),
        _rates(0.2, 0.01, 0.001, 0.0001),
        claims.rates,
    ),
}
TITLES = {
    "7.10": ("Number of composite events", "As many rules as composite event types."),
    "7.11": ("Subscriptions per broker", "Each for another composite event type."),
    "7.12": ("Selection policy", "The share of `each` in place of `last`."),
    "7.13": (
        "Size of windows",
        "From each event of a rule to the one before. Measured for 120 seconds, as the longest of"
        " them takes.",
    ),
    "7.14": ("Filtering of primitive events", "Rules take events of one value of so many."),
    "7.15": (
        "Number of brokers",
        "6 types and 5 rules more with each broker. Memory is what the simulating process grew by"
        " at most during the run, over the number of brokers.",
    ),
    "7.16": (
        "Number of brokers, with locality",
        "Classes of ten rules that share no type with others; the types of a class are published"
        " by the fifth of all brokers nearest to its centre.",
    ),
    "7.17": ("Number of brokers, with filtering", "Nine tenths of all events match no rule."),
    "7.18": ("Publication rate", "The most frequent type keeps 10 events a second."),
}
DEFAULTS = Bars(DEFAULT, ORDERINGS)
DEFAULTS_FULL = Bars(THESIS, {"watermark": ""})
EXPERIMENTS = (
    figure(
        "thesis-7.9",
        "Default scenario",
        "A row a strategy, exact and by arrival.",
        DEFAULTS,
    ),
    figure(
        "thesis-7.9-full",
        "Default scenario, at the thesis's size",
        f"{THESIS.brokers} brokers, {6 * THESIS.brokers} types, {5 * THESIS.brokers} rules, for"
        f" {THESIS.seeds} seeds; exact alone. Publishing lasts as long as elsewhere here.",
        DEFAULTS_FULL,
    ),
    *(
        figure(f"thesis-{number}", title, setting, PLOTS[number])
        for number, (title, setting) in TITLES.items()
    ),
)

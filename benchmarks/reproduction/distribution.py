"""The simulation study of the thesis's chapter 7 again: figures 7.9 to 7.18, simulated.

What is measured is what brokers send one another, everything included, and how long it takes from
the last primitive event of a composite one to each of its sinks, after the warm-up. Processing
takes no time, as in the thesis, whose processing times were lost in the links' delays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from benchmarks.reproduction import distribution_claims as claims
from benchmarks.reproduction.distribution_runs import (
    FULL,
    QUICK,
    WHOLE,
    Row,
    Size,
    Spread,
    Study,
    scenario,
)
from benchmarks.reproduction.experiment import Chart, Experiment, Figure, Outcome, Table

PAGE = "distribution-study"
SMALL = {"rules": 6, "subscriptions": 3, "rates": [0.5, 10.0]}
"""What a quick run has less of, and more: so something is detected."""
DEFAULT = Size(brokers=10)
"""That of figure 7.9."""
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
measured, for {WHOLE.seeds} seeds. Figure 7.9 has {DEFAULT.brokers} brokers, and {FULL.brokers}
in a section of its own; the variations have a default of {WHOLE.brokers} brokers. All have as
many types and rules for each broker as the thesis, so {6 * WHOLE.brokers} types and
{5 * WHOLE.brokers} rules in the variations. Horizons are shorter than windows, so what takes part
in few matches weighs less than in the long run, and the rarest types hardly occur.

A figure is a mean over the seeds; ± is half the width of its 95 % interval (Student's t, which is
wide for two). Traffic is all that brokers send one another: events, requests, marks,
acknowledgements, 1 kB being 1,000 bytes. Results are exact and ordered (`ordering = "watermark"`):
sources promise the time of their next event, so results wait until marks have travelled, but for
no clock. The thesis's systems, which deliver as things arrive, send no such marks: figure 7.9
has the strategies by arrival, too (`ordering = "arrival"`), and the difference is what exactness
costs. `rexmq reproduce thesis-7.9 ...
thesis-7.18` measures anew; `rexmq simulate` runs any other scenario
([scenarios](../scenarios.md)). A figure without a section here has not been run yet."""


@lru_cache
def study_of(size: Size) -> Study:
    """One for all figures, which share runs."""
    return Study(size)


@dataclass(frozen=True, slots=True)
class Point:
    """Where on the x-axis, and how the default scenario is changed there."""

    place: float
    change: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure: what varies, its points, what the thesis says."""

    varied: str
    points: tuple[Point, ...]
    claims: Callable[[claims.Readings], Iterator[claims.Claim]]
    has_memory: bool = False

    def run(self, quick: bool) -> Outcome:
        """Measure."""
        size = QUICK if quick else WHOLE
        study, points = study_of(size), self.points
        if quick:
            points = tuple(_small(point) for point in (points[0], points[-1]))
        found = study.run([scenario(size, **point.change) for point in points])
        table = _table(self, [point.place for point in points], found, study.strategies)
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
    columns = [plot.varied, "delivered [1/s]"]
    for name in strategies:
        columns += [f"{name} delay [ms]", f"{name} delay ±", f"{name} traffic [kB/s]"]
        columns += [f"{name} traffic ±", f"{name} messages [1/s]"]
        columns += [f"{name} memory [MB]"] if plot.has_memory else []
    rows = []
    for place, by_strategy in zip(places, found, strict=True):
        row: list[Figure] = [place, _rate(by_strategy[strategies[0]], "delivered").mean]
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


def default(quick: bool) -> Outcome:
    """Figure 7.9: a row a strategy, exact and by arrival."""
    return _bars(QUICK if quick else DEFAULT, ORDERINGS)


def full(quick: bool) -> Outcome:
    """The same at the thesis's size, exact alone."""
    return _bars(QUICK if quick else FULL, {"watermark": ""})


def _bars(size: Size, orderings: Mapping[str, str]) -> Outcome:
    study = study_of(size)
    point = scenario(size, **(SMALL if size is QUICK else {}))
    found = study.run([{**point, "ordering": ordering} for ordering in orderings])
    columns = ("strategy", "delay [ms]", "delay ±", "traffic [kB/s]", "traffic ±")
    rows = [
        (name + told, *_cells(by_strategy[name], True))
        for told, by_strategy in zip(orderings.values(), found, strict=True)
        for name in study.strategies
    ]
    table = Table((*columns, "messages [1/s]", "memory [MB]"), tuple(rows))
    charts = (
        Chart(("delay [ms]",), "delay to the sink [ms]"),
        Chart(("traffic [kB/s]",), "traffic between brokers [kB/s]"),
    )
    return Outcome(table, charts, tuple(claims.default(table)))


def _points(name: str, places: Sequence[float], **others: Any) -> tuple[Point, ...]:
    return tuple(Point(place, {name: place, **others}) for place in places)


RATES = (0.2, 0.001, 0.0001)
NODES = (3, 6, 12)
PLOTS = {
    "7.10": Plot("rules", _points("rules", (15, 30, 60)), claims.composites),
    "7.11": Plot(
        "subscriptions a broker", _points("subscriptions", (2, 10, 20)), claims.subscriptions
    ),
    "7.12": Plot(
        "share of each [%]",
        tuple(
            Point(share, {"selection": {"last": 1 - share / 100, "each": share / 100}})
            for share in (0, 30)
        ),
        claims.selection,
    ),
    "7.13": Plot("window [s]", _points("window_s", (30.0, 60.0, 120.0)), claims.windows),
    "7.14": Plot("values of an attribute", _points("values", (1, 3, 10)), claims.filtering),
    "7.15": Plot("brokers", _points("brokers", NODES), claims.nodes, has_memory=True),
    "7.16": Plot(
        "brokers",
        tuple(
            Point(count, {"brokers": count, "classes": count // 2, "publisher_locality": 0.8})
            for count in NODES[1:]
        ),
        claims.locality,
    ),
    "7.17": Plot("brokers", _points("brokers", NODES[1:], values=10), claims.nodes_filtered),
    "7.18": Plot(
        "seconds between the rarest events",
        tuple(Point(1 / least, {"rates": [least, 10.0]}) for least in RATES),
        claims.rates,
    ),
}
TITLES = {
    "7.10": ("Number of composite events", "As many rules as composite event types."),
    "7.11": ("Subscriptions per broker", "Each for another composite event type."),
    "7.12": ("Selection policy", "The share of `each` in place of `last`."),
    "7.13": ("Size of windows", "From each event of a rule to the one before."),
    "7.14": ("Filtering of primitive events", "Rules take events of one value of so many."),
    "7.15": (
        "Number of brokers",
        "6 types and 5 rules more with each broker. Memory is what the simulating process grew by"
        " at most during the run, over the number of brokers.",
    ),
    "7.16": (
        "Number of brokers, with locality",
        "Classes of ten rules that share no type with others; the types of a class are published"
        " by the fifth of all brokers nearest to its centre, which are two or three here.",
    ),
    "7.17": ("Number of brokers, with filtering", "Nine tenths of all events match no rule."),
    "7.18": ("Publication rate", "The most frequent type keeps 10 events a second."),
}
EXPERIMENTS = (
    Experiment(
        "thesis-7.9",
        PAGE,
        "Default scenario",
        f"{DEFAULT.brokers} brokers, {6 * DEFAULT.brokers} types, {5 * DEFAULT.brokers} rules.",
        default,
    ),
    Experiment(
        "thesis-7.9-full",
        PAGE,
        "Default scenario, at the thesis's size",
        f"{FULL.brokers} brokers, {6 * FULL.brokers} types, {5 * FULL.brokers} rules, for"
        f" {FULL.seeds} seeds; exact alone. Publishing lasts as long as elsewhere on this page.",
        full,
    ),
    *(
        Experiment(f"thesis-{number}", PAGE, title, setting, PLOTS[number].run)
        for number, (title, setting) in TITLES.items()
    ),
)

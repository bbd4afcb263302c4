"""The strategy ``adaptive`` beside the others, in every scenario of figures 7.9 to 7.18.

The thesis asks for such a strategy and has none, so this stands beside no claim of its own: what is
asked of it is that it costs hardly more than whichever of the others costs least, without being
told which, and that results come no later than over a single tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.reproduction import distribution
from benchmarks.reproduction.distribution_plots import DEFAULT, PLOTS, SMALL, Found, common, local
from benchmarks.reproduction.distribution_runs import (
    QUICK,
    THESIS,
    WHOLE,
    Settings,
    Size,
    Spread,
    Study,
    scenario,
)
from benchmarks.reproduction.experiment import Chart, Claim, Figure, Outcome, Table
from benchmarks.reproduction.gathering import Row

PAGE, INTRODUCTION = distribution.PAGE, ""
ADAPTIVE = "adaptive"
SINGLE = ("centralized", "distributed-st", "push-pull-st")
LARGE, SEED = 100, 1
SINGLE_MS = "single trees [ms]"
COLUMNS = (
    "scenario",
    "least",
    "least [kB/s]",
    "adaptive [kB/s]",
    "adaptive / least",
    SINGLE_MS,
    "adaptive [ms]",
)
MORE = 0.05
"""The share by which its traffic may be above the least of the others'."""
ALL = "in all scenarios"
ASKED = "this project asks for"


Named = tuple[str, Settings]
"""What a row is called, and its scenario."""


def _of_the_figures(size: Size) -> Iterator[Named]:
    """All scenarios of the figures, by figure and place."""
    yield "7.9", scenario(DEFAULT if size is WHOLE else size)
    for figure, plot in PLOTS.items():
        for point, made in zip(plot.points_of(size), plot.exact(size), strict=True):
            yield f"{figure}: {point.place:g} {plot.varied}", made


def _large(size: Size) -> Iterator[Named]:
    """The scenarios of figures 7.15 to 7.17 with more brokers than these have, of one seed."""
    brokers = LARGE if size is THESIS else LARGE // 4
    for figure in ("7.15", "7.16", "7.17"):
        change = local(brokers).change if figure == "7.16" else {"brokers": brokers}
        filtering = {"values": 10} if figure == "7.17" else {}
        made = scenario(size, **change, **filtering)
        yield f"{figure}: {brokers} brokers", {**made, "seed": SEED}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Scenarios, each once under every strategy."""

    named: Callable[[Size], Iterable[Named]]

    def settings(self, size: Size) -> list[Settings]:
        """The scenarios."""
        return [settings for _, settings in self._named(size)]

    def _named(self, size: Size) -> list[Named]:
        return [("7.9", scenario(QUICK, **SMALL))] if size is QUICK else list(self.named(size))

    def outcome(self, study: Study) -> Outcome:
        """What the rows that are there come to, by the seeds that all strategies have."""
        found = study.found(self.settings(study.size))
        names = [name for name, _ in self._named(study.size)]
        shared = [rows for point in found for rows in common([point])]
        whole = [
            (name, rows) for name, rows in zip(names, shared, strict=True) if all(rows.values())
        ]
        return compared([name for name, _ in whole], [rows for _, rows in whole])


def compared(names: Sequence[str], found: Sequence[Found]) -> Outcome:
    """The table of what was found at each point."""
    table = Table(COLUMNS, tuple(map(_row, names, found)))
    return Outcome(table, (Chart(COLUMNS[2:4], "traffic [kB/s]"),), tuple(_claims(table)))


def _claims(table: Table) -> Iterator[Claim]:
    """What is asked of the strategy, and where it is not so."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    dear = [one for one in rows if _number(one["adaptive / least"]) > 1 + MORE]
    told = "; ".join(f"{one['scenario']}: {one['adaptive / least']:.3g} times" for one in dear)
    yield Claim("at most 5 % more traffic than the best other", told or ALL, not dear)
    timed = [one for one in rows if None not in (one["adaptive [ms]"], one["single trees [ms]"])]
    slow = [one for one in timed if _number(one["adaptive [ms]"]) > _number(one[SINGLE_MS])]
    told = "; ".join(
        f"{one['scenario']}: {one['adaptive [ms]']:.3g} over {one[SINGLE_MS]:.3g} ms"
        for one in slow
    )
    yield Claim("a delay within that of the single trees", told or ALL, not slow)


def _number(figure: Figure) -> float:
    assert isinstance(figure, float)
    return figure


def _row(name: str, found: Found) -> tuple[Figure, ...]:
    traffic = {strategy: _traffic(rows) for strategy, rows in found.items()}
    own = traffic.pop(ADAPTIVE)
    least = min(traffic, key=traffic.__getitem__)
    delays = {strategy: _delay(rows) for strategy, rows in found.items()}
    known = [one for strategy in SINGLE if (one := delays.get(strategy)) is not None]
    single = max(known, default=None)
    return name, least, traffic[least], own, own / traffic[least], single, delays[ADAPTIVE]


def _traffic(rows: Sequence[Row]) -> float:
    mean = Spread.of([row["bytes"] / row["measured_s"] / 1e3 for row in rows]).mean
    assert mean is not None
    return mean


def _delay(rows: Sequence[Row]) -> float | None:
    return Spread.of([row["delay_ms_mean"] for row in rows if row["delay_ms_mean"]]).mean


EXPERIMENTS = (
    distribution.figure(
        ADAPTIVE,
        "The ways that cost least",
        "`adaptive` beside whichever other strategy has the least traffic there, and its delay"
        " beside the longest of those over a single tree. It is told nothing: it measures during"
        " the warm-up of 30 seconds, and may change its ways later.",
        Comparison(_of_the_figures),
        ASKED,
    ),
    distribution.figure(
        f"{ADAPTIVE}-large",
        "The ways that cost least among many brokers",
        f"The same with more brokers than the figures have ({LARGE} with `--size full`): as many"
        " types and rules for each, plain, with locality, and with filtering. One seed.",
        Comparison(_large),
        ASKED,
    ),
)

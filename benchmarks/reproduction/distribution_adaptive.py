"""The strategy ``adaptive`` beside the others, in every scenario of figures 7.9 to 7.18.

The thesis asks for such a strategy and has none, so this stands beside no claim of its own: what is
asked of it is that it costs hardly more than whichever of the others costs least, without being
told which, and that results come no later than over a single tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.reproduction import distribution
from benchmarks.reproduction.distribution_runs import QUICK, WHOLE, Row, Settings, Spread, scenario
from benchmarks.reproduction.experiment import Chart, Experiment, Figure, Outcome, Table

PAGE, INTRODUCTION = distribution.PAGE, ""
ADAPTIVE = "adaptive"
SINGLE = ("centralized", "distributed-st", "push-pull-st")
COLUMNS = (
    "scenario",
    "least",
    "least [kB/s]",
    "adaptive [kB/s]",
    "adaptive / least",
    "single trees [ms]",
    "adaptive [ms]",
)
Found = Mapping[str, Sequence[Row]]
"""By strategy, its rows at one point, one a seed."""


def _points(quick: bool) -> Iterator[tuple[str, Settings]]:
    """What is run, by figure and place."""
    if quick:
        yield "7.9", scenario(QUICK, **distribution.SMALL)
        return
    yield "7.9", scenario(distribution.DEFAULT)
    for figure, plot in distribution.PLOTS.items():
        for point in plot.points:
            yield f"{figure}: {point.place:g} {plot.varied}", scenario(WHOLE, **point.change)


def run(quick: bool) -> Outcome:
    """Measure."""
    points = list(_points(quick))
    study = distribution.study_of(QUICK if quick else WHOLE)
    return compared([name for name, _ in points], study.run([settings for _, settings in points]))


def compared(names: Sequence[str], found: Sequence[Found]) -> Outcome:
    """The table of what was found at each point."""
    rows = tuple(map(_row, names, found))
    return Outcome(Table(COLUMNS, rows), (Chart(COLUMNS[2:4], "traffic [kB/s]"),), ())


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
    Experiment(
        ADAPTIVE,
        PAGE,
        "The ways that cost least",
        "`adaptive` beside whichever other strategy has the least traffic there, and its delay"
        " beside the longest of those over a single tree. It is told nothing: it measures during"
        " the warm-up of 30 seconds, and may change its ways later.",
        run,
    ),
)

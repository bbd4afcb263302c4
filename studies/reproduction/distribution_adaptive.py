"""The strategy ``adaptive`` beside the others, in every scenario of figures 7.9 to 7.18.

The thesis asks for such a strategy and has none, so this stands beside no claim of its own: what is
asked of it is that it costs hardly more than whichever of the others costs least, without being
told which, and that results come no later than over a single tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from studies.reproduction import distribution
from studies.reproduction.distribution_claims import delays, traffic
from studies.reproduction.distribution_plots import DEFAULT, PLOTS, SMALL, Found, common, local
from studies.reproduction.distribution_runs import (
    QUICK,
    THESIS,
    WHOLE,
    Settings,
    Size,
    Spread,
    Study,
    scenario,
)
from studies.reproduction.experiment import Chart, Claim, Figure, Outcome, Table
from studies.reproduction.gathering import Row
from studies.reproduction.verdicts import SAME, Estimate, Range, Verdict, judge

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
SAME_OR_LESS: Range = (0.0, SAME[1])
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
    return Outcome(table, (Chart(COLUMNS[2:4], "traffic [kB/s]"),), tuple(_claims(names, found)))


def _claims(names: Sequence[str], found: Sequence[Found]) -> Iterator[Claim]:
    """What is asked of the strategy, seed by seed, and where it is not so."""
    dear, late = [], []
    for name, rows in zip(names, found, strict=True):
        by_seed = {strategy: {row["seed"]: row for row in ours} for strategy, ours in rows.items()}
        sent = {strategy: traffic(one) for strategy, one in by_seed.items()}
        waited = {strategy: delays(one) for strategy, one in by_seed.items()}
        means = {one: _traffic(rows[one]) for one in rows if one != ADAPTIVE}
        least = min(means, key=means.__getitem__)
        if more := Estimate.paired(sent[ADAPTIVE], sent[least], name):
            dear.append((name, more, (0.0, 1 + MORE)))
        slowest = max(
            (one for one in SINGLE if waited.get(one)),
            key=lambda one: mean(waited[one].values()),
            default="",
        )
        if slowest and (longer := Estimate.paired(waited[ADAPTIVE], waited[slowest], name)):
            late.append((name, longer, SAME_OR_LESS))
    yield _claim("at most 5 % more traffic than the best other", dear)
    yield _claim("delays like those of the single trees, or shorter", late)


Named = list[tuple[str, Estimate, Range]]


def _claim(text: str, named: Named) -> Claim:
    """Judged at all points; those where it does not hold, or cannot be told, are named."""
    verdicts = [(name, one, judge([(one, range_)])) for name, one, range_ in named]
    others = [(name, one) for name, one, verdict in verdicts if verdict is not Verdict.HOLDS]
    told = "; ".join(f"{name}: {one} times" for name, one in others) or ALL
    return Claim.judged(text, told, [(one, range_) for _, one, range_ in named])


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
        " the warm-up of 30 seconds, and may choose again later. The rows were measured when it"
        " still chose for each type.",
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

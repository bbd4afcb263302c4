"""What both chapters on engines have in common: one parameter changed, and rates of arrival.

A *sweep* gives for each value of a parameter the mean CPU time of an event, for each case (a policy
of selection, say) and engine, and the composite events that an event brings at one rate; curves of
throughput over the rate, with windows full, are figures of their own (engine_curves). An *offering*
has throughput over the rate for a moment, from empty windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from studies.reproduction.engine_claims import (
    COMPOSITES,
    DROPPED,
    OUT,
    RATE_OFFERED,
    us,
)
from studies.reproduction.engine_runs import (
    SEEDS,
    Making,
    Offered,
    Span,
    Stream,
    engines,
    processing,
)
from studies.reproduction.experiment import Chart, Claim, Figure, Outcome, Table
from studies.reproduction.seeds import Mean, halves, table_of

PAGE = "engine"
CASES = 3
"""Cases in one picture."""
RATES = (1e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5)
Case = Callable[[float, bool], Making]
"""A workload by the value of a parameter, small if it is to be quick."""


def arrivals(rate: float, quick: bool) -> int:
    """Events that arrive in one run at a rate: a quarter of a second's, within bounds."""
    return int(np.clip(rate / 4, 500, 1_000 if quick else 40_000))


@dataclass(frozen=True, slots=True)
class Sweep:
    """A figure of the thesis: times as one parameter changes, and what it says of them.

    ``cases`` are the workloads by the beginnings of their columns' names.
    """

    parameter: str
    values: Sequence[float]
    cases: Mapping[str, Case]
    span: Callable[[float, bool], Span]
    claims: Callable[[Table], tuple[Claim, ...]]
    logarithmic: tuple[bool, bool] = (False, False)
    seeds: Sequence[int] = SEEDS

    def run(self, quick: bool) -> Outcome:
        """Measure it."""
        ends = (self.values[0], self.values[-1])
        values = tuple(dict.fromkeys(ends)) if quick else self.values
        counted = [case + COMPOSITES for case in self.cases]
        seeds = SEEDS[:1] if quick else self.seeds
        places: list[Figure] = [int(one) if float(one).is_integer() else one for one in values]
        works = [
            (case(value, quick), self.span(value, quick))
            for value in values
            for case in self.cases.values()
        ]
        measured = processing(works, [*engines().values()], seeds)
        by_case = {
            case: measured[place :: len(self.cases)] for place, case in enumerate(self.cases)
        }
        means = {
            us(case + engine): [of_value[place].event_us for of_value in by_case[case]]
            for case in self.cases
            for place, engine in enumerate(engines())
        }
        for case in self.cases:  # of the engine that took the most events, as a rule
            means[case + COMPOSITES] = [of_value[-1].composites for of_value in by_case[case]]
        return self.outcome(table_of(self.parameter, places, seeds, means, counted))

    def outcome(self, table: Table) -> Outcome:
        """What is drawn and said of a table of this figure, measured now or read again."""
        lines = [
            case + engine
            for case in self.cases
            for engine in engines()
            if us(case + engine) in table.columns
        ]
        times = tuple(map(us, lines))
        charts = (Chart(times, "CPU time an event [us]", self.logarithmic, halves(table, times)),)
        return Outcome(table, charts, self.claims(table))


@dataclass(frozen=True, slots=True)
class Offering:
    """A figure of the thesis: throughput and loss as the rate of arrival grows."""

    cases: Mapping[str, Callable[[bool], Making]]
    claims: Callable[[Table], tuple[Claim, ...]]
    seeds: Sequence[int] = SEEDS

    def run(self, quick: bool) -> Outcome:
        """Measure it, the engines in turns."""
        rates = (RATES[0], RATES[3]) if quick else RATES
        seeds = SEEDS[:1] if quick else self.seeds
        places = [int(rate) for rate in rates]
        means: dict[str, list[Mean]] = {}
        for case, making in self.cases.items():
            runs = [_offered(making(quick), rates, seed, quick) for seed in seeds]
            for name in engines():
                line, of_rates = f"{case}{name}", zip(*(run[name] for run in runs), strict=True)
                out: list[Mean] = []
                lost: list[Mean] = []
                means |= {OUT.format(line): out, DROPPED.format(line): lost}
                for seen in of_rates:
                    out.append(Mean.of([one.throughput for one in seen]))
                    lost.append(Mean.of([100 * one.dropped for one in seen]))
        counted = [name for name in means if name.endswith(DROPPED.format(""))]
        return self.outcome(table_of(RATE_OFFERED, places, seeds, means, counted))

    def outcome(self, table: Table) -> Outcome:
        """What is drawn and said of a table of this figure, measured now or read again."""
        charts = [chart for group in self._groups() for chart in _charts(table, group)]
        return Outcome(table, tuple(charts), self.claims(table))

    def _groups(self) -> list[list[str]]:
        """The cases, as many in a picture as there are strokes for."""
        cases = list(self.cases)
        return [cases[at : at + CASES] for at in range(0, len(cases), CASES)]


def _charts(table: Table, cases: Sequence[str]) -> Iterator[Chart]:
    """Throughput and loss of each engine in some cases."""
    names = [name for name in engines() if OUT.format(f"{cases[0]}{name}") in table.columns]
    lines = [f"{case}{name}" for case in cases for name in names]
    out = tuple(map(OUT.format, lines))
    yield Chart(out, "composite events/s", (True, True), halves(table, out), len(names))
    loss = tuple(map(DROPPED.format, lines))
    yield Chart(loss, "events dropped [%]", (True, False), kinds=len(names))


def _offered(
    making: Making, rates: Sequence[float], seed: int, quick: bool
) -> dict[str, list[Offered]]:
    """What comes of the rates with one seed, by engine."""
    counts = [arrivals(rate, quick) for rate in rates]
    found: dict[str, list[Offered]] = {}
    for name, engine in engines().items():
        stream = Stream(making, engine, max(counts), seed)
        found[name] = [stream.at(rate, count) for rate, count in zip(rates, counts, strict=True)]
    return found

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
    OUT_HALF,
    RATE_OFFERED,
    half,
    us,
)
from studies.reproduction.engine_runs import (
    SEEDS,
    Engines,
    Making,
    Mean,
    Span,
    Stream,
    engines,
    processing,
)
from studies.reproduction.experiment import Chart, Claim, Figure, Outcome, Table

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
    engines: Callable[[], Engines] = engines

    def run(self, quick: bool) -> Outcome:
        """Measure it."""
        ends = (self.values[0], self.values[-1])
        values = tuple(dict.fromkeys(ends)) if quick else self.values
        lines = [case + engine for case in self.cases for engine in self.engines()]
        columns = [self.parameter, *(one for line in lines for one in (us(line), half(line)))]
        columns.extend(case + COMPOSITES for case in self.cases)
        rows = tuple(tuple(self._row(value, quick)) for value in values)
        return self.outcome(Table(tuple(columns), rows))

    def outcome(self, table: Table) -> Outcome:
        """What is drawn and said of a table of this figure, measured now or read again."""
        lines = [
            case + engine
            for case in self.cases
            for engine in self.engines()
            if us(case + engine) in table.columns
        ]
        times, intervals = tuple(map(us, lines)), tuple(map(half, lines))
        charts = (Chart(times, "CPU time an event [us]", self.logarithmic, intervals),)
        return Outcome(table, charts, self.claims(table))

    def _row(self, value: float, quick: bool) -> Iterator[Figure]:
        span, seeds = self.span(value, quick), SEEDS[:1] if quick else SEEDS
        makings = [case(value, quick) for case in self.cases.values()]
        yield int(value) if float(value).is_integer() else value
        composites = []
        for making in makings:
            for measured in processing(making, [*self.engines().values()], span, seeds):
                yield measured.event_us.value
                yield measured.event_us.half
            composites.append(measured.composites.value)
        yield from composites


@dataclass(frozen=True, slots=True)
class Offering:
    """A figure of the thesis: throughput and loss as the rate of arrival grows."""

    cases: Mapping[str, Callable[[bool], Making]]
    claims: Callable[[Table], tuple[Claim, ...]]

    def run(self, quick: bool) -> Outcome:
        """Measure it."""
        rates = (RATES[0], RATES[3]) if quick else RATES
        columns: dict[str, Sequence[Figure]] = {RATE_OFFERED: [int(rate) for rate in rates]}
        for case, making in self.cases.items():
            for name, engine in engines().items():
                columns |= _line(f"{case}{name}", making(quick), engine, rates, quick)
        return self.outcome(Table(tuple(columns), tuple(zip(*columns.values(), strict=True))))

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
    yield Chart(
        tuple(map(OUT.format, lines)),
        "composite events/s",
        (True, True),
        tuple(map(OUT_HALF.format, lines)),
        len(names),
    )
    loss = tuple(map(DROPPED.format, lines))
    yield Chart(loss, "events dropped [%]", (True, False), kinds=len(names))


def _line(
    line: str, making: Making, engine: str, rates: Sequence[float], quick: bool
) -> dict[str, Sequence[Figure]]:
    """The columns of one engine on one workload, a figure for each rate."""
    counts = [arrivals(rate, quick) for rate in rates]
    streams = [
        Stream(making, engine, max(counts), seed) for seed in (SEEDS[:1] if quick else SEEDS)
    ]
    runs = [
        [stream.at(rate, count) for stream in streams]
        for rate, count in zip(rates, counts, strict=True)
    ]
    out = [Mean.of([one.throughput for one in of_rate]) for of_rate in runs]
    return {
        OUT.format(line): [mean.value for mean in out],
        OUT_HALF.format(line): [mean.half for mean in out],
        DROPPED.format(line): [
            100 * Mean.of([one.dropped for one in of_rate]).value for of_rate in runs
        ],
    }

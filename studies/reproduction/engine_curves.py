"""Throughput by the rate of arrival, windows full: parts (b) of the thesis's figures of 5.8.2.

Events arrive at a constant rate for as long as the rules' windows take to fill, and then for
HELD_WINDOWS of the longest windows more, which alone are counted. The queue is that of
:mod:`studies.reproduction.engine_runs`. A rate is *sustained* when no more than LOST of the
events that arrive while it is counted are dropped. Rates rise until more than DROPS are; what that
rate gives is in the table too, counted for as long as it takes to see.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from studies.reproduction import engine_sentences as sentences
from studies.reproduction.engine_claims import CDP, DROPPED, DROPS, OUT, RATE_OFFERED
from studies.reproduction.engine_runs import SEEDS, Making, Offered, Stream, engines
from studies.reproduction.engine_sweep import PAGE
from studies.reproduction.engine_workloads import WINDOW_MS, Sequences
from studies.reproduction.experiment import Chart, Experiment, Figure, Outcome, Table

INTRODUCTION = ""
WINDOW_S = WINDOW_MS[1] / 1e3
HELD_WINDOWS = 3
LEAST_HELD_S = 1.0
"""A rate that loses events is counted for so long at least."""
AT_ONCE = 32
"""Events taken at once: with more, what a turn of an overloaded engine finds would fill memory."""
RATES: Mapping[
    str, tuple[float, ...]
] = {  # for last-within up to the highest that the thesis names
    "each": (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000),
    "last": (1_000, 5_000, 12_000),
}
"""For ``last`` up to the highest that the thesis names."""


def held(making: Making, engine: str, rate: float, fill_s: float, held_s: float) -> Offered:
    """What comes of a rate once windows are full."""
    events = int(rate * (fill_s + held_s))
    stream = Stream(making, engine, events, SEEDS[0])
    return stream.held(rate, events, int(rate * fill_s), int(rate * LEAST_HELD_S), AT_ONCE)


@dataclass(frozen=True, slots=True)
class Curves:
    """A figure (b): for each value of a parameter throughput and loss of CDP by the rate."""

    parameter: str
    values: Sequence[int]
    policy: str

    def run(self, quick: bool) -> Outcome:
        """Measure it."""
        values = self.values[:1] if quick else self.values
        rates = RATES[self.policy][: 1 if quick else None]
        columns: dict[str, Sequence[Figure]] = {RATE_OFFERED: [int(rate) for rate in rates]}
        for value in values:
            points = self.line(value, engines()[CDP], rates, quick)
            columns |= self.columns(value, points, len(rates))
        return self.outcome(Table(tuple(columns), tuple(zip(*columns.values(), strict=True))))

    def columns(
        self, value: int, points: Sequence[Offered], count: int
    ) -> dict[str, Sequence[Figure]]:
        """Those of a line; empty beyond the first rate at which events are dropped."""
        line = f"{value} {self.parameter} {CDP}"
        rest = [None] * (count - len(points))
        return {
            OUT.format(line): [*(one.throughput for one in points), *rest],
            DROPPED.format(line): [*(100 * one.dropped for one in points), *rest],
        }

    def line(
        self, value: int, engine: str, rates: Sequence[float], quick: bool = False
    ) -> list[Offered]:
        """What comes of each rate, up to the first at which events are dropped."""
        scenario = replace(Sequences(self.policy), **{self.parameter: value})  # type: ignore[arg-type]
        making = (scenario.smaller(10) if quick else scenario).workload
        steps = value - 1 if self.parameter == "states" else 1
        fill_s, held_s = steps * WINDOW_S, HELD_WINDOWS * WINDOW_S
        points: list[Offered] = []
        for rate in rates:
            points.append(held(making, engine, rate, fill_s, held_s))
            gc.collect()
            if points[-1].dropped > DROPS:
                break
        return points

    def outcome(self, table: Table) -> Outcome:
        """What is drawn and said of a table of this figure, measured now or read again."""
        lines = [name.removesuffix(OUT.format("")) for name in table.columns[1::2]]
        charts = (
            Chart(tuple(map(OUT.format, lines)), "composite events/s", (True, True)),
            Chart(tuple(map(DROPPED.format, lines)), "events dropped [%]", (True, False)),
        )
        return Outcome(table, charts, CLAIMS[self.parameter, self.policy](table))


CLAIMS = {
    ("states", "each"): sentences.throughput_of_states_each,
    ("states", "last"): sentences.throughput_of_states_last,
    ("sequences", "each"): sentences.throughput_of_sequences_each,
    ("rules", "last"): sentences.throughput_of_rules_last,
}
SETTING = (
    "Part (b) of the figure: the default scenario, throughput of CDP by the rate of arrival. At "
    "most 100 events wait, more are dropped; the clock goes on by the CPU time that the engine "
    f"takes for those that wait, {AT_ONCE} at most at once. Windows fill at that rate first, "
    "uncounted; then "
    f"{HELD_WINDOWS} windows of {WINDOW_S:.0f} s are counted. Rates rise, in steps of about two, "
    "until events are dropped; that rate is counted until it shows. Sustained is one at which no "
    "more than a thousandth is. One seed, no intervals (the thesis: ten)."
)
FIGURES: dict[str, tuple[str, Curves]] = {
    "thesis-5.13b": (
        "throughput by the states of a sequence, each-within",
        Curves("states", (2, 3, 4, 5), "each"),
    ),
    "thesis-5.14b": (
        "throughput by the states of a sequence, last-within",
        Curves("states", (2, 5), "last"),
    ),
    "thesis-5.16b": (
        "throughput by the sequences of a rule, each-within",
        Curves("sequences", (1, 4), "each"),
    ),
    "thesis-5.19b": (
        "throughput by the rules deployed, last-within",
        Curves("rules", (1_000, 5_000), "last"),
    ),
}
EXPERIMENTS: tuple[Experiment, ...] = tuple(
    Experiment(name, PAGE, title, SETTING, partial(Curves.run, one), judge=one.outcome)
    for name, (title, one) in FIGURES.items()
)

"""Figure 7.9 for as long as the thesis: more than a day of simulated time, in parts of an hour.

Law: the parts together are the run. All have its network, rules and subscriptions, each publishes
the very events that the run has then, and begins to count once what lies before can no longer take
part in a match. So they may be run side by side, today or tomorrow, on one machine or several; and
since each is a figure of its own, their spread tells how sure the run's is (batch means).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from typing import Any

import msgspec

from simulator.generation import horizon_s
from simulator.workload import Workload
from studies.reproduction import distribution_claims as claims
from studies.reproduction.distribution import figure
from studies.reproduction.distribution_plots import BAR_CHARTS, SMALL
from studies.reproduction.distribution_runs import (
    QUICK,
    THESIS,
    Settings,
    Size,
    Spread,
    Study,
    scenario,
)
from studies.reproduction.experiment import Figure, Outcome, Table
from studies.reproduction.gathering import Row

INTRODUCTION = ""
SEED = 1
REACH_S = 120.0
"""Rules are of three events, each within a minute of the next."""
COLUMNS = (
    "strategy",
    "simulated [h]",
    "delay [ms]",
    "delay ±",
    "traffic [kB/s]",
    "traffic ±",
    "messages [1/s]",
)
Parts = Mapping[int, Row]
"""What was measured, by the number of the part."""


class WholeDay:
    """The default scenario once, until its rarest type has occurred so often after the warm-up."""

    def settings(self, size: Size) -> list[Settings]:
        """Its parts. A quick run has two, whose warm-up is shorter than its rules reach."""
        base, occurrences, warm_up_s, length_s = scenario(size), 2, REACH_S, 600.0
        if size is QUICK:
            base, warm_up_s, length_s = scenario(size, **SMALL), size.warm_up_s, size.measured_s / 4
        elif size is THESIS:
            occurrences, length_s = 100, 3_600.0
        rest = {name: one for name, one in base["workload"].items() if name != "horizon_s"}
        workload = {**rest, "rarest_count": occurrences}
        end = horizon_s(msgspec.convert(workload, Workload), SEED, warm_up_s)
        begins = takewhile(lambda begin: begin + warm_up_s < end, count(0.0, length_s))
        parts = [[begin, min(begin + warm_up_s + length_s, end)] for begin in begins]
        return [
            _part(base, workload, part, warm_up_s) for part in parts[: 2 if size is QUICK else None]
        ]

    def outcome(self, study: Study) -> Outcome:
        """What the parts that are there come to; claims part by part that both strategies have."""
        settings = self.settings(study.size)
        found = {name: dict[int, Row]() for name in study.strategies}
        for number, by_strategy in enumerate(study.found(settings)):
            for name, rows in by_strategy.items():
                found[name].update((number, row) for row in rows)
        readings = claims.Readings.of([0], [found])
        return Outcome(_table(found), BAR_CHARTS, tuple(claims.default(readings)))


def _part(base: Settings, workload: Settings, part: Sequence[float], warm_up_s: float) -> Settings:
    begin, end = part
    return {
        **base,
        "seed": SEED,
        "warm_up_s": warm_up_s,
        "duration_s": end - begin,
        "workload": {**workload, "part": list(part)},
    }


def _table(found: Mapping[str, Parts]) -> Table:
    return Table(COLUMNS, tuple((name, *_cells(list(one.values()))) for name, one in found.items()))


def _cells(rows: Sequence[Row]) -> tuple[Figure, ...]:
    """Of all parts together; the widths of the intervals are those of their means."""
    if not rows:
        return 0.0, None, None, None, None, None
    seconds, delivered = _sum(rows, "measured_s"), _sum(rows, "delivered")
    some = [row for row in rows if row["delivered"]]
    delayed = sum(row["delay_ms_mean"] * row["delivered"] for row in some)
    return (
        seconds / 3_600,
        delayed / delivered if delivered else None,
        Spread.of([row["delay_ms_mean"] for row in some]).half,
        _sum(rows, "bytes") / seconds / 1e3,
        Spread.of([row["bytes"] / row["measured_s"] / 1e3 for row in rows]).half,
        _sum(rows, "messages") / seconds,
    )


def _sum(rows: Sequence[Row], name: str) -> Any:
    return sum(row[name] for row in rows)


DAY = WholeDay()
EXPERIMENTS = (
    figure(
        "thesis-7.9-long",
        "Default scenario, for as long as the thesis",
        "One run of each strategy, until the rarest type has occurred 100 times, which with"
        " `--size full` is more than a day of simulated time; otherwise twice. It is made in parts"
        " of an hour (otherwise ten minutes), which publish the run's own events and count from"
        " where nothing before them can be part of a match; ± is that of the parts' means. A"
        " claim is judged part by part, by those that both of its strategies have.",
        DAY,
    ),
)

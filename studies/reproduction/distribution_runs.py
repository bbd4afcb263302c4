"""The runs behind the thesis's figures 7.9 to 7.18: scenarios, seeds, means and their intervals.

A point of a figure is a scenario under every registered strategy, several seeds each; a scenario
that several figures share is run once. Seeds are common to all strategies, which so get the same
networks, events, rules and subscriptions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from broker.warmup import warm_up
from routing.network import strategy
from simulator import sweep
from studies.reproduction.gathering import Row, Rows, gather, missing
from studies.reproduction.verdicts import student

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Size:
    """How large the study is: brokers of the default scenario, seeds, and seconds of publishing:
    those of the warm-up, and those that are measured."""

    brokers: int = 6
    seeds: int = 10
    warm_up_s: float = 30.0
    measured_s: float = 30.0


WHOLE, QUICK = Size(), Size(brokers=3, seeds=1, warm_up_s=1.0, measured_s=2.0)
THESIS = Size(brokers=20)
"""The thesis's own network and workload: 20 brokers, 120 types, 100 rules (``--size full``)."""


def scenario(size: Size, brokers: int | None = None, **workload: Any) -> Settings:
    """The default scenario (7.4), which keeps 6 types and 5 rules for each broker, changed."""
    count = size.brokers if brokers is None else brokers
    made = {  # all that figures change, so that the default is the same one in each
        "types": 6 * count,
        "rules": 5 * count,
        "subscriptions": 10,
        "rates": [0.001, 10.0],
        "window_s": 60.0,
        "values": 1,
        "selection": {"last": 1.0, "each": 0.0},
        "horizon_s": size.warm_up_s + size.measured_s + 1,
    }
    return {
        "engine": "cdp",
        "warm_up_s": size.warm_up_s,
        "duration_s": size.warm_up_s + size.measured_s,
        "topology": {"kind": "waxman", "brokers": count, "degree": 5.0, "delay_ms": 5.0},
        "workload": made | workload,
    }


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean, and half the width of its 95 % interval: None of one figure."""

    mean: float | None
    half: float | None

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Of several runs' figures."""
        if not figures:
            return cls(None, None)
        count = len(figures)
        if count == 1:
            return cls(figures[0], None)
        return cls(mean(figures), student(count) * stdev(figures) / count**0.5)


@dataclass(slots=True)
class Study:
    """Runs what is asked for, once, and finds the rows that are there."""

    size: Size
    rows: Rows = field(default_factory=Rows)

    @property
    def strategies(self) -> tuple[str, ...]:
        """All that are registered."""
        return strategy.names()

    def run(self, points: Sequence[Settings]) -> list[dict[str, list[Row]]]:
        """For each point and strategy its rows, one a seed."""
        processes = 1 if self.size is QUICK else os.cpu_count()
        for _ in gather(self.missing(points), self.rows, processes, prepare):
            pass
        return self.found(points)

    def runs(self, points: Iterable[Settings]) -> list[sweep.Run]:
        """The runs of all strategies and seeds at each point."""
        return [run for point in points for runs in self._runs(point).values() for run in runs]

    def missing(self, points: Iterable[Settings]) -> list[sweep.Run]:
        """Those of them that have no row, each once."""
        return missing(self.runs(points), self.rows)

    def found(self, points: Iterable[Settings]) -> list[dict[str, list[Row]]]:
        """For each point and strategy the rows that are there, at most one a seed."""
        return [
            {
                name: [row for run in runs if (row := self.rows.find(run)) is not None]
                for name, runs in self._runs(point).items()
            }
            for point in points
        ]

    def _runs(self, point: Settings) -> dict[str, list[sweep.Run]]:
        seeds = [point["seed"]] if "seed" in point else range(1, self.size.seeds + 1)
        return {
            name: [
                sweep.Run(Path("study.toml"), {**point, "seed": seed, "strategy": name}, {})
                for seed in seeds
            ]
            for name in self.strategies
        }


def prepare() -> None:
    """Load kernels: what they take is no broker's memory."""
    warm_up("cdp")

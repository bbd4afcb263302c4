"""The runs behind the thesis's figures 7.9 to 7.18: scenarios, seeds, means and their intervals.

A point of a figure is a scenario under every registered strategy, several seeds each; a scenario
that several figures share is run once. Seeds are common to all strategies, which so get the same
networks, events, rules and subscriptions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from broker.warmup import warm_up
from routing.network import strategy
from simulator import sweep

T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Student's t for 95 %, by how many figures there are."""
Settings = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Size:
    """How large the study is: brokers of the default scenario, seeds, and seconds of publishing:
    those of the warm-up, and those that are measured."""

    brokers: int = 6
    seeds: int = 2
    warm_up_s: float = 30.0
    measured_s: float = 15.0


WHOLE, QUICK = Size(), Size(brokers=3, seeds=1, warm_up_s=2.0, measured_s=4.0)
FULL = Size(brokers=20)
"""The thesis's own network and workload: 20 brokers, 120 types, 100 rules. A run takes a minute of
a core or less, so more seeds are a matter of time."""


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
        half = T_95[count] * stdev(figures) / count**0.5 if count > 1 else None
        return cls(mean(figures), half)


@dataclass(slots=True)
class Study:
    """Runs what is asked for, once."""

    size: Size
    rows: dict[str, Row] = field(default_factory=dict)
    """By scenario hash."""

    @property
    def strategies(self) -> tuple[str, ...]:
        """All that are registered."""
        return strategy.names()

    def run(self, points: Sequence[Settings]) -> list[dict[str, list[Row]]]:
        """For each point and strategy its rows, one a seed."""
        todo = [self._runs(point) for point in points]
        flat = {one.hash: one for runs in todo for some in runs.values() for one in some}
        new = [one for key, one in flat.items() if key not in self.rows]
        processes = 1 if self.size is QUICK else os.cpu_count()
        for row in sweep.rows(new, processes, _prepare):
            self.rows[row["scenario"]] = row
        return [
            {name: [self.rows[one.hash] for one in some] for name, some in runs.items()}
            for runs in todo
        ]

    def _runs(self, point: Settings) -> dict[str, list[sweep.Run]]:
        return {
            name: [
                sweep.Run(Path("study.toml"), {"seed": seed, "strategy": name, **point}, {})
                for seed in range(1, self.size.seeds + 1)
            ]
            for name in self.strategies
        }


def _prepare() -> None:
    warm_up("cdp")  # what kernels take to be loaded is no broker's memory

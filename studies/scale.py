"""What a network of many brokers costs that does hardly anything, counted in the simulator.

    python -m studies.scale [--brokers 10 100 1000] [--rules 10] [--out FILE]

For each number of brokers: messages and bytes until all is ready, and a second when nothing
happens; for one more rule, the messages, bytes and simulated milliseconds until it is in force;
after a cut link, the messages and bytes that it takes to go on; and the memory of the process for
each broker. A row a number of brokers, as JSON lines. docs/design/internet-scale.md has them.

Law: all but memory is counted in simulated time, so that rows are a function of code and seed.
What a change costs is what a run sends with it more than the same run without.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator import scenario
from simulator.experiment import Experiment

BROKERS = (10, 30, 100, 300, 1_000)
WARM_UP_S, DURATION_S, CHANGE_S = 20.0, 60.0, 25.0
DELAY_MS, DEGREE = 5.0, 5.0
RULE = """event T1(value: int, key: int) event T2(value: int, key: int)
rule more: define C1000(key: int) from T1() as a and last T2() within 5 s from a where key = a.key
"""
LOOK_MS = 1.0
"""How often the simulation is looked at for the answer to a change."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Messages and bytes between brokers."""

    messages: int
    bytes: int

    def minus(self, other: Sent) -> Sent:
        """What was sent more."""
        return Sent(self.messages - other.messages, self.bytes - other.bytes)


class Counting(Experiment):
    """A run that keeps what was sent until the warm-up was over, and when a change was in force."""

    ready = Sent(0, 0)
    in_force_s: float | None = None

    def sent(self) -> Sent:
        """What was sent since it is counted."""
        lanes = [lane for pair in self.lanes.values() for lane in pair]
        return Sent(sum(lane.messages for lane in lanes), sum(lane.bytes for lane in lanes))

    def _count_anew(self) -> None:
        self.ready = self.sent()
        super()._count_anew()
        if self.scenario.changes:
            self._look(self.first_time + CHANGE_S)

    def _look(self, at: float) -> None:
        if self.simulation.now > self.first_time + CHANGE_S and self._is_done_with_changes:
            self.in_force_s = self.simulation.now - self.first_time - CHANGE_S
            return
        self.simulation.at(at, lambda: self._look(at + LOOK_MS / 1e3))

    @property
    def _is_done_with_changes(self) -> bool:
        return all(manager.is_done for manager in self.managers)


def document(brokers: int, rules: int, seed: int) -> dict[str, Any]:
    """A network with a few types, whose events are rare, and a subscription at each broker."""
    return {
        "seed": seed,
        "strategy": "centralized",
        "engine": "cdp",
        "warm_up_s": WARM_UP_S,
        "duration_s": DURATION_S,
        "topology": {"kind": "waxman", "brokers": brokers, "degree": DEGREE, "delay_ms": DELAY_MS},
        "workload": {
            "types": 10,
            "rules": rules,
            "subscriptions": 1,
            "rates": [0.05, 0.05],
            "window_s": 5.0,
            "values": 1,
            "selection": {"last": 1.0, "each": 0.0},
            "horizon_s": DURATION_S + 1,
        },
    }


def run_once(told: Mapping[str, Any], folder: Path) -> Counting:
    """The run of a scenario."""
    experiment = Counting(
        scenario.of(told, folder / "scale.toml"), keeps_deliveries=False, is_watched=False
    )
    experiment.run()
    return experiment


def row(brokers: int, rules: int, seed: int = 1) -> Mapping[str, Any]:
    """The figures of one number of brokers."""
    told = document(brokers, rules, seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        link = list(scenario.of(told, folder / "scale.toml").links[0].between)
        # Brokers say that they live in runs with faults alone: one that changes nothing.
        beating = {"kind": "delay", "at_s": CHANGE_S, "for_s": 1.0, "value": 0.0, "links": [link]}
        told["fault"] = [beating]
        usual = run_once(told, folder)
        (folder / "more.tesla").write_text(RULE)
        change = {"at_s": CHANGE_S, "broker": usual.scenario.brokers[-1], "rules": "more.tesla"}
        changed = run_once({**told, "change": [change]}, folder)
        cut = {"kind": "cut", "at_s": CHANGE_S, "links": [link]}
        broken = run_once({**told, "fault": [cut]}, folder)
    idle, seconds = usual.sent(), DURATION_S - WARM_UP_S
    of_change, of_cut = (one.sent().minus(idle) for one in (changed, broken))
    return {
        "brokers": brokers,
        "rules": rules,
        "ready messages": usual.ready.messages,
        "ready bytes": usual.ready.bytes,
        "idle messages/s": idle.messages / seconds,
        "idle bytes/s": idle.bytes / seconds,
        "rule messages": of_change.messages,
        "rule bytes": of_change.bytes,
        "rule ms": None if changed.in_force_s is None else changed.in_force_s * 1e3,
        "cut messages": of_cut.messages,
        "cut bytes": of_cut.bytes,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each number of brokers."""
    parser = argparse.ArgumentParser(prog="python -m studies.scale")
    parser.add_argument("--brokers", type=int, nargs="+", default=list(BROKERS))
    parser.add_argument("--rules", type=int, default=10)
    options = parser.parse_args(arguments)
    for brokers in options.brokers:
        print(json.dumps(row(brokers, options.rules)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

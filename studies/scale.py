"""What a network of many brokers costs that does hardly anything, counted in the simulator.

    python -m studies.scale [--brokers 10 100 1000] [--strategy NAME...] [--rules 10]
                            [--subscriptions 1]

For each number of brokers and strategy:

- messages and bytes until all is ready, and a second when nothing happens;
- for one more rule, the messages, bytes and simulated milliseconds until it is in force, the latter
  once more where brokers need the time that messages cost (``processing``); and the brokers between
  the sources of its types and the root, which alone it concerns;
- after a cut link of the tree beside its root, the messages and bytes that it takes to go on, and
  for how long an event that was published just then is late;
- the memory of the process for each broker.

A row each, as JSON lines. docs/design/internet-scale.md has them.

Law: all but memory and processor time is counted in simulated time, so that rows are a function of
code and seed. What a change costs is what a run sends with it more than the same run without. Each
row has a process of its own, or its memory would be what another has let go.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from routing.network import strategy
from simulator import scenario
from simulator.experiment import Experiment

BROKERS = (10, 30, 100, 300, 1_000)
STRATEGY = "centralized"
WARM_UP_S, DURATION_S, CHANGE_S = 10.0, 30.0, 12.0
DELAY_MS, DEGREE = 5.0, 5.0
EVENTS_A_SECOND = 0.5
"""Of all types together."""
RULES_OF_A_TYPE, TYPES_LEAST = 10, 10
RULE = """event T1(value: int, key: int) event T2(value: int, key: int)
rule more: define More(key: int) from T1() as a and last T2() within 5 s from a where key = a.key
"""
OF_RULE = ("T1", "T2")
PROBE_S = 0.001
"""So long after the cut an event is published that has to cross the link."""
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
    def in_force_ms(self) -> float | None:
        """Milliseconds from the change until its answer; None if it has not come."""
        return None if self.in_force_s is None else round(self.in_force_s * 1e3, 3)

    @property
    def _is_done_with_changes(self) -> bool:
        return all(manager.is_done for manager in self.managers)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a network is: brokers, rules, and subscriptions at each broker."""

    brokers: int
    rules: int = 10
    subscriptions: int = 1
    strategy: str = STRATEGY
    seed: int = 1


def document(size: Size) -> dict[str, Any]:
    """A network with a few types, whose events are rare, and subscriptions at each broker."""
    types = max(TYPES_LEAST, size.rules // RULES_OF_A_TYPE)
    topology = {"kind": "waxman", "brokers": size.brokers, "degree": DEGREE, "delay_ms": DELAY_MS}
    return {
        "seed": size.seed,
        "strategy": size.strategy,
        "engine": "cdp",
        "warm_up_s": WARM_UP_S,
        "duration_s": DURATION_S,
        "topology": topology,
        "workload": {
            "types": types,
            "rules": size.rules,
            "subscriptions": size.subscriptions,
            "rates": [EVENTS_A_SECOND / types] * 2,
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


def beside_root(run: Counting) -> tuple[str, str]:
    """The root of a network's tree, and one of its children."""
    for name, host in run.brokers.items():
        tree = host.broker.overlay.topology.single_tree
        if tree is not None and tree.father is None and tree.children:
            return name, min(tree.children)
    raise AssertionError("no broker is the root of a tree")


def of_cut(
    told: Mapping[str, Any], link: tuple[str, str], first_time: float, folder: Path
) -> dict[str, Any]:
    """The same network with that link cut, and an event to cross it just then. ``first_time``: that
    of the network's first event.
    """
    root, child = link
    (folder / "probe.csv").write_text(f"time,n\n{first_time + CHANGE_S + PROBE_S:.6f},1\n")
    probe = {"name": "probe", "broker": root, "events": "probe.csv", "type": "Probe"}
    return {
        **told,
        "fault": [{"kind": "cut", "at_s": CHANGE_S, "links": [list(link)]}],
        "source": [probe],
        "sink": [{"name": "probed", "broker": child, "subscribe": ["Probe"]}],
    }


def concerned(run: Counting, types: Collection[str]) -> int:
    """How many brokers lie between the sources of some types and the root, with both ends."""
    trees = {name: host.broker.overlay.topology.single_tree for name, host in run.brokers.items()}
    found: set[str] = set()
    for source in run.sources:
        at = source.broker.broker.overlay.name
        is_of_these = any(one.name in types for one in source.types)
        while is_of_these and at not in found:
            found.add(at)
            tree = trees[at]
            at = tree.father if tree is not None and tree.father is not None else at
    return len(found)


def silence_ms(run: Counting) -> float | None:
    """How late the probe was; None if it has not come while the run lasted."""
    delays = run.sinks["probed"].moments.delays(0.0)
    return float(delays[0]) / 1e3 if len(delays) else None


def resident_mb() -> float:
    """The memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def row(size: Size, *, has_processing: bool = True) -> Mapping[str, Any]:
    """The figures of one network."""
    told = document(size)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        link = list(scenario.of(told, folder / "scale.toml").links[0].between)
        # Brokers say that they live in runs with faults alone: one that changes nothing.
        told["fault"] = [
            {"kind": "delay", "at_s": CHANGE_S, "for_s": 1.0, "value": 0.0, "links": [link]}
        ]
        run_once({**document(Size(3)), "duration_s": 1.0, "warm_up_s": 0.0}, folder)  # it compiles
        begun, before = time.process_time(), resident_mb()
        usual = run_once(told, folder)
        spent, memory = time.process_time() - begun, resident_mb() - before
        idle, ready, on_the_way = usual.sent(), usual.ready, concerned(usual, OF_RULE)
        cutting = of_cut(told, beside_root(usual), usual.first_time, folder)
        (folder / "more.tesla").write_text(RULE)
        change = {"at_s": CHANGE_S, "broker": usual.scenario.brokers[-1], "rules": "more.tesla"}
        del usual
        changing = {**told, "change": [change]}
        changed = run_once(changing, folder)
        more, rule_ms = changed.sent().minus(idle), changed.in_force_ms
        del changed
        broken = run_once(cutting, folder)
        cut, silence = broken.sent().minus(idle), silence_ms(broken)
        del broken
        working_ms = None
        if has_processing:
            working_ms = run_once(
                {**changing, "protocol": {"processing": "measured"}}, folder
            ).in_force_ms
    seconds = DURATION_S - WARM_UP_S
    return {
        "brokers": size.brokers,
        "strategy": size.strategy,
        "rules": size.rules,
        "subscriptions a broker": size.subscriptions,
        "ready messages": ready.messages,
        "ready bytes": ready.bytes,
        "idle messages/s": idle.messages / seconds,
        "idle bytes/s": idle.bytes / seconds,
        "rule concerns": on_the_way,
        "rule messages": more.messages,
        "rule bytes": more.bytes,
        "rule ms": rule_ms,
        "rule ms with processing": working_ms,
        "cut messages": cut.messages,
        "cut bytes": cut.bytes,
        "silence ms": silence,
        "MB a broker": memory / size.brokers,
        "processor s": spent,
    }


def apart(size: Size, has_processing: bool) -> Mapping[str, Any]:
    """The same, in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(row, size, has_processing=has_processing).result()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each number of brokers and strategy."""
    parser = argparse.ArgumentParser(prog="python -m studies.scale")
    parser.add_argument("--brokers", type=int, nargs="+", default=list(BROKERS))
    parser.add_argument("--strategy", nargs="+", default=[STRATEGY], choices=strategy.names())
    parser.add_argument("--rules", type=int, default=10)
    parser.add_argument("--subscriptions", type=int, default=1, help="at each broker")
    parser.add_argument("--no-processing", action="store_true", help="leave that run out")
    options = parser.parse_args(arguments)
    for brokers in options.brokers:
        for name in options.strategy:
            size = Size(brokers, options.rules, options.subscriptions, name)
            print(json.dumps(apart(size, not options.no_processing)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

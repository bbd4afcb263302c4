"""What a broker's processor spends on a message by its kind: the table of ``simulator.processing``.

Brokers of several networks, one for each way of evaluating rules, take in what the simulator
carries to them, by the code that runs live; the clock of this thread runs while a broker decodes a
message, evaluates, and encodes what it sends, and stands still while the simulator carries that. A
network is run several times, in turn with the others. All its runs are the same but for time, so of
each message the least time counts.

The times are equations in the rows of the table, solved by least squares without negative parts;
each network has the same weight. The rare messages that plans, rules and the overlay come with take
up to milliseconds, by no law of the table's; they are solved apart, with what sending costs known.

Left out are the sockets, and what timers do beside what they send (the note says how much that is).
Without a file the rows are printed alone::

    python -m benchmarks.processing_costs --out simulator/measured.toml
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt

from benchmarks.report import Row, table
from broker.calibration import least_squares
from broker.warmup import warm_up
from routing.effects import Peer
from simulator import scenario
from simulator.due import Due
from simulator.experiment import Experiment
from simulator.hosts import BrokerHost, rules_evaluated
from simulator.lanes import Frames
from simulator.processing import Cost, Received, Sent, what_comes, what_goes

REPEATS = 5
CLOCK = time.thread_time_ns
SEED = 17
HORIZON_S = 15.0

Floats = npt.NDArray[np.float64]


# --- the networks --------------------------------------------------------------------------------

GENERATED = """
seed = {seed}
strategy = "{strategy}"
[topology]
kind = "waxman"
brokers = {brokers}
degree = 4.0
[workload]
types = 40
rates = [0.5, {greatest}]
rules = {rules}
window_s = 10.0
values = 3
subscriptions = {subscriptions}
horizon_s = {horizon_s}
"""
NETWORKS = (
    ("centralized", 6, 8.0, 8, 3),
    ("centralized", 6, 8.0, 80, 10),
    ("distributed-st", 8, 6.0, 40, 4),
    ("distributed-mt", 6, 4.0, 20, 4),
    ("push-pull-st", 8, 6.0, 40, 4),
    ("push-pull-mt", 6, 4.0, 20, 4),
)
"""Strategy, brokers, events a second of the most frequent type, rules, subscriptions."""
BATCHED = """
seed = 1
rules = "rules.tesla"
[topology]
kind = "line"
brokers = 3
[[source]]
name = "s1"
broker = "b1"
events = "s1.jsonl"
[[source]]
name = "s3"
broker = "b3"
events = "s3.jsonl"
[[sink]]
name = "k1"
broker = "b1"
subscribe = ["A(v < 50)", "X"]
[[sink]]
name = "k2"
broker = "b2"
subscribe = ["B", "X"]
"""
"""Here events come many at once, so that bytes have a say."""
RULES = """
event A(k: int, v: int)
event B(k: int, v: int)
rule r: define X(k: int) from A(v > 90) as a and last B(k = a.k) within 1 s from a where k = a.k
"""
SIZES = (1, 2, 5, 20, 100)


def _write(folder: Path, quick: bool) -> Iterator[Path]:
    """The scenarios."""
    horizon_s = HORIZON_S / 5 if quick else HORIZON_S
    for seed, (strategy, brokers, greatest, rules, subscriptions) in enumerate(NETWORKS, 1):
        file = folder / f"{seed}.toml"
        file.write_text(
            GENERATED.format(
                seed=seed,
                strategy=strategy,
                brokers=brokers,
                greatest=greatest,
                rules=rules,
                subscriptions=subscriptions,
                horizon_s=horizon_s,
            )
        )
        yield file
    (folder / "rules.tesla").write_text(RULES)
    for name, type_ in (("s1", "A"), ("s3", "B")):
        lines = "\n".join(_lines(Random(f"{SEED}/{name}"), type_, round(20 * horizon_s)))
        (folder / f"{name}.jsonl").write_text(lines + "\n")
    file = folder / "batched.toml"
    file.write_text(BATCHED)
    yield file


def _lines(random: Random, type_: str, moments: int) -> Iterator[str]:
    """Events of one source, some at once, 20 times a second."""
    for moment in range(moments):
        for _ in range(random.choice(SIZES)):
            data = {"k": random.randrange(20), "v": random.randrange(100)}
            yield json.dumps({"type": type_, "time": 100 + moment / 20, "data": data})


# --- the clock -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Taken:
    """A message that came to a broker with so many rules, what that sent, and how long it took."""

    row: str
    size: int
    rules: int
    ns: int = 0
    sent: list[tuple[str, int]] = field(default_factory=list)


class Meter(BrokerHost):
    """A host that notes what each message takes, and what timers do."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)
        self.taken: list[Taken] = []
        self.timers_ns = 0
        self._carried_ns = 0
        self._current: Taken | None = None

    def start(self) -> None:
        super().start()
        fire = self._driver._fire

        def metered(event: Due) -> None:
            self._carried_ns, begun = 0, CLOCK()
            fire(event)
            self.timers_ns += CLOCK() - begun - self._carried_ns

        self._driver._fire = metered

    def _take(self, peer: Peer, frames: Frames) -> None:
        rules, size = rules_evaluated(self.broker), sum(map(len, frames))
        self._current = Taken(what_comes(frames), size, rules)
        self.taken.append(self._current)
        self._carried_ns, begun = 0, CLOCK()
        super()._take(peer, frames)
        self._current.ns = CLOCK() - begun - self._carried_ns
        self._current = None

    def _send(self, peer: Peer, frames: Frames) -> None:
        begun = CLOCK()
        if self._current is not None:
            self._current.sent.append((what_goes(frames), sum(map(len, frames))))
        super()._send(peer, frames)
        self._carried_ns += CLOCK() - begun


class Metered(Experiment):
    """An experiment whose brokers are metered."""

    def _broker(self, name: str) -> Meter:
        return Meter(self.simulation, name, self._making(name))


@dataclass(frozen=True, slots=True)
class Measured:
    """One network: its messages, each with its least time, and the timers' share of all time."""

    name: str
    taken: Sequence[Taken]
    timers: float


def measure(files: Sequence[Path], repeats: int) -> list[Measured]:
    """Run the networks in turn."""
    found: dict[Path, list[Meter]] = {}
    for _ in range(repeats):
        for file in files:
            experiment = Metered(scenario.read(file), keeps_deliveries=False)
            experiment.run()
            meters = [one for one in experiment.brokers.values() if isinstance(one, Meter)]
            before = found.setdefault(file, meters)
            for meter, other in zip(before, meters, strict=True):
                meter.timers_ns = min(meter.timers_ns, other.timers_ns)
                for one, same in zip(meter.taken, other.taken, strict=True):
                    one.ns = min(one.ns, same.ns)
    return [_measured(file, meters) for file, meters in found.items()]


def _measured(file: Path, meters: Iterable[Meter]) -> Measured:
    taken, timers_ns = [], 0
    for meter in meters:
        taken += meter.taken
        timers_ns += meter.timers_ns
    spent_ns = timers_ns + sum(one.ns for one in taken)
    read = scenario.read(file)
    rules = read.workload.rules if read.workload is not None else 1
    name = f"{read.strategy}, {len(read.brokers)} brokers, {rules} rules"
    return Measured(name, taken, timers_ns / spent_ns)


# --- the table -----------------------------------------------------------------------------------

COSTS_SENT = ("message_us", "byte_ns")
COLUMNS = (
    *((row, cost) for row in Received.__struct_fields__ for cost in Cost.__struct_fields__),
    *((f"sent {row}", cost) for row in Sent.__struct_fields__ for cost in COSTS_SENT),
)
PLACES = {column: place for place, column in enumerate(COLUMNS)}
APART = "others"


@dataclass(frozen=True, slots=True)
class Fit:
    """The table, which share of the variance it explains (but for the messages that are solved
    apart), and for each network what it says of all time, as a share.
    """

    costs: Mapping[tuple[str, str], float]
    explained: float
    totals: Mapping[str, float]
    timers: float


def fitted(measured: Sequence[Measured]) -> Fit:
    """The costs that explain the times best."""
    matrix = np.array([_counts(one) for network in measured for one in network.taken])
    times = np.array([one.ns / 1e3 for network in measured for one in network.taken])
    is_apart = np.array([one.row == APART for network in measured for one in network.taken])
    weights = np.concatenate([_weights(network) for network in measured])
    own = np.array([row == APART for row, _ in COLUMNS])
    costs = np.zeros(len(COLUMNS))
    costs[~own] = _solved(matrix[~is_apart][:, ~own], times[~is_apart], weights[~is_apart])
    rest = times - matrix @ costs
    costs[own] = _solved(matrix[is_apart][:, own], rest[is_apart], weights[is_apart])
    errors = ((times - matrix @ costs) * weights)[~is_apart]
    spread = ((times - times[~is_apart].mean()) * weights)[~is_apart]
    ends = np.cumsum([len(network.taken) for network in measured])[:-1]
    totals = zip(np.split(matrix @ costs, ends), np.split(times, ends), strict=True)
    return Fit(
        dict(zip(COLUMNS, costs.tolist(), strict=True)),
        float(1 - (errors**2).sum() / (spread**2).sum()),
        {
            network.name: float(said.sum() / took.sum())
            for network, (said, took) in zip(measured, totals, strict=True)
        },
        float(np.mean([network.timers for network in measured])),
    )


def _solved(matrix: Floats, times: Floats, weights: Floats) -> Floats:
    return least_squares(matrix * weights[:, None], times * weights)


def _weights(network: Measured) -> Floats:
    times = np.array([one.ns / 1e3 for one in network.taken])
    return np.full(len(times), 1 / times.sum())


def _counts(taken: Taken) -> list[float]:
    """How much of each cost a message takes, in microseconds for one of it."""
    counts = [0.0] * len(COLUMNS)
    counts[PLACES[taken.row, "message_us"]] = 1.0
    counts[PLACES[taken.row, "byte_ns"]] = taken.size / 1e3
    counts[PLACES[taken.row, "evaluating_us"]] = float(taken.rules > 0)
    counts[PLACES[taken.row, "rule_us"]] = float(taken.rules)
    for row, size in taken.sent:
        counts[PLACES[f"sent {row}", "message_us"]] += 1.0
        counts[PLACES[f"sent {row}", "byte_ns"]] += size / 1e3
    return counts


def written(fit: Fit, today: datetime.date) -> str:
    """The table as TOML."""
    lines = [
        "# What a broker's processor spends on messages, by python -m benchmarks.processing_costs.",
        f"# The table explains {fit.explained:.0%} of the variance of what single messages take.",
        f"# Timers, which are not in it, take {fit.timers:.0%} more. Of all the time that",
        "# networks took it says so much:",
        *(f"#   {share:.2f}: {name}" for name, share in fit.totals.items()),
        f"machine = {json.dumps(machine_name())}",
        f"date = {today.isoformat()}",
    ]
    for row in Received.__struct_fields__:
        lines += ["", f"[received.{row}]"]
        lines += [f"{cost} = {fit.costs[row, cost]:.3f}" for cost in Cost.__struct_fields__]
    for row in Sent.__struct_fields__:
        lines += ["", f"[sent.{row}]"]
        lines += [f"{cost} = {fit.costs[f'sent {row}', cost]:.3f}" for cost in COSTS_SENT]
    return "\n".join(lines) + "\n"


def machine_name() -> str:
    """Such as ``Some processor, 2 cores, CPython 3.12.3``."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        text = ""
    model = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    name = model[1].strip() if model else platform.machine()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{name}, {os.cpu_count()} cores, {python}"


# --- the command ---------------------------------------------------------------------------------


def measured_here(quick: bool) -> Fit:
    """The table of this machine."""
    warm_up("auto")
    with tempfile.TemporaryDirectory() as folder:
        files = list(_write(Path(folder), quick))
        return fitted(measure(files, 2 if quick else REPEATS))


def run(quick: bool) -> Iterator[Row]:
    """What messages cost, and how far that explains their times."""
    return _rows(measured_here(quick))


def _rows(fit: Fit) -> Iterator[Row]:
    for (row, cost), value in fit.costs.items():
        unit = "ns a byte" if cost == "byte_ns" else "us"
        yield Row(f"{row}, {cost.rpartition('_')[0]}", value, unit)
    yield Row("variance explained", fit.explained, "")
    for name, share in fit.totals.items():
        yield Row(f"all time as the table says, {name}", share, "", "measured", 1.0)


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    fit = measured_here(asked.quick)
    print(table(list(_rows(fit))))
    if asked.out is not None:
        asked.out.write_text(written(fit, datetime.date.today()), "utf-8")


if __name__ == "__main__":
    main()

"""What a broker's processor spends on a message by its kind: the table of ``simulator.processing``.

Brokers of several networks, one for each way of evaluating rules, take in what the simulator
carries to them, by the code that runs live; the clock of this thread runs while a broker decodes
the messages of a step, evaluates, and encodes what it sends, and stands still while the simulator
carries that. Before a step is timed as much memory is read as the last cache holds: a live broker
begins a step when others have used the caches. That takes long, so one step of EVERY is timed.

Each network is run calm, where messages come alone, and crowded: all times are CROWDED times
shorter, and brokers slow, so that many messages are taken in together. It is run several times, in
turn with the others. All its runs are the same but for time, so of each step the least time counts.

The times are equations in the rows of the table, solved by least squares without negative parts;
each network has the same weight. The rare messages that plans, rules and the overlay come with take
up to milliseconds, by no law of the table's; steps with such are solved apart, with all else known.

What sockets and being woken take is measured on a bare relay that gets a message now and then.
Left out is what sockets take for a further message, and what timers do beside what they send.
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
import statistics
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt
import zmq

from benchmarks.brokers import child
from benchmarks.report import Row, table
from broker.calibration import least_squares
from broker.warmup import warm_up
from matcher.model import EventIds
from routing.effects import Peer
from simulator import scenario
from simulator.experiment import Experiment
from simulator.hosts import BrokerHost, Costs, rules_evaluated
from simulator.lanes import Frames
from simulator.processing import Cost, Received, Sent, what_comes, what_goes
from simulator.recordings import Recording

REPEATS = 3
CLOCK = time.thread_time_ns
SEED = 17
HORIZON_S = 15.0
EVERY = 5
CROWDED = 50
SLOW_US, SLOW_BATCHED_US = 200.0, 1_000.0
"""For each message where brokers are slow, so that others come meanwhile."""
LAST_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
CACHE_BYTES = 2**25
"""As many as the last cache holds, where the system does not say."""
RELAYED, RELAYED_PACE = 600, 300.0
"""Messages through a relay, and how many a second."""

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
rates = [{least}, {greatest}]
rules = {rules}
window_s = {window_s}
values = 3
subscriptions = {subscriptions}
horizon_s = {horizon_s}
[protocol]
message_cost_us = {cost_us}
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
[protocol]
message_cost_us = {cost_us}
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
SIZES = (1, 2, 5, 20, 100, 1_000)


def _write(folder: Path, quick: bool) -> Iterator[Path]:
    """The scenarios."""
    horizon_s = HORIZON_S / 5 if quick else HORIZON_S
    for name, times in (("calm", 1), ("crowded", CROWDED)):
        own = folder / name
        own.mkdir()
        cost_us, batched_us = (1.0, 1.0) if times == 1 else (SLOW_US, SLOW_BATCHED_US)
        for seed, (strategy, brokers, greatest, rules, subscriptions) in enumerate(NETWORKS, 1):
            file = own / f"{seed}.toml"
            file.write_text(
                GENERATED.format(
                    seed=seed,
                    strategy=strategy,
                    brokers=brokers,
                    least=0.5 * times,
                    greatest=greatest * times,
                    rules=rules,
                    window_s=10.0 / times,
                    subscriptions=subscriptions,
                    horizon_s=horizon_s / times,
                    cost_us=cost_us,
                )
            )
            yield file
        (own / "rules.tesla").write_text(RULES)
        for source, type_ in (("s1", "A"), ("s3", "B")):
            random, moments = Random(f"{SEED}/{source}"), round(20 * horizon_s)
            lines = "\n".join(_lines(random, type_, moments, 20 * times))
            (own / f"{source}.jsonl").write_text(lines + "\n")
        file = own / "batched.toml"
        file.write_text(BATCHED.format(cost_us=batched_us))
        yield file


def _lines(random: Random, type_: str, moments: int, pace: int) -> Iterator[str]:
    """Events of one source, some at once, so many times a second."""
    for moment in range(moments):
        for _ in range(random.choice(SIZES)):
            data = {"k": random.randrange(20), "v": random.randrange(100)}
            yield json.dumps({"type": type_, "time": 100 + moment / pace, "data": data})


# --- the clock -----------------------------------------------------------------------------------


class Caches:
    """Memory as large as the last cache; ``sweep`` reads it, so that little else is there."""

    def __init__(self) -> None:
        size = CACHE_BYTES
        with suppress(OSError, ValueError):
            size = int(LAST_CACHE.read_text("ascii").strip().removesuffix("K")) * 1024
        self._memory = np.zeros(size // 8, np.int64)

    def sweep(self) -> None:
        """Read all of it."""
        self._memory.sum()


@lru_cache(maxsize=1)
def _caches() -> Caches:
    return Caches()


@dataclass(slots=True)
class Taken:
    """What came in one step to a broker with so many rules, what that sent, each with its row and
    size, and how long it took.
    """

    come: list[tuple[str, int]]
    rules: int
    ns: int = 0
    sent: list[tuple[str, int]] = field(default_factory=list)


class Meter(BrokerHost):
    """A host that notes what one step of EVERY takes."""

    def __init__(self, caches: Caches, *given: object) -> None:
        super().__init__(*given)
        self.taken: list[Taken] = []
        self._caches = caches
        self._steps = 0
        self._carried_ns = 0
        self._current: Taken | None = None

    def _take_together(self, messages: Sequence[tuple[Peer, Frames]]) -> None:
        self._steps += 1
        if self._steps % EVERY:
            super()._take_together(messages)
            return
        come = [(what_comes(frames), sum(map(len, frames))) for _, frames in messages]
        self._current = Taken(come, rules_evaluated(self.broker))
        self.taken.append(self._current)
        self._caches.sweep()
        self._carried_ns, begun = 0, CLOCK()
        super()._take_together(messages)
        self._current.ns = CLOCK() - begun - self._carried_ns
        self._current = None

    def _send(self, peer: Peer, frames: Frames) -> None:
        begun = CLOCK()
        if self._current is not None:
            self._current.sent.append((what_goes(frames), sum(map(len, frames))))
        super()._send(peer, frames)
        self._carried_ns += CLOCK() - begun


class Metered(Experiment):
    """An experiment whose brokers are metered, and whose sources number their own events."""

    def _broker(self, name: str) -> Meter:
        costs = Costs(self.scenario.message_cost_s)
        return Meter(_caches(), self.simulation, name, self._making(name), costs)

    def _read_recordings(self) -> Iterator[tuple[str, Recording]]:
        for broker, recording in super()._read_recordings():
            batches = (
                replace(batch, ids=EventIds(batch.ids.source, batch.ids.sequence))
                for batch in recording.batches
            )
            yield broker, replace(recording, batches=tuple(batches))


@dataclass(frozen=True, slots=True)
class Measured:
    """One network: its steps, each with its least time."""

    name: str
    taken: Sequence[Taken]


def measure(files: Sequence[Path], repeats: int) -> list[Measured]:
    """Run the networks in turn."""
    found: dict[Path, list[Taken]] = {}
    for _ in range(repeats):
        for file in files:
            experiment = Metered(scenario.read(file), keeps_deliveries=False)
            experiment.run()
            meters = [one for one in experiment.brokers.values() if isinstance(one, Meter)]
            taken = [one for meter in meters for one in meter.taken]
            for one, same in zip(found.setdefault(file, taken), taken, strict=True):
                one.ns = min(one.ns, same.ns)
    return [Measured(_name(file), taken) for file, taken in found.items()]


def _name(file: Path) -> str:
    read = scenario.read(file)
    rules = read.workload.rules if read.workload is not None else 1
    return f"{file.parent.name}, {read.strategy}, {len(read.brokers)} brokers, {rules} rules"


def waking_us() -> float:
    """Microseconds of processor time of a bare relay for a message that comes while it sleeps."""
    context = zmq.Context()
    sink = context.socket(zmq.PULL)
    port = sink.bind_to_random_port("tcp://127.0.0.1")
    with child(_relay, f"tcp://127.0.0.1:{port}") as relay:
        push = context.socket(zmq.PUSH)
        push.connect(relay.recv())
        for _ in range(RELAYED):
            time.sleep(1 / RELAYED_PACE)
            push.send(bytes(100))
            sink.recv()
        spent_us: float = relay.recv()
    context.destroy(linger=0)
    return spent_us


def _relay(pipe: Connection, endpoint: str) -> None:
    context = zmq.Context()
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    push.connect(endpoint)
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    pipe.send(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
    begun_s = 0.0
    for number in range(RELAYED):
        poller.poll()
        push.send(pull.recv())
        if number == 0:  # which has it connect
            begun_s = time.process_time()
    pipe.send((time.process_time() - begun_s) / (RELAYED - 1) * 1e6)
    pipe.recv()
    context.destroy(linger=0)


# --- the table -----------------------------------------------------------------------------------

COSTS_SENT = ("message_us", "byte_ns", "further_us")
COLUMNS = (
    *((row, cost) for row in Received.__struct_fields__ for cost in Cost.__struct_fields__),
    *((f"sent {row}", cost) for row in Sent.__struct_fields__ for cost in COSTS_SENT),
)
PLACES = {column: place for place, column in enumerate(COLUMNS)}
APART = "others"


@dataclass(frozen=True, slots=True)
class Fit:
    """The table, which share of the variance it explains (but for the steps that are solved
    apart), and for each network what it says of all time, as a share.
    """

    costs: Mapping[tuple[str, str], float]
    waking_us: float
    explained: float
    totals: Mapping[str, float]


def fitted(measured: Sequence[Measured], waking_us: float) -> Fit:
    """The costs that explain the times best."""
    matrix = np.array([_counts(one) for network in measured for one in network.taken])
    times = np.array([one.ns / 1e3 for network in measured for one in network.taken])
    own = np.array([row == APART for row, _ in COLUMNS])
    is_apart = matrix[:, own].any(axis=1)
    weights = np.concatenate([_weights(network) for network in measured])
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
        waking_us,
        float(1 - (errors**2).sum() / (spread**2).sum()),
        {
            network.name: float(said.sum() / took.sum())
            for network, (said, took) in zip(measured, totals, strict=True)
        },
    )


def _solved(matrix: Floats, times: Floats, weights: Floats) -> Floats:
    return least_squares(matrix * weights[:, None], times * weights)


def _weights(network: Measured) -> Floats:
    times = np.array([one.ns / 1e3 for one in network.taken])
    return np.full(len(times), 1 / times.sum())


def _counts(taken: Taken) -> list[float]:
    """How much of each cost a step takes, in microseconds for one of it."""
    counts = [0.0] * len(COLUMNS)
    for row in _counted(counts, taken.come):
        counts[PLACES[row, "evaluating_us"]] = float(taken.rules > 0)
        counts[PLACES[row, "rule_us"]] = float(taken.rules)
    _counted(counts, [(f"sent {row}", size) for row, size in taken.sent])
    return counts


def _counted(counts: list[float], messages: Iterable[tuple[str, int]]) -> Collection[str]:
    """Count the messages of a step; gives their rows."""
    rows: dict[str, None] = {}
    for row, size in messages:
        counts[PLACES[row, "further_us" if row in rows else "message_us"]] += 1.0
        counts[PLACES[row, "byte_ns"]] += size / 1e3
        rows[row] = None
    return rows


def written(fit: Fit, today: datetime.date) -> str:
    """The table as TOML."""
    lines = [
        "# What a broker's processor spends on messages, by python -m benchmarks.processing_costs.",
        f"# The table explains {fit.explained:.0%} of the variance of what single steps take. Of",
        "# all the time that networks took it says so much:",
        *(f"#   {share:.2f}: {name}" for name, share in fit.totals.items()),
        f"machine = {json.dumps(machine_name())}",
        f"date = {today.isoformat()}",
        f"waking_us = {fit.waking_us:.3f}",
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
        repeats = 1 if quick else REPEATS
        woken_us = [waking_us() for _ in range(repeats)]
        return fitted(measure(files, repeats), statistics.median(woken_us))


def run(quick: bool) -> Iterator[Row]:
    """What messages cost, and how far that explains their times."""
    return _rows(measured_here(quick))


def _rows(fit: Fit) -> Iterator[Row]:
    for (row, cost), value in fit.costs.items():
        unit = "ns a byte" if cost == "byte_ns" else "us"
        yield Row(f"{row}, {cost.rpartition('_')[0]}", value, unit)
    yield Row("being woken", fit.waking_us, "us")
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

"""The five brokers of ``benchmarks.five`` in the simulator: what it says of the live ones.

Sources publish as evenly as the live ones do, brokers' processors take what the table of
``benchmarks.processing_costs`` says, and links take ``LINK_MS``. A source of a scenario knows when
its next event is due and promises it, which a live one cannot: what waits for a promise waits less
here, by up to the time between two events.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.five import HOMES, KEYS, RULES, SINK, STAR, WANTED
from simulator import scenario
from simulator.experiment import Experiment, Outcome
from simulator.report import delays

LINK_MS = 0.05
"""From one process of a machine to another."""
WARM_UP_S = 0.2
FIRST_S = 20.0
"""The time of the first event: brokers and rules are ready by then."""
OVERLOAD, OVERLOAD_S = 10_000.0, 0.3
"""Events a second of each source, more than brokers can take, and for how long after WARM_UP_S."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Bytes between brokers and microseconds of each broker's processor for an event, and
    milliseconds from an event's time to the sink.
    """

    link_bytes: float
    cpu_us: Mapping[str, float]
    p50_ms: float
    p99_ms: float

    @property
    def total_us(self) -> float:
        """Microseconds of all brokers for an event."""
        return sum(self.cpu_us.values())


@lru_cache(maxsize=16)
def predicted(strategy: str, pace: float, seconds: float) -> Prediction:
    """The five under ``pace`` events a second of each source, measured for so many seconds."""
    with tempfile.TemporaryDirectory(prefix="five-") as folder:
        file = _written(Path(folder), strategy, pace, WARM_UP_S + seconds)
        experiment = Experiment(scenario.read(file), keeps_deliveries=False, is_watched=False)
    before: dict[str, float] = {}
    experiment.simulation.at(experiment.measured_from, lambda: before.update(_spent(experiment)))
    return _prediction(experiment.run(), before, 2 * pace * seconds)


def saturation(strategy: str) -> float:
    """Events a second at which this machine's cores, or the busiest broker's one, are full.

    Of an overload the processor time counts, since what waits is taken in together.
    """
    found = predicted(strategy, OVERLOAD, OVERLOAD_S)
    cores = os.cpu_count() or 1
    return 1e6 / max(found.total_us / cores, max(found.cpu_us.values()))


def _prediction(outcome: Outcome, before: Mapping[str, float], events: float) -> Prediction:
    experiment = outcome.experiment
    lanes = [lane for pair in experiment.lanes.values() for lane in pair]
    spent = _spent(experiment)
    p50, p99 = np.quantile(delays(experiment) / 1e3, (0.5, 0.99))
    return Prediction(
        sum(lane.bytes for lane in lanes) / events,
        {name: (spent[name] - before[name]) / events * 1e6 for name in spent},
        float(p50),
        float(p99),
    )


def _spent(experiment: Experiment) -> dict[str, float]:
    return {name: host.processor.spent_s for name, host in experiment.brokers.items()}


def _written(folder: Path, strategy: str, pace: float, seconds: float) -> Path:
    """The scenario's files; gives its own."""
    (folder / "rules.tesla").write_text(RULES)
    for place, name in enumerate(HOMES):
        lines = _events(name, FIRST_S + place / (2 * pace), pace, seconds)
        (folder / f"{name}.jsonl").write_text("".join(lines))
    file = folder / "scenario.toml"
    file.write_text("\n".join(_scenario(strategy)))
    return file


def _events(name: str, first_s: float, pace: float, seconds: float) -> Iterator[str]:
    draw = random.Random(name)
    for number in range(int(pace * seconds)):
        data = {"k": draw.randrange(KEYS), "n": number}
        event = {
            "type": name,
            "time": round(first_s + number / pace, 6),
            "source": name,
            "data": data,
        }
        yield json.dumps(event) + "\n"


def _scenario(strategy: str) -> Iterator[str]:
    yield f'strategy = "{strategy}"\nrules = "rules.tesla"\nwarm_up_s = {WARM_UP_S}'
    yield '[protocol]\nheartbeat_s = 1.0\nprocessing = "measured"'
    for name, others in STAR.items():
        yield f'[[broker]]\nname = "{name}"'
        for other in others:
            yield f'[[link]]\nbetween = ["{name}", "{other}"]\ndelay_ms = {LINK_MS}'
    for name, home in HOMES.items():
        yield f'[[source]]\nname = "{name}"\nbroker = "{home}"\nevents = "{name}.jsonl"'
    wanted = ", ".join(f'"{one}"' for one in WANTED)
    yield f'[[sink]]\nname = "k"\nbroker = "{SINK}"\nsubscribe = [{wanted}]\n'

"""The five brokers of ``benchmarks.five`` in the simulator: what it says of the live ones.

Sources publish as the live ones do: evenly, under numbers of their own, promising no more than that
times rise, and at full speed many events in one message. Brokers' processors take what the table of
``benchmarks.processing_costs`` says, each broker one of its own, and links take ``LINK_MS``. What
clients' processes take is in no table: of it the caller says how much an event is.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.five import HOMES, KEYS, RULES, SINK, STAR, TYPES, WANTED
from matcher.model import MICROSECONDS, EventBatch, EventIds, StringColumn
from matcher.single import singles
from simulator import scenario
from simulator.clients import Publication
from simulator.experiment import Experiment, Outcome
from simulator.recordings import Recording
from simulator.report import delays

LINK_MS = 0.05
"""From one process of a machine to another."""
WARM_UP_S = 0.2
FIRST_S = 20.0
"""The time of the first event: brokers and rules are ready by then."""
OVERLOAD, OVERLOAD_S = 200_000.0, 0.3
"""Events a second of each source, more than brokers can take, and for how long after WARM_UP_S."""
GATHERED = 40
"""Events that leave in one message where a source publishes one after another without a pause."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Live(Recording):
    """A recording whose source knows no later event than those that it publishes; ``together``:
    how many leave in one message.
    """

    together: int = 1

    def publications(self) -> Iterator[Publication]:
        """Publications of the source, in order."""
        (batch,) = self.batches
        for first in range(0, len(batch), self.together):
            part = batch.take(slice(first, first + self.together))
            last = int(part.time[-1])
            batches = tuple(singles(part)) if len(part) == 1 else (part,)
            yield Publication(last / MICROSECONDS, batches, last + 1)


class Five(Experiment):
    """The five and their clients."""

    def __init__(self, file: Path, pace: float, seconds: float, together: int) -> None:
        self._sources = [
            (home, Live(name, (_events(name, place, pace, seconds),), together=together))
            for place, (name, home) in enumerate(HOMES.items())
        ]
        super().__init__(scenario.read(file), keeps_deliveries=False, is_watched=False)

    def _read_recordings(self) -> Iterator[tuple[str, Recording]]:
        yield from self._sources


@lru_cache(maxsize=16)
def predicted(strategy: str, pace: float, seconds: float, together: int = 1) -> Prediction:
    """The five under ``pace`` events a second of each source, measured for so many seconds, where
    so many events leave a source together.
    """
    with tempfile.TemporaryDirectory(prefix="five-") as folder:
        file = _written(Path(folder), strategy)
        experiment = Five(file, pace, WARM_UP_S + seconds, together)
    before: dict[str, float] = {}
    experiment.simulation.at(experiment.measured_from, lambda: before.update(_spent(experiment)))
    return _prediction(experiment.run(), before, 2 * pace * seconds)


def saturation(strategy: str, clients_us: float) -> float:
    """Events a second at which this machine's cores, or the busiest broker's one, are full, where
    clients take so many microseconds an event.

    Of an overload the processor time counts, since what waits is taken in together.
    """
    found = overloaded(strategy)
    cores = os.cpu_count() or 1
    return 1e6 / max((found.total_us + clients_us) / cores, max(found.cpu_us.values()))


def overloaded(strategy: str) -> Prediction:
    """The five where sources publish without a pause."""
    return predicted(strategy, OVERLOAD, OVERLOAD_S, GATHERED)


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


def _written(folder: Path, strategy: str) -> Path:
    """The scenario's files, without sources; gives its own."""
    (folder / "rules.tesla").write_text(RULES)
    file = folder / "scenario.toml"
    file.write_text("\n".join(_scenario(strategy)))
    return file


def _events(name: str, place: int, pace: float, seconds: float) -> EventBatch:
    """The events of a source, between those of the other."""
    draw, numbers = random.Random(name), np.arange(int(pace * seconds))
    times = ((FIRST_S + (numbers + place / len(HOMES)) / pace) * MICROSECONDS).astype(np.int64)
    keys = np.array([draw.randrange(KEYS) for _ in numbers], np.int64)
    ids = EventIds(StringColumn.constant(name, len(numbers)), numbers + 1)
    return EventBatch(TYPES[name], times, ids, (keys, numbers))


def _scenario(strategy: str) -> Iterator[str]:
    yield f'strategy = "{strategy}"\nrules = "rules.tesla"\nwarm_up_s = {WARM_UP_S}'
    yield '[protocol]\nheartbeat_s = 1.0\nprocessing = "measured"'
    for name, others in STAR.items():
        yield f'[[broker]]\nname = "{name}"'
        for other in others:
            yield f'[[link]]\nbetween = ["{name}", "{other}"]\ndelay_ms = {LINK_MS}'
    wanted = ", ".join(f'"{one}"' for one in WANTED)
    yield f'[[sink]]\nname = "k"\nbroker = "{SINK}"\nsubscribe = [{wanted}]\n'

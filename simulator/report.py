"""Reports of a run: one table for people, tables as CSV, deliveries as JSON lines.

Delays and traffic are those after the warm-up; deliveries are told whole.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from matcher.formats.outputs import replaced_text
from matcher.formats.printing import json_lines
from matcher.model import Int64s
from simulator.experiment import Experiment, Outcome

SINK_COLUMNS = ("sink", "broker", "events", "delay_ms_mean", "delay_ms_p50", "delay_ms_p99")
WIDTH = len("messages between brokers")
LANE_COLUMNS = ("from", "to", "messages", "bytes", "lost")


def summary(outcome: Outcome) -> str:
    """A summary of a run, a line a fact, without a line end after it."""
    experiment = outcome.experiment
    lanes = [lane for pair in experiment.lanes.values() for lane in pair]
    facts = {
        "brokers": len(experiment.brokers),
        "links": len(experiment.lanes),
        "simulated seconds": f"{outcome.ended_at - experiment.simulation.start:.3f}",
        "settled": "yes" if outcome.settled else "no",
        "events published": sum(source.published for source in experiment.sources),
        "events delivered": sum(len(sink.moments) for sink in experiment.sinks.values()),
        "delay, mean": _milliseconds(delays(experiment)),
        "messages between brokers": sum(lane.messages for lane in lanes),
        "bytes between brokers": sum(lane.bytes for lane in lanes),
        "messages delivered": experiment.simulation.messages,
        "trace": outcome.digest,
    }
    return "\n".join(line(name, value) for name, value in facts.items())


def line(name: str, value: object) -> str:
    """A fact as the summary tells it."""
    return f"{name.ljust(WIDTH)}  {value}"


def write_tables(outcome: Outcome, folder: Path) -> None:
    """``sinks.csv`` and ``lanes.csv`` in ``folder``, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "sinks.csv", SINK_COLUMNS, _sink_rows(outcome))
    _write(folder / "lanes.csv", LANE_COLUMNS, _lane_rows(outcome))


def write_deliveries(outcome: Outcome, output: BinaryIO) -> None:
    """Each delivered event as its JSON object with ``sink`` and ``at``, in order of ``at``."""
    arrivals = [
        (arrival.moment, name, arrival)
        for name, sink in outcome.experiment.sinks.items()
        for arrival in sink.arrivals
    ]
    for moment, name, arrival in sorted(arrivals, key=lambda one: one[:2]):
        delivery = arrival.delivery
        for line in json_lines(delivery.batches, delivery.order).splitlines():
            event = msgspec.json.decode(line)
            output.write(msgspec.json.encode({**event, "sink": name, "at": round(moment, 6)}))
            output.write(b"\n")


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with replaced_text(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _sink_rows(outcome: Outcome) -> Iterator[Sequence[Any]]:
    for name, sink in outcome.experiment.sinks.items():
        found = sink.moments.delays(outcome.experiment.measured_from) / 1e3
        figures = [""] * 3
        if len(found):
            parts = (found.mean(), *np.quantile(found, (0.5, 0.99)))
            figures = [f"{part:.3f}" for part in parts]
        yield name, sink.broker.name, len(found), *figures


def _lane_rows(outcome: Outcome) -> Iterator[Sequence[Any]]:
    for pair in outcome.experiment.lanes.values():
        for lane in pair:
            sender, receiver = lane.name.split(">")
            yield sender, receiver, lane.messages, lane.bytes, lane.lost


def delays(experiment: Experiment) -> Int64s:
    """From the last primitive event of each (7.4) to its delivery, in us, of what is delivered when
    the warm-up is over.
    """
    since = experiment.measured_from
    found = [sink.moments.delays(since) for sink in experiment.sinks.values()]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _milliseconds(found: Int64s) -> str:
    return f"{found.mean() / 1e3:.3f} ms" if len(found) else "nothing was delivered"

"""A run in figures: one row of a table.

Delays, messages and bytes are those after the warm-up. Messages and bytes are those between
brokers, everything included: overlay, requests, promises, acknowledgements.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np

from simulator.experiment import Experiment, Outcome
from simulator.report import delays
from simulator.scenario import Scenario

Figure: TypeAlias = float | int | str | None
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def measured(scenario: Scenario) -> Mapping[str, Figure]:
    """Run a scenario; what it came to. Raises as an Experiment does.

    ``memory_mb_node`` is the most that this process grew during the run, over the number of
    brokers, where the system tells: of what sinks were delivered only the moments are kept.
    ``cpu_s`` is what the run took.
    """
    before = _reset_peak()
    experiment = Experiment(scenario, keeps_deliveries=False, is_watched=False)
    begun = time.process_time()
    outcome = experiment.run()
    spent = time.process_time() - begun
    peak = _memory_mb("VmHWM")
    grown = None if before is None or peak is None else max(0.0, peak - before)
    return {
        **figures(outcome),
        "memory_mb_node": None if grown is None else grown / len(experiment.brokers),
        "cpu_s": spent,
    }


def figures(outcome: Outcome) -> Mapping[str, Figure]:
    """The figures that are the same for every run of a scenario with its seed."""
    experiment = outcome.experiment
    lanes = [lane for pair in experiment.lanes.values() for lane in pair]
    found = delays(experiment) / 1e3
    parts: tuple[float | None, ...] = (None, None, None)
    if len(found):
        parts = (float(found.mean()), *map(float, np.quantile(found, (0.5, 0.99))))
    seconds = outcome.ended_at - experiment.measured_from
    return {
        "measured_s": seconds,
        "settled": "yes" if outcome.settled else "no",
        "published": sum(source.published for source in experiment.sources),
        "delivered": len(found),
        "delay_ms_mean": parts[0],
        "delay_ms_p50": parts[1],
        "delay_ms_p99": parts[2],
        "messages": sum(lane.messages for lane in lanes),
        "bytes": sum(lane.bytes for lane in lanes),
        "trace": outcome.digest,
    }


def _reset_peak() -> float | None:
    """Give back what is free, and let the peak begin anew; the memory in use, in MB."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        _RESET.write_text("5")
    except (OSError, AttributeError):
        return None
    return _memory_mb("VmRSS")


def _memory_mb(name: str) -> float | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next(
        (int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:")), None
    )

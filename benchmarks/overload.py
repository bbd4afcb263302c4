"""Five brokers whose sources publish as fast as they can: are these slowed, and is it over after?

    python -m benchmarks.overload [STRATEGY...] [--seconds 60]

Before and after, each source publishes PACE events a second, and how long a composite event takes
is measured; in between, both publish in batches, without a pause. Printed: events a second then,
the brokers' greatest memory, and latencies before, in it, and from AFTER_S behind it. Exit status 1
where memory grew by more than GROWN_MAX from the first half to the second, where events were not
acknowledged, or where latency is not what it was.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.brokers import BATCH_SIZE
from benchmarks.five import network
from benchmarks.network import QUIET_S, SETTLED_S, flow
from benchmarks.processes import resident_mib, stop_children_on_sigterm
from broker.keys import STRATEGIES
from broker.process import BrokerProcess

PACE, AFTER_S, PACED_S = 100.0, 5.0, 5.0
GROWN_MAX, SLOWER_MAX = 1.15, 3.0


@dataclass(frozen=True, slots=True)
class Phase:
    """Events published and not acknowledged, seconds, memory by time, and composite events."""

    events: int
    left: int
    seconds: float
    memory_mib: list[float]
    latencies_s: list[float]

    @property
    def p50_ms(self) -> float:
        """The median latency in milliseconds."""
        return statistics.median(self.latencies_s) * 1e3 if self.latencies_s else float("inf")


def faults(before: Phase, load: Phase, after: Phase) -> list[str]:
    """Each thing that is not as it should be, in words."""
    found = []
    half = len(load.memory_mib) // 2
    first, second = load.memory_mib[:half], load.memory_mib[half:]
    if first and max(second) > GROWN_MAX * max(first):
        found.append(f"memory grew from {max(first):.0f} to {max(second):.0f} MiB")
    if load.left:
        found.append(f"{load.left:,} events not acknowledged within {SETTLED_S:g} s")
    if after.p50_ms > SLOWER_MAX * before.p50_ms:
        found.append(f"p50 {after.p50_ms:.1f} ms after it, {before.p50_ms:.1f} ms before")
    return found


def main() -> int:
    """Measure what was asked for; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("strategies", nargs="*", default=STRATEGIES, metavar="STRATEGY")
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    stop_children_on_sigterm()
    is_good = True
    for strategy in asked.strategies:
        with network(strategy) as brokers:
            before = _phase(brokers, PACE, PACED_S, 1)
            load = _phase(brokers, 0.0, asked.seconds, BATCH_SIZE)
            time.sleep(max(0.0, AFTER_S - QUIET_S))
            after = _phase(brokers, PACE, PACED_S, 1)
        found = faults(before, load, after)
        print(
            f"{strategy}: {load.events / load.seconds:.0f} events/s; memory at most"
            f" {max(load.memory_mib):.0f} MiB; p50 {before.p50_ms:.1f} ms before,"
            f" {load.p50_ms:.1f} ms in it, {after.p50_ms:.1f} ms after;"
            f" {'; '.join(found) or 'as it should be'}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        is_good = is_good and not found
    return not is_good


def _phase(brokers: Mapping[str, BrokerProcess], pace: float, seconds: float, size: int) -> Phase:
    memory: list[float] = []

    def look() -> None:
        memory.append(sum(resident_mib(broker.child.pid) for broker in brokers.values()))

    load = flow(brokers, pace, seconds, size, look)
    return Phase(load.events, load.left, load.seconds, memory, load.latencies_s)


if __name__ == "__main__":
    sys.exit(main())

"""Five brokers whose sources publish as fast as they can: are these slowed, and is it over after?

    python -m benchmarks.overload [STRATEGY...] [--seconds 60] [--kill b2]

Before and after, each source publishes PACE events a second, and how long a composite event takes
is measured; in between, both publish in batches, without a pause. Printed: events a second then,
the brokers' greatest memory, and latencies before, in it, and from AFTER_S behind it. Exit status 1
where memory grew by more than GROWN_MAX from the first half to the second, where events were not
acknowledged, or where latency is not what it was. ``--kill``: that broker is killed in the middle
of it, and started again after DEAD_S; then it is 1 too where the sink gets nothing for more than
GOES_ON_S once it is back.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.brokers import BATCH_SIZE
from benchmarks.five import HOMES, SINK, STAR, network, started
from benchmarks.kill import DEAD_S, GOES_ON_S
from benchmarks.network import QUIET_S, SETTLED_S, Clients, clients, flow
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
    came_at: list[float] = field(default_factory=list)
    """When the sink got something, in seconds since the epoch."""

    @property
    def p50_ms(self) -> float:
        """The median latency in milliseconds."""
        return statistics.median(self.latencies_s) * 1e3 if self.latencies_s else float("inf")

    def silence_s(self, since: float) -> float:
        """The longest time in which the sink got nothing, from then on."""
        times = [since, *(one for one in self.came_at if one > since)]
        return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)


class Kill(threading.Thread):
    """Kills a broker after some seconds, and starts it again after DEAD_S."""

    def __init__(
        self, brokers: dict[str, BrokerProcess], strategy: str, victim: str, after_s: float
    ) -> None:
        super().__init__(daemon=True)
        self._brokers, self._strategy = brokers, strategy
        self._victim, self._after_s = victim, after_s
        self.back_at = float("inf")
        """When it was back, in seconds since the epoch."""
        self.start()

    def run(self) -> None:
        """Kill it, and start it again."""
        time.sleep(self._after_s)
        self._brokers[self._victim].kill()
        time.sleep(DEAD_S)
        self._brokers[self._victim] = started(self._victim, self._strategy, STAR, self._brokers)
        self.back_at = time.time()


def faults(before: Phase, load: Phase, after: Phase, back_at: float | None = None) -> list[str]:
    """Each thing that is not as it should be, in words; ``back_at``: when the broker was back that
    was killed, if one was.
    """
    found = []
    silence_s = 0.0 if back_at is None else load.silence_s(back_at)
    if silence_s > GOES_ON_S:
        found.append(f"silent for {silence_s:.1f} s once all were there")
    half = len(load.memory_mib) // 2
    first, second = load.memory_mib[:half], load.memory_mib[half:]
    if first and max(second) > GROWN_MAX * max(first):
        found.append(f"memory grew from {max(first):.0f} to {max(second):.0f} MiB")
    if load.left:
        found.append(f"{load.left:,} events not acknowledged within {SETTLED_S:g} s")
    if after.p50_ms > SLOWER_MAX * before.p50_ms + 1e3 / PACE:  # the next A may be so far
        found.append(f"p50 {after.p50_ms:.1f} ms after it, {before.p50_ms:.1f} ms before")
    return found


def main() -> int:
    """Measure what was asked for; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("strategies", nargs="*", default=STRATEGIES, metavar="STRATEGY")
    parser.add_argument("--seconds", type=float, default=60.0)
    victims = sorted(STAR.keys() - {*HOMES.values(), SINK})
    parser.add_argument("--kill", choices=victims, metavar="BROKER", help="one of %(choices)s")
    asked = parser.parse_args()
    stop_children_on_sigterm()
    is_good = True
    for strategy in asked.strategies:
        with network(strategy) as brokers, clients(brokers) as running:
            before = _phase(brokers, running, PACE, PACED_S, 1)
            killed = asked.kill and Kill(brokers, strategy, asked.kill, asked.seconds / 2)
            load = _phase(brokers, running, 0.0, asked.seconds, BATCH_SIZE)
            if killed:
                killed.join()
            time.sleep(max(0.0, AFTER_S - QUIET_S))
            after = _phase(brokers, running, PACE, PACED_S, 1)
        found = faults(before, load, after, killed.back_at if killed else None)
        print(
            f"{strategy}: {load.events / load.seconds:.0f} events/s; memory at most"
            f" {max(load.memory_mib):.0f} MiB; p50 {before.p50_ms:.1f} ms before,"
            f" {load.p50_ms:.1f} ms in it, {after.p50_ms:.1f} ms after;"
            f" {'; '.join(found) or 'as it should be'}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        is_good = is_good and not found
    return not is_good


def _phase(
    brokers: Mapping[str, BrokerProcess],
    running: Clients,
    pace: float,
    seconds: float,
    size: int,
) -> Phase:
    memory: list[float] = []

    def look() -> None:
        memory.append(sum(map(_memory_mib, brokers.values())))

    load = flow(running, pace, seconds, size, look)
    return Phase(load.events, load.left, load.seconds, memory, load.latencies_s, load.came_at)


def _memory_mib(broker: BrokerProcess) -> float:
    try:
        return resident_mib(broker.child.pid)
    except OSError:  # it was killed
        return 0.0


if __name__ == "__main__":
    sys.exit(main())

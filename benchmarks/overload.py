"""Five brokers whose sources publish as fast as they can: are these slowed, and is it over after?

    python -m benchmarks.campaign overload [STRATEGY...] [--seconds 60] [--kill b2]

Before and after, each source publishes PACE events a second, and how long a composite event takes
is measured; in between, both publish in batches, without a pause. Printed: events a second then,
the brokers' greatest memory, and latencies before, in it, and from AFTER_S behind it. Faults:
memory grew by more than GROWN_MAX from the first half to the second, events were not acknowledged,
or latency is not what it was. ``--kill``: that broker is killed in the middle of it, and started
again after DEAD_S; then it is a fault too if the sink gets nothing for more than GOES_ON_S once it
is back.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from typer import Argument

from benchmarks.brokers import BATCH_SIZE
from benchmarks.campaign import Outcome
from benchmarks.five import STAR, network, started
from benchmarks.kill import DEAD_S, GOES_ON_S, longest_silence
from benchmarks.network import QUIET_S, SETTLED_S, Clients, Load, clients, flow
from benchmarks.processes import resident_mib
from broker.keys import STRATEGIES
from broker.process import BrokerProcess

PACE, AFTER_S, PACED_S = 100.0, 5.0, 5.0
GROWN_MAX, SLOWER_MAX = 1.15, 3.0


class Phase(NamedTuple):
    """What flowed, and the memory of all brokers together by time, in MiB."""

    load: Load
    memory_mib: list[float]

    @property
    def p50_ms(self) -> float:
        """The median latency in milliseconds."""
        latencies_s = self.load.latencies_s
        return statistics.median(latencies_s) * 1e3 if latencies_s else float("inf")


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


def faults(before: Phase, during: Phase, after: Phase, back_at: float | None = None) -> list[str]:
    """Each thing that is not as it should be, in words; ``back_at``: when the broker was back that
    was killed, if one was.
    """
    found = []
    silence_s = 0.0 if back_at is None else longest_silence(during.load.came_at, back_at)
    if silence_s > GOES_ON_S:
        found.append(f"silent for {silence_s:.1f} s once all were there")
    half = len(during.memory_mib) // 2
    first, second = during.memory_mib[:half], during.memory_mib[half:]
    if first and max(second) > GROWN_MAX * max(first):
        found.append(f"memory grew from {max(first):.0f} to {max(second):.0f} MiB")
    if during.load.left:
        found.append(f"{during.load.left:,} events not acknowledged within {SETTLED_S:g} s")
    if after.p50_ms > SLOWER_MAX * before.p50_ms + 1e3 / PACE:  # the next A may be so far
        found.append(f"p50 {after.p50_ms:.1f} ms after it, {before.p50_ms:.1f} ms before")
    return found


def campaign(
    _folder: Path,
    strategies: Annotated[list[str] | None, Argument(metavar="STRATEGY...")] = None,
    seconds: float = 60.0,
    kill: Literal["b2", "b4"] | None = None,
) -> Iterator[Outcome]:
    """Measure under each strategy."""
    for strategy in strategies or STRATEGIES:
        with network(strategy) as brokers, clients(brokers) as running:
            before = _phase(brokers, running, PACE, PACED_S, 1)
            killed = kill and Kill(brokers, strategy, kill, seconds / 2)
            during = _phase(brokers, running, 0.0, seconds, BATCH_SIZE)
            if killed:
                killed.join()
            time.sleep(max(0.0, AFTER_S - QUIET_S))
            after = _phase(brokers, running, PACE, PACED_S, 1)
        yield Outcome(
            f"{strategy}: {during.load.events / during.load.seconds:.0f} events/s; memory at most"
            f" {max(during.memory_mib):.0f} MiB; p50 {before.p50_ms:.1f} ms before,"
            f" {during.p50_ms:.1f} ms in it, {after.p50_ms:.1f} ms after",
            faults(before, during, after, killed.back_at if killed else None),
        )


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

    return Phase(flow(running, pace, seconds, size, look), memory)


def _memory_mib(broker: BrokerProcess) -> float:
    try:
        return resident_mib(broker.child.pid)
    except OSError:  # it was killed
        return 0.0

"""Content-based matching on a GPU beside the processor, on the workloads of ``matching``.

For each scenario: ``auto`` on one thread of the processor in batches of 256, as the baseline; CCM
one event at a time (latency) and one behind the other (rate), launched anew and by graphs; the
batched matcher in batches of 1 to 4,096, end to end and its kernels alone; deployment; memory on
the device. Events are encoded beforehand, interface sets come out. Elapsed time, since a device
does not use the processor's.

Without a GPU it says so and measures nothing. Under numba's simulator sizes are tiny and the
figures of no meaning: that runs the code.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks.matching import SCENARIOS, SEED, Scenario, events_of, filters_of
from benchmarks.report import Row
from matcher.choose import AutoMatcher
from matcher.encoded import EncodedEvents
from matcher.gpu.batched import BatchedMatcher
from matcher.gpu.ccm import CcmMatcher
from matcher.gpu.choice import PlacedMatcher
from matcher.gpu.device import NoDevice, device
from matcher.tabled import TableMatcher

NAMES = ("100k", "1M", "1M, 10 names", "1M, Zipf names", "1M, 16 attributes", "1M typed filters")
BATCHES = (1, 16, 64, 256, 1_024, 4_096)
PROCESSOR_BATCH = 256
SINGLES = 1_000
US = 1e6


def run(quick: bool) -> Iterator[Row]:
    try:
        on = device()
    except NoDevice as error:
        print(f"benchmarks: nothing to measure: {error}", file=sys.stderr)
        return
    events, scale = (8, 20_000) if on.simulated else (4_096, 100) if quick else (20_480, 1)
    for scenario in (one for one in SCENARIOS if one.name in NAMES):
        constraints = max(scenario.constraints // scale, 40)
        yield from measure(replace(scenario, constraints=constraints), events, on.simulated)
        if on.simulated:
            break


def measure(scenario: Scenario, events: int, few: bool) -> Iterator[Row]:
    """The figures of one scenario; ``few``: as little as runs everything."""
    rng = np.random.default_rng(SEED)
    filters, mixed = filters_of(scenario, rng), events_of(scenario, events, rng)
    label = f"gpu matching/{scenario.name}"

    def deployed(matcher: TableMatcher) -> tuple[TableMatcher, EncodedEvents, float]:
        begun = time.perf_counter()
        matcher.add_all(filters)
        encoded = matcher.encode(mixed)
        matcher.match(encoded.take(slice(0, 1)))
        return matcher, encoded, time.perf_counter() - begun

    cpu, encoded, _ = deployed(AutoMatcher())
    baseline = rate(cpu, encoded, PROCESSOR_BATCH)
    alone = latency(cpu, encoded, 50)
    yield Row(f"{label}/cpu auto, batches of {PROCESSOR_BATCH}", baseline, "events/s")
    yield Row(f"{label}/cpu auto, one event, p50", alone, "us")
    for name, recorded in (("launched", False), ("by graph", True)):
        ccm, encoded, _ = deployed(CcmMatcher(recorded=recorded))
        for percentile in (50, 99):
            value = latency(ccm, encoded, percentile)
            of = f"{label}/CCM, {name}, one event, p{percentile}"
            yield Row(of, value, "us", *(("cpu auto", alone) if percentile == 50 else ()))
        some = encoded.take(slice(0, SINGLES))
        value = rate(ccm, some, len(some))
        yield Row(f"{label}/CCM, {name}, pipelined", value, "events/s", "cpu auto", baseline)
    batched, encoded, seconds = deployed(BatchedMatcher())
    yield Row(f"{label}/batched, deployment", seconds, "s", note="until the first answer")
    yield Row(f"{label}/batched, device memory", int(batched.figures["device bytes"]) / 1e6, "MB")
    for batch in BATCHES:
        if batch <= max(events, 1):
            value = rate(batched, encoded, batch)
            of = f"{label}/batched, batches of {batch}"
            yield Row(of, value, "events/s", "cpu auto", baseline)
    yield from kernels_alone(label, batched, encoded, baseline)
    if not few:
        placed, encoded, _ = deployed(PlacedMatcher())
        for batch in (1, 4_096):
            rate(placed, encoded, batch)
        note = f"device from {placed.figures['device from events']} events"
        value = rate(placed, encoded, 4_096)
        yield Row(f"{label}/auto, batches of 4096", value, "events/s", "cpu auto", baseline, note)


def kernels_alone(
    label: str, matcher: TableMatcher, encoded: EncodedEvents, baseline: float
) -> Iterator[Row]:
    """The batched kernels without copies back: the same launch again and again."""
    assert isinstance(matcher, BatchedMatcher)
    again = matcher.launch_again(encoded.take(slice(0, BATCHES[-1])))
    repeats = 3 if len(encoded) < SINGLES else 50
    seconds = timed(lambda: again(repeats)) / repeats
    count = min(len(encoded), BATCHES[-1])
    of = f"{label}/batched, kernels alone, {count} events"
    yield Row(of, count / seconds, "events/s", "cpu auto", baseline)


def rate(matcher: TableMatcher, encoded: EncodedEvents, batch: int) -> float:
    """Events a second of elapsed time, once over all of them, at most SINGLES batches."""
    starts = range(0, len(encoded), batch)[:SINGLES]
    batches = [encoded.take(slice(at, at + batch)) for at in starts]
    matcher.match(batches[0])

    def all_of_them() -> None:
        for one in batches:
            matcher.match(one)

    return sum(map(len, batches)) / timed(all_of_them)


def latency(matcher: TableMatcher, encoded: EncodedEvents, percentile: int) -> float:
    """Microseconds that one event takes, by itself."""
    spent = []
    for place in range(min(SINGLES, len(encoded))):
        one = encoded.take(slice(place, place + 1))
        spent.append(timed(lambda one=one: matcher.match(one)))  # type: ignore[misc]
    return float(np.percentile(spent, percentile)) * US


def timed(action: Callable[[], object]) -> float:
    """Seconds of elapsed time."""
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun

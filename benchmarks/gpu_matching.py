"""Content-based matching on a GPU beside the processor, on the workloads of ``matching``.

For each scenario: ``auto`` on one thread of the processor in batches of 256, as the baseline; CCM
one event at a time (latency) and one behind the other (rate), launched anew and by graphs; the
batched matcher in batches of 1 to 4,096, end to end and its kernels alone; deployment; memory on
the device. Events are encoded beforehand, interface sets come out. Elapsed time, since a device
does not use the processor's.

A part that fails costs its own figures, and each row is told on standard error as soon as it is
there: what goes wrong on a device may end the process.

Without a GPU it says so and measures nothing. Under numba's simulator sizes are tiny and the
figures of no meaning: that runs the code.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from benchmarks.matching import SCENARIOS, SEED, Scenario, events_of, filters_of
from benchmarks.report import Row, attempted, table
from matcher.choose import AutoMatcher
from matcher.encoded import EncodedEvents
from matcher.gpu.batched import BatchedMatcher
from matcher.gpu.ccm import CcmMatcher
from matcher.gpu.choice import PlacedMatcher
from matcher.gpu.device import NoDevice, device
from matcher.mixed import FilterBatch, MixedEvents
from matcher.tabled import TableMatcher

NAMES = ("100k", "1M", "1M, 10 names", "1M, Zipf names", "1M, 16 attributes", "1M typed filters")
BATCHES = (1, 16, 64, 256, 1_024, 4_096)
PROCESSOR_BATCH = 256
SINGLES = 1_000
US = 1e6
Deployed = TypeVar("Deployed", bound=TableMatcher)


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
    work = Work(label, filters, mixed)
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "cpu auto": lambda: on_processor(work),
        "CCM, launched": lambda: by_ccm(work, "launched", recorded=False),
        "CCM, by graph": lambda: by_ccm(work, "by graph", recorded=True),
        "batched": lambda: by_batches(work),
    }
    if not few:
        parts["auto"] = lambda: by_choice(work)
    for name, part in parts.items():
        for row in attempted(f"{label}/{name}", part):
            print(table([row]).splitlines()[-1], file=sys.stderr, flush=True)
            yield row


@dataclass(slots=True)
class Work:
    """One scenario, and what the processor takes for it once that is known."""

    label: str
    filters: FilterBatch
    events: MixedEvents
    processor_rate: float | None = None
    processor_us: float | None = None

    def deploy(self, matcher: Deployed) -> tuple[Deployed, EncodedEvents, float]:
        """The matcher with all filters, the events, and seconds until the first answer."""
        begun = time.perf_counter()
        matcher.add_all(self.filters)
        encoded = matcher.encode(self.events)
        matcher.match(encoded.take(slice(0, 1)))
        return matcher, encoded, time.perf_counter() - begun

    def rate_row(self, name: str, value: float, note: str = "") -> Row:
        """A row of events a second, beside the processor's."""
        of = f"{self.label}/{name}"
        return Row(of, value, "events/s", "cpu auto", self.processor_rate, note)


def on_processor(work: Work) -> Iterator[Row]:
    """The baseline."""
    matcher, encoded, _ = work.deploy(AutoMatcher())
    work.processor_rate = rate(matcher, encoded, PROCESSOR_BATCH)
    work.processor_us = latency(matcher, encoded, 50)
    of = f"{work.label}/cpu auto"
    yield Row(f"{of}, batches of {PROCESSOR_BATCH}", work.processor_rate, "events/s")
    yield Row(f"{of}, one event, p50", work.processor_us, "us")


def by_ccm(work: Work, name: str, *, recorded: bool) -> Iterator[Row]:
    """CCM: one event by itself, and one behind the other."""
    matcher, encoded, _ = work.deploy(CcmMatcher(recorded=recorded))
    of = f"{work.label}/CCM, {name}"
    value = latency(matcher, encoded, 50)
    yield Row(f"{of}, one event, p50", value, "us", "cpu auto", work.processor_us)
    yield Row(f"{of}, one event, p99", latency(matcher, encoded, 99), "us")
    some = encoded.take(slice(0, SINGLES))
    yield work.rate_row(f"CCM, {name}, pipelined", rate(matcher, some, len(some)))


def by_batches(work: Work) -> Iterator[Row]:
    """The batched matcher: deployment, memory, batches of all sizes, kernels alone."""
    matcher, encoded, seconds = work.deploy(BatchedMatcher())
    of = f"{work.label}/batched"
    yield Row(f"{of}, deployment", seconds, "s", note="until the first answer")
    yield Row(f"{of}, device memory", int(matcher.figures["device bytes"]) / 1e6, "MB")
    for batch in BATCHES:
        if batch <= len(encoded):
            value = rate(matcher, encoded, batch)
            yield work.rate_row(f"batched, batches of {batch}", value)
    yield kernels_alone(work, matcher, encoded)


def by_choice(work: Work) -> Iterator[Row]:
    """``--device auto``: where it went, and what came of it."""
    matcher, encoded, _ = work.deploy(PlacedMatcher())
    for batch in (1, BATCHES[-1]):
        rate(matcher, encoded, batch)
    note = f"device from {matcher.figures['device from events']} events"
    value = rate(matcher, encoded, BATCHES[-1])
    yield work.rate_row(f"auto, batches of {BATCHES[-1]}", value, note)


def kernels_alone(work: Work, matcher: BatchedMatcher, encoded: EncodedEvents) -> Row:
    """The batched kernels without copies back: the same launch again and again."""
    again = matcher.launch_again(encoded.take(slice(0, BATCHES[-1])))
    repeats = 3 if len(encoded) < SINGLES else 50
    seconds = timed(lambda: again(repeats)) / repeats
    count = min(len(encoded), BATCHES[-1])
    return work.rate_row(f"batched, kernels alone, {count} events", count / seconds)


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

"""Content-based matching on a GPU beside the processor, on the workloads of
:mod:`benchmarks.matching`.

For each scenario: ``auto`` on one thread of the processor, as the baseline; CCM one event at a
time (latency), one behind the other (rate) and its kernel alone, launched anew and by graphs, of
some in the thesis's variants, too; the batched matcher in batches of 1 to 4,096, end to end, and
its kernels alone, launched anew and by a graph; what ``--device auto`` makes of it. Of each
deployment, until the first answer, and memory on the device. Events are encoded beforehand,
interface sets come out. Elapsed time, since a device does not use the processor's; the least of
some runs, of single events percentiles.

A part that fails costs its own figures alone.

Without a GPU it says so and measures nothing. Under numba's simulator sizes are tiny and the
figures of no meaning: that runs the code.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from benchmarks.matching import SCENARIOS, SEED, Scenario, events_of, filters_of
from benchmarks.pace import percentiles
from benchmarks.report import Row, attempted, figure, seconds_of
from matcher.filters.encoded import EncodedEvents
from matcher.filters.mixed import FilterBatch, MixedEvents
from matcher.gpu.batched import BatchedMatcher
from matcher.gpu.ccm import CcmMatcher
from matcher.gpu.choice import PlacedMatcher
from matcher.gpu.device import NoDevice, device
from matcher.gpu.kernels import GROUP, HEAD
from matcher.kernels.layout import COUNT, TERM_MASK
from matcher.methods.choose import AutoMatcher
from matcher.methods.tabled import TableMatcher
from studies.bench_gpu import TARGET
from studies.device.bandwidth import bytes_a_second, share

NAMES = ("1M", "1M, 10 names", "100k", "1M, Zipf names", "1M, 16 attributes", "1M typed filters")
"""The most valuable first."""
TARGETS = {"gpu matching/1M": 3e6, "gpu matching/1M, 10 names": 2e6}
"""Events a second that batches of 4,096 should come to, end to end."""
BATCHES = (1, 16, 64, 256, 1_024, 4_096)
PROCESSOR_BATCH = 256
BATCHES_MAX = 1_000
"""Batches, and single events, that a figure is made of at most."""
LAUNCHES = 50
"""Launches of the kernels alone that are timed together."""
REPEATS = 3
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "ordered": {"ordered": True},
    "distinct": {"distinct": True},
    "16 events together": {"together": 16},
}
"""CCM's, by what rows call them."""
VARIED = ("1M", "1M, Zipf names")
"""Scenarios that they are measured in: the thesis finds ordering worth while with Zipf names."""
Deployed = TypeVar("Deployed", bound=TableMatcher)


def run(quick: bool) -> Iterator[Row]:
    try:
        on = device()
    except NoDevice as error:
        print(f"benchmarks: nothing to measure: {error}", file=sys.stderr)
        return
    events, scale = (8, 20_000) if on.simulated else (4_096, 100) if quick else (20_480, 1)
    bandwidth = bytes_a_second(on)
    scenarios = {one.name: one for one in SCENARIOS}
    for scenario in map(scenarios.__getitem__, NAMES[:1] if on.simulated else NAMES):
        constraints = max(scenario.constraints // scale, 40)
        smaller = replace(scenario, constraints=constraints)
        yield from measure(smaller, events, on.simulated, bandwidth)


def measure(
    scenario: Scenario, events: int, few: bool, bandwidth: float | None = None
) -> Iterator[Row]:
    """The figures of one scenario; ``few``: as little as runs everything; ``bandwidth``: bytes a
    second that a copy moves on the device, beside which kernels are to stand.
    """
    rng = np.random.default_rng(SEED)
    filters, mixed = filters_of(scenario, rng), events_of(scenario, events, rng)
    label = f"gpu matching/{scenario.name}"
    work = Work(label, filters, mixed, bandwidth, *((1, 2) if few else (REPEATS, LAUNCHES)))
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "cpu auto": lambda: on_processor(work),
        "CCM, launched": lambda: by_ccm(work, "launched", recorded=False),
        "CCM, by graph": lambda: by_ccm(work, "by graph", recorded=True),
        "batched": lambda: by_batches(work),
    }
    if not few and scenario.name in VARIED:
        parts |= {f"CCM, {one}": partial(by_variant, work, one) for one in VARIANTS}
    if not few:
        parts["auto"] = lambda: by_choice(work)
    for name, part in parts.items():
        yield from attempted(f"{label}/{name}", part)


@dataclass(slots=True)
class Work:
    """One scenario, how often it is measured, and the processor's figures once they are known:
    of one event by what they are, as "p50".
    """

    label: str
    filters: FilterBatch
    events: MixedEvents
    bandwidth: float | None = None
    repeats: int = REPEATS
    launches: int = LAUNCHES
    processor_rate: float | None = None
    processor_us: dict[str, float | None] = field(default_factory=dict)

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

    def rate(self, matcher: TableMatcher, encoded: EncodedEvents, batch: int) -> float:
        """Events a second of elapsed time, in BATCHES_MAX batches at most."""
        starts = range(0, len(encoded), batch)[:BATCHES_MAX]
        batches = [encoded.take(slice(at, at + batch)) for at in starts]

        def all_of_them() -> None:
            for one in batches:
                matcher.match(one)

        return sum(map(len, batches)) / seconds_of(all_of_them, repeats=self.repeats)

    def kernels_alone(
        self, name: str, again: Callable[[int], None], events: int, moved: float
    ) -> Row:
        """The same launch for so many events again and again, nothing being copied; it has to move
        so many bytes at least.
        """
        seconds = seconds_of(lambda: again(self.launches), repeats=self.repeats) / self.launches
        note = "" if self.bandwidth is None else share(moved, seconds, self.bandwidth)
        return self.rate_row(f"{name}, kernels alone, {events:,} at once", events / seconds, note)

    def settled(self, name: str, matcher: TableMatcher, seconds: float) -> Iterator[Row]:
        """Deployment and memory, before events come."""
        of = f"{self.label}/{name}"
        yield Row(f"{of}, deployment", seconds, "s", note="until the first answer")
        if (size := matcher.figures.get("device bytes")) is not None:
            yield Row(f"{of}, device memory", int(size) / 1e6, "MB")

    def one_event(self, name: str, matcher: TableMatcher, encoded: EncodedEvents) -> Iterator[Row]:
        """The time that one event takes, by itself."""
        some = range(min(BATCHES_MAX, len(encoded)))
        singles = [encoded.take(slice(place, place + 1)) for place in some]
        matcher.match(singles[0])
        actions = [lambda one=one: matcher.match(one) for one in singles]
        for row in percentiles(f"{self.label}/{name}, one event", actions):
            beside = self.processor_us.get(which(row))
            yield (
                row
                if beside is None
                else replace(row, baseline_name="cpu auto", baseline_value=beside)
            )


def which(row: Row) -> str:
    """The row of one event."""
    return row.name.rpartition(", ")[2]


def on_processor(work: Work) -> Iterator[Row]:
    """The baseline."""
    name = "cpu auto"
    matcher, encoded, seconds = work.deploy(AutoMatcher())
    yield from work.settled(name, matcher, seconds)
    work.processor_rate = work.rate(matcher, encoded, PROCESSOR_BATCH)
    of = f"{work.label}/{name}, batches of {PROCESSOR_BATCH}"
    yield Row(of, work.processor_rate, "events/s")
    alone = list(work.one_event(name, matcher, encoded))
    yield from alone
    work.processor_us = {which(row): row.value for row in alone}


def by_ccm(work: Work, name: str, *, recorded: bool) -> Iterator[Row]:
    """CCM: one event by itself, one behind the other, and its kernel alone."""
    name = f"CCM, {name}"
    matcher, encoded, seconds = work.deploy(CcmMatcher(recorded=recorded))
    yield from work.settled(name, matcher, seconds)
    yield from work.one_event(name, matcher, encoded)
    some = encoded.take(slice(0, BATCHES_MAX))
    yield work.rate_row(f"{name}, pipelined", work.rate(matcher, some, len(some)))
    event = encoded.take(slice(0, 1))
    yield work.kernels_alone(name, matcher.launch_again(event), 1, moved_by_ccm(matcher, event))


def by_variant(work: Work, name: str) -> Iterator[Row]:
    """CCM as the thesis varies it: one behind the other, and its kernel alone."""
    options = VARIANTS[name]
    matcher, encoded, _ = work.deploy(CcmMatcher(**options))
    some = encoded.take(slice(0, BATCHES_MAX))
    yield work.rate_row(f"CCM, {name}, pipelined", work.rate(matcher, some, len(some)))
    at_once = int(options.get("together", 1))
    events = encoded.take(slice(0, at_once))
    moved = moved_by_ccm(matcher, events)
    again = matcher.launch_again(events)
    yield work.kernels_alone(f"CCM, {name}", again, at_once, moved)


def moved_by_ccm(matcher: CcmMatcher, events: EncodedEvents) -> int:
    """Bytes of the constraints on events' names, and of the other copies of Count, which are set to
    zero meanwhile.
    """
    table = matcher.shares[0]
    lists = matcher.list_of_term[events.cells[:, 0] & TERM_MASK]
    counts = 4 * table.filters.size * len(events)
    return 24 * int(table.lists.rows[lists, COUNT].sum()) + counts


def by_batches(work: Work) -> Iterator[Row]:
    """The batched matcher: batches of all sizes, and its kernels alone."""
    name = "batched"
    matcher, encoded, seconds = work.deploy(BatchedMatcher())
    yield from work.settled(name, matcher, seconds)
    yield from work.one_event(name, matcher, encoded)
    for batch in BATCHES:
        if batch <= len(encoded):
            value, note = work.rate(matcher, encoded, batch), ""
            if batch == BATCHES[-1] and (least := TARGETS.get(work.label)) is not None:
                note = f"{TARGET}at least {figure(least)}"
            yield work.rate_row(f"{name}, batches of {batch:,}", value, note)
    some = encoded.take(slice(0, BATCHES[-1]))
    for how, recorded in (("launched", False), ("by graph", True)):
        again = matcher.launch_again(some, recorded=recorded)
        yield work.kernels_alone(
            f"{name}, {how}", again, len(some), moved_by_batches(matcher, some)
        )


def moved_by_batches(matcher: BatchedMatcher, events: EncodedEvents) -> int:
    """Bytes of each filter's head, and of two words of it for each group of events."""
    groups = -(-len(events) // GROUP)
    return matcher.table.filters.size * (4 * HEAD + 8 * groups)


def by_choice(work: Work) -> Iterator[Row]:
    """``--device auto``: where it went, and what came of it."""
    matcher, encoded, _ = work.deploy(PlacedMatcher())
    for batch in (1, BATCHES[-1]):
        work.rate(matcher, encoded, batch)
    note = f"device from {matcher.figures['device from events']} events"
    value = work.rate(matcher, encoded, BATCHES[-1])
    yield work.rate_row(f"auto, batches of {BATCHES[-1]:,}", value, note)

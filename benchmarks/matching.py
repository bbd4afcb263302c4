"""Content-based matching: the thesis's scenario (Table 4.1) and its variations, one thread.

Filters and events are made from a seed: names among 100, 3 to 5 constraints a filter, 3 to 5
attributes an event, half of the values numbers and half texts among 100 each. Figures are events
a second of CPU time, encoded beforehand, in batches of 256, all distinct, interface sets out, each
batch at its best of three passes over all of them (benchmarks/pace.py).
The baseline of every row is PCM as published, measured in the same run on fewer events.

What is built (deployment), one filter more or less, one event at a time, and the encoding have
rows of their own. A figure that has a goal is noted with it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.pace import BATCH, clocked, percentiles, rate
from benchmarks.report import Row, figure
from matcher.filters.constraint import Constraint, Filter, Operator
from matcher.filters.encoded import EncodedEvents
from matcher.filters.mixed import INT, STRING, Cells, FilterBatch, MixedEvents, offsets_of
from matcher.formats.matchfiles import read_events
from matcher.methods.choose import AutoMatcher
from matcher.methods.indexed import IndexedMatcher
from matcher.methods.pcm import PcmMatcher
from matcher.methods.tabled import TableMatcher
from matcher.model import (
    AnyArray,
    Attribute,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    Kind,
    StringColumn,
)
from routing import wire
from routing.messages import Publish

SEED = 7
THREAD_ROUNDS, THREAD_SECONDS, THREAD_EVENTS = 7, 0.5, 20_480
"""How often one and two threads take turns, and how long a turn is with so many events or more."""
VALUES = 100
NUMBER_OPERATORS = (Operator.EQUAL, Operator.UNEQUAL, Operator.GREATER, Operator.LESS)
TEXT_OPERATORS = (Operator.EQUAL, Operator.UNEQUAL, Operator.CONTAINS, Operator.PREFIX)
RANGES = (Operator.GREATER, Operator.LESS)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Table 4.1's parameters; ``zipf`` is the exponent of the names, 0 for uniform ones.

    ``types`` > 0 makes a typed workload: every event and filter is of one type, and has the names
    of that type alone, the first half numbers and the others texts.
    """

    name: str
    constraints: int = 1_000_000
    names: int = 100
    zipf: float = 0.0
    attributes: tuple[int, int] = (3, 5)
    per_filter: tuple[int, int] = (3, 5)
    numeric: float = 0.5
    interfaces: int = 10
    number_operators: tuple[Operator, ...] = NUMBER_OPERATORS
    types: int = 0


SCENARIOS = (
    Scenario("10k", constraints=10_000),
    Scenario("100k", constraints=100_000),
    Scenario("1M"),
    Scenario("1M, 10 names", names=10),
    Scenario("1M, Zipf names", zipf=1.0),
    Scenario("1M, 9 attributes", attributes=(9, 9)),
    Scenario("1M, 16 attributes", attributes=(16, 16)),
    Scenario("1M, 7 to 9 constraints a filter", per_filter=(7, 9), attributes=(9, 9)),
    Scenario("1M, numbers alone", numeric=1.0),
    Scenario("1M, ranges on 10 names", names=10, numeric=1.0, number_operators=RANGES),
    Scenario("1M, 100 interfaces", interfaces=100),
    Scenario("1M, 10,000 interfaces", interfaces=10_000),
    Scenario("1M typed filters", 3_000_000, 6, per_filter=(2, 4), attributes=(6, 6), types=100),
    Scenario(
        "1M typed filters, 1,000 interfaces",
        3_000_000,
        6,
        per_filter=(2, 4),
        attributes=(6, 6),
        types=100,
        interfaces=1_000,
    ),
)
WITH_FILTERS = {"1M, 10 names", "1M typed filters", "1M typed filters, 1,000 interfaces"}

GOALS: Mapping[str, float] = {
    "100k/auto": 2.5e6,
    "1M/auto": 1.5e6,
    "1M, 10 names/auto": 400e3,
    "1M, 10 names/auto, filter ids": 250e3,
    "1M, Zipf names/auto": 900e3,
    "1M, 9 attributes/auto": 350e3,
    "1M, 16 attributes/auto": 120e3,
    "1M, ranges on 10 names/auto": 100e3,
    "1M typed filters/auto": 600e3,
    "1M typed filters/auto, filter ids": 150e3,
    "1M typed filters, 1,000 interfaces/auto": 180e3,
    "1M/one event, p50": 5,
    "1M/one event, p99": 15,
    **{
        f"{name}/{what}": goal
        for name in ("1M", "1M typed filters")
        for what, goal in (
            ("deployment", 0.25 if name == "1M" else 1),
            ("arrays", 50),
            ("one filter added, p99", 20),
            ("one filter added, longest", 5_000),
            ("one filter removed, p99", 20),
            ("one filter removed, longest", 5_000),
            ("two threads", 1.8),
        )
    },
}
"""What the figures of these names should come to, at least; of time and memory, at most."""
AT_MOST = {"s", "us", "MB per 1M constraints"}


def run(quick: bool) -> Iterator[Row]:
    events = 1_024 if quick else 20_480
    scale = 100 if quick else 1
    for scenario in SCENARIOS:
        smaller = replace(scenario, constraints=max(scenario.constraints // scale, 1_000))
        rows = measure(smaller, events)
        yield from rows if quick else map(beside_its_goal, rows)


def beside_its_goal(row: Row) -> Row:
    """The row with its goal noted, if it has one."""
    goal = GOALS.get(row.name.removeprefix("matching/"))
    if goal is None:
        return row
    said = f"goal: {'at most' if row.unit in AT_MOST else 'at least'} {figure(goal)}"
    return replace(row, note=f"{row.note}; {said}" if row.note else said)


def measure(scenario: Scenario, events: int) -> Iterator[Row]:
    """The figures of one scenario."""
    rng = np.random.default_rng(SEED)
    filters, mixed = filters_of(scenario, rng), events_of(scenario, events, rng)
    baseline = PcmMatcher()
    baseline.add_all(filters)
    few = max(8, min(events, 20_000_000 // scenario.constraints))
    pcm = rate(baseline, baseline.encode(mixed.take(slice(0, few))))
    del baseline
    IndexedMatcher(by_access=True).add_all(filters_of(Scenario("", 1_000), rng))  # compiles
    for name, matcher in (
        ("auto", AutoMatcher()),
        ("signature", IndexedMatcher(by_access=False)),
        ("index", IndexedMatcher(by_access=True)),
    ):
        begun = time.process_time()
        matcher.add_all(filters)
        deployed = time.process_time() - begun
        encoded = matcher.encode(mixed)
        matcher.match(encoded.take(slice(0, BATCH)))
        note = str(matcher.figures.get("method", ""))
        label = f"matching/{scenario.name}/{name}"
        yield Row(label, rate(matcher, encoded), "events/s", "PCM", pcm, note)
        if name != "auto":
            continue
        if scenario.name in WITH_FILTERS:
            ids = rate(matcher, encoded, filters=True)
            yield Row(f"{label}, filter ids", ids, "events/s")
        yield from alone(matcher, scenario, mixed, encoded, deployed)


def alone(
    matcher: TableMatcher,
    scenario: Scenario,
    mixed: MixedEvents,
    encoded: EncodedEvents,
    deployed: float,
) -> Iterator[Row]:
    """What else there is to say of the default scenario and of typed filters."""
    if scenario.name not in ("1M", "1M typed filters"):
        return
    label = f"matching/{scenario.name}"
    figures = matcher.figures
    size = int(figures["bytes"]) / int(figures["constraints"])
    yield Row(f"{label}/deployment", deployed, "s", note="from arrays")
    yield Row(f"{label}/arrays", size, "MB per 1M constraints")
    begun = time.process_time()
    for first in range(0, len(mixed), BATCH):
        matcher.encode(mixed.take(slice(first, first + BATCH)))
    yield Row(f"{label}/encoding", len(mixed) / (time.process_time() - begun), "events/s")
    singles = [encoded.take(slice(place, place + 1)) for place in range(min(4_096, len(encoded)))]
    yield from percentiles(
        f"{label}/one event", [lambda one=one: matcher.match(one) for one in singles]
    )
    changes = []
    for number in range(2_000):
        identifier = 10**9 + number
        constraints = (
            Constraint("n1", Operator.EQUAL, number % VALUES),
            Constraint("n2", Operator.PREFIX, "b"),
            Constraint("n3", Operator.LESS, number % VALUES),
        )
        one = Filter(constraints)
        changes.append(lambda identifier=identifier, one=one: matcher.add(identifier, 1, one))
    yield from percentiles(f"{label}/one filter added", changes)
    removals = [lambda number=number: matcher.remove(10**9 + number) for number in range(2_000)]
    yield from percentiles(f"{label}/one filter removed", removals)
    if scenario.types:
        yield from_wire(matcher, scenario, mixed, label)
    else:
        yield from ways(matcher, mixed, label)
    yield from threads(matcher, matcher.encode(mixed), label)


def ways(matcher: TableMatcher, mixed: MixedEvents, label: str) -> Iterator[Row]:
    """The whole way from JSON lines, and from columns with other texts in every batch."""
    lines = b"\n".join(
        msgspec.json.encode({"id": place, "data": mixed.data(place)}) for place in range(len(mixed))
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.jsonl"
        file.write_bytes(lines + b"\n")
        begun = time.process_time()
        for _, piece in read_events(file):
            matcher.match(piece).interface_lists()
        spent = time.process_time() - begun
    yield Row(f"{label}/from JSON lines to lists", len(mixed) / spent, "events/s")
    begun = time.process_time()
    for first in range(0, len(mixed), BATCH):
        matcher.match(mixed.take(slice(first, first + BATCH)))
    spent = time.process_time() - begun
    yield Row(f"{label}/from columns to bit sets", len(mixed) / spent, "events/s")


def from_wire(matcher: TableMatcher, scenario: Scenario, mixed: MixedEvents, label: str) -> Row:
    """The whole way from messages of up to 256 events of one type to bit sets."""
    messages = [wire.encode(Publish((batch,))) for batch in typed_batches(scenario, mixed)]
    begun = time.process_time()
    for message in messages:
        publish = wire.decode(message)
        assert isinstance(publish, Publish)
        matcher.match(publish.batches[0])
    spent = time.process_time() - begun
    return Row(f"{label}/from the wire to bit sets", len(mixed) / spent, "events/s")


def typed_batches(scenario: Scenario, mixed: MixedEvents) -> Iterator[EventBatch]:
    """The events of a typed workload in columns, type by type."""
    assert mixed.types is not None
    width, cells = scenario.names, mixed.cells
    names, values = cells.names.codes.reshape(-1, width), cells.values.reshape(-1, width)
    values = np.take_along_axis(values, np.argsort(names, axis=1), axis=1)
    for number, name in enumerate(mixed.types.values):
        first = number * width
        kinds = [Kind.INT if place < width // 2 else Kind.STRING for place in range(width)]
        schema = EventType(
            name,
            tuple(
                Attribute(cells.names.values[first + place], kind)
                for place, kind in enumerate(kinds)
            ),
        )
        of_type = np.flatnonzero(mixed.types.codes == number)
        for begin in range(0, len(of_type), BATCH):
            rows = of_type[begin : begin + BATCH]
            columns = tuple(
                values[rows, place]
                if kind is Kind.INT
                else StringColumn(values[rows, place].astype(np.int32), cells.texts).compact()
                for place, kind in enumerate(kinds)
            )
            ids = EventIds(StringColumn.constant("s", len(rows)), np.arange(len(rows)))
            yield EventBatch(schema, np.arange(len(rows)), ids, columns)


def threads(matcher: TableMatcher, encoded: EncodedEvents, label: str) -> Iterator[Row]:
    """Twice the events on two threads beside one thread: in seconds of the clock, which needs two
    free cores, and in seconds of each thread's own, which shows what sharing memory costs. Two
    processes on the same tables share nothing else: what they gain more is what the interpreter's
    lock and the threads' common heap cost.

    All take turns, each long enough for both cores to wake up; the least counts.
    """
    batches = [encoded.take(slice(at, at + BATCH)) for at in range(0, len(encoded), BATCH)]
    turns = 1

    def work() -> float:
        begun = time.thread_time()
        for _ in range(turns):
            for batch in batches:
                matcher.match(batch)
        return time.thread_time() - begun

    turns = max(1, round(THREAD_SECONDS * len(encoded) / THREAD_EVENTS / clocked(work, 1)[0]))
    ways = ((1, False), (2, False), (2, True))
    rounds = [[clocked(work, n, apart=apart) for n, apart in ways] for _ in range(THREAD_ROUNDS)]
    least = [tuple(map(min, zip(*of_way, strict=True))) for of_way in zip(*rounds, strict=True)]
    (alone, own), *two = least
    for name, (both, shared) in zip(("two threads", "two processes"), two, strict=True):
        yield Row(f"{label}/{name}", 2 * alone / both, "times one thread")
        yield Row(f"{label}/{name}, each by its own time", own / shared, "times one alone")


# --- workloads ---------------------------------------------------------------------------------


def filters_of(scenario: Scenario, rng: np.random.Generator) -> FilterBatch:
    """Filters of as many constraints as the scenario has."""
    low, high = scenario.per_filter
    count = 2 * scenario.constraints // (low + high)
    lengths = rng.integers(low, high + 1, count)
    types = rng.integers(0, scenario.types, count) if scenario.types else None
    cells = cells_of(scenario, lengths, types, rng)
    number = np.array(scenario.number_operators, np.uint8)
    text = np.array(TEXT_OPERATORS, np.uint8)
    size = len(cells.values)
    operators = np.where(
        cells.kinds == INT,
        number[rng.integers(0, len(number), size)],
        text[rng.integers(0, len(text), size)],
    )
    return FilterBatch(
        np.arange(count, dtype=np.int64),
        rng.integers(0, scenario.interfaces, count),
        cells,
        operators.astype(np.uint8),
        None if types is None else types_column(scenario, types),
    )


def events_of(scenario: Scenario, count: int, rng: np.random.Generator) -> MixedEvents:
    """As many events, each with attributes of distinct names."""
    low, high = scenario.attributes
    lengths = rng.integers(low, high + 1, count)
    types = rng.integers(0, scenario.types, count) if scenario.types else None
    cells = cells_of(scenario, lengths, types, rng)
    return MixedEvents(cells, None if types is None else types_column(scenario, types))


def cells_of(
    scenario: Scenario, lengths: Int64s, types: Int64s | None, rng: np.random.Generator
) -> Cells:
    """Rows of cells of distinct names; the kind is drawn, or in typed workloads the name's."""
    offsets = offsets_of(lengths)
    names = np.concatenate(
        [
            distinct(scenario, lengths[at : at + 10_000], rng)
            for at in range(0, len(lengths), 10_000)
        ]
    )
    size = len(names)
    if types is None:
        kinds = np.where(rng.random(size) < scenario.numeric, INT, STRING)
    else:
        kinds = np.where(names < scenario.names // 2, INT, STRING)
        names = names + scenario.names * np.repeat(types, lengths)
    total = scenario.names * max(1, scenario.types)
    return Cells(
        offsets,
        StringColumn(names.astype(np.int32), tuple(f"n{number}" for number in range(total))),
        kinds.astype(np.uint8),
        rng.integers(0, VALUES, size),
        tuple(text_of(number) for number in range(VALUES)),
    )


def distinct(scenario: Scenario, lengths: Int64s, rng: np.random.Generator) -> AnyArray:
    """For each row as many distinct names as it is long, one row after the other."""
    weights = np.arange(1, scenario.names + 1, dtype=np.float64) ** -scenario.zipf
    # The greatest of weights to the power of chance are a weighted draw without replacement.
    drawn = np.log(rng.random((len(lengths), scenario.names))) / weights
    order = np.argsort(-drawn, axis=1)
    wanted = np.arange(scenario.names) < lengths[:, np.newaxis]
    return order[wanted]


def text_of(number: int) -> str:
    """One of the texts: five letters, so that some contain others' beginnings."""
    rng = np.random.default_rng((SEED, number))
    return "".join(chr(97 + letter) for letter in rng.integers(0, 26, 5))


def types_column(scenario: Scenario, types: Int64s) -> StringColumn:
    names = tuple(f"T{number}" for number in range(scenario.types))
    return StringColumn(types.astype(np.int32), names)

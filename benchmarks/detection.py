"""Detection: the workloads of the thesis (5.8) by each engine, on one thread, in CPU time.

The sequence family: 1,000 rules of a few states, ten event types, each state a type and a value,
every event relevant to exactly ten (rule, state) pairs, windows of 14 to 16 s a step, 100 events
a second of event time. The fire case: R3 with ten kinds and a hundred thresholds each, half of the
events Smoke. R10: a sequence and an aggregate joined by a value among 50,000 over long windows.

The baseline is T-Rex, the C++ original, measured on the same kind of machine.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.report import Row
from broker.parallel import deployed
from matcher.model import (
    MICROSECONDS,
    TIME_MAX,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    StringColumn,
)
from rules import load
from rules.engine import make
from rules.engine.cdp import CdpEngine
from rules.engine.rows import row_of
from rules.pattern import RuleSet

SEED = 7
CHUNK = 4_096
"""Events pushed before each advance."""
T_REX = "T-Rex (C++)"
ENGINES = ("cdp", "aip", "auto")
REPEATS = 3
LATE = 50
"""Events that come late at each distance; the middle one counts."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Rules, chunks of events in order of time, and how many of them only warm up."""

    name: str
    rules: str
    chunks: Sequence[Sequence[EventBatch]]
    warm_up: int
    baseline: float | None = None


def run(quick: bool) -> Iterator[Row]:
    scale = 20 if quick else 1
    workloads = (
        sequences(3, "last", 1_000, 200_000 // scale, 155e3),
        sequences(3, "each", 1_000, 20_000 // scale, 17.4e3),
        sequences(2, "last", 1_000, 200_000 // scale, 152e3),
        sequences(2, "each", 1_000, 60_000 // scale, 46e3),
        fire(100 // scale, 60_000 // scale, 10.9e3),
        aggregate_join(100_000 // scale, 300_000 // scale, 317.0),
        aggregate_join(1_000_000 // scale, 300_000 // scale, None),
        join(200_000 // scale, 0.98e6),
        rare_partners(100_000 // scale),
    )
    repeats = 1 if quick else REPEATS
    for workload in workloads:
        yield from measure(workload, repeats)
    if not quick:
        # As many events as before are relevant to each rule: what grows is what is deployed.
        yield from measure(sequences(3, "last", 10_000, 100_000, None), repeats)
        yield from measure_once(sequences(3, "last", 100_000, 100_000, None))
    yield from measure_late(1_000_000 // scale)
    yield from measure_singly(sequences(3, "last", 1_000, 20_000 // scale, None))
    yield from measure_threads(sequences(3, "each", 1_000, 80_000 // scale, None))


def measure(workload: Workload, repeats: int) -> Iterable[Row]:
    """Events and composite events a second of CPU time, after the warm-up, by each engine.

    The engines run in turn, so that what disturbs the machine disturbs all alike, each time
    another first: whichever follows ``aip`` finds memory that went back to the system, and waits
    while it is cleared. The best of ``repeats`` counts. ``auto`` stands beside the better of the
    others.
    """
    rules = load(workload.rules)
    rates: dict[str, float] = dict.fromkeys(ENGINES, 0.0)
    for repeat in range(repeats):
        first = repeat % len(ENGINES)
        for name in ENGINES[first:] + ENGINES[:first]:
            rate, per_event = rate_of(workload, rules, name)
            rates[name] = max(rates[name], rate)
    for name, rate in rates.items():
        better = max(rates["cdp"], rates["aip"])
        baseline = ("the better", better) if name == "auto" else (T_REX, workload.baseline)
        yield Row(
            f"detection/{workload.name}, {name}",
            rate,
            "events/s",
            *(baseline if baseline[1] else ("", None)),
            f"{rate * per_event:,.0f} composite events/s, {per_event:.2f} an event",
        )


def measure_once(workload: Workload) -> Iterable[Row]:
    """Events a second of CPU time by ``cdp`` alone, once: rules that take a minute to deploy."""
    rate, per_event = rate_of(workload, load(workload.rules), "cdp")
    note = f"{per_event:.2f} composite events an event"
    yield Row(f"detection/{workload.name}, cdp", rate, "events/s", "", None, note)


def rate_of(workload: Workload, rules: RuleSet, name: str) -> tuple[float, float]:
    """Events a second of CPU time by an engine of this name, and composite events an event."""
    engine = make(name)
    engine.deploy(rules)
    gc.collect()  # else what other engines left behind is looked through in the midst of this
    events = composites = 0
    spent = 0.0
    for place, chunk in enumerate(workload.chunks):
        started = time.process_time()
        for batch in chunk:
            engine.push(batch)
        last = max(int(batch.time[-1]) for batch in chunk)
        is_last = place + 1 == len(workload.chunks)
        found = engine.advance(TIME_MAX if is_last else last + 1)
        if place * CHUNK >= workload.warm_up or is_last:
            spent += time.process_time() - started
            events += sum(map(len, chunk))
            composites += len(found)
    return events / spent, composites / events


def measure_late(entries: int) -> Iterable[Row]:
    """Microseconds of CPU time for an event that comes after so many later ones of its column."""
    engine = CdpEngine()
    engine.deploy(
        load(
            "event A(v: int) event B(v: int) rule late: define C(v: int) from A() "
            f"and last B() within {2 * entries} us from A where v = B.v"
        )
    )
    type_ = EventType.of("B", v="int")

    def advance(start: int, count: int) -> float:
        """The seconds that it takes to take so many events in, one every other microsecond."""
        place = np.arange(start, start + 2 * count, 2)
        engine.push(batch(type_, place, place, (place,)))
        started = time.process_time()
        engine.advance(2 * entries)
        return time.process_time() - started

    advance(0, entries)
    for distance in (100, 10_000, 100_000, entries - LATE):
        if distance <= entries - LATE:
            # Odd times, so that they come between two, and each in an advance of its own.
            first = 2 * (entries - distance - LATE) + 1
            spent = sorted(advance(first + 2 * one, 1) for one in range(LATE))
            title = f"detection/an event after {distance:,} later ones of its column"
            yield Row(title, spent[LATE // 2] * 1e6, "us", "", None)


def measure_singly(workload: Workload) -> Iterable[Row]:
    """Microseconds of CPU time for one event at a time: as a row, at the engine's own entry; as a
    batch of one; and as a batch of one with batches of what it sets off.

    The engine's own time is that until what an event set off stands in its columns; batches of it
    are made only for who asks, and the last two rows ask every time.
    """
    ones = [
        batch.take(slice(place, place + 1))
        for chunk in workload.chunks
        for batch in chunk
        for place in range(len(batch))
    ]
    ones.sort(key=lambda one: int(one.time[0]))
    rows = [row_of(one) for one in ones]
    for how, by_row, is_read in (
        (" as rows", True, False),
        ("", False, False),
        (", read as batches", False, True),
    ):
        engine = CdpEngine()
        engine.deploy(load(workload.rules))
        spent = []
        for one, row in zip(ones, rows, strict=True):
            assert row is not None, "the events of the workload are known by their numbers"
            mark = row.time + 1
            started = time.process_time_ns()
            if by_row:
                engine.push_row(one.type, row)
            else:
                engine.push(one)
            found = engine.advance(mark)
            if is_read:
                assert len(found.batches) <= len(found)
            spent.append(time.process_time_ns() - started)
        microseconds = np.array(spent[workload.warm_up :]) / 1e3
        for name, value in (
            ("mean", float(microseconds.mean())),
            ("p99", float(np.percentile(microseconds, 99))),
        ):
            title = f"detection/{workload.name}, one at a time{how}, {name}"
            yield Row(title, value, "us", "", None)


def measure_threads(workload: Workload) -> Iterable[Row]:
    """Events a second on two threads beside one, after the warm-up: by elapsed time, which needs
    two free cores, and by the processor time of both.
    """
    rates = []
    for threads in (1, 2):
        engine = deployed("cdp", load(workload.rules), threads)
        events, elapsed, spent = 0, 0.0, 0.0
        for place, chunk in enumerate(workload.chunks):
            begun, started = time.perf_counter(), time.process_time()
            for batch in chunk:
                engine.push(batch)
            engine.advance(max(int(batch.time[-1]) for batch in chunk) + 1)
            if place * CHUNK >= workload.warm_up or place + 1 == len(workload.chunks):
                elapsed += time.perf_counter() - begun
                spent += time.process_time() - started
                events += sum(map(len, chunk))
        rates.append((events / elapsed, events / spent))
    for how, one, two in zip(("", ", CPU time"), *rates, strict=True):
        title = f"detection/{workload.name}, two threads{how}"
        yield Row(title, two, "events/s", "one thread", one)


# --- workloads ---------------------------------------------------------------------------------


def sequences(
    states: int, policy: str, rules: int, events: int, baseline: float | None
) -> Workload:
    """The sequence family: states, selection policy and number of rules."""
    rng = np.random.default_rng(SEED)
    types = 10
    values = -(-rules * states // 100)
    pairs = np.repeat(np.arange(types * values), 10)
    rng.shuffle(pairs)
    lines = [f"event T{number}(a: int, b: float)" for number in range(types)]
    for number in range(rules):
        chosen = pairs[number * states : (number + 1) * states]
        kinds = [(int(pair) // values, int(pair) % values) for pair in chosen]
        body = f"T{kinds[0][0]}(a = {kinds[0][1]}) as s0"
        for place, (kind, value) in enumerate(kinds[1:], 1):
            window = int(rng.integers(14_000, 16_001))
            body += (
                f" and {policy} T{kind}(a = {value}) as s{place}"
                f" within {window} ms from s{place - 1}"
            )
        lines.append(
            f"rule r{number}: define C{number % types}(b: float) from {body} where b = s0.b"
        )
    warm_up = 16 * states * 100
    total = warm_up + events
    schema = [EventType.of(f"T{number}", a="int", b="float") for number in range(types)]
    kind = rng.integers(0, types, total)
    value = rng.integers(0, values, total)
    at = np.arange(total) * (MICROSECONDS // 100)
    chunks = []
    for start in range(0, total, CHUNK):
        part = slice(start, start + CHUNK)
        batches = []
        for number in range(types):
            chosen = np.flatnonzero(kind[part] == number) + start
            if len(chosen):
                columns = (value[chosen], chosen.astype(np.float64))
                batches.append(batch(schema[number], at[chosen], chosen, columns))
        chunks.append(batches)
    name = f"{states} states {policy}" + (f", {rules:,} rules" if rules > 1_000 else "")
    return Workload(name, "\n".join(lines), chunks, warm_up, baseline)


def fire(thresholds: int, events: int, baseline: float) -> Workload:
    """R3 of the thesis: ten kinds of fire, a hundred thresholds each, windows of 60 s."""
    rng = np.random.default_rng(SEED)
    lines, kinds = [], 10
    for kind in range(kinds):
        lines.append(f"event Smoke{kind}(area: string)")
        lines.append(f"event Temp{kind}(area: string, value: int)")
        lines.extend(
            f"rule r{kind}_{level}: define Fire{kind}(area: string, t: int)"
            f" from Smoke{kind}(area = $a) and last Temp{kind}(area = $a, value > {level})"
            f" within 60 s from Smoke{kind} where area = $a, t = Temp{kind}.value"
            for level in range(thresholds)
        )
    warm_up = 100_000 if thresholds >= 100 else 0  # the lists of a window of 60 s grow until then
    total = warm_up + events
    at = np.arange(total) * (MICROSECONDS // 1_000)
    chosen_kind = rng.integers(0, kinds, total)
    is_smoke = rng.random(total) < 0.5
    value = rng.integers(1, 101, total)
    chunks = []
    for start in range(0, total, CHUNK):
        part = slice(start, start + CHUNK)
        batches = []
        for kind in range(kinds):
            of_kind = chosen_kind[part] == kind
            smoke = np.flatnonzero(of_kind & is_smoke[part]) + start
            temp = np.flatnonzero(of_kind & ~is_smoke[part]) + start
            area = EventType.of(f"Smoke{kind}", area="string")
            batches.append(batch(area, at[smoke], smoke, (areas(len(smoke)),)))
            type_ = EventType.of(f"Temp{kind}", area="string", value="int")
            batches.append(batch(type_, at[temp], temp, (areas(len(temp)), value[temp])))
        chunks.append([one for one in batches if len(one)])
    return Workload("fire last", "\n".join(lines), chunks, warm_up, baseline)


def aggregate_join(window: int, events: int, baseline: float | None) -> Workload:
    """R10 of the thesis (chapter 6): values in 1 to 50,000, windows in ticks, a Sum aggregate."""
    rules = f"""event A(v: int)
event B(v: int)
event C(v: int)
rule r10: define CE(v: int, total: int)
from A(v = $x) and last B(v = $x) within {window} us from A
     and $s = Sum(C(v = $x).v) within {window} us from A
where v = A.v, total = $s"""
    return Workload(
        f"R10, windows of {window:,}",
        rules,
        three_types(window + events, 50_000),
        window,
        baseline,
    )


def join(events: int, baseline: float) -> Workload:
    """One rule that joins two events by a value."""
    rules = """event A(v: int)
event B(v: int)
event C(v: int)
rule join: define CE(v: int)
from A(v = $x) and last B(v = $x) within 10000 us from A where v = $x"""
    return Workload("one join rule", rules, three_types(events, 1_000), 0, baseline)


def rare_partners(events: int) -> Workload:
    """A sequence of three of which most ends are missing, asked for by half of all events."""
    rules = """event A(v: int)
event B(v: int)
event C(v: int)
rule rare: define CE(v: int)
from C() and each B() within 200 us from C and each A(v = B.v) within 200 us from B where v = C.v"""
    chunks = three_types(events, 1_000, (0.05, 0.45, 0.5))
    return Workload("rare partners", rules, chunks, events // 2)


def three_types(
    total: int, values: int, shares: Sequence[float] = (1 / 3,) * 3
) -> list[list[EventBatch]]:
    """Events of types A, B and C, one a microsecond, with a value each."""
    rng = np.random.default_rng(SEED)
    kind = rng.choice(3, total, p=shares)
    value = rng.integers(1, values + 1, total)
    types = [EventType.of(name, v="int") for name in "ABC"]
    chunks = []
    for start in range(0, total, CHUNK):
        places = [
            np.flatnonzero(kind[start : start + CHUNK] == number) + start for number in range(3)
        ]
        chunks.append(
            [
                batch(types[number], place, place, (value[place],))
                for number, place in enumerate(places)
                if len(place)
            ]
        )
    return chunks


def areas(count: int) -> StringColumn:
    """All in one area, so that every event counts."""
    return StringColumn.constant("hall", count)


def batch(
    type_: EventType,
    at: Int64s,
    sequence: Int64s,
    columns: tuple[np.ndarray | StringColumn, ...],
) -> EventBatch:
    """Events of one source."""
    ids = EventIds(StringColumn.constant("generator", len(at)), sequence.astype(np.int64))
    return EventBatch(type_, at.astype(np.int64), ids, columns)

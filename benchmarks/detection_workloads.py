"""What :mod:`benchmarks.detection` measures: rules, and events in chunks, all from one seed.

The sequence family: 1,000 rules of a few states, ten event types, each state a type and a value,
every event relevant to exactly ten (rule, state) pairs, windows of 14 to 16 s a step, 100 or 1,000
events a second of event time. The fire case: R1 and R3 with ten kinds and a hundred thresholds
each, windows of 60 s, half of the events Smoke. R10: a sequence and an aggregate joined by a value
among 50,000, windows in ticks. Beside them simpler joins, each for one way to find events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matcher.model import MICROSECONDS, EventBatch, EventIds, EventType, Int64s, StringColumn

SEED = 7
CHUNK = 4_096
"""Events pushed before each advance."""
TYPES = 10
"""Event types of the sequences, and kinds of fire."""
VALUES = 50_000
THREE_TYPES = "event A(v: int)\nevent B(v: int)\nevent C(v: int)\n"


@dataclass(frozen=True, slots=True)
class Workload:
    """Rules, chunks of events in order of time, and how many of them only warm up.

    Chunks have ``chunk`` events each: few where an event sets off thousands of composite events.
    """

    name: str
    rules: str
    chunks: Sequence[Sequence[EventBatch]]
    warm_up: int
    baseline: float | None = None
    chunk: int = CHUNK


def with_ids(workload: Workload, make_ids: Callable[[EventIds], EventIds]) -> Workload:
    """The same events with other ids."""
    chunks = [
        [replace(batch, ids=make_ids(batch.ids)) for batch in chunk] for chunk in workload.chunks
    ]
    return replace(workload, chunks=chunks)


def texts(ids: EventIds, text: Callable[[int], str]) -> EventIds:
    """Ids that are texts, made of the sequence numbers."""
    column = StringColumn.from_strings(list(map(text, ids.sequence.tolist())))
    return EventIds(ids.source, ids.sequence, column)


def sequences(
    states: int,
    policy: str,
    rules: int,
    events: int,
    baseline: float | None = None,
    *,
    rate: int = 100,
    chunk: int = CHUNK,
) -> Workload:
    """The sequence family: states, selection policy, number of rules, and events a second."""
    rng = np.random.default_rng(SEED)
    values = -(-rules * states // 100)
    pairs = np.repeat(np.arange(TYPES * values), 10)
    rng.shuffle(pairs)
    lines = [f"event T{number}(a: int, b: float)" for number in range(TYPES)]
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
            f"rule r{number}: define C{number % TYPES}(b: float) from {body} where b = s0.b"
        )
    warm_up = 16 * states * rate
    total = warm_up + events
    schema = [EventType.of(f"T{number}", a="int", b="float") for number in range(TYPES)]
    kind = rng.integers(0, TYPES, total)
    value = rng.integers(0, values, total)
    at = np.arange(total) * (MICROSECONDS // rate)
    chunks = []
    for start in range(0, total, chunk):
        part = slice(start, start + chunk)
        batches = []
        for number in range(TYPES):
            chosen = np.flatnonzero(kind[part] == number) + start
            if len(chosen):
                columns = (value[chosen], chosen.astype(np.float64))
                batches.append(batch_of(schema[number], at[chosen], chosen, columns))
        chunks.append(batches)
    name = f"{states} states {policy}" + (f", {rules:,} rules" if rules > 1_000 else "")
    name += f", {rate:,} events/s" if rate > 100 else ""
    return Workload(name, "\n".join(lines), chunks, warm_up, baseline, chunk)


def fire(
    policy: str, thresholds: int, events: int, baseline: float | None = None, *, chunk: int = CHUNK
) -> Workload:
    """R1 (``each``) or R3 (``last``) of the thesis: ten kinds of fire, so many thresholds each.

    With ``each`` a Smoke sets off some 150,000 composite events: only Temp comes to fill its
    windows.
    """
    rng = np.random.default_rng(SEED)
    lines = []
    for kind in range(TYPES):
        lines.append(f"event Smoke{kind}(area: string)")
        lines.append(f"event Temp{kind}(area: string, value: int)")
        lines.extend(
            f"rule r{kind}_{level}: define Fire{kind}(area: string, t: int)"
            f" from Smoke{kind}(area = $a) and {policy} Temp{kind}(area = $a, value > {level})"
            f" within 60 s from Smoke{kind} where area = $a, t = Temp{kind}.value"
            for level in range(thresholds)
        )
    is_single = policy == "last"
    warm_up = (100_000 if is_single else 60_000) if thresholds >= 100 else 0
    total = warm_up + events
    at = np.arange(total) * (MICROSECONDS // 1_000)
    chosen_kind = rng.integers(0, TYPES, total)
    is_smoke = rng.random(total) < 0.5
    if not is_single:
        kept = ~is_smoke | (np.arange(total) >= warm_up)
        at, chosen_kind, is_smoke = at[kept], chosen_kind[kept], is_smoke[kept]
        warm_up -= total - len(at)
        total = len(at)
    value = rng.integers(1, 101, total)
    chunks = []
    for start in range(0, total, chunk):
        part = slice(start, start + chunk)
        batches = []
        for kind in range(TYPES):
            of_kind = chosen_kind[part] == kind
            smoke = np.flatnonzero(of_kind & is_smoke[part]) + start
            temp = np.flatnonzero(of_kind & ~is_smoke[part]) + start
            area = EventType.of(f"Smoke{kind}", area="string")
            batches.append(batch_of(area, at[smoke], smoke, (areas(len(smoke)),)))
            type_ = EventType.of(f"Temp{kind}", area="string", value="int")
            batches.append(batch_of(type_, at[temp], temp, (areas(len(temp)), value[temp])))
        chunks.append([one for one in batches if len(one)])
    return Workload(f"fire {policy}", "\n".join(lines), chunks, warm_up, baseline, chunk)


def r10(policy: str, window: int, of_the_sum: int, events: int) -> Workload:
    """R10 of the thesis (chapter 6), with its windows in ticks: the sequence's and the Sum's."""
    rules = f"""{THREE_TYPES}
rule r10: define CE(v: int, total: int)
from C(v = $x) and {policy} B(v = $x) within {window} us from C
     and {policy} A(v = $x) within {window} us from B
     and $s = Sum(A(v = $x).v) within {of_the_sum} us from B
where v = $x, total = $s"""
    warm_up = max(2 * window, window + of_the_sum)
    name = f"R10 {policy}, windows of {window:,} and {of_the_sum:,}"
    return Workload(name, rules, three_types(warm_up + events, VALUES), warm_up)


def aggregate_join(window: int, events: int, baseline: float | None) -> Workload:
    """Two events joined by a value, and a Sum joined too: R10 without its last state."""
    rules = f"""{THREE_TYPES}
rule sums: define CE(v: int, total: int)
from A(v = $x) and last B(v = $x) within {window} us from A
     and $s = Sum(C(v = $x).v) within {window} us from A
where v = A.v, total = $s"""
    name = f"a join with a Sum, windows of {window:,}"
    return Workload(name, rules, three_types(window + events, VALUES), window, baseline)


def inequality(window: int, events: int) -> Workload:
    """The last event that is not below a value which one event of 33,000 reaches, or two do."""
    rules = f"""{THREE_TYPES}
rule above: define CE(v: int)
from A() and last B(v >= {VALUES} - A.v % 2) within {window} us from A where v = B.v"""
    chunks = three_types(window + events, VALUES)
    return Workload(f"last by inequality, window of {window:,}", rules, chunks, window)


def join(events: int, baseline: float | None) -> Workload:
    """One rule that joins two events by a value."""
    rules = f"""{THREE_TYPES}
rule join: define CE(v: int)
from A(v = $x) and last B(v = $x) within 10000 us from A where v = $x"""
    return Workload("one join rule", rules, three_types(events, 1_000), 0, baseline)


def rare_partners(events: int) -> Workload:
    """A sequence of three of which most ends are missing, asked for by half of all events."""
    rules = f"""{THREE_TYPES}
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
                batch_of(types[number], place, place, (value[place],))
                for number, place in enumerate(places)
                if len(place)
            ]
        )
    return chunks


def areas(count: int) -> StringColumn:
    """All in one area, so that every event counts."""
    return StringColumn.constant("hall", count)


def batch_of(
    type_: EventType,
    at: Int64s,
    sequence: Int64s,
    columns: tuple[np.ndarray | StringColumn, ...],
) -> EventBatch:
    """Events of one source."""
    ids = EventIds(StringColumn.constant("generator", len(at)), sequence.astype(np.int64))
    return EventBatch(type_, at.astype(np.int64), ids, columns)

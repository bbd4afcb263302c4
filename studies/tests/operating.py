"""Random streams and operators, and how those of a place are compared with the definitions."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from studies.operators import Aggregate, Filter, Join, Length, Place, Stream, Time, Window
from studies.operators.naive import Aggregated, Filtered, Joined, Windowed, rows_of

A = EventType.of("A", s="string", x="int", v="float", b="bool", o="int?")
B = EventType.of("B", s="string", y="int", w="float")
TEXTS = ("", "a", "ab", "abc", "B", "bc", "é", "zab")
INTS = (0, 1, 2, 3, -1, 7, 2**62, -(2**63))
FLOATS = (0.0, 0.5, 1.0, -2.5, 1e300, 3.0, 2.0**53, 1e-300)

CONDITIONS = (
    "",
    "x > 1",
    "x + 1 >= v",
    'not s = "ab"',
    's prefix "a" and s suffix "c" or s contains "b"',
    '"abc" prefix s',
    's < "b"',
    "x * x > 4 and not b",
    "x % 2 = 1 or v % 0.75 > 0.5",
    "x / v > 1",
    "x in (1, 3, 7, 11)",
    "-x < 2 and -v <= 0.5",
    "o > 1 or x > 2",
    "o is null",
    'lower(s) = "b"',
    's matches "^a.*c$"',
    "time > 20 and b",
)


def times(rng: random.Random, count: int, begin: int) -> list[int]:
    found = []
    for _ in range(count):
        begin += rng.choice((0, 0, 1, 1, 2, 9))
        found.append(begin)
    return found


def events(rng: random.Random, type_: EventType, at: Sequence[int]) -> EventBatch:
    """A batch of random events at these times."""
    pools = {"string": TEXTS, "int": INTS, "float": FLOATS, "bool": (True, False)}
    columns = []
    for attribute in type_.attributes:
        values = [rng.choice(pools[attribute.kind.value]) for _ in at]
        if attribute.kind.value == "string":
            columns.append(StringColumn.from_strings(values))
        else:
            dtype = {"int": np.int64, "float": np.float64, "bool": np.bool_}
            columns.append(np.array(values, dtype[attribute.kind.value]))
    ids = EventIds(StringColumn.constant("s", len(at)), np.array(at, np.int64))
    return EventBatch(type_, np.array(at, np.int64), ids, tuple(columns))


def stream_of(rng: random.Random, type_: EventType, sizes: Sequence[int]) -> list[EventBatch]:
    now, made = 0, []
    for size in sizes:
        at = times(rng, size, now)
        now = at[-1] if at else now
        made.append(events(rng, type_, at))
    return made


def extent(rng: random.Random, most: int) -> Length | Time:
    return rng.choice((Length(1), Length(3), Length(most), Time(0), Time(3), Time(most)))


def check_filter(place: Place, seed: int, sizes: Sequence[int]) -> None:
    rng = random.Random(seed)
    condition = CONDITIONS[seed % len(CONDITIONS)]
    made, oracle = Filter(A, condition, device=place), Filtered(A, condition)
    batches = stream_of(rng, A, sizes)
    found = [rows_of(batch) for batch in made.stream(batches)]
    expected = [[row for row in rows_of(batch) if oracle.push(row)] for batch in batches]
    assert found == expected, condition
    places = [place for place, row in enumerate(rows_of(batches[0])) if oracle.push(row)]
    assert made.places(batches[0]).tolist() == places


def check_window(place: Place, seed: int, sizes: Sequence[int]) -> None:
    rng = random.Random(seed)
    window = extent(rng, 12)
    where = rng.choice(("", "x > 0"))
    made = Window(A, window, where=where, device=place)
    oracle, ahead = Windowed(window), Filtered(A, where)
    batches = stream_of(rng, A, sizes)
    for changes, batch in zip(made.stream(batches), batches, strict=True):
        expected = [
            change for row in rows_of(batch) if ahead.push(row) for change in oracle.push(row)
        ]
        found = list(zip(rows_of(changes.events), changes.expired.tolist(), strict=True))
        assert found == expected, window


JOINS = (
    "",
    "a.x = b.y",
    "a.s = b.s and a.v < b.w",
    "b.y < a.x and (a.b or b.w > 1)",
    "a.x - b.y < 2 and a.x > 0 and b.w != 0.5",
    "a.x + 1 = b.y - 1 and a.time - b.time < 4",
    'a.s prefix "a" and lower(b.s) = lower(a.s)',
    "a.s < b.s",
    "a.o = b.y",
    "a.v = b.y",
    "a.x >= b.w and a.x / b.y > 1",
)
SELECTED = (
    {"s": "a.s", "t": "b.s", "x": "a.x", "w": "b.w"},
    {"d": "a.time - b.time", "q": "a.x / b.y"},
    {"o": "a.o", "m": "b.y * 2", "is": "a.b"},
    {},
)


def check_join(place: Place, seed: int, sizes: Sequence[tuple[int, int]]) -> None:
    rng = random.Random(seed)
    left = Stream(A, "a", extent(rng, 12), rng.choice(("", "", "x > 0")))
    right = Stream(B, "b", extent(rng, 12), rng.choice(("", "", 's != "a"')))
    on, select = JOINS[seed % len(JOINS)], rng.choice(SELECTED)
    within, trigger = rng.choice((None, None, 4)), rng.choice(("both", "left", "right"))
    made = Join(left, right, on, select, within=within, trigger=trigger, device=place)
    oracle = Joined(left, right, on, select, within=within, trigger=trigger)
    now, batches = 0, []
    for some, others in sizes:
        ours, theirs = times(rng, some, now), times(rng, others, now)
        now = max([now, *ours, *theirs])
        batches.append((events(rng, A, ours), events(rng, B, theirs)))
    for number, (found, batch) in enumerate(zip(made.stream(batches), batches, strict=True)):
        expected = oracle.push(rows_of(batch[0]), rows_of(batch[1]))
        assert rows_of(found) == expected, (on, number)


AGGREGATES = (
    {"n": "Count(A())"},
    {"n": "Count(A(x > 0))", "least": "Min(A().x)", "most": "Max(A().v)"},
    {"sum": "Sum(A().x)", "m": "Avg(A().x)"},
    {"m": "Avg(A(x > 0).x)", "least": "Min(A(b).v)"},
    {"sum": "Sum(A().o)", "n": "Count(A().o)"},
    {"most": "Max(A().x % 5)", "least": "Min(A().v * 2)"},
)
OF_FLOATS = (
    {"sum": "Sum(A().v)"},
    {"m": "Avg(A().v)", "n": "Count(A())"},
    {"sum": "Sum(A(b).v * 0.1)"},
)


def check_aggregate(place: Place, seed: int, sizes: Sequence[int]) -> None:
    rng = random.Random(seed)
    pool = AGGREGATES if place.is_device else AGGREGATES + OF_FLOATS
    select = pool[seed % len(pool)]
    window, where = extent(rng, 12), rng.choice(("", "", "x < 3"))
    by = rng.choice(((), ("s",), ("b", "s")))
    made = Aggregate(A, window, select, by=by, where=where, device=place)
    oracle = Aggregated(A, window, select, by=by, where=where)
    batches = stream_of(rng, A, sizes)
    for found, batch in zip(made.stream(batches), batches, strict=True):
        expected = [out for row in rows_of(batch) for out in oracle.push(row)]
        assert rows_of(found) == expected, (select, by, window)

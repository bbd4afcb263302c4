"""Aggregates and inequalities over windows of hundreds of events: the engine against the oracle.

Values are chosen to hurt: sums that cancel, ints at the end of their range, floats of every size,
both zeros, many equal times. Events come late, old ones go, rules come when much is stored.
"""

import itertools
import os
import random
from collections.abc import Iterator

import pytest
from agreement import row
from engines import make
from pairs import seeds
from timeline import batches

import rules
from matcher.model import TIME_MAX, Event, EventType

SCHEMAS = {
    "A": EventType.of("A", k="int", x="float"),
    "B": EventType.of("B", k="int", x="float", n="int", s="string"),
}
HEADER = "event A(k: int, x: float) event B(k: int, x: float, n: int, s: string)\n"
KINDS = (("k", int), ("x", float), ("n", int), ("s", str))
SELECTS = ("last", "first", "each", "2-last", "3-first")
FLOATS = (1e16, -1e16, 1.0, 0.1, -0.0, 0.0, 1e308, -1e308, 5e-324, 1e-300)
INTS = (2**63 - 1, -(2**63), 2**62, -(2**62), 0, 1, 2**53 + 1)
WINDOWS = (1, 3, 40, 300, 5000)


def random_aggregate(random_: random.Random, name: str) -> str:
    function = random_.choice(("Sum", "Avg", "Min", "Max", "StdDev", "Count"))
    attribute = random_.choice(("s", "n", "x") if function in ("Min", "Max") else ("n", "x"))
    condition = random_.choice(("", "k = $k", "k = $k", "x < $x", "x >= $x, n > 0", "n < a.k"))
    window = f"within {random_.choice(WINDOWS)} us from a"
    if random_.random() < 0.2:
        window = random_.choice(("between b and a", "between a and b"))
    return f"{name} = {function}(B({condition}).{attribute}) {window}"


def random_rule(random_: random.Random, number: int) -> str:
    bound = random_.choice(("x > $x", "x <= $x", "n < a.k", "n >= a.x", "x < a.k, x > $x - 2"))
    conditions = [bound] if random_.random() < 0.7 else []
    if random_.random() < 0.4:
        conditions.append("k = $k")
    window = random_.choice(WINDOWS)
    clauses = [
        f"from A(k = $k, x = $x) as a and {random_.choice(SELECTS)} B({', '.join(conditions)}) as b"
        f" within {window} us from a"
    ]
    if random_.random() < 0.3:
        condition = random_.choice(("x > b.x, x < $x", "n > b.n", "x = b.x, k < $k"))
        clauses.append(f"and not B({condition}) between b and a")
    clauses.append(f"and ${random_aggregate(random_, 'one')}")
    if random_.random() < 0.4:
        clauses.append(f"and ${random_aggregate(random_, 'two')} and $two < $two + 1")
    consuming = " consuming b" if random_.random() < 0.15 else ""
    text = "\n".join(clauses).replace("$two < $two + 1", "b.n <= b.n")
    return f"rule r{number}: define X{number}(one, n)\n{text}\nwhere one = $one, n = b.n{consuming}"


def random_events(random_: random.Random, count: int) -> list[Event]:
    harsh = random_.random() < 0.5
    events, time = [], 0
    for number in range(count):
        time += random_.choice((0, 0, 1, 1, 2, 20 if random_.random() < 0.05 else 1))
        x = (
            random_.choice(FLOATS)
            if harsh and random_.random() < 0.3
            else random_.randint(-80, 80) / 10
        )
        n = random_.choice(INTS) if harsh and random_.random() < 0.1 else random_.randint(-5, 5)
        k = random_.randint(0, 2)
        is_terminator = random_.random() < 0.12
        data = {"k": k, "x": x} if is_terminator else {"k": k, "x": x, "n": n, "s": f"{n % 7}"}
        name = "A" if is_terminator else "B"
        events.append(Event(name, time, "s", str(number), data, number))
    return events


def random_schedule(
    random_: random.Random, events: list[Event]
) -> Iterator[tuple[list[Event], int]]:
    """Pushes and marks; some events come only after the marks have passed them."""
    late = [event for event in events if random_.random() < 0.05]
    orderly = [event for event in events if event not in late]
    places = sorted(random_.sample(range(len(orderly)), 6))
    for low, high in itertools.pairwise((0, *places, len(orderly))):
        some = [late.pop() for _ in range(min(len(late), random_.randint(0, 3)))]
        mark = orderly[high].time if high < len(orderly) else TIME_MAX
        yield [*orderly[low:high], *some], mark


COUNT = max(len(seeds(8, 20)), int(os.environ.get("REXMQ_CASES", "0")) // 10)
FIRST = int(os.environ.get("REXMQ_SEED", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
@pytest.mark.timeout(3600)
def test_long_windows(seed: int, monkeypatch: pytest.MonkeyPatch):
    random_ = random.Random(seed)
    monkeypatch.setattr("rules.engine.memory.growth.SCAN_MAX", random_.choice((0, 8, 32)))
    text = HEADER + "\n".join(random_rule(random_, number) for number in range(2))
    events = random_events(random_, 350)
    schedule = list(random_schedule(random_, events))
    engines = [make("naive"), make("cdp")]
    for engine in engines:
        engine.deploy(rules.load(text))
    count = 0
    for some, mark in schedule:
        found = []
        for engine in engines:
            for batch in batches(some, SCHEMAS.values()):
                engine.push(batch)
            found.append(list(engine.advance(mark).events()))
        theirs, ours = ([row(event) for event in some] for some in found)
        count += len(ours)
        assert ours == theirs, f"seed {seed}\n{text}"
    assert count, "a case without matches tests nothing"


TAKEN_OUT = """
120 2 1.25 -1 6, 121 2 -1.5 3 3, 122 1 1.75 -2 5, 123 2 -1.75 0 0, 124 2 -2.0 -1 6, 124 2 0.5 -4 3,
125 2 1.25 -2 5, 127 0 -0.25 2 2, 129 0 -2.0 2 2, 130 2 -1.25 0 0, 131 2 -0.5 3 3, 132 2 -0.75 2 2,
134 1 2.0 0 0, 135 2 2.0 5 5, 135 2 0.25 -2 5, 241 0 -2.0 -4 3, 242 2 2.0 4 4, 242 2 -1.25,
274 2 1.5 -1 6, 275 2 0.75, 293 1 1.0 5 5, 293 2 2.0 -2 5, 294 2 2.0"""
"""Events of B, and of A with no more than two values: times and values."""


def test_a_summary_in_front_of_which_entries_were_taken_out_covers_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It went on to cover places beyond the list's last, and what came there later (700108)."""
    monkeypatch.setattr("rules.engine.memory.growth.SCAN_MAX", 0)
    rule = """rule r: define X(one, n)
        from A(k = $k, x = $x) as a and each B(n < a.k, k = $k) as b within 300 us from a
        and not B(x > b.x, x < $x) between b and a
        and $one = Max(B(k = $k).s) within 1 us from a
        and $two = Avg(B(x < $x).x) within 1 us from a
        where one = $one, n = b.n consuming b"""
    events = []
    for number, line in enumerate(TAKEN_OUT.split(",")):
        time, *words = line.split()
        data = {name: kind(word) for (name, kind), word in zip(KINDS, words, strict=False)}
        name = "B" if "s" in data else "A"
        events.append(Event(name, int(time), "s", str(number), data, number))
    for name in ("naive", "cdp"):
        engine = make(name)
        engine.deploy(rules.load(HEADER + rule))
        told = []
        for begin, mark in itertools.pairwise((0, 136, 253, TIME_MAX)):
            for event in (one for one in events if begin < one.time < mark):
                for batch in batches([event], SCHEMAS.values()):
                    engine.push(batch)
            told += [(one.time, one.data) for one in engine.advance(mark).events()]
        assert told[-2:] == [(294, {"one": "5", "n": n}) for n in (-1, -2)], name

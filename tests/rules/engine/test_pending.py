"""Events wait for the marks of their types, and arrive once, in the order of (time, E4)."""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

import rules
from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MAX, TIME_MIN, EventBatch, EventIds, EventType, StringColumn
from matcher.single import Row, Single
from rules.engine.cdp import CdpEngine
from rules.engine.kernels import layout
from rules.engine.kernels.instants import let_arrive

TYPES = [EventType.of(name, n="int") for name in "ABC"]
RULES = """event A(n: int) event B(n: int) event C(n: int)
rule x: define X() from A() and each B() within 1 s from A and each C() within 1 s from A"""
DIGEST = RULE_SOURCE + "other"


@dataclass
class Waiting:
    """The obvious one: what waits, and what has come, as lists."""

    seen: set[tuple[str, int]] = field(default_factory=set)
    waiting: list[tuple[int, int, str, int, int]] = field(default_factory=list)

    def add(self, type_: int, time: int, source: str, sequence: int, n: int) -> None:
        if source != DIGEST:
            if (source, sequence) in self.seen:
                return
            self.seen.add((source, sequence))
        self.waiting.append((time, type_, source, sequence, n))

    def take(self, marks: list[int], until: int) -> list[int]:
        def is_due(one: tuple[int, int, str, int, int]) -> bool:
            end = min(until, marks[one[1]])
            return one[0] < end or end == TIME_MAX

        due = [one for one in self.waiting if is_due(one)]
        self.waiting = [one for one in self.waiting if not is_due(one)]
        due.sort(key=lambda one: (one[0], one[2] == DIGEST, one[2], one[3]))
        return [one[4] for one in due]


class Pushed:
    """The same events and marks through the engine's."""

    def __init__(self) -> None:
        self.engine = CdpEngine()
        self.engine.deploy(rules.load(RULES))
        self.pending = self.engine._pending
        numbers = self.engine._linker.tables.type_numbers
        self.numbers = [numbers[type_.name] for type_ in TYPES]

    def push(self, type_: int, rows: list[tuple[int, str, int, int]], alone: bool) -> None:
        if alone:
            (time, source, sequence, n) = rows[0]
            self.engine.push_row(TYPES[type_], Row(time, source, sequence, None, (n,)))
            return
        times, sources, sequences, values = zip(*rows, strict=True)
        digest = np.array([(n, n) for n in values], np.uint64) if sources[0] == DIGEST else None
        ids = EventIds(
            StringColumn.from_strings(sources), np.array(sequences, np.int64), None, digest
        )
        batch = EventBatch(TYPES[type_], np.array(times), ids, (np.array(values),))
        self.pending.add(self.numbers[type_], batch)

    def take(self, floor: int, marks: list[int], until: int) -> list[int]:
        by_name = dict(zip([type_.name for type_ in TYPES], marks, strict=True))
        self.pending.let_arrive(floor, by_name.__getitem__, until)
        arrays = self.engine._arrays
        self.pending.show()
        while (status := let_arrive(arrays.state)) != layout.DONE:
            self.pending.grow(status)
        self.pending.arrived()
        arrivals = arrays["arrivals"][: arrays.counters[layout.ARRIVALS]]
        arrays.counters[layout.ARRIVALS] = 0
        return arrays["inbox"][arrivals["offset"] + layout.HEADER].tolist()


@pytest.mark.parametrize("seed", range(12))
def test_what_arrives_is_what_marks_have_passed_in_order(seed: int):
    random_ = random.Random(seed)
    model, pushed = Waiting(), Pushed()
    span = random_.choice([5, 40, 10**12])
    floor, marks, now, n = TIME_MIN, [TIME_MIN] * 3, 0, 0
    for _ in range(150):
        for _ in range(random_.randrange(4)):
            type_ = random_.randrange(3)
            is_composite, alone = random_.random() < 0.2, random_.random() < 0.4
            rows, count = [], 1 if alone else random_.choice([1, 2, 30])
            for _ in range(count):
                source = DIGEST if is_composite and not alone else random_.choice("abc")
                n += 1
                # No two of a rule's composite events are of one place: nothing would order them.
                sequence = n if source == DIGEST else random_.randrange(3000)
                rows.append((now + random_.randrange(-span, span), source, sequence, n))
            if random_.random() < 0.7:
                rows.sort()
            pushed.push(type_, rows, alone)
            for row in rows:
                model.add(type_, *row)
        now += random_.randrange(span)
        until = random_.choice([TIME_MAX, TIME_MAX, now])
        if random_.random() < 0.7:
            raised = random_.randrange(3)
            marks[raised] = max(marks[raised], now + random_.randrange(-2 * span, span))
        floor = max(floor, random_.choice([TIME_MIN, now - 5 * span]))
        marks = [max(mark, floor) for mark in marks]
        assert pushed.take(floor, marks, until) == model.take(marks, until), f"seed {seed}"
        assert len(pushed.pending) == len(model.waiting)
    assert pushed.take(TIME_MAX, [TIME_MAX] * 3, TIME_MAX) == model.take([TIME_MAX] * 3, TIME_MAX)
    assert not pushed.pending
    assert n > 1000


def test_room_that_only_a_great_many_events_needed_is_given_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rules.engine.intake.pending.KEPT_MAX", 1000)
    pushed = Pushed()
    pushed.push(0, [(time, "s", time, time) for time in range(5000)], alone=False)
    assert pushed.take(10, [10] * 3, TIME_MAX) == list(range(10))
    pushed.pending.forget_before(10)
    assert len(pushed.pending) == 4990
    assert pushed.take(TIME_MAX, [TIME_MAX] * 3, TIME_MAX) == list(range(10, 5000))
    pushed.pending.forget_before(TIME_MAX)
    assert len(pushed.engine._arrays["inbox"]) == 0
    pushed.push(0, [(7000, "s", 7000, 1)], alone=False)
    assert pushed.take(TIME_MAX, [TIME_MAX] * 3, TIME_MAX) == [1]


# --- explicit numbers ----------------------------------------------------------------------------

MIXED = EventType.of("M", i="int", f="float", b="bool", s="string")


def given(rows: list[tuple[int, str, int, tuple[int, float, bool, str]]], form: str) -> EventBatch:
    """Events of explicit numbers: as row numbers that are explicit, as texts, or one alone."""
    times, sources, numbers, values = zip(*rows, strict=True)
    texts = list(map(str, numbers))
    if form == "alone":
        return Single(MIXED, Row(times[0], sources[0], 0, texts[0], values[0]))
    i, f, b, s = zip(*values, strict=True)
    column = StringColumn.from_strings
    ids = EventIds(
        column(list(sources)),
        np.array(numbers),
        column(texts) if form == "texts" else None,
        given=form == "rows",
    )
    columns = (np.array(i), np.array(f, float), np.array(b), column(list(s)))
    return EventBatch(MIXED, np.array(times), ids, columns)


@pytest.mark.parametrize("seed", range(4))
def test_contents_are_told_apart_alike_however_events_come(seed: int):
    """Kernels that take a batch in digest its columns; other ids are judged outside of them."""
    rng, engine = random.Random(seed), CdpEngine()
    text = "event M(i: int, f: float, b: bool, s: string) rule m: define Y() from M()"
    engine.deploy(rules.load(text))
    known, dropped, conflicts = dict[tuple[str, int], tuple[object, ...]](), 0, 0
    for _ in range(60):
        form = rng.choice(["rows", "rows", "texts", "alone"])
        rows = []
        for _ in range(1 if form == "alone" else rng.randint(1, 40)):
            source, number = rng.choice("ab"), rng.randint(-40, 2_000)
            values = (rng.randint(-1, 0), rng.choice([-0.0, 0.0, 1.5]), rng.random() < 0.1, "x")
            rows.append((rng.randint(0, 1), source, number, values))
        for time, source, number, values in rows:
            dropped += (source, number) in known
            conflicts += known.setdefault((source, number), (time, *values)) != (time, *values)
        engine.push(given(rows, form))
    assert 0 < conflicts < dropped
    assert (engine.duplicates, engine.conflicts) == (dropped, conflicts)

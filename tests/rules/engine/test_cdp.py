"""The CDP engine: what it keeps stays bounded, what nobody uses is given back, and rules that
come and go leave the others' results alone (S15)."""

import random

import numpy as np
import pytest
from event_batches import batch_of_events
from pairs import seeds

import rules
from matcher.errors import SchemaError
from matcher.model import (
    MICROSECONDS,
    TIME_MAX,
    Event,
    EventBatch,
    EventIds,
    EventType,
    StringColumn,
)
from matcher.single import Row
from rules.engine.cdp import CdpEngine
from rules.engine.intake import clock, duplicates
from rules.engine.kernels import layout
from rules.engine.linking import interner
from rules.engine.memory import growth, retention
from rules.engine.oracle.naive import NaiveEngine
from rules.engine.results.outlets import Outlets
from runtime.memory import filled, zeros

SECOND = MICROSECONDS
A = EventType.of("A", k="int", v="float")
B = EventType.of("B", k="int", s="string")
SCHEMAS = "event A(k: int, v: float) event B(k: int, s: string)\n"
RULE = """rule pair: define Pair(k: int, n: int) from A(k = $k) as a
    and last B(k = $k, s = "x") as b within 2 s from a
    and not B(k = $k, s = "y") between b and a
    where k = a.k, n = Count(B(k = $k) within 1 s from a)"""


def engine_of(text: str = RULE) -> CdpEngine:
    engine = CdpEngine()
    engine.deploy(rules.load(SCHEMAS + text))
    return engine


def numbered(type_: EventType, first: int, times: np.ndarray, *columns: object) -> EventBatch:
    """Events of one source with ids from ``first`` on."""
    count = len(times)
    source = StringColumn.constant(f"source {type_.name}", count)
    return EventBatch(type_, times, EventIds(source, first + np.arange(count)), columns)


# --- what is kept stays bounded ----------------------------------------------------------------


@pytest.mark.parametrize("terminators", [True, False])
def test_a_million_events_whose_keys_never_come_back(terminators: bool):
    engine, chunk, most = engine_of(), 20_000, {}
    for place in range(50):
        keys = place * chunk + np.arange(chunk)
        times = keys * 100  # microseconds: 10,000 a second
        strings = StringColumn(np.zeros(chunk, np.int32), ("x",))
        engine.push(numbered(B, place * chunk, times, keys, strings))
        if terminators:
            engine.push(numbered(A, place * chunk, times + 50, keys, np.zeros(chunk)))
        engine.advance(int(times[-1]))
        if place == 12:
            most = dict(engine.memory())
    assert {name: held for name, held in engine.memory().items() if held > 1.1 * most[name]} == {}
    # Two seconds are 20,000 events; what is not yet swept and what is being swept come on top.
    assert engine.memory()["rows/B"] < 5 * chunk


def test_detections_that_nobody_looked_at_keep_their_strings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interner, "SWEEP_MIN", 100)
    engine = CdpEngine()
    engine._strings._sweep_above = engine._writer.texts._sweep_above = 100
    engine.deploy(rules.load(SCHEMAS + "define Seen(s: string) from B(k = 1) as b where s = b.s"))
    kept, expected = [], []
    for number in range(5 * retention.HORIZON_EVENTS):
        name = f"n{number}"
        events = [Event("B", number * SECOND, "s", f"id{name}", {"k": 1, "s": name}, 0)]
        engine.push(batch_of_events(B, events))
        kept.append(engine.advance(number * SECOND + 1))
        expected.append((name, (f"id{name}",)))
    assert len(engine._strings) < len(expected)  # most are forgotten, and their codes given away
    assert [(e.data["s"], e.cause) for found in kept for e in found.events()] == expected


def test_strings_and_texts_of_ids_that_never_come_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interner, "SWEEP_MIN", 1000)
    engine, chunk = CdpEngine(), 2000
    engine._strings._sweep_above = engine._writer.texts._sweep_above = 1000
    engine.deploy(rules.load(SCHEMAS + RULE))
    for place in range(40):
        names = [f"n{place}-{number}" for number in range(chunk)]
        times = [place * 4 * SECOND + number for number in range(chunk)]
        engine.push(
            batch_of_events(
                B,
                [
                    Event("B", time, "s", name, {"k": 1, "s": name}, 0)
                    for time, name in zip(times, names, strict=True)
                ],
            )
        )
        engine.advance(times[-1])
        assert engine.memory()["strings"] <= 5 * chunk
        assert engine.memory()["texts"] <= 5 * chunk


def test_ticks_of_a_timer_are_forgotten():
    engine = engine_of(
        "define Tick(n: int) from Timer() where n = Count(A() within 5 s from Timer)"
    )
    engine.push(numbered(A, 0, np.array([0]), np.array([1]), np.array([0.0])))
    found = len(engine.advance({"A": TIME_MAX, "Timer": 200_000 * SECOND}))
    assert found == 200_000
    assert engine.memory()["rows/Timer"] <= 2 * clock.TICKS_MAX


# --- giving back -------------------------------------------------------------------------------


def test_nothing_is_left_of_the_last_rule():
    engine = engine_of()
    strings = StringColumn(np.zeros(5000, np.int32), ("x",))
    engine.push(numbered(B, 0, np.arange(5000), np.arange(5000), strings))
    engine.advance(4000)
    held = engine.memory()
    assert min(held[name] for name in ("heap", "lists", "entries", "rows/B", "pending")) > 0
    engine.remove("pair")
    left = engine.memory()
    assert {name: left[name] for name in left if name != "strings"} == dict.fromkeys(
        ("heap", "lists", "entries", "texts", "pending", "deferred"), 0
    )


def test_a_type_that_no_rule_uses_any_more_gives_its_rows_back():
    engine = engine_of("rule a: define P() from A() rule b: define Q() from A() and last B() "
                       "within 9 s from A")  # fmt: skip
    strings = StringColumn(np.zeros(3000, np.int32), ("x",))
    engine.push(numbered(B, 0, np.arange(3000), np.arange(3000), strings))
    engine.advance(2000)
    assert engine.memory()["rows/B"] == 2000
    engine.remove("b")
    held = engine.memory()
    assert "rows/B" not in held
    assert (held["entries"], held["pending"], held["lists"]) == (0, 0, 0)


def test_a_type_may_come_back_with_another_schema():
    engine = engine_of("rule one: define P(k: int) from A() where k = A.k")
    engine.deploy(rules.load("event C() rule other: define Q() from C()"))
    engine.push(numbered(A, 0, np.array([1]), np.array([7]), np.array([0.5])))
    assert [event.data for event in engine.advance(5).events()] == [{"k": 7}]
    engine.remove("one")
    wider = EventType.of("A", x="string", y="int", z="int")
    engine.deploy(
        rules.load("event A(x: string, y: int, z: int) rule one: define R(z: int) from A() "
                   "where z = A.z"),
        since=10,
    )  # fmt: skip
    text = StringColumn.from_strings(["t"])
    engine.push(numbered(wider, 1, np.array([11]), text, np.array([1]), np.array([2])))
    assert [event.data for event in engine.advance(20).events()] == [{"z": 2}]


def test_a_rule_that_looks_farther_back_finds_no_events_that_are_gone():
    """A shared column whose entries were not swept yet, when their rows already are others'."""
    short = "rule short: define P() from A() and last B(k = A.k) within 1 s from A"
    engine = engine_of(short)
    for place in range(40):
        times = place * SECOND + np.arange(500) * 100
        keys = np.arange(500) if place == 0 else np.full(500, -1)
        strings = StringColumn(np.zeros(500, np.int32), ("x",))
        engine.push(numbered(B, 500 * place, times, keys, strings))
        engine.advance(int(times[-1]))
    engine.deploy(
        rules.load(SCHEMAS + "rule long: define Q(k: int) from A() "
                   "and each B(k = A.k) as b within 90 s from A where k = b.k"),
        since=0,  # or it would see none of them anyway
    )  # fmt: skip
    engine.push(numbered(A, 0, np.array([41 * SECOND]), np.array([3]), np.array([0.0])))
    assert all(event.data.get("k", 3) == 3 for event in engine.advance(TIME_MAX).events())


# --- rules that come and go --------------------------------------------------------------------


def random_events(random_: random.Random, first: int, count: int, least: int) -> list[Event]:
    """Events from ``least`` on, one every 20 ms on average, of few keys."""
    events, time = [], least
    for number in range(first, first + count):
        time += random_.choice((0, 10_000, 20_000, 50_000))
        k = random_.randrange(4)
        if random_.random() < 0.4:
            events.append(
                Event("A", time, "a", str(number), {"k": k, "v": random_.randrange(8) / 4}, number)
            )
        else:
            data = {"k": k, "s": random_.choice("xyz")}
            events.append(Event("B", time, "b", str(number), data, number))
    return events


def push(engine: CdpEngine | NaiveEngine, events: list[Event]) -> None:
    for schema in (A, B):
        chosen = [event for event in events if event.type == schema.name]
        if chosen:
            engine.push(batch_of_events(schema, chosen))


def told(event: Event) -> tuple[object, ...]:
    return event.time, event.type, event.source, event.id, event.cause_full, str(event.data)


@pytest.mark.timeout(300)
def test_thousands_of_rules_come_and_go_beside_others():
    random_, disturbed, quiet = random.Random(11), engine_of(), engine_of()
    time, held, undisturbed = 0, [], []
    for cycle in seeds(1100, 3000):
        name = f"r{cycle % 7}"
        if cycle >= 7:
            disturbed.remove(name)
        text = (
            f"rule {name}: define Z{cycle % 5}(k: int) from A(k = {cycle % 4}, v != {cycle}.5) as a"
            f' and each B(k = {cycle % 3}, s != "{cycle}") as b within {1 + cycle % 3} s from a'
            " where k = b.k"
        )
        disturbed.deploy(rules.load(SCHEMAS + text), since=time + 1, version=cycle)
        if cycle % 10 == 0:
            events = random_events(random_, 10 * cycle, 20, time)
            time = events[-1].time
            for engine, found in ((disturbed, held), (quiet, undisturbed)):
                push(engine, events)
                found += [told(one) for one in engine.advance(time).events() if one.type == "Pair"]
        if cycle == 600:
            tables = {name: len(array) for name, array in disturbed._arrays._held.items()}
            strings = disturbed.memory()["strings"]
    assert undisturbed
    assert held == undisturbed
    grown = {name: len(array) for name, array in disturbed._arrays._held.items()}
    assert grown.pop("seen") <= 16 * duplicates.SWEEP_MIN
    assert all(grown[name] <= 2 * tables[name] for name in grown if "string" not in name)
    assert disturbed.memory()["strings"] - strings < interner.SWEEP_MIN


@pytest.mark.parametrize("seed", range(6))
def test_long_histories_with_late_events_and_lagging_types_agree_with_the_oracle(seed: int):
    """Hundreds of events, late ones among them, marks by type, and a rule deployed in between."""
    random_ = random.Random(seed)
    texts = [
        RULE,
        """rule each: define E(k: int, m: float) from B(k = $k, s = "x") as b
            and each A(k = $k) as a within 400 ms from b where k = $k,
            m = Avg(A(k = $k).v within 1 s from b)""",
        """rule nth: define N(k: int) from A(k = $k) as a and 3-last B(k = $k) as b
            within 1 s from a and 2-first B(s = b.s) as c within 1 s from b where k = $k
            consuming b""",
    ]
    first = SCHEMAS + "\n".join(random_.sample(texts, 2))
    later = SCHEMAS + texts[0].replace("pair", "later").replace("Pair", "Later")
    events = random_events(random_, 0, 700, 0)
    late = [event for event in events if random_.random() < 0.1]
    orderly = [event for event in events if event not in late]
    found = []
    for engine in (CdpEngine(), NaiveEngine()):
        choice, detected = random.Random(seed), []
        engine.deploy(rules.load(first))
        waiting = list(late)
        for start in range(0, len(orderly), 25):
            part = orderly[start : start + 25]
            push(engine, choice.sample(part, len(part)))
            push(engine, [waiting.pop(0) for _ in range(min(choice.randrange(4), len(waiting)))])
            marks = {name: choice.choice(part).time for name in "AB"}
            if start == 300:
                engine.deploy(rules.load(later), since=orderly[340].time, version=3)
            detected += map(told, engine.advance(marks).events())
        detected += map(told, engine.advance(TIME_MAX).events())
        found.append(detected)
    assert found[1], f"seed {seed}"
    assert found[0] == found[1], f"seed {seed}"


def test_terminators_of_one_instant_run_in_their_order_though_some_waited():
    """E4: the first waits for B's mark; the other, before it in E4, comes after A's own mark."""
    text = "rule one: define O() from A() and each B() within 9 s from A"
    found = []
    for engine in (engine_of(text), NaiveEngine()):
        if isinstance(engine, NaiveEngine):
            engine.deploy(rules.load(SCHEMAS + text))
        push(engine, [Event("B", 1, "b", "1", {"k": 0, "s": "x"}, 1)])
        push(engine, [Event("A", 5, "late", "9", {"k": 0, "v": 0.0}, 9)])
        engine.advance({"A": 7, "B": 2})
        push(engine, [Event("A", 5, "early", "2", {"k": 0, "v": 0.0}, 2)])
        found.append([told(event) for event in engine.advance(TIME_MAX).events()])
    assert [event[4][0] for event in found[0]] == ["early#2", "late#9"]
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(4))
def test_events_that_come_as_rows_alone_or_not_are_detected_as_in_batches(seed: int):
    random_ = random.Random(seed)
    events = random_events(random_, 0, 300, 0)
    by_rows, by_batches, naive = engine_of(), engine_of(), NaiveEngine()
    naive.deploy(rules.load(SCHEMAS + RULE))
    engines = by_rows, by_batches, naive
    found: list[list[tuple[object, ...]]] = [[], [], []]
    greatest = 0
    for event in events:
        values = tuple(event.data.values())
        row = Row(event.time, event.source, event.sequence, None, values)
        by_rows.push_row({"A": A, "B": B}[event.type], row)
        push(by_batches, [event])
        push(naive, [event])
        greatest = max(greatest, event.time)
        if random_.random() < 0.3:
            continue  # more than one waits then
        late = greatest - random_.choice([-1, 0, 300_000])
        marks = random_.choice([late, {"A": late, "B": greatest}])
        for engine, detected in zip(engines, found, strict=True):
            detected += map(told, engine.advance(marks).events())
        assert by_rows.marks == by_batches.marks == naive.marks
    for engine, detected in zip(engines, found, strict=True):
        detected += map(told, engine.advance(TIME_MAX).events())
    assert found[0] == found[1] == found[2], seed
    assert len(found[0]) > 20, seed


def test_a_row_of_another_schema_is_refused_and_one_with_a_text_is_known_by_it():
    engine = engine_of()
    other = EventType.of("B", k="int")
    with pytest.raises(SchemaError, match=r"event B\(k: int\) is already known as B\(k: int, s:"):
        engine.push_row(other, Row(1, "b", 1, None, (1,)))
    for _ in range(2):
        engine.push_row(B, Row(1, "b", 1, "one", (1, "x")))
    engine.push_row(A, Row(2, "a", 1, None, (1, 0.0)))
    (event,) = engine.advance(TIME_MAX).events()
    assert event.cause == ("1", "one")
    assert engine.duplicates == 1


@pytest.mark.parametrize("seed", range(3))
def test_whatever_must_grow_changes_no_result(seed: int, monkeypatch: pytest.MonkeyPatch):
    events = random_events(random.Random(seed), 0, 400, 0)
    text = RULE + (
        " rule upper: define Upper(k: int) from Pair(k = $k) as p and each Pair(k = $k) as q"
        " within 1 s from p and last B(k = $k) as b within 1 s from q where k = $k consuming q"
    )
    usual = engine_of(text)
    asked, grow, begin_anew = set(), growth.grow, Outlets.begin_anew

    def noting(arrays: growth.Arrays, status: int) -> None:
        asked.add(status)
        grow(arrays, status)

    def noting_anew(outlets: Outlets) -> None:
        asked.add(layout.GROW_TAKEN)
        begin_anew(outlets)

    monkeypatch.setattr(growth, "grow", noting)
    monkeypatch.setattr(Outlets, "begin_anew", noting_anew)
    cramped = engine_of(text)
    for name in ("heap", "lists", "runs", "triggers", "queue", "deferred", "consumed", "taken"):
        cramped._arrays[name] = zeros((1,), cramped._arrays[name].dtype)
    cramped._arrays["buckets"] = filled(2, -1)
    found = []
    for engine in (usual, cramped):
        push(engine, events)
        found.append([*engine.advance({"A": events[300].time, "B": events[90].time}).events()])
        found[-1] += engine.advance(TIME_MAX).events()
    assert list(map(told, found[0])) == list(map(told, found[1]))
    assert asked == {
        layout.GROW_HEAP,
        layout.GROW_LISTS,
        layout.GROW_BUCKETS,
        layout.GROW_TRIGGERS,
        layout.GROW_DEFERRED,
        layout.GROW_TAKEN,
        layout.GROW_CONSUMED,
        layout.GROW_RUNS,
    }


def test_one_terminator_may_bring_thousands_of_composite_events():
    rules_ = rules.load(
        "event A(n: int)\n"
        "rule r: define X(n: int) from A() as a and each A() as b within 1 s from a"
        " and each A() as c within 1 s from b and each A() as d within 1 s from c where n = a.n"
    )
    engine = CdpEngine()
    engine.deploy(rules_)
    numbers = np.arange(30)
    batch = EventBatch(
        rules_.schemas["A"],
        numbers * 1_000,
        EventIds(StringColumn.constant("s", 30), numbers),
        (numbers,),
    )
    engine.push(batch)
    found = engine.advance(TIME_MAX)
    # As many as there are ways to choose three others before each.
    assert len(found) == sum(n * (n - 1) * (n - 2) // 6 for n in range(30))
    assert len({event.id for event in found.events()}) == len(found)

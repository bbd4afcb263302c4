"""Instances and links: bounded by windows, forgotten when they must be, and made once."""

import random

import numpy as np
import pytest
from event_batches import batch_of_events

import rules
from matcher.model import (
    MICROSECONDS,
    TIME_MAX,
    Event,
    EventBatch,
    EventIds,
    EventType,
    StringColumn,
)
from rules.engine import make
from rules.engine.cdp import CdpEngine
from rules.engine.kernels import layout
from rules.engine.memory import growth
from rules.engine.oracle.naive import NaiveEngine
from runtime.memory import filled, zeros

SECOND = MICROSECONDS
TYPES = {name: EventType.of(name, k="int", v="int") for name in "ABC"}
SCHEMAS = " ".join(f"event {name}(k: int, v: int)" for name in TYPES)
CHAIN = """ rule chain: define Chain() from C() as c and each B(k = c.k) as b within 2 s from c
    and each A(k = c.k, v > b.v) as a within 2 s from b"""


def engine_of(text: str) -> CdpEngine:
    engine = make("aip")
    assert isinstance(engine, CdpEngine)
    engine.deploy(rules.load(SCHEMAS + text))
    return engine


def event(name: str, seconds: float, number: int, k: int = 0, v: int = 0) -> Event:
    return Event(name, int(seconds * SECOND), name, str(number), {"k": k, "v": v}, number)


def push(engine: CdpEngine | NaiveEngine, *events: Event) -> None:
    for name, schema in TYPES.items():
        chosen = [one for one in events if one.type == name]
        if chosen:
            engine.push(batch_of_events(schema, chosen))


def causes(engine: CdpEngine | NaiveEngine, marks: int = TIME_MAX) -> list[str]:
    return [" ".join(one.cause_full) for one in engine.advance(marks).events()]


def entries(engine: CdpEngine, derived: str) -> int:
    """How many entries the lists of instances or links hold, over all rules."""
    tables = engine._linker.tables
    numbers = [
        linked.number for plan, linked in tables._access_of.items() if derived in plan.derived
    ]
    lists = engine._arrays["lists"][: engine._arrays["counters"][layout.LISTS_TOP]]
    return int(lists["length"][np.isin(lists["access"], numbers) & (lists["capacity"] > 0)].sum())


def test_an_event_is_an_instance_once_it_has_a_link():
    engine = engine_of(CHAIN)
    push(engine, event("A", 1, 1, v=5), event("B", 2, 1, v=4), event("B", 2.5, 2, v=6))
    push(engine, event("C", 3, 1), event("C", 3.5, 2))
    assert causes(engine, 10 * SECOND) == ["C#1 B#1 A#1", "C#2 B#1 A#1"]
    assert (entries(engine, "instances"), entries(engine, "links")) == (1, 1)


def test_superseded_links_are_not_kept():
    engine = engine_of(CHAIN.replace("each A", "2-last A").replace("2 s from b", "9 s from b"))
    push(engine, *(event("A", place / 10, place, v=place % 2) for place in range(40)))
    push(engine, event("B", 4, 1), event("C", 5, 1))
    assert causes(engine, 10 * SECOND) == ["C#1 B#1 A#37"]
    assert entries(engine, "links") == 2


def test_nothing_is_made_before_a_terminator_asks_for_it():
    engine = engine_of(CHAIN)
    push(engine, *(event("A", place, place, v=1) for place in range(100)))
    push(engine, *(event("B", place, place) for place in range(100)))
    assert causes(engine, 200 * SECOND) == []
    assert entries(engine, "links") == 0
    push(engine, event("C", 201, 1))
    assert causes(engine) == []
    assert entries(engine, "links") == 0


@pytest.mark.parametrize("late", [event("A", 1.5, 9, v=9), event("B", 1.5, 9)])
def test_an_event_that_comes_late_is_taken_in(late: Event):
    engine, oracle = engine_of(CHAIN), NaiveEngine()
    oracle.deploy(rules.load(SCHEMAS + CHAIN))
    found = []
    for one in (engine, oracle):
        push(one, event("A", 1, 1, v=5), event("B", 2, 1, v=4), event("C", 3, 1))
        first = causes(one, 3 * SECOND + 1)
        push(one, late, event("C", 3.4, 2))
        found.append((first, causes(one)))
    assert found[0] == found[1]
    assert len(found[0][1]) == 2


def test_a_consumed_event_takes_its_instances_along():
    text = CHAIN.replace("each A", "last A").replace("v > b.v", "v >= b.v") + " consuming a"
    engine = engine_of(text)
    push(engine, event("A", 0.5, 1), event("A", 1, 2), event("B", 2, 1))
    push(engine, event("C", 2.1, 1), event("C", 2.2, 2), event("C", 2.3, 3))
    assert causes(engine) == ["C#1 B#1 A#2", "C#2 B#1 A#1"]


def test_what_is_kept_stays_bounded():
    engine, chunk, most = engine_of(CHAIN), 6_000, {}
    for place in range(40):
        keys = place * chunk + np.arange(chunk)
        for offset, (name, schema) in enumerate(TYPES.items()):
            source = StringColumn.constant(name, chunk)
            values = np.full(chunk, 3 - offset)
            batch = EventBatch(schema, keys * 200 + offset, EventIds(source, keys), (keys, values))
            engine.push(batch)
        assert len(engine.advance(int(keys[-1]) * 200 + 2)) == chunk - (place == 0)
        if place == 12:
            most = dict(engine.memory())
    assert {name: held for name, held in engine.memory().items() if held > 1.1 * most[name]} == {}
    # Links reach back 4 s, which are 20,000 events; what is not yet swept comes on top.
    assert entries(engine, "links") < 5 * 20_000
    engine.remove("chain")
    assert [engine.memory()[name] for name in ("heap", "lists", "entries")] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_must_grow_changes_no_result(seed: int, monkeypatch: pytest.MonkeyPatch):
    random_ = random.Random(seed)
    events = [
        event(random_.choice("ABC"), random_.randrange(300) / 10, number, random_.randrange(2),
              random_.randrange(4))
        for number in range(400)
    ]  # fmt: skip
    text = (
        CHAIN
        + """ rule tree: define Tree() from C() as c and last B() as b within 1 s from c
        and each A(k = b.k) as a within 1 s from b and first C(v = b.v) as d within 3 s from b"""
    )
    asked, grow = set(), growth.grow

    def noting(arrays: growth.Arrays, status: int) -> None:
        asked.add(status)
        grow(arrays, status)

    monkeypatch.setattr(growth, "grow", noting)
    usual, cramped, oracle = engine_of(text), engine_of(text), NaiveEngine()
    oracle.deploy(rules.load(SCHEMAS + text))
    for name in ("heap", "lists"):
        cramped._arrays[name] = zeros((1,), cramped._arrays[name].dtype)
    cramped._arrays["buckets"] = filled(2, -1)
    found = []
    for engine in (usual, cramped, oracle):
        push(engine, *events)
        found.append(causes(engine, 20 * SECOND) + causes(engine))
    assert found[0] == found[1] == found[2], f"seed {seed}"
    assert found[0]
    assert {layout.GROW_HEAP, layout.GROW_LISTS, layout.GROW_BUCKETS} <= asked


LOWER = """ rule x: define X(k: int, v: int) from A() as a
    and each B(k = a.k) as b within 2 s from a where k = a.k, v = b.v
    rule y: define Y(k: int, v: int) from A() as a and each B() as b within 2 s from a
    where k = a.k, v = b.v"""
PAIR = """ rule pair: define Pair() from C() as c and {} X(k = c.k) as x within 5 s from c
    and {} Y(k = c.k, v >= x.v) as y within 1 s from x"""
POLICIES = ("each", "last", "first", "2-last")


@pytest.mark.parametrize("policies", [(one, two) for one in POLICIES for two in POLICIES])
def test_simultaneous_composite_events_are_linked_in_their_order(
    policies: tuple[str, str],
):
    """Several X and several Y come of one A: states and links of one instant, in order E4."""
    text = LOWER + PAIR.format(*policies)
    engine, oracle = engine_of(text), NaiveEngine()
    assert engine._linker.linked["pair"][0].automaton is not None
    oracle.deploy(rules.load(SCHEMAS + text))
    chance = random.Random(seed := 5)
    found, expected = [], []
    for instant in range(1, 6):
        some = [
            event(name, instant / 2, 10 * instant + place, chance.randrange(2), chance.randrange(3))
            for name, count in (("B", 3), ("A", 2), ("C", 1))
            for place in range(count)
        ]
        chance.shuffle(some)
        for one, told in ((engine, found), (oracle, expected)):
            push(one, *some)
            told += one.advance(int(instant / 2 * SECOND) + 1).events()
    assert [(one.type, one.id, one.cause_full) for one in found] == [
        (one.type, one.id, one.cause_full) for one in expected
    ], f"seed {seed}"
    pairs = [one for one in found if one.type == "Pair"]
    assert pairs, f"seed {seed}"
    assert len(found) > 40

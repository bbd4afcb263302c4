"""Which rules are evaluated by automata when the engine may choose."""

from collections.abc import Iterator

import numpy as np
import pytest

import rules
from matcher.model import TIME_MAX, Event, EventBatch, EventIds, EventType, StringColumn
from rules.engine import make
from rules.engine.cdp import CdpEngine
from rules.engine.choice.costs import PRICES, Costs
from rules.engine.engine import Detector

TYPES = {name: EventType.of(name, v="int") for name in "ABC"}
SCHEMAS = " ".join(f"event {name}(v: int)" for name in TYPES)
VALUES = 1000
SEQUENCE = """ rule one: define X() from C() as c and each B() as b within 200 ms from c
    and each A(v = b.v) as a within 200 ms from b"""
OFTEN = {"A": 0.05, "B": 0.45, "C": 0.5}
"""Few B have an A before them, and each is asked for by many C: links are worth their while."""
SELDOM = {"A": 0.1, "B": 0.89, "C": 0.01}
"""Most B are never asked for."""


@pytest.fixture(autouse=True)
def chosen_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rules.engine.choice.costs.PRICES", (400,))
    monkeypatch.setattr("rules.engine.choice.chooser.DRAFT_EVENTS", 100)


def engine_of(name: str, text: str = SEQUENCE) -> Detector:
    engine = make(name)
    engine.deploy(rules.load(SCHEMAS + text))
    return engine


def has_automaton(engine: Detector) -> bool:
    assert isinstance(engine, CdpEngine)
    return engine._linker.linked["one"][0].automaton is not None


def chunks(shares: dict[str, float], count: int, first: int = 0) -> Iterator[list[EventBatch]]:
    """Events, one every millisecond, types by their shares: a hundred at a time."""
    rng = np.random.default_rng(first + count)
    for start in range(first, first + count, 100):
        kinds = rng.choice(list(shares), 100, p=list(shares.values()))
        batches = []
        for name, schema in TYPES.items():
            places = start + np.flatnonzero(kinds == name)
            source = StringColumn.constant(name, len(places))
            column = rng.integers(0, VALUES, len(places))
            batches.append(EventBatch(schema, places * 1000, EventIds(source, places), (column,)))
        yield batches


def run(engine: Detector, parts: list[list[EventBatch]]) -> list[Event]:
    found: list[Event] = []
    for batches in parts:
        for batch in batches:
            engine.push(batch)
        found += engine.advance(max(int(one.time[-1]) for one in batches if len(one))).events()
    return found


def test_rare_partners_before_many_terminators_are_linked_once():
    engine = engine_of("auto")
    run(engine, list(chunks(OFTEN, 2000)))
    assert has_automaton(engine)


def test_what_terminators_seldom_ask_for_is_not_kept():
    engine = engine_of("auto")
    run(engine, list(chunks(SELDOM, 2000)))
    assert not has_automaton(engine)


def test_the_choice_follows_the_events_and_changes_no_result():
    parts = [*chunks(OFTEN, 1500), *chunks(SELDOM, 2000, 1500), *chunks(OFTEN, 2000, 3500)]
    engine, seen, found = engine_of("auto"), [], []
    for part in parts:
        found += run(engine, [part])
        seen.append(has_automaton(engine))
    changes = [now for before, now in zip([False, *seen], seen, strict=False) if now != before]
    assert changes == [True, False, True]
    plain = engine_of("cdp")
    expected = run(plain, parts)
    for one, other in ((engine, found), (plain, expected)):
        other += one.advance(TIME_MAX).events()
    assert len(expected) > 100
    assert [(one.time, one.id, one.cause_full) for one in found] == [
        (one.time, one.id, one.cause_full) for one in expected
    ]


def test_the_first_choice_comes_soon_however_many_events_wait(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rules.engine.choice.costs.PRICES", PRICES)
    engine = engine_of("auto")
    for part in chunks(OFTEN, 20_000):
        for batch in part:
            engine.push(batch)
    engine.advance(600_000)
    assert has_automaton(engine)


def test_a_rule_without_states_is_left_alone():
    text = " rule one: define X() from C() as c and last B() as b within 2 s from c"
    engine = engine_of("auto", text)
    run(engine, list(chunks(OFTEN, 1500)))
    assert not has_automaton(engine)


def test_many_rules_take_turns():
    text = SEQUENCE.replace("rule one", "rule {}")
    engine = engine_of("auto", "".join(text.format(name) for name in ("one", "two", "three")))
    assert isinstance(engine, CdpEngine)
    counts = []
    for part in chunks(OFTEN, 2000):
        run(engine, [part])
        linked = engine._linker.linked.values()
        counts.append(sum(one.automaton is not None for one, *_ in linked))
    assert list(dict.fromkeys(counts)) == [0, 1, 2, 3]


def test_costs_decide():
    engine = make("auto", Costs(probe=0.0, candidate=0.0, instance=1_000.0, link=0.0))
    engine.deploy(rules.load(SCHEMAS + SEQUENCE))
    run(engine, list(chunks(OFTEN, 2000)))
    assert not has_automaton(engine)

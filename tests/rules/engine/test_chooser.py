"""Which rules are evaluated by automata when the engine may choose."""

from collections.abc import Iterator

import numpy as np
import pytest

import rules
from matcher.model import TIME_MAX, Event, EventBatch, EventIds, EventType, StringColumn
from rules.engine import make
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detector

TYPES = {name: EventType.of(name, v="int") for name in "ABC"}
SCHEMAS = " ".join(f"event {name}(v: int)" for name in TYPES)
SEQUENCE = """ rule one: define X() from C() as c and each B() as b within 2 s from c
    and each A(v = b.v) as a within 2 s from b"""


@pytest.fixture(autouse=True)
def chosen_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rules.engine.cdp.REVISION_EVENTS", 400)
    monkeypatch.setattr("rules.engine.cdp.REVISION_EVENTS_PER_RULE", 0)


def engine_of(name: str, text: str = SEQUENCE) -> Detector:
    engine = make(name)
    engine.deploy(rules.load(SCHEMAS + text))
    return engine


def has_automaton(engine: Detector) -> bool:
    assert isinstance(engine, CdpEngine)
    return engine._linker.linked["one"][0].automaton is not None


def chunks(
    shares: dict[str, float], values: int, count: int, first: int
) -> Iterator[list[EventBatch]]:
    """Events, one every millisecond, types by their shares: a hundred at a time."""
    rng = np.random.default_rng(first + count)
    for start in range(first, first + count, 100):
        kinds = rng.choice(list(shares), 100, p=list(shares.values()))
        batches = []
        for name, schema in TYPES.items():
            places = start + np.flatnonzero(kinds == name)
            source = StringColumn.constant(name, len(places))
            column = rng.integers(0, values, len(places))
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
    run(engine, list(chunks({"A": 0.05, "B": 0.45, "C": 0.5}, 1000, 2000, 0)))
    assert has_automaton(engine)


def test_what_terminators_seldom_ask_for_is_not_kept():
    engine = engine_of("auto")
    run(engine, list(chunks({"A": 0.5, "B": 0.49, "C": 0.01}, 2, 2000, 0)))
    assert not has_automaton(engine)


def test_the_choice_follows_the_events_and_changes_no_result():
    mix = {"A": 0.05, "B": 0.45, "C": 0.5}, {"A": 0.1, "B": 0.89, "C": 0.01}
    parts = [*chunks(mix[0], 1000, 1500, 0), *chunks(mix[1], 200, 6000, 1500)]
    parts += chunks(mix[0], 1000, 4000, 7500)
    engine, seen, found = engine_of("auto"), [], []
    for part in parts:
        found += run(engine, [part])
        seen.append(has_automaton(engine))
    changes = [now for before, now in zip([False, *seen], seen, strict=False) if now != before]
    assert changes == [True, False, True]
    ours = [(one.time, one.id, one.cause_full) for one in found]
    plain = engine_of("cdp")
    assert ours == [(one.time, one.id, one.cause_full) for one in run(plain, parts)]
    assert len(list(engine.advance(TIME_MAX).events())) == len(
        list(plain.advance(TIME_MAX).events())
    )


def test_a_rule_without_states_is_left_alone():
    text = " rule one: define X() from C() as c and each B() as b within 2 s from c"
    engine = engine_of("auto", text)
    run(engine, list(chunks({"A": 0.05, "B": 0.45, "C": 0.5}, 1000, 1500, 0)))
    assert not has_automaton(engine)

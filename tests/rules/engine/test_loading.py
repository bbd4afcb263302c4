"""Kernels are loaded when something needs them, and what comes of it is the same."""

import numpy as np
import pytest

import rules
from matcher.model import EventBatch, EventIds, EventType, StringColumn
from rules.engine.cdp import CdpEngine
from rules.engine.kernels import layout

A = EventType.of("A", k="int")
STRAIGHT = (
    "rule r: define X(n: int) from A() as a and last A() as b within 1 s from a where n = b.k"
)
EACH = "rule r: define X(n: int) from A() as a and each A() as b within 1 s from a where n = b.k"
CHAIN = (
    "rule r: define X(n: int) from A() as a and each A() as b within 1 s from a"
    " and each A(k < b.k) as c within 1 s from b where n = c.k"
)
SUM = "rule r: define X(n: int) from A() as a and $n = Sum(A().k within 1 s from a) where n = $n"
ABOVE = (
    "rule r: define X(n: int) from A(k = 0) as a and last A(k > 700 - a.k) as b within 1 s from a"
    " where n = b.k"
)
MANY = 400


def engine_of(text: str) -> CdpEngine:
    engine = CdpEngine()
    engine.deploy(rules.load(f"event {A}\n{text}"))
    return engine


def push(engine: CdpEngine, keys: list[int], first: int = 0) -> None:
    times = np.arange(first, first + len(keys))
    ids = EventIds(StringColumn.constant("s", len(keys)), times)
    engine.push(EventBatch(A, times, ids, (np.array(keys),)))


def loaded(engine: CdpEngine) -> set[int]:
    return set(np.flatnonzero(engine._arrays["late"]).tolist())


def numbers(engine: CdpEngine, until: int) -> list[int]:
    return [event.data["n"] for event in engine.advance(until).events()]


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        (STRAIGHT, {layout.LATE_STRAIGHT}),
        (EACH, {layout.LATE_DETECT}),
        (SUM, {layout.LATE_DETECT, layout.LATE_AGGREGATES}),
    ],
)
def test_a_rule_loads_what_it_needs_when_it_is_deployed(text: str, needed: set[int]):
    assert loaded(engine_of(text)) == needed


def test_automata_are_loaded_when_a_rule_has_one():
    engine = engine_of(CHAIN)
    assert layout.LATE_AUTOMATA not in loaded(engine)
    engine.switch({"r": True})
    assert layout.LATE_AUTOMATA in loaded(engine)
    push(engine, [1, 2, 3])
    assert numbers(engine, 9) == [1]


def test_summaries_are_loaded_by_the_first_long_window():
    engine = engine_of(SUM)
    push(engine, list(range(20)))
    numbers(engine, 20)
    assert layout.LATE_SUMMARIES not in loaded(engine)
    push(engine, list(range(20, MANY)), 20)
    assert numbers(engine, MANY) == [n * (n + 1) // 2 for n in range(20, MANY)]
    assert layout.LATE_SUMMARIES in loaded(engine)


def test_summaries_are_loaded_by_the_first_inequality_over_a_long_window():
    engine = engine_of(ABOVE)
    push(engine, [900, *range(1, MANY), 0, 0])
    assert numbers(engine, MANY + 2) == [900, 900]
    assert layout.LATE_SUMMARIES in loaded(engine)

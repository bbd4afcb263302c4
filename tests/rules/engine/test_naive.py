"""The oracle itself: its borders. What it means is tested with the other engines, clause by
clause, in ``tests/conformance/test_clauses.py``.
"""

import numpy as np
import pytest
from timeline import history, push, written

import rules
from matcher.errors import SchemaError
from matcher.model import MICROSECONDS, TIME_MAX, EventBatch, EventIds, EventType, StringColumn
from rules.engine.oracle.naive import NaiveEngine
from rules.engine.order import timers


def engine_of(text: str, **options: int) -> NaiveEngine:
    engine = NaiveEngine()
    engine.deploy(rules.load(text), **options)
    return engine


def test_a_second_schema_of_a_used_type_is_refused():
    engine = engine_of("event A(x: int) define Out() from A()")
    ids = EventIds(StringColumn.constant("s", 1), np.array([1]))
    other = EventBatch(EventType("A"), np.array([1]), ids, ())
    with pytest.raises(SchemaError, match="already known"):
        engine.push(other)


def test_timer_events_cannot_be_pushed():
    with pytest.raises(SchemaError):
        NaiveEngine().push(timers.batch(np.array([0])))


def test_timers_tick_before_a_finite_mark_and_end_with_the_input():
    text = "event A() define Tick() from Timer() define Seen() from A()"
    ruleset = rules.load(text)
    engine = engine_of(text)
    push(engine, history("A1=A@2", ruleset), ruleset)
    assert written(engine.advance(4 * MICROSECONDS).events()) == [
        "Tick@2() <- timer/2",
        "Seen@2() <- A1",
        "Tick@3() <- timer/3",
    ]
    assert len(engine.advance(TIME_MAX)) == 0


def test_timers_of_a_rule_with_since_need_no_input():
    engine = engine_of("define Tick() from Timer()", since=3 * MICROSECONDS)
    assert written(engine.advance({"Timer": 5 * MICROSECONDS}).events()) == [
        "Tick@3() <- timer/3",
        "Tick@4() <- timer/4",
    ]


def test_nothing_pushed_and_nothing_deployed():
    assert len(NaiveEngine().advance(TIME_MAX)) == 0
    assert len(engine_of("define Tick() from Timer()").advance(TIME_MAX)) == 0

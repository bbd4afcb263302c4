"""Trace contexts of events, by name."""

import numpy as np
import pytest
from event_batches import batch_of_events

from matcher import traces
from matcher.model import Causes, Event, EventBatch, EventIds, EventType, StringColumn
from matcher.single import Row, Single
from matcher.traces import TraceContexts

TEMP, HOT = EventType.of("Temp", n="int"), EventType.of("Hot", n="int")
A, B, C = (f"00-{letter * 32}-{letter * 16}-01" for letter in "abc")


def temps(*numbers: int, source: str = "t") -> EventBatch:
    events = [Event("Temp", one, source, str(one), {"n": one}, one) for one in numbers]
    return batch_of_events(TEMP, events)


def hot(number: int, *causes: int) -> EventBatch:
    """A composite event with this digest, of temps of these numbers."""
    none = np.zeros(len(causes), np.bool_)
    ids = EventIds(StringColumn.constant("t", len(causes)), np.array(causes, np.int64))
    digest = np.array([[0, number]], np.uint64)
    own = EventIds(StringColumn.constant("rexmq/rule/hot", 1), np.zeros(1, np.int64), None, digest)
    columns = (np.array([number], np.int64),)
    of = Causes(np.array([0, len(causes)]), ids, none, none)
    return EventBatch(HOT, np.array([9], np.int64), own, columns, of)


def test_contexts_are_found_however_the_batch_is_cut() -> None:
    known = TraceContexts()
    assert not known.has_any
    known.take((temps(1, 2), temps(3)), ((1, (A,)), (2, (B,))))
    assert known.has_any
    assert len(known) == 2
    assert known.of((temps(3, 1), temps(2))) == ((0, (B,)), (2, (A,)))
    assert known.of((temps(2, source="other"),)) == ()
    assert known.of((Single(TEMP, Row(0, "t", 2, None, (2,))),)) == ((0, (A,)),)
    assert known.of((Single(TEMP, Row(0, "t", 9, "3", (2,))),)) == ((0, (B,)),)


def test_a_composite_event_belongs_to_the_traces_of_its_causes() -> None:
    known = TraceContexts()
    known.take((temps(1, 2, 3),), ((0, (A,)), (1, (B, C)), (2, (A,))))
    assert known.of((hot(7, 3, 9, 2, 1),)) == ((0, (A, B, C)),)
    assert known.of((hot(8, 9),)) == ()
    assert len(known) == 4


def test_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "EVENTS_MAX", 2)
    known = TraceContexts()
    for number in (1, 2, 3):
        known.note("t", str(number), (A,))
    assert known.of((temps(1, 2, 3),)) == ((1, (A,)), (2, (A,)))
    known.note("s", "1", (B,))
    known.note("s", "2", (B,))
    assert known.of((temps(1, 2, 3),)) == ()

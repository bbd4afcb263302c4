"""Looking ahead: what events will touch is what has been asked for."""

import numpy as np
import pytest

import rules
from matcher.model import EventBatch, EventIds, EventType, StringColumn
from rules.engine.cdp import CdpEngine
from rules.engine.kernels import layout
from rules.engine.kernels.ahead import BLOCK, FEW, GROWS, LISTS, RULES, WALKED_MAX
from rules.engine.linking import loading

A, B = (EventType.of(name, k="int") for name in "AB")
SCHEMAS = f"event {A} event {B}\n"
MANY = 600


def engine_of(text: str) -> CdpEngine:
    engine = CdpEngine()
    engine.deploy(rules.load(SCHEMAS + text))
    loading.load(engine._arrays, [layout.LATE_AHEAD])  # else the first look would only wish for it
    return engine


def many_rules() -> CdpEngine:
    return engine_of(
        "\n".join(
            f"rule r{k}: define X(n: int) from A(k = {k}) as a"
            f" and last B(k = {k}) as b within 1 s from a where n = b.k"
            for k in range(MANY)
        )
    )


def push(engine: CdpEngine, type_: EventType, times: range, keys: list[int]) -> None:
    source = StringColumn.constant(type_.name, len(keys))
    ids = EventIds(source, np.arange(times.start, times.stop))
    engine.push(EventBatch(type_, np.arange(times.start, times.stop), ids, (np.array(keys),)))


def walked(engine: CdpEngine, kind: int) -> set[tuple[int, int]]:
    """What has been walked of a kind at the last look: numbers, and what is beside them."""
    arrays = engine._arrays
    first, count = kind * WALKED_MAX, int(arrays["walked_counts"][kind])
    return {(int(one["number"]), int(one["more"])) for one in arrays["walked"][first:][:count]}


def list_of(engine: CdpEngine, rule: str, key: int = 0) -> int:
    """The list of the events that a rule of two states chooses from."""
    access = engine._linker.linked[rule][0].arrivals[1]
    lists = engine._arrays["lists"][: engine._arrays.counters[layout.LISTS_TOP]]
    (number,) = np.flatnonzero((lists["access"] == access) & (lists["first_key"] == key))
    return int(number)


def test_rules_and_lists_of_the_next_events_are_asked_for():
    engine = many_rules()
    push(engine, B, range(MANY), list(range(MANY)))
    engine.advance(MANY)
    ended, entered = [7, 599, 7, 12], [3, 250, 12]
    push(engine, A, range(MANY, MANY + 4), ended)
    push(engine, B, range(MANY + 4, MANY + 7), entered)
    assert len(engine.advance(MANY + 7)) == len(ended)
    assert walked(engine, RULES) == {(engine._linker.linked[f"r{k}"][0].number, 0) for k in ended}
    type_number = engine._linker.tables.type_numbers["B"]
    assert walked(engine, LISTS) == {
        *((list_of(engine, f"r{k}"), type_number) for k in ended),
        *((list_of(engine, f"r{k}"), GROWS) for k in entered),
    }


def test_lists_that_keys_lead_to_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rules.engine.memory.growth.LOOK_MIN", 0)
    engine = engine_of(
        "rule r: define X(n: int) from A() as a and last B(k = a.k) as b within 1 s from a"
        " where n = b.k"
    )
    push(engine, B, range(4), [0, 1, 2, 3])
    engine.advance(4)
    push(engine, A, range(4, 6), [2, 9])
    push(engine, B, range(6, 8), [0, 3])
    assert len(engine.advance(8)) == 1
    type_number = engine._linker.tables.type_numbers["B"]
    assert walked(engine, LISTS) == {
        (list_of(engine, "r", 2), type_number),
        (list_of(engine, "r", 0), GROWS),
        (list_of(engine, "r", 3), GROWS),
    }


def test_where_there_is_little_nothing_is_asked_for():
    few, many = many_rules(), many_rules()
    push(few, B, range(10), list(range(10)))
    push(many, B, range(MANY), list(range(MANY)))
    for engine, count in ((few, 10), (many, FEW - 1)):
        engine.advance(MANY)
        engine._arrays["walked_counts"][:] = 0
        push(engine, A, range(MANY, MANY + count), list(range(count)))
        assert len(engine.advance(2 * MANY)) == count
        assert not engine._arrays["walked_counts"].any()


def test_all_events_are_looked_at_block_by_block():
    engine = many_rules()
    push(engine, B, range(MANY), list(range(MANY)))
    engine.advance(MANY)
    count = 3 * BLOCK + FEW + 1
    push(engine, A, range(MANY, MANY + count), list(range(count)))
    assert len(engine.advance(MANY + count)) == count
    assert engine._arrays.counters[layout.LOOKED] == count
    last = {engine._linker.linked[f"r{k}"][0].number for k in range(3 * BLOCK, count)}
    assert {number for number, _ in walked(engine, RULES)} == last

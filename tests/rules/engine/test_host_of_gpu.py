"""The host's part of a terminator on a device: counted on one whose kernels do nothing."""

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rules
from matcher.gpu.device import Buffer, Device, Lane
from matcher.model import AnyArray, EventBatch, EventIds, StringColumn
from rules.engine.gpu import records
from rules.engine.gpu.engine import GpuEngine

RULE = """
event A(v: int, w: int)
event B(v: int, w: int)
rule near: define Near(v: int)
from A() as a and last B((v - a.v) * (v - a.v) + (w - a.w) * (w - a.w) < 25) as b
    within 1 s from a
where v = b.v
"""
CALLS_MAX = 190
"""Functions in Python that are called for a terminator and the event before it, at most."""


class Idle(Device):
    """A device that computes nothing: each evaluation finds one match, of the first rows."""

    simulated = False

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.recorded_count = 0
        self._last: AnyArray = np.empty(0)

    def upload(self, target: Buffer, start: int, rows: AnyArray, lane: Lane) -> None:
        self.done["copies"] += 1

    def download(self, target: AnyArray, source: Buffer, lane: Lane) -> None:
        self._last = target

    def launch(self, *arguments: Any, shared: int = 0) -> None:
        self.done["launches"] += 1

    def recorded(self, work: Callable[[], None], lane: Lane) -> Callable[[], None]:
        work()
        self.recorded_count += 1
        found, self.done = self._last, Counter()

        def again() -> None:
            self.done["graphs"] += 1
            found[records.LEVELS] = 1
            found[records.SIZES : records.SIZES + 5] = 1, 0, 0, 7, 1

        return again


def test_a_terminator_takes_one_graph_and_few_calls() -> None:
    ruleset, device = rules.load(RULE), Idle()
    engine = GpuEngine(device)
    engine.deploy(ruleset)

    def batch(name: str, number: int) -> EventBatch:
        ids = EventIds(StringColumn.constant(name, 1), np.array([number]))
        values = np.array([number]), np.array([number])
        return EventBatch(ruleset.schemas[name], np.array([number]), ids, values)

    def ask(number: int) -> int:
        for name, time in (("B", number), ("A", number + 1)):
            engine.push(batch(name, time))
        return len(engine.advance(number + 2))

    for number in range(0, 40, 2):
        assert ask(number) == 1
    device.done.clear()
    calls = 0

    def count(frame: Any, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        for number in range(40, 60, 2):
            ask(number)
    finally:
        sys.setprofile(None)
    assert dict(device.done) == {"graphs": 10}
    assert calls < 10 * CALLS_MAX


def test_events_without_a_terminator_wait_for_one() -> None:
    ruleset, device = rules.load(RULE), Idle()
    engine = GpuEngine(device)
    engine.deploy(ruleset)
    ids = EventIds(StringColumn.constant("b", 1), np.array([1]))
    values = np.array([1]), np.array([1])
    engine.push(EventBatch(ruleset.schemas["B"], np.array([1]), ids, values))
    assert len(engine.advance(5)) == 0
    assert not device.done


def test_a_column_that_outgrows_its_room_moves_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rule is written and recorded anew, and no other, if the heap has to grow, too."""
    monkeypatch.setattr("matcher.gpu.device.PAGE", 2**12)
    text = "\n".join(
        f"event A{n}(v: int)\nevent B{n}(v: int)\nrule r{n}: define R{n}(v: int)\n"
        f"from A{n}() as a and last B{n}(v * 2 > a.v) as b within 1 s from a where v = b.v\n"
        for n in range(4)
    )
    ruleset, device = rules.load(text), Idle()
    engine = GpuEngine(device)
    engine.deploy(ruleset)

    def push(name: str, first: int, count: int) -> None:
        numbers = np.arange(first, first + count)
        ids = EventIds(StringColumn.constant(name, count), numbers)
        engine.push(EventBatch(ruleset.schemas[name], numbers, ids, (numbers,)))

    def ask(first: int, count: int) -> None:
        push("B0", first, count)
        for n in range(4):
            push(f"A{n}", first + count, 1)
        engine.advance(first + count + 1)

    for n in range(1, 4):
        push(f"B{n}", 0, 1)
    ask(0, 100)
    memory = engine._memory
    before, heap = dict(memory.addresses), memory.heap
    for first, count in ((200, 1_100), (2_000, 9_000)):
        taken, device.recorded_count = memory.bytes, 0
        ask(first, count)
        moved = [name for name, one in memory.addresses.items() if one != before[name]]
        assert (moved, device.recorded_count) == (["r0"], 1)
        assert memory.heap is heap
        assert memory.bytes >= taken + 2 * 3 * 8 * count
    assert device.done["graphs"] > 0
    taken = engine.footprints()
    assert taken.keys() == {"r0", "r1", "r2", "r3"}
    assert taken["r0"] > 5 * taken["r1"] > 5 * 1_024 * 8
    assert taken["r1"] == taken["r2"] == taken["r3"]


def test_rules_that_come_and_go_move_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does what they leave behind add up."""
    monkeypatch.setattr("matcher.gpu.device.PAGE", 2**12)
    ruleset, engine = rules.load(RULE), GpuEngine(Idle())
    engine.deploy(ruleset)
    memory, now = engine._memory, 0

    def ask() -> None:
        nonlocal now
        now += 2
        for name in "AB":
            ids = EventIds(StringColumn.constant(name, 1), np.array([now]))
            values = np.array([now]), np.array([now])
            engine.push(EventBatch(ruleset.schemas[name], np.array([now]), ids, values))
        engine.advance(now + 1)

    def other(number: int) -> rules.RuleSet:
        text = f"rule r{number}: define R{number}(v: int) from A() as a and last B(v > {number})"
        return rules.load(f"{text} as b within 1 s from a where v = b.v", known=ruleset.schemas)

    ask()
    before = memory.addresses["near"]
    engine.deploy(other(0))
    ask()
    assert memory.addresses["near"] == before
    sizes, moves = [], 0
    for number in range(1, 40):
        engine.deploy(other(number))
        engine.remove(f"r{number - 1}")
        ask()
        assert list(memory.addresses) == ["near", f"r{number}"]
        sizes.append(memory.bytes)
        moves += memory.addresses["near"] != before
        before = memory.addresses["near"]
    assert 0 < moves < 20
    assert max(sizes[20:]) == max(sizes[:20])


def test_a_rule_of_the_name_of_another_one_is_written_anew() -> None:
    engine, written = GpuEngine(Idle()), []
    for time, text in enumerate((RULE, RULE.replace("< 25", "< 36"))):
        engine.deploy(ruleset := rules.load(text))
        for name in "AB":
            ids = EventIds(StringColumn.constant(name, 1), np.array([time]))
            values = np.array([time]), np.array([time])
            engine.push(EventBatch(ruleset.schemas[name], np.array([time]), ids, values))
        assert len(engine.advance(time + 1)) == 1
        written.append(engine._memory.addresses["near"])
        engine.remove("near")
    assert written[0] != written[1]

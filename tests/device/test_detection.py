"""Detection on a device gives what the naive engine gives, wherever rules move, if it fails too."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from cases import Push, nullable, random_case, run
from eligible_cases import eligible_case, mixed_case
from iteration_cases import iteration_case
from little_room import in_little_room
from midstream import BEFORE, EXPECTED, found_in_midstream
from pairs import WHOLE, seeds
from pretended import Restless
from sequence_cases import sequence_case

import rules
from matcher.gpu.device import Buffer, device
from matcher.model import TIME_MAX
from matcher.rows import batch_of
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detections, Detector, Placement
from rules.engine.gpu.engine import DeviceFailed, GpuEngine
from rules.engine.gpu.heap import Heap
from rules.engine.gpu.placed import FAILED, PlacedEngine
from rules.engine.gpu.records import LONGEST_RANGE, SIZES
from rules.engine.oracle.naive import NaiveEngine
from rules.errors import RuleErrors

SIMULATED = device().simulated
SEEDS = seeds(3, 8) if SIMULATED else range(80)
OVERRUN_SEEDS = [3, 5] if SIMULATED and not WHOLE else SEEDS
PLACED_SEEDS = seeds(3, 10) if SIMULATED else range(30)
NARROW_SEEDS = [3, 81, 97] if SIMULATED and not WHOLE else [*range(3, 8), 81, 89, 97]


@pytest.mark.parametrize("part", range(4))
def test_random_rules_that_a_device_takes(part: int) -> None:
    for seed in SEEDS[part::4]:
        case = eligible_case(seed)
        wanted, found = run(case, NaiveEngine()), run(case, GpuEngine())
        assert found == wanted, case


@pytest.mark.parametrize("most", [1, 2])
def test_a_rule_ends_where_it_has_more_composite_events_than_it_may(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terminators of an instant are evaluated apart, so that what it yields comes bit by bit."""
    monkeypatch.setattr("rules.engine.gpu.evaluation.TERMINATORS_MAX", 1)
    ended = 0
    for seed in OVERRUN_SEEDS:
        case, naive, engine = eligible_case(seed), NaiveEngine(most), GpuEngine(None, most)
        assert run(case, engine).advances == run(case, naive).advances, case
        overruns = sorted(map(str, naive.take_overruns()))
        assert sorted(map(str, engine.take_overruns())) == overruns, case
        ended += len(overruns)
    assert ended > 0


@pytest.mark.parametrize("maker", [GpuEngine, lambda: PlacedEngine(CdpEngine(), GpuEngine)])
def test_a_rule_without_a_beginning_sees_nothing_that_came_before_it(
    maker: Callable[[], Detector],
) -> None:
    """As on the processor, though rows of the events before are there."""
    assert found_in_midstream(maker(), beside_early=False) == EXPECTED
    assert found_in_midstream(maker(), beside_early=True) == [*BEFORE, *EXPECTED]


def test_what_no_rule_sees_any_more_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rules.engine.gpu.engine.LOOK_EVENTS", 3)
    monkeypatch.setattr("rules.engine.gpu.stores.FORGET_MIN", 0)
    forgotten = 0
    for seed in SEEDS[:8]:
        case, engine = eligible_case(seed), GpuEngine()
        assert run(case, engine) == run(case, NaiveEngine()), case
        pushed = sum(len(step.events) for step in case.steps if isinstance(step, Push))
        rows = sum(n for name, n in engine.memory().items() if name.startswith("rows/"))
        forgotten += pushed - engine.duplicates - rows
    assert forgotten > 20


@pytest.mark.parametrize("seed", NARROW_SEEDS)
def test_what_finds_no_room_is_done_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_little_room(monkeypatch)
    case = eligible_case(seed)
    assert run(case, GpuEngine()) == run(case, NaiveEngine()), case


CHANGING = """
event A(x: int, f: float)
event B(x: int, f: float)
rule r{n}: define R{n}(n: float)
from A() as a and {clause}
where n = b.f
"""


def test_rules_come_and_go_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their columns get other indexes so, and other places, and what they leave is tidied up."""
    in_little_room(monkeypatch)
    random, engines, turned = Random(39), (GpuEngine(), CdpEngine()), 0
    turn_heap = Heap.turn

    def turn_counted(heap: Heap) -> None:
        nonlocal turned
        turned += 1
        turn_heap(heap)

    monkeypatch.setattr(Heap, "turn", turn_counted)
    clauses = [
        "last B(x = a.x) as b within 30 s from a",
        "first B(f < a.f) as b within 30 s from a",
        "each B(x = a.x, f > 0.0) as b within 9 s from a",
        "last B(x < a.x) as b within 30 s from a",
    ]
    found = 0
    for turn in range(16 if WHOLE or not SIMULATED else 9):
        ruleset = rules.load(CHANGING.format(n=turn, clause=clauses[turn % len(clauses)]))
        for engine in engines:
            engine.deploy(ruleset, since=10 * turn * 10**6)
            if turn > 1:
                engine.remove(f"r{turn - 2}")
        for name, count in (("A", 2), ("B", 5)):
            rows = [
                {
                    "x": random.randint(0, 3),
                    "f": random.choice((-1.5, -0.0, 0.0, 2.5)),
                    "time": float(10 * turn + random.randint(0, 9)),
                }
                for _ in range(count)
            ]
            batch = batch_of(ruleset.schemas[name], rows, source=name, first_sequence=20 * turn)
            for engine in engines:
                engine.push(batch)
        told = [list(one.advance((10 * turn + 10) * 10**6).events()) for one in engines]
        assert told[0] == told[1], turn
        found += len(told[0])
    assert found > 9
    assert turned > 2 or not SIMULATED  # pages of a GPU are too large for that


RANKED = """
event A(x: int)
event B(x: int)
define R(x: int)
from A() as a and 2-last B(x >= a.x) as b within 100 s from a and last B() within 1 s from b
where x = b.x
"""


def test_a_rank_that_finds_no_room_for_its_marks_binds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_little_room(monkeypatch)
    ruleset, found = rules.load(RANKED), []
    for engine in (GpuEngine(), NaiveEngine()):
        engine.deploy(ruleset)
        for name, times in (("B", range(90)), ("A", range(80, 100, 7))):
            rows = [{"x": time % 5, "time": float(time)} for time in times]
            engine.push(batch_of(ruleset.schemas[name], rows, source=name, first_sequence=1))
        found.append([event.data for event in engine.advance(TIME_MAX).events()])
    assert found[0] == found[1]
    assert len(found[0]) == 3


COMPUTED = """
event A(x: int, y: int)
event B(x: int, y: int)
define R(n: int)
from A() as a and {clause}
where n = {value}
"""
CLAUSES = {
    "last B(x * 3 + y = a.x * 3 + a.y) as b within 40 s from a": "b.y",
    "last B(x * 2 = a.x % a.y, y < a.x) as b within 40 s from a": "b.y",
    "not B(x * 2 = a.x % a.y) within 40 s from a": "a.y",
    "each B((x + y = a.x % a.y or y * 2 = a.x)) as b within 40 s from a": "b.y",
    "$n = Count(B((x - a.x) * (x - a.x) < 3 * a.y) within 40 s from a)": "$n",
}


@pytest.mark.parametrize("clause", CLAUSES)
def test_operands_that_are_undefined_leave_no_candidate(clause: str) -> None:
    """An operand is computed before any candidate is looked at: ``a.x % a.y`` where ``a.y`` is 0,
    too (S9).
    """
    ruleset, found = rules.load(COMPUTED.format(clause=clause, value=CLAUSES[clause])), []
    random = Random(clause)
    batches = []
    for name, count in (("A", 12), ("B", 30)):
        values = [{key: random.randint(-2, 4) for key in "xy"} for _ in range(count)]
        rows = [row | {"time": float(random.randint(0, 40))} for row in values]
        batches.append(batch_of(ruleset.schemas[name], rows, source=name, first_sequence=1))
    for engine in (GpuEngine(), NaiveEngine()):
        engine.deploy(ruleset)
        for batch in batches:
            engine.push(batch)
        found.append(list(engine.advance(TIME_MAX).events()))
    assert found[0] == found[1]
    assert found[0]


RANGED = """
event A(x: int, f: float)
event B(x: int, f: float)
rule r: define R(n: float)
from A() as a and {clause}
where n = {value}
"""
BOUNDS = (
    "x < a.x",
    "a.x + 1 <= x, x <= a.x + 3",
    "f > a.x",
    "x >= a.f",
    "f < a.f, x != a.x",
    "x > 2.5",
)
RANGES = {
    "last B({}) as b within 30 s from a": "b.f",
    "first B({}) as b within 30 s from a": "b.f",
    "each B({}) as b within 30 s from a": "b.f",
    "2-last B({}) as b within 30 s from a": "b.f",
    "each B() as c within 1 s from a and last B({}) as b within 30 s from c": "b.f",
    "not B({}) within 30 s from a": "a.f",
    "$n = Count(B({}) within 30 s from a)": "$n + 0.0",
    "$n = Sum(B({}).x within 30 s from a)": "$n + 0.0",
    "$n = Max(B({}).f within 30 s from a)": "$n",
    "$n = Min(B({}).x within 30 s from a)": "$n + 0.0",
}


@pytest.mark.parametrize("clause", RANGES)
def test_a_range_of_values_gives_what_the_window_does(
    clause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns are sorted by value, but for their last entries; late ones have them sorted anew."""
    in_little_room(monkeypatch)
    monkeypatch.setattr("rules.engine.gpu.kernels.GATHER", 1)
    monkeypatch.setattr("rules.engine.gpu.memory.TAIL_MIN", 6)
    narrowed = 0
    several = len(BOUNDS) if WHOLE or not SIMULATED else 2
    first = list(RANGES).index(clause)
    for number in range(first, first + several):
        bounds = BOUNDS[number % len(BOUNDS)]
        random, results = Random(f"{clause} {bounds}"), []
        text = RANGED.format(clause=clause.format(bounds), value=RANGES[clause])
        ruleset, engines = rules.load(text), (GpuEngine(), CdpEngine())
        for engine in engines:
            engine.deploy(ruleset)
        for turn in range(3):
            for name, count in (("A", 3), ("B", 4 if turn else 14)):
                rows = [
                    {
                        "x": random.randint(-3, 6),
                        "f": random.choice((-1.5, -0.0, 0.0, 1.0, 2.5, 4.0)),
                        "time": float(10 * turn + random.randint(-8 * (number % 2), 9)),
                    }
                    for _ in range(count)
                ]
                batch = batch_of(ruleset.schemas[name], rows, source=name, first_sequence=20 * turn)
                for engine in engines:
                    engine.push(batch)
            results.append([list(one.advance((10 * turn + 1) * 10**6).events()) for one in engines])
            narrowed += int(words_of(engines[0])[LONGEST_RANGE])
        assert all(one == other for one, other in results), text
        assert any(one for one, _ in results) or "not" in clause
    assert narrowed > 0


def words_of(engine: Detector) -> list[int]:
    """The sizes that an engine on a device has worked with last."""
    assert isinstance(engine, GpuEngine)
    host, lane = np.empty(SIZES, np.int64), engine._memory.lane
    device().download(host, engine._workspace.sizes, lane)
    lane.wait()
    return host.tolist()


def unexpected(what: str, why: str) -> None:
    raise AssertionError(f"{what}: {why}")


class Failing(GpuEngine):
    """Fails at its second advance, when the processor has been at work as well."""

    advances = 0

    def finish(self) -> Detections:
        self.advances += 1
        if self.advances == 2:
            raise DeviceFailed("it is out of order\nand hot")
        return super().finish()


KINDS = (random_case, eligible_case, mixed_case, sequence_case, iteration_case)


def failing() -> PlacedEngine:
    return PlacedEngine(CdpEngine(), Failing)


def restless() -> PlacedEngine:
    return Restless(GpuEngine, unexpected)


@pytest.mark.parametrize("make", [restless, failing])
def test_where_rules_are_evaluated_changes_no_result(make) -> None:  # type: ignore[no-untyped-def]
    for seed in PLACED_SEEDS:
        case = KINDS[seed % len(KINDS)](seed)
        case = nullable(case) if seed % 8 == 1 else case
        assert run(case, make()) == run(case, NaiveEngine()), case


FIRE = """
event Smoke(area: string)
event Temp(area: string, value: float)
define Fire(area: string, value: float)
from Smoke(area = $a) and last Temp(area = $a, value > 45) within 5 min from Smoke
where area = $a, value = Temp.value
"""


def test_a_device_that_fails_is_told_of_once() -> None:
    told: list[tuple[str, str]] = []
    engine = PlacedEngine(CdpEngine(), Failing, tell=lambda *words: told.append(words))
    engine.deploy(rules.load(FIRE))
    assert engine.placement("Fire") == Placement("gpu")
    for mark in range(1, 5):
        engine.advance(mark)
    failed = "DeviceFailed: it is out of order"
    assert engine.placement("Fire") == Placement("cpu", f"the device failed: {failed}")
    assert told == [(FAILED, failed)]


@pytest.mark.parametrize("call", ["reserve", "map"])
def test_a_device_whose_memory_runs_out_changes_no_result(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, or when the heap has grown."""
    in_little_room(monkeypatch)
    put, told = device().map, []

    def none(words: Buffer | int, first: int = 0, end: int = 8_000) -> None:
        if end > 200:
            raise MemoryError(f"out of memory allocating {8 * (end - first)} bytes")
        put(words, first, end)

    monkeypatch.setattr(device(), call, none)
    engine = PlacedEngine(CdpEngine(), tell=lambda *words: told.append(words))
    engine.deploy(ruleset := rules.load(FIRE))
    found = []
    for first in range(40, 90, 10):
        temps = [
            {"area": "hall", "value": float(n), "time": float(n)} for n in range(first, first + 10)
        ]
        smoke = [{"area": "hall", "time": first + 9.0}]
        for name, rows in (("Temp", temps), ("Smoke", smoke)):
            engine.push(batch_of(ruleset.schemas[name], rows, source=name, first_sequence=first))
        found += [event.data["value"] for event in engine.advance((first + 10) * 10**6).events()]
    assert found == [49.0, 59.0, 69.0, 79.0, 89.0]
    assert [what for what, _ in told] == [FAILED]
    assert told[0][1].startswith("MemoryError: out of memory allocating ")


def test_a_rule_that_a_device_does_not_take_is_refused_by_name_and_reason() -> None:
    text = FIRE + "consuming Temp"
    with pytest.raises(RuleErrors, match="rule Fire: a device does not take it: it consumes"):
        GpuEngine().deploy(rules.load(text))

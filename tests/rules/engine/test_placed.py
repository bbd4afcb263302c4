"""Rules on the processor and on a device: the same results wherever they are, whatever fails.

The device is the processor in disguise here (``pretended``); ``tests/device`` has real ones.
"""

from collections.abc import Iterator
from functools import partial
from random import Random

import numpy as np
import pytest
from cases import Case, nullable, random_case, run
from eligible_cases import eligible_case, mixed_case
from pretended import Failing, Pretended, Restless

import rules
from matcher.model import TIME_MAX, Event, EventBatch, EventIds, EventType, StringColumn
from rules.engine import make
from rules.engine.cdp import CdpEngine
from rules.engine.choice.costs import Costs
from rules.engine.engine import Placement
from rules.engine.gpu.eligible import TIED
from rules.engine.gpu.engine import GpuEngine
from rules.engine.gpu.keeping import TOGETHER, Kept
from rules.engine.gpu.placed import FAILED, PlacedEngine
from rules.engine.gpu.placing import UNKNOWN, DeviceCosts, Placer
from rules.engine.gpu.work import Sampled, work_of
from rules.engine.oracle.naive import NaiveEngine
from rules.planning.planner import compile_rule

SEEDS = range(12)


def case_of(seed: int) -> Case:
    """A random case; of every other one a device takes all rules."""
    case = eligible_case(seed) if seed % 2 else random_case(seed)
    return nullable(case) if seed % 8 == 1 else case


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few events are many."""
    monkeypatch.setattr("rules.engine.gpu.placed.FORGET_MIN", 3)
    monkeypatch.setattr("rules.engine.gpu.keeping.TOGETHER", 4)


@pytest.mark.usefixtures("forgetful")
def test_rules_that_move_give_the_same_results() -> None:
    moved = 0
    for seed in SEEDS:
        case, engine = case_of(seed), Restless()
        assert run(case, engine) == run(case, NaiveEngine()), case
        moved += sum(engine.placement(name).device == "gpu" for name in engine.marks)
    assert moved > 3


def test_so_they_do_beside_rules_that_no_device_takes() -> None:
    for seed in SEEDS[:6]:
        case, engine = mixed_case(seed), Restless()
        assert run(case, engine) == run(case, NaiveEngine()), case
        why = {name: engine.placement(name).reason for name in ("late", "high", "used")}
        assert why == {"late": "it uses the Timer", "high": TIED, "used": "it consumes events"}


@pytest.mark.usefixtures("forgetful")
def test_a_device_that_fails_at_any_call_changes_no_result(
    told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(1, 22, 2):
        monkeypatch.setattr(Failing, "at", 1 + seed // 2 % 8)
        case, engine = case_of(seed), Restless(Failing, lambda *words: told.append(words))
        assert run(case, engine) == run(case, NaiveEngine()), case
    assert len(told) > 3
    assert set(told) == {(FAILED, "DeviceFailed: it is out of order")}


def test_a_device_that_has_no_memory_for_an_engine_is_done_without(
    told: list[tuple[str, str]],
) -> None:
    def none() -> GpuEngine:
        raise MemoryError("out of memory allocating 8,388,608 bytes")

    engine = PlacedEngine(CdpEngine(), none, tell=lambda *words: told.append(words))
    engine.deploy(rules.load(SCHEMAS + SCAN))
    failed = "MemoryError: out of memory allocating 8,388,608 bytes"
    assert engine.placement("scan") == Placement("cpu", f"the device failed: {failed}")
    assert told == [(FAILED, failed)]
    engine.deploy(rules.load(LOOK, known=TYPES))
    assert len(told) == 1


def test_what_is_no_failure_of_the_device_is_not_taken_for_one() -> None:
    engine = PlacedEngine(CdpEngine(), lambda: Failing(KeyError("a fault of ours")))
    engine.deploy(rules.load(SCHEMAS + SCAN))
    engine.advance(1)
    with pytest.raises(KeyError, match="a fault of ours"):
        engine.advance(2)


def test_rules_stand_where_they_may_with_a_reason() -> None:
    engine = PlacedEngine(CdpEngine(), Pretended)
    engine.deploy(rules.load(SCHEMAS + SCAN + LOOK))
    assert engine.placement("scan") == engine.placement("look") == Placement("gpu")
    above = "define Above(v: int) from Scan() as s and last B() within 1 s from s where v = 1"
    scan = rules.load(SCHEMAS + SCAN).rules[0]
    engine.deploy(rules.load(above, known={**TYPES, "Scan": scan.defines}))
    assert engine.placement("scan") == engine.placement("Above") == Placement("cpu", TIED)
    engine.remove("Above")
    assert engine.placement("scan") == Placement("cpu", "")
    engine.move(["scan"], to_gpu=True)
    assert engine.placement("scan") == Placement("gpu")
    assert [sorted(one) for one in engine.parts] == [[], ["look", "scan"]]


def test_there_is_an_engine_on_the_device_only_while_it_has_rules() -> None:
    engine = PlacedEngine(CdpEngine(), Pretended)
    assert engine._gpu is None
    engine.deploy(rules.load(SCHEMAS + SCAN))
    assert engine._gpu is not None
    engine.move(["scan"], to_gpu=False)
    assert engine._gpu is None


# --- the choice of auto --------------------------------------------------------------------------

TYPES = {name: EventType.of(name, k="int", v="int") for name in "ABC"}
SCHEMAS = " ".join(f"event {schema}" for schema in TYPES.values())
SCAN = """ rule scan: define Scan(n: int) from A() as a
    and $n = Count(B(v * 3 + k > a.v * 7) within 2 s from a) and $n > 0 where n = $n"""
LOOK = """ rule look: define Look(v: int) from A() as a
    and last B(k = a.k) as b within 2 s from a where v = b.v"""
CHEAP = partial(DeviceCosts, advance=1_000.0, evaluation=500.0, terminator=0.0, begin=0.0)
"""Of a device that is so fast that few events show what it is good for."""
FREE = CHEAP(advance=20_000.0, evaluation=10_000.0, move=0.0)


@pytest.fixture
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rules.engine.gpu.placing.LOOK_EVENTS", 200)


def chunks(count: int, first: int = 0, share: float = 0.8) -> Iterator[list[EventBatch]]:
    """Events, one every millisecond, ``share`` of them of type B: a hundred at a time."""
    rng = np.random.default_rng(first + count)
    for start in range(first, first + count, 100):
        kinds = rng.choice(list(TYPES), 100, p=[0.1, share, 0.9 - share])
        batches = []
        for name, schema in TYPES.items():
            places = start + np.flatnonzero(kinds == name)
            ids = EventIds(StringColumn.constant(name, len(places)), places)
            columns = rng.integers(0, 500, len(places)), rng.integers(0, 1_000, len(places))
            batches.append(EventBatch(schema, places * 1_000, ids, columns))
        yield batches


def feed(engine: PlacedEngine, parts: Iterator[list[EventBatch]]) -> tuple[list[Event], list[str]]:
    """What was found, and which rules were on the device after each advance, each set once."""
    found: list[Event] = []
    seen: list[str] = []
    for batches in parts:
        for batch in batches:
            engine.push(batch)
        found += engine.advance(max(int(one.time[-1]) for one in batches if len(one))).events()
        seen.append(",".join(engine.parts[-1]))
    return found, [one for place, one in enumerate(seen) if place == 0 or one != seen[place - 1]]


def placed(
    device: DeviceCosts = FREE, clock: object = None, text: str = SCAN + LOOK
) -> PlacedEngine:
    placer = Placer(Costs(), device, clock)  # type: ignore[arg-type]
    engine = PlacedEngine(CdpEngine(), Pretended, placer)
    engine.deploy(rules.load(SCHEMAS + text))
    return engine


@pytest.mark.usefixtures("forgetful")
def test_a_choice_at_every_event_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it stumble over any form of a rule; a clock that is of no use lets rules move."""
    monkeypatch.setattr("rules.engine.gpu.placing.LOOK_EVENTS", 1)
    random, now, made = Random(3), [0.0], []

    def clock() -> float:
        now[0] += random.random() * 1e-3
        return now[0]

    def gpu() -> Pretended:
        made.append(Pretended())
        return made[-1]

    costs = CHEAP(advance=10.0, evaluation=10.0, move=0.0)
    for seed in range(1, 24, 2):
        case = case_of(seed)
        engine = PlacedEngine(CdpEngine(), gpu, Placer(Costs(), costs, clock))  # type: ignore[arg-type]
        assert run(case, engine) == run(case, NaiveEngine()), case
    assert len(made) > 1


@pytest.mark.usefixtures("looked_at_often")
def test_a_scan_goes_to_the_device_and_what_an_index_serves_stays() -> None:
    engine, plain = placed(), make("cdp")
    plain.deploy(rules.load(SCHEMAS + SCAN + LOOK))
    assert engine.placement("scan") == Placement("cpu", UNKNOWN)
    found, seen = feed(engine, chunks(6_000))
    assert seen == ["", "scan"]
    expected = []
    for batches in chunks(6_000):
        for batch in batches:
            plain.push(batch)
        expected += plain.advance(max(int(one.time[-1]) for one in batches if len(one))).events()
    found += engine.advance(TIME_MAX).events()
    expected += plain.advance(TIME_MAX).events()
    assert len(expected) > 100
    assert [(one.time, one.id) for one in found] == [(one.time, one.id) for one in expected]
    scan, look = engine.placement("scan"), engine.placement("look")
    assert (scan.device, look.device) == ("gpu", "cpu")
    assert scan.reason.startswith("a terminator takes about ")
    assert scan.reason.endswith(" us on the device")


@pytest.mark.usefixtures("looked_at_often")
def test_it_comes_back_when_windows_hold_little_and_none_flaps() -> None:
    engine = placed()
    _, seen = feed(engine, chunks(4_000))
    assert seen == ["", "scan"]
    rare = chunks(12_000, 4_000, share=0.01)
    assert feed(engine, rare)[1] == ["scan", ""]
    assert feed(engine, chunks(4_000, 16_000))[1] == ["", "scan"]


@pytest.mark.usefixtures("looked_at_often")
def test_a_rule_moves_once_it_has_lost_what_moving_costs() -> None:
    """A scan of 1,600 candidates costs 56 us a terminator, of which there are 0.1 a ms."""
    steps = []
    for move in (0.0, 2e7, 1e12):
        engine = placed(CHEAP(move=move))
        steps.append(0)
        for part in chunks(6_000):
            feed(engine, iter([part]))
            steps[-1] += engine.placement("scan").device == "cpu"
    assert steps[0] < steps[1] < steps[2] == 60


@pytest.mark.usefixtures("looked_at_often")
def test_the_first_move_of_a_process_pays_for_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = CHEAP(move=0.0, begin=1e12)
    monkeypatch.setattr(GpuEngine, "has_run", False)
    assert feed(placed(costs), chunks(4_000))[1] == [""]
    monkeypatch.setattr(GpuEngine, "has_run", True)
    assert feed(placed(costs), chunks(4_000))[1] == ["", "scan"]


@pytest.mark.usefixtures("looked_at_often")
def test_what_a_clock_says_of_the_device_counts() -> None:
    """One on which each call takes 10 ms more than expected is left, and not tried again."""
    now = [0.0]

    def slow() -> float:
        now[0] += 0.01
        return now[0]

    engine = placed(FREE, slow, SCAN)
    assert feed(engine, chunks(12_000))[1] == ["", "scan", ""]


@pytest.mark.parametrize(("bounds", "share"), [("v > a.v", 1.0), ("v < a.v - 480", 0.2)])
def test_a_device_looks_at_a_range_of_values_or_through_the_window(
    bounds: str, share: float
) -> None:
    """Of 500 values the range leaves half of the window, or next to nothing."""
    recent: dict[str, EventBatch] = {}
    for batches in chunks(1_000):
        recent.update((batch.type.name, batch) for batch in batches)
    text = f"rule r: define R(n: int) from A() as a and $n = Count(B({bounds}) within 1 s from a)"
    (rule,) = rules.load(f"{SCHEMAS} {text} where n = $n").rules
    rates = {"A": 1e-4, "B": 1e-3}  # a thousand in a window
    work = work_of(compile_rule(rule), Sampled(rates, recent.get), Costs())
    assert work.programs == 0
    assert work.simple == pytest.approx(share * 1_000, rel=0.3, abs=200)


def test_costs_are_lengths_of_time() -> None:
    with pytest.raises(ValueError, match="candidate: expected 0 or more, found -1"):
        DeviceCosts(candidate=-1.0)


def test_kept_events_are_put_together_and_forgotten() -> None:
    kept, batch = Kept(), next(chunks(100, share=0.85))[1]
    for place in range(len(batch)):
        one = batch.take(slice(place, place + 1))
        kept.push(one, (int(one.time[0]), int(one.time[0])))
    half = int(batch.time[len(batch) // 2])
    kept.rise(half, 0)
    assert kept.passed_count == len(batch) // 2
    assert kept.waiting_count == len(batch) - kept.passed_count
    assert (
        sorted(int(one.time[0]) for one in kept.waiting) == batch.time[len(batch) // 2 :].tolist()
    )
    for start in range(1, 2 * TOGETHER // 80 + 2):
        later = next(chunks(100, 100 * start, 0.85))[1]
        kept.push(later, (int(later.time[0]), int(later.time[-1])))
    kept.rise(TIME_MAX, 0)
    assert kept.waiting_count == 0
    assert 1 < len(kept.passed) < TOGETHER
    recent = kept.recent(50)
    assert recent is not None
    assert recent.time.tolist() == sorted(recent.time.tolist())
    assert int(recent.time[-1]) == int(later.time[-1])
    kept.rise(TIME_MAX, TIME_MAX)
    assert (kept.passed, kept.passed_count, kept.recent(5)) == ([], 0, None)


# --- why rules stay ------------------------------------------------------------------------------

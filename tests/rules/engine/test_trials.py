"""Rules that move in mid-stream to hybrid parallelism and back, by chance and by what they take."""

from collections.abc import Callable, Mapping
from random import Random

import numpy as np
import pytest
from agreement import row
from cases import Case, random_case, run
from chain_cases import chain_case, decided_case
from pairs import seeds
from sequence_cases import sequence_case

import rules
from broker.parallel import beside_hybrid, deployed
from matcher.model import TIME_MAX, EventBatch, EventIds, EventType, StringColumn
from rules.engine.cdp import CdpEngine
from rules.engine.chains.hybrid.engine import HybridEngine
from rules.engine.chains.hybrid.pipeline import Crew
from rules.engine.chains.hybrid.trials import TRIAL_EVENTS, TRIAL_LOOKS, Trials
from rules.engine.choice.chooser import Look
from rules.engine.choice.costs import Costs, Rates, hybrid_cost
from rules.engine.engine import Detections, Detector
from rules.engine.oracle.naive import NaiveEngine
from rules.engine.threads.parts import PartedEngine
from rules.pattern import Rule, RuleSet
from rules.planning.planner import compile_rule

CHAIN = compile_rule(
    rules.load(
        "event A(v: int) event B(v: int) event C(v: int) rule chain: define X() from C() as c "
        "and each B() as b within 20 us from c and each A(v > c.v) as a within 20 us from b"
    ).rules[0]
)
PARTS = 4
CASES = len(seeds(32, 400))


class Restless(Trials):
    """Trials that end by chance: any chain may move before any advance."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random, self.chains = Random(seed), set[str]()

    def take_leaving(self) -> set[str]:
        return {name for name in sorted(self.chains) if self.random.random() < 0.5}

    def is_linked(self, rule: Rule) -> bool:
        return self.random.random() < 0.5


class Moving(PartedEngine):
    """An engine whose chains move by chance; it counts how often some were with hybrid."""

    def __init__(self, seed: int) -> None:
        self.restless, self.tried = Restless(seed), 0
        heavy = HybridEngine(Crew(1 + seed % 2, capacity=4, few=0, slice=16), self.restless)
        super().__init__([CdpEngine() for _ in range(1 + seed % 3)], map, heavy)

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        super().deploy(rules, since=since, version=version)
        self.restless.chains |= {one.name for one in rules.rules if self.restless.takes(one)}

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        found = super().advance(marks)
        self.tried += bool(self.parts[-1])
        return found


def agree(case: Case, seed: int) -> int:
    engine = Moving(seed)
    theirs, ours = run(case, engine), run(case, NaiveEngine())
    for place, (found, expected) in enumerate(zip(theirs.advances, ours.advances, strict=True)):
        assert list(map(row, found)) == list(map(row, expected)), (place, f"seed {seed}\n{case}")
    assert theirs.marks == ours.marks, f"seed {seed}\n{case}"
    return engine.tried


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("make_case", [chain_case, decided_case, sequence_case, random_case])
@pytest.mark.timeout(600)
def test_moves_in_mid_stream_change_no_result(make_case, part: int) -> None:
    tried = 0
    for seed in range(part * CASES // PARTS, (part + 1) * CASES // PARTS):
        tried += agree(make_case(seed), seed)
    assert tried > CASES // PARTS / 4 or make_case in (sequence_case, random_case)


# --- what is chosen ------------------------------------------------------------------------------


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials cost nothing to begin."""
    monkeypatch.setattr("rules.engine.chains.hybrid.trials.LOADED", 0.0)
    monkeypatch.setattr("rules.engine.chains.hybrid.trials.COMPILED", 0.0)


def look(elapsed: int, ticks: float, rate: float = 1.0) -> Look:
    """A look since which half of the events of a trial have come."""
    rates = Rates(rate, {1: rate, 2: rate}, lambda _: 1.0)
    return Look(rates, elapsed, ticks, elapsed, 2 * elapsed / TRIAL_EVENTS)


def seen(trials: Trials, ticks: float, looks: int) -> int:
    """How many looks outside it takes, each of so many ticks, until the rule is to move; 0: more
    than that.
    """
    for number in range(1, looks + 1):
        trials.look_outside(CHAIN.rule, CHAIN, look(100, ticks), {}, is_linked=False)
        if trials.take_leaving():
            return number
    return 0


def inside(trials: Trials, one: Look) -> None:
    """Looks inside, all alike, that have a rule leave."""
    for _ in range(TRIAL_LOOKS):
        assert not trials.take_leaving()
        trials.look_inside(CHAIN.rule, one)
    assert trials.take_leaving() == {"chain"}


def test_a_trial_waits_until_the_rule_has_cost_several_times_as_much(at_once: None) -> None:
    assert 3 <= seen(Trials(), 1e6, 100) <= 20


def test_a_trial_waits_longer_where_kernels_have_to_be_loaded() -> None:
    assert seen(Trials(), 1e6, 100) == 0
    assert 3 <= seen(Trials(), 1e10, 100) <= 60


def test_a_rule_that_loses_comes_back_and_is_not_soon_tried_again(at_once: None) -> None:
    trials = Trials()
    assert seen(trials, 1e6, 100)
    inside(trials, look(100, 4e6))
    assert seen(trials, 1e6, 20) == 0
    assert seen(trials, 1e6, 200) > 0, "its events may have become others"


def test_a_look_that_was_interrupted_ends_no_trial(at_once: None) -> None:
    trials = Trials()
    assert seen(trials, 1e6, 100)
    for ticks in (4e6, 3e5, 3e6, 2e5, 9e9):
        trials.look_inside(CHAIN.rule, look(100, ticks))
    assert not trials.take_leaving()


def test_a_rule_that_wins_stays_until_its_events_have_become_others(at_once: None) -> None:
    trials = Trials()
    assert seen(trials, 1e6, 100)
    for _ in range(10):
        trials.look_inside(CHAIN.rule, look(100, 2e5))
    assert not trials.take_leaving()
    scarce = Look(Rates(0.001, {1: 1.0, 2: 1.0}, lambda _: 1.0), 100, 2e5, 100)
    inside(trials, scarce)  # columns have little to do where terminators are few


def test_where_no_tick_is_counted_the_model_decides(at_once: None) -> None:
    trials = Trials()
    assert seen(trials, 0.0, 100)
    inside(trials, look(100, 0.0))
    cheap = Trials(Costs(pair=0.1, sequence=0.1))
    assert seen(cheap, 0.0, 100)
    for _ in range(TRIAL_LOOKS):
        cheap.look_inside(CHAIN.rule, look(100, 0.0))
    assert not cheap.take_leaving()


def test_the_model_counts_pairs_and_sequences() -> None:
    rates = Rates(1.0, {1: 1.0, 2: 1.0}, lambda _: 1.0)
    pairs = hybrid_cost(CHAIN, rates, Costs(pair=1.0, sequence=0.0))
    assert pairs == pytest.approx(20 + 20 * 20)  # A with B, then each of those with C
    kept = hybrid_cost(CHAIN, rates, Costs(pair=0.0, sequence=1.0))
    assert kept == pytest.approx(20 + 0.3 * 20 * 20)


TYPES = [EventType.of(name, v="float") for name in "ABCD"]
SCHEMAS = " ".join(f"event {type_}" for type_ in TYPES)
DISTANT = """ rule one: define X() from D() as d and each C() as c within 60 us from d
    and each B() as b within 60 us from c and each A(v > c.v + 3) as a within 60 us from b"""
"""From D back, all pairs of C and B are tried each time; from A on, few are left behind C."""
LAST = " rule one: define X() from D() as d and last C() as c within 60 us from d"
EVEN, RARE = (0.25, 0.25, 0.25, 0.25), (0.33, 0.33, 0.339, 0.001)


def fed(
    engine: Detector, count: int, shares: tuple[float, ...], then: Callable[[], object] = int
) -> int:
    """How many composite events there are of so many events, one a microsecond."""
    random, found = np.random.default_rng(3), 0
    for start in range(0, count, 1_000):
        kinds, values = random.choice(4, 1_000, p=shares), random.normal(size=1_000)
        for number, type_ in enumerate(TYPES):
            places = np.flatnonzero(kinds == number)
            source = StringColumn.constant("s", len(places))
            ids = EventIds(source, start + places)
            engine.push(EventBatch(type_, start + places, ids, (values[places],)))
        found += len(engine.advance(start + 1_000))
        then()
    return found + len(engine.advance(TIME_MAX))


@pytest.mark.usefixtures("at_once")
def test_auto_tries_hybrid_where_conditions_are_between_distant_events() -> None:
    detector, places = deployed("auto", rules.load(SCHEMAS + DISTANT), 1), list[int]()
    found = fed(detector, 30_000, EVEN, lambda: places.append(len(detector.parts[-1])))
    assert places[0] == 0
    assert 1 in places
    assert found == fed(deployed("cdp", rules.load(SCHEMAS + DISTANT), 1), 30_000, EVEN) > 1_000


@pytest.mark.usefixtures("at_once")
def test_auto_leaves_a_rule_alone_whose_terminators_are_rare() -> None:
    detector = deployed("auto", rules.load(SCHEMAS + DISTANT), 1)
    fed(detector, 40_000, RARE)
    assert list(map(len, detector.parts)) == [1, 0]


def test_there_is_no_hybrid_beside_rules_that_are_no_chains() -> None:
    assert beside_hybrid(rules.load(SCHEMAS + LAST), 1) is None
    assert isinstance(deployed("auto", rules.load(SCHEMAS + LAST), 1), CdpEngine)


def test_a_rule_that_others_come_to_depend_on_comes_back() -> None:
    """Beside a rule over its composite events it is evaluated as before."""
    trials = Trials()
    engine = PartedEngine([CdpEngine()], map, HybridEngine(Crew(), trials))
    engine.deploy(rules.load(SCHEMAS + DISTANT))
    trials.look_outside(CHAIN.rule, CHAIN, look(100, 1.0), {}, is_linked=False)
    engine._try_elsewhere(engine._parts[0], engine._parts[0].rules["one"])
    assert list(map(len, engine.parts)) == [0, 1]
    engine.deploy(rules.load("event X() rule two: define Y() from X()"))
    assert list(map(len, engine.parts)) == [2, 0]

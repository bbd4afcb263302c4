"""CDP on CUDA as published gives what the oracle gives, but for the last bits of float sums."""

import itertools
import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from agreement import row
from cases import Advance, Case, Deploy, Outcome, Push, nullable, random_case, random_events, run
from msgspec import structs
from rule_texts import Piece, RuleText
from sequence_cases import sequence_case
from timeline import history, push, written

import rules
from matcher.gpu.device import device
from matcher.model import TIME_MAX, Event
from rules.engine.engine import Detector
from rules.engine.oracle.naive import NaiveEngine
from rules.errors import RuleErrors
from studies.cdp_on_cuda import PublishedCdp, columns, detection

SIMULATED = device().simulated
MINUTE = 60


@pytest.fixture(autouse=True, params=[2] if SIMULATED else [2, detection.THREADS])
def few_threads(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Have many blocks of few threads, which the simulator asks for anyway, and little room for
    partial sequences.
    """
    monkeypatch.setattr(detection, "THREADS", request.param)
    monkeypatch.setattr(detection, "ROWS_MAX", 2 * request.param)
    monkeypatch.setattr(detection, "SEQUENCES_MIN", 2)
    monkeypatch.setattr(columns, "ROOM_MIN", 4)


def found_by(engine: Detector, text: str, events: str) -> list[str]:
    """What an engine detects in a history written in minutes."""
    ruleset = rules.load(text)
    engine.deploy(ruleset)
    push(engine, history(events, ruleset, unit=MINUTE), ruleset)
    return written(engine.advance(TIME_MAX).events(), unit=MINUTE)


def agreed(text: str, events: str, **choices: Any) -> list[str]:
    """The same, which the oracle says too."""
    found = found_by(PublishedCdp(capacity=2, **choices), text, events)
    assert found == found_by(NaiveEngine(), text, events)
    return found


R9 = """
event A(p: int) event B(p: int, v: int) event C(p: int)
define ComplexEvent()
from   C(p=$x) and each B(p=$x and v>10) within 8 min. from C and
       last A(p=$x) within 3 min. from B
"""
FIGURE_5 = """
A1=A@5(1) A2=A@6(3) A3=A@9(1) A4=A@12(3) A5=A@14(3)
B0=B@1(3, 20) B1=B@8(1, 20) B2=B@11(3, 20) B3=B@13(3, 20) B4=B@14(3, 5) C1=C@15(3)
"""


@pytest.mark.parametrize("memory", [None, 0])
def test_the_worked_example_of_the_journal(memory: int | None) -> None:
    assert agreed(R9, FIGURE_5, memory=memory) == ["ComplexEvent@15() <- C1 B3 A4"]


R10 = """
event A(att: int, value: int) event B(att: int) event C(att: int)
define CE(att1: int, att2: int)
from   C(att=$x) and POLICY B(att=$x) within 10 min from C and POLICY A(att=$x) within 10 min from B
where  att1=$x and att2=Sum(A(att=$x).value within 12 min from B)
"""


@pytest.mark.parametrize("policy", ["each", "last", "first", "2-last", "2-first"])
def test_r10_under_each_policy(policy: str) -> None:
    random, names = Random(10), itertools.count()
    events = []
    for minute in range(40):
        kind = random.choice("ABC")
        att, value = random.randrange(2), random.randrange(-9, 9)
        values = f"{att}, {value}" if kind == "A" else f"{att}"
        events.append(f"{kind}{next(names)}={kind}@{minute // 2}({values})")
    assert len(agreed(R10.replace("POLICY", policy), " ".join(events))) > 1


SCHEMAS = """
event A(p: int, v: float, s: string) event B(p: int, v: float, s: string, n: int)
event S(s: string, f: bool)
"""
PATTERNS = {
    "a static condition of a string, a parameter of one": """
        define X(s: string, f: bool)
        from S(f = true, s = $s) and each A(s = $s, s prefix "a") within 4 min from S
        where s = $s, f = S.f""",
    "a filter by an average": """
        define X(t: float) from S() and 1 < $t = Avg(A(s = S.s).v within 5 min from S)
        where t = $t * 2""",
    "aggregates of ints": """
        define X(c: int, s: int, l: int, g: int, a: float)
        from S() and last A() within 9 min from S
        where c = Count(B() within 9 min from S), s = Sum(B().n within 9 min from S),
              l = Min(B().n within 9 min from S), g = Max(B().n between A and S),
              a = Avg(B().p within 9 min from S)""",
    "aggregates of floats": """
        define X(s: float, l: float, g: float)
        from S() and first A() within 9 min from S
        where s = Sum(B(p >= A.p).v within 9 min from S), l = Min(B().v within 9 min from S),
              g = Max(B().v between A and S)""",
    "a sequence of two branches": """
        define X(n: int) from S() and each B() as c within 3 min from S
          and last A(p <= c.p) within 2 min from S and first B(n != c.n) as b within 5 min from A
        where n = b.n""",
    "a negation within and one between": """
        define X() from S() and each A() within 6 min from S and not B(p = A.p) between A and S
          and not B(n > 2) within 1 min from S""",
    "the events of the match do not count": """
        define X() from A() as t and each A() as a within 3 min from t
          and not A(p > 1) within 3 min from a""",
    "a window of an event that is selected": """
        define X() from S() and each A() within 6 min from S and each B() within 6 min from S
          and A within 2 min from B and (A.v + B.v * 2 > 1 or A.p % 2 = 1) and A.time <= B.time""",
    "consumption": """
        define X() from A() as t and each B() within 9 min from t
          and last A() as a within 9 min from t
        consuming B, a""",
    "a parameter that has no value": """
        define X(d: float) from S() and each B() within 5 min from S and $d = B.v / B.p and $d < 9
        where d = $d""",
    "a terminator alone": "define X(n: int, w: float) from B(n > 1) where n = B.n * B.n, w = B.n",
}


def some_events(random: Random, count: int) -> str:
    """A history of ties and few values."""
    told = []
    for place in range(count):
        kind, text = random.choice("AABBS"), random.choice(("a", "ab", "b"))
        p, v, n = random.randrange(3), random.randrange(-4, 9) / 2, random.randrange(4)
        values = {"A": f'{p}, {v}, "{text}"', "B": f'{p}, {v}, "{text}", {n}'}
        told.append(
            f"e{place}={kind}@{place // 3}({values.get(kind, f'{chr(34)}{text}{chr(34)}, true')})"
        )
    return " ".join(told)


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name: str) -> None:
    text = SCHEMAS + PATTERNS[name]
    assert agreed(text, some_events(Random(name), 28 if SIMULATED else 40))


# --- at random -----------------------------------------------------------------------------------


def accepted(case: Case) -> Case | None:
    """The case with those of its rules that the reference takes, all from the beginning."""
    texts = [text for step in case.steps if isinstance(step, Deploy) for text in step.rules]
    taken: list[RuleText] = []
    for text in texts:
        try:
            together = "\n".join(map(str, (*taken, text)))
            PublishedCdp().deploy(rules.load(together, known=case.schemas))
        except RuleErrors:
            continue
        taken.append(text)
    steps = [step for step in case.steps if isinstance(step, Push | Advance)]
    return replace(case, steps=(Deploy(tuple(taken)), *steps)) if taken else None


def told(events: list[Event]) -> list[tuple[Any, ...]]:
    return [row(event) for event in events]


def is_same(found: Any, expected: Any) -> bool:
    """Whether two rows agree, floats to 1e-9."""
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    if found == expected:
        return True
    try:
        return math.isclose(float(found), float(expected), rel_tol=1e-9)
    except (TypeError, ValueError):
        return False


def agree(found: Outcome, expected: Outcome, case: Case) -> None:
    for ours, oracle in zip(found.advances, expected.advances, strict=True):
        assert is_same(tuple(told(ours)), tuple(told(oracle))), str(case)
    assert found.duplicates == expected.duplicates, str(case)
    assert found.conflicts == expected.conflicts, str(case)
    assert found.marks == expected.marks, str(case)


def nullable_case(seed: int) -> Case:
    return nullable(random_case(seed))


@pytest.mark.parametrize("make", [random_case, sequence_case, nullable_case])
def test_random_cases(make: Any) -> None:
    ran = 0
    for seed in range(6 if SIMULATED else 40):
        case = accepted(make(seed))
        if case is not None:
            memory = (None, 0, 3_000)[seed % 3]
            agree(
                run(case, PublishedCdp(capacity=2, memory=memory)), run(case, NaiveEngine()), case
            )
            ran += 1
    assert ran > 1


LONG = RuleText(
    "r",
    "Z",
    (
        Piece("A", ("p >= 0",), " as a"),
        Piece("each B", ("q >= a.p",), " as b within 3 s from a"),
        Piece("last B", ("q >= b.q",), " as c within 2 s from b"),
    ),
    (),
    (),
)


@pytest.mark.parametrize("seed", range(2 if SIMULATED else 40))
def test_rings_that_go_around_and_events_that_come_late(seed: int) -> None:
    random = Random(seed)
    events = random_events(random, ("A", "B"), 60, 30)
    steps: list[Any] = [Deploy((LONG,))]
    held: list[Event] = []
    for event in events:
        if random.random() < 0.25:
            held.append(event)  # to be pushed after its mark
            continue
        steps += [Push((event,)), Advance(event.time)]
        if held and random.random() < 0.3:
            steps.append(Push((held.pop(),)))
    case = Case(seed, (*steps, Push(tuple(held)), Advance(TIME_MAX)), is_orderly=False)
    engine = PublishedCdp(capacity=4)
    found, expected = run(case, engine), run(case, NaiveEngine())
    agree(found, expected, case)
    assert list(found.events())
    assert engine.memory()["events"] == 0


# --- memory, measures, refusals ------------------------------------------------------------------


def test_rules_beyond_the_memory_of_the_device_are_copied_when_they_run() -> None:
    ruleset = rules.load(R9 + R9[R9.index("define") :])  # the same rule twice
    room = PublishedCdp(capacity=16)
    room.deploy(ruleset)
    each = room.memory()["device"] // 2
    engine = PublishedCdp(capacity=16, memory=each + each // 2)
    engine.deploy(ruleset)
    assert (engine.memory()["apart"], engine.memory()["device"]) == (1, each)
    events = history(FIGURE_5, ruleset, unit=MINUTE)
    for one in (room, engine):
        push(one, events, ruleset)
    found = [told(list(one.advance(TIME_MAX).events())) for one in (room, engine)]
    assert found[0] == found[1]
    assert len(found[0]) == 2
    engine.remove("ComplexEvent")
    assert engine.memory()["device"] == 0
    assert engine.fresh().memory()["apart"] == 0


def test_strings_that_nobody_sees_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.cdp_on_cuda.engine.FORGET_EVERY", 8)
    monkeypatch.setattr("rules.engine.linking.interner.SWEEP_MIN", 4)
    text = """event A(s: string) event B(s: string)
    define X(s: string) from A(s = $s) and last B(s = $s, s != "b0") within 3 min from A
    where s = B.s"""
    ruleset = rules.load(text)
    engine, oracle = PublishedCdp(capacity=2), NaiveEngine()
    for one in (engine, oracle):
        one.deploy(ruleset)
    for minute in range(40):
        events = history(
            f'B@{minute}("b{minute}") A@{minute}("b{minute - 2}")', ruleset, unit=MINUTE
        )
        events = [structs.replace(event, id=f"{event.type}{minute}") for event in events]
        found = []
        for one in (engine, oracle):
            push(one, events, ruleset)
            found.append(told(list(one.advance(events[0].time + 1).events())))
        assert found[0] == found[1]
        assert len(found[0]) == (minute > 2)
    assert engine.memory()["strings"] < 20


def test_a_clock_tells_copies_from_kernels() -> None:
    ticks = itertools.count()
    engine = PublishedCdp(clock=lambda: float(next(ticks)))
    assert found_by(engine, R9, FIGURE_5)
    spent = engine.profile()
    assert all(spent[what] > 0 for what in ("copies", "kernels", "host", "launches", "bytes"))
    assert PublishedCdp().profile()["host"] == 0


def test_rules_come_before_events_and_alone() -> None:
    engine = PublishedCdp()
    found_by(engine, R9, FIGURE_5)
    with pytest.raises(RuleErrors, match="takes all its rules before the first event"):
        engine.deploy(rules.load(R9.replace("ComplexEvent", "Other")))
    text = R9 + "define Above() from ComplexEvent()"
    with pytest.raises(RuleErrors, match="rule Above: it uses ComplexEvent, which a rule defines"):
        PublishedCdp().deploy(rules.load(text))

"""Ticks that are left out change nothing: engines against the oracle, which ticks every time."""

import random

import numpy as np
import pytest

from matcher.model import MICROSECONDS, TIME_MAX, EventType
from matcher.rows import batch_of
from rules import load
from rules.engine import Detections, make
from rules.engine.intake.ticking import fires_idle
from tests.engines import NAMES

SCHEMAS = "event A(x: int)\nevent B(x: int)\n"
A, B = EventType.of("A", x="int"), EventType.of("B", x="int")
TIMERS = (
    *("Timer()", "Timer(S % 10 = 0)", "Timer(M % 5 == 0)", "Timer(M = 7, S = 0)"),
    'Timer(M % 5 = 0, zone = "Africa/Monrovia")',  # 44 minutes and 30 seconds behind UTC, then
    'Timer(zone = "Asia/Kolkata", M = 7)',
)
RULES = (
    "define T{n}(x) from {timer} as t and each A(x > 2) within {w} from t where x = A.x",
    "define T{n}(x) from {timer} as t and last A(x > 2) as a within {w} from t"
    " and first B() as b within {w} from a where x = b.x",
    "define T{n}(x) from {timer} as t and Count(A() within {w} from t) = 1 where x = 1",
    "define T{n}(x) from {timer} as t and Count(A() within {w} from t) < 1 where x = t.M",
    "define T{n}(x) from {timer} as t and $c = Count(A() within {w} from t) and $c > t.M % 2"
    " where x = $c",
    "define T{n}(x) from {timer} as t and not A() within {w} from t where x = t.S",
    "define T{n}(x) from {timer} as t where x = Max(A().x within {w} from t)",
    "define T{n}(x) from {timer} as t and last A() as a within {w} from t"
    " where x = a.x consuming a",
    "define T{n}(x) from {timer} as t and each C() within {w} from t where x = C.x",
    "define T{n}(x) from {timer} as t and last T0() as c within {w} from t where x = c.x",
)
IDLE = (3, 4, 5)
"""Those that fire where nothing happens, or might."""
C = "define C(x) from A(x > 1) as a and last B() within 1 min from a where x = B.x\n"
LATER = (
    *RULES[:8],
    "define C(x) from B(x > 1) as b where x = b.x",
    "define C(x) from {timer} as t and last B() within {w} from t where x = B.x",
)
WIDTHS = ("1 s", "10 s", "3 min", "10 min")


def rules_of(rng: random.Random) -> str:
    chosen = [rng.choice(RULES[:8]), *rng.choices(RULES, k=rng.randint(0, 3))]
    lines = [
        one.format(n=n, timer=rng.choice(TIMERS), w=rng.choice(WIDTHS))
        for n, one in enumerate(chosen)
    ]
    return SCHEMAS + C + "\n".join(lines)


def events_of(rng: random.Random) -> list[tuple[EventType, int, int]]:
    """Types, times and values: bursts, with long silences between them."""
    time, found = rng.randrange(-3_000, 3_000), []
    for _ in range(rng.randint(1, 8)):
        time += rng.choice((0, 1, 5, 60, 200, 1_500))
        fraction = rng.choice((0, 0, 0, 1, 500_000))
        found.append((rng.choice((A, B)), time * MICROSECONDS + fraction, rng.randrange(6)))
    return found


def told(found: Detections) -> list[object]:
    return [(event.type, event.time, event.id, event.data) for event in found.events()]


def run(engine: str, seed: int, *, late_rule: bool) -> list[object]:
    """Events in pieces, some of them ahead of the marks; perhaps with a rule that comes later, and
    may go again.
    """
    rng = random.Random(seed)
    detector = make(engine)
    detector.deploy(load(rules_of(rng)))
    events, found = events_of(rng), []
    later, gone = sorted(rng.choices(range(len(events)), k=2)) if late_rule else (None, None)
    for place, (type_, time, value) in enumerate(events):
        if place == later:
            text = rng.choice(LATER).format(n=9, timer=rng.choice(TIMERS), w="10 min")
            since = events[place - 1][1] + 1 if place else None
            detector.deploy(load(f"{SCHEMAS}rule later: {text}"), since=since)
        if place == gone and later != gone:
            detector.remove("later")
        row = batch_of(type_, [{"x": value}], source="s", first_sequence=place, times=[time])
        detector.push(row)
        if rng.random() < 0.6:
            mark = min([one[1] for one in events[place + 1 :]], default=time)
            marks = mark if rng.random() < 0.5 else {"A": mark, "B": mark, "Timer": mark}
            found += told(detector.advance(marks))
    return found + told(detector.advance(TIME_MAX))


@pytest.mark.parametrize("late_rule", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_engines_find_what_the_oracle_finds(seed: int, late_rule: bool) -> None:
    expected, *others = (run(name, seed, late_rule=late_rule) for name in NAMES)
    for found in others:
        assert found == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [(rule, place in IDLE) for place, rule in enumerate(RULES)],
)
def test_rules_that_fire_where_nothing_happens(rule: str, expected: bool) -> None:
    text = SCHEMAS + C + "define T0(x) from A() where x = A.x\n"
    checked = load(text + rule.format(n=1, timer="Timer()", w="1 min"))
    assert fires_idle(checked.rules[-1]) is expected


@pytest.mark.parametrize("engine", ["cdp", "aip"])
def test_a_silence_of_years_costs_nothing(engine: str) -> None:
    text = "define Seen(n) from Timer() as t and Count(A() within 2 s from t) = 1 where n = t.S"
    detector = make(engine)
    detector.deploy(load(SCHEMAS + text))
    times = np.array([0, 250_000_000_000]) * MICROSECONDS  # the year 9892
    detector.push(batch_of(A, [{"x": 1}, {"x": 2}], source="s", times=times))
    found = told(detector.advance(TIME_MAX))
    assert [one[1] // MICROSECONDS for one in found] == [0, 1, 2, 250_000_000_000]
    assert detector.evaluated == 4


@pytest.mark.parametrize("engine", ["cdp", "aip"])
def test_an_engine_that_goes_on_where_another_was_ticks_as_that_would(engine: str) -> None:
    text = "define T(x) from Timer(S % 10 = 0) as t and each A() within 3 min from t where x = A.x"
    checked = load(SCHEMAS + text)
    first, again, oracle = make(engine), make(engine), make("naive")
    for one in (first, again, oracle):
        one.deploy(checked)
    early, late = (
        batch_of(A, [{"x": x}], source="s", first_sequence=x, times=[time * MICROSECONDS])
        for x, time in ((1, 95), (2, 2_000))
    )
    for one in (first, oracle):
        one.push(early)
        one.advance(100 * MICROSECONDS)
    again.resume(first.snapshot())
    for one in (again, oracle):
        one.push(late)
    found = told(again.advance(TIME_MAX))
    assert found == told(oracle.advance(TIME_MAX))
    assert len(found) == 19

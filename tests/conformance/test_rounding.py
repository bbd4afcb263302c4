"""Averages and deviations over windows that slide: one value, to the last bit, in every engine, and
what ``explain`` says of it (tesla.md S8).

Values are as people write them, with one digit after the point, and of every size; a rule compares
each average with one that is worked out here, which a last digit otherwise decides wrongly.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from random import Random

import pytest
from agreement import row
from pairs import seeds
from timeline import batches

import rules
from matcher.model import TIME_MAX, Event, EventBatch, EventType
from rules.engine import ENGINES, make
from rules.explaining.explainer import explained
from rules.explaining.recording import Recording
from rules.explaining.survey import surveyed

WINDOW = 12
SCHEMAS = (EventType.of("T", x="float", n="int", mean="float", whole="float"),)
RULES = f"""
event T(x: float, n: int, mean: float, whole: float)
rule all: define All(a: float, b: float, c: float, d: float, e: float)
from T() as t and $a = Avg(T().x within {WINDOW} us from t)
where a = $a, b = StdDev(T().x within {WINDOW} us from t), c = Sum(T().x within {WINDOW} us from t),
  d = Avg(T().n within {WINDOW} us from t), e = StdDev(T().n within {WINDOW} us from t)
rule least: define Least() from T() as t and t.mean <= Avg(T().x within {WINDOW} us from t)
rule above: define Above() from T() as t and t.mean > Avg(T().x within {WINDOW} us from t)
rule whole: define Whole() from T() as t and t.whole = Avg(T().n) within {WINDOW} us from t
"""


def decimals(random: Random) -> float:
    return random.randint(0, 1000) / 10


def of_every_size(random: Random) -> float:
    return math.ldexp(random.uniform(-1, 1), random.choice((-1000, -60, 0, 3, 60, 1000)))


def cancelling(random: Random) -> float:
    return random.choice((1e16, -1e16, 1.0, 0.1, -0.3, 1e308, -1e308, 5e-324, -5e-324))


def whole(random: Random) -> int:
    return random.choice((random.randint(-9, 100), random.randint(-(2**63), 2**63 - 1)))


def average(numbers: Sequence[float]) -> float:
    return float(sum(map(Fraction, numbers)) / len(numbers))


def history(random: Random, count: int) -> list[Event]:
    """Events, each with the averages over the window that it ends."""
    number_of = random.choice((decimals, decimals, of_every_size, cancelling))
    far = random.random() < 0.3
    times = sorted(random.randint(0, 2 * count) for _ in range(count))
    xs = [number_of(random) for _ in times]
    ns = [whole(random) if far else random.randint(0, 100) for _ in times]
    events = []
    for place, time in enumerate(times):
        inside = [at for at, one in enumerate(times) if time - WINDOW <= one <= time]
        data = {"x": xs[place], "n": ns[place]}
        data |= {"mean": average([xs[at] for at in inside])}
        data |= {"whole": average([ns[at] for at in inside])}
        events.append(Event("T", time, "s", str(place), data, place + 1))
    return events


def shuffled(random: Random, events: list[Event]) -> Iterator[EventBatch]:
    """The events in any order, in several batches."""
    order = random.sample(events, len(events))
    for first in range(0, len(order), 17):
        yield from batches(order[first : first + 17], SCHEMAS)


def found(engine: str, given: Iterator[EventBatch]) -> list[tuple]:
    detector = make(engine)
    detector.deploy(rules.load(RULES))
    for batch in given:
        detector.push(batch)
    return [row(event) for event in detector.advance(TIME_MAX).events()]


@pytest.mark.parametrize("scanned", [0, 32])
@pytest.mark.parametrize("seed", seeds(4, 8))
def test_engines_agree_to_the_last_bit_whatever_the_order(
    seed: int, scanned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``scanned``: 0 so that all windows are summarised, and the events of a window may be taken
    from prefix sums."""
    monkeypatch.setattr("rules.engine.memory.growth.SCAN_MAX", scanned)
    random = Random(seed)
    events = history(random, 120)
    expected = found("naive", shuffled(random, events))
    counts = Counter(one[1] for one in expected)
    assert counts.pop("All") > 60  # not where a sum is beyond the greatest float (S9)
    assert counts == {"Least": 120, "Whole": 120}, f"seed {seed}"
    for engine in ENGINES:
        assert found(engine, shuffled(random, events)) == expected, f"seed {seed}, {engine}"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("rule", "times"), [("least", 60), ("above", 0)])
def test_explain_says_what_was_detected(rule: str, times: int, seed: int) -> None:
    random = Random(seed)
    ruleset = rules.load(RULES)
    recording = Recording(ruleset, shuffled(random, history(random, 60)))
    assert len(recording.firings(recording.rule(rule))) == times
    summary = surveyed(recording, rule)
    assert summary.fired == times
    for terminator in recording.terminators(recording.rule(rule)):
        told = explained(recording, rule, terminator.id)
        assert told.fired == bool(times), f"seed {seed}, {terminator.id}"

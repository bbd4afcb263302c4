"""Rules that hold up to an instant (rules.engine.order.intervals)."""

from dataclasses import replace
from random import Random

import pytest
from cases import Case, Deploy, Push, random_events
from engines import make
from rule_texts import COMPOSITE, PRIMITIVE, SCHEMAS, RuleWriter
from timeline import push

import rules
from matcher.identity import rule_id
from matcher.model import MICROSECONDS, TIME_MAX, Event
from rules.engine.engine import Detections
from rules.engine.order.intervals import Intervals, told
from rules.pattern import RuleSet

SECONDS = 12
PAIR = "rule pair: define X(n: int) from A() as a and each B() within 5 s from a where n = 1"
UPPER = "rule upper: define Y(n: int) from X() as x where n = x.n"
TYPES = "event A()\nevent B()\n"


def detected(
    engine: str, ruleset: RuleSet, events: list[Event], until: int | None = None
) -> list[Event]:
    """The composite events of one rule, by time and in order."""
    detector = Intervals(make(engine))
    detector.deploy(ruleset)
    (rule,) = ruleset.rules
    if until is not None:
        detector.end(rule.name, until)
    push(detector, events, ruleset)
    return list(detector.advance(TIME_MAX).events())


@pytest.mark.parametrize("engine", ["naive", "auto"])
@pytest.mark.parametrize("seed", range(60))
def test_a_rule_finds_what_it_finds_before_its_end_and_nothing_else(engine: str, seed: int) -> None:
    """With the same names, ids and causes; whatever a rule can be made of."""
    random = Random(seed)
    primitives = random.sample(list(PRIMITIVE), random.randint(2, 3))
    text = RuleWriter(random, primitives, []).write("r", random.choice(list(COMPOSITE)))
    events = random_events(random, primitives, 30, SECONDS)
    whole = rules.load(str(text), known=SCHEMAS)
    until = random.randint(1, SECONDS) * MICROSECONDS
    expected = [one for one in detected(engine, whole, events) if one.time < until]
    got = detected(engine, whole, events, until)
    case = Case(seed, (Deploy((text,)), Push(tuple(events))), True)
    assert [(one, one.cause_full) for one in got] == [(one, one.cause_full) for one in expected], (
        f"until {until}\n{case}"
    )


def events(first: int, last: int) -> list[Event]:
    """A and B in turns, each second."""
    return [
        Event("AB"[at % 2], at * MICROSECONDS, "s", str(at), {}, at) for at in range(first, last)
    ]


def told_of(found: Detections) -> list[tuple[str, int, tuple[str, ...]]]:
    """Source, second and causes of rules, as clients are told."""
    plain = Detections(told(found.batches), found.order)
    return [
        (
            one.source,
            one.time // MICROSECONDS,
            tuple(cause.partition("#")[0] for cause in one.cause_full if "rule" in cause),
        )
        for one in plain.events()
    ]


@pytest.mark.parametrize("engine", ["naive", "auto"])
def test_two_versions_of_a_rule_hold_one_after_the_other(engine: str) -> None:
    whole = rules.load(f"{TYPES}{PAIR}\n{UPPER}")
    pair, _ = whole.rules
    later = RuleSet((replace(pair, name=rule_id("pair", 1)),), whole.schemas)
    detector = Intervals(make(engine))
    detector.deploy(whole)
    detector.end("pair", 5 * MICROSECONDS)
    detector.deploy(later, since=5 * MICROSECONDS, version=1)
    push(detector, events(1, 9), whole)
    found = told_of(detector.advance({"A": 4 * MICROSECONDS, "B": 9 * MICROSECONDS}))
    assert {(source, at) for source, at, _ in found} == {
        ("rexmq/rule/pair", 2),
        ("rexmq/rule/upper", 2),
    }
    found = told_of(detector.advance(9 * MICROSECONDS))
    assert [(source, at) for source, at, _ in found if source == "rexmq/rule/pair"] == [
        ("rexmq/rule/pair", 4),
        ("rexmq/rule/pair", 4),
        ("rexmq/rule/pair", 6),
        ("rexmq/rule/pair", 8),
        ("rexmq/rule/pair", 8),
    ]
    causes = {of for source, _, of in found if source == "rexmq/rule/upper"}
    assert causes == {("rexmq/rule/pair",)}
    # The host knows the old one until it removes it, and its watermark is its end.
    assert detector.over == {"pair"}
    assert detector.marks == {
        "pair": 5 * MICROSECONDS,
        "pair@1": 9 * MICROSECONDS,
        "upper": 9 * MICROSECONDS,
    }
    detector.remove("pair")
    assert "pair" not in detector.marks
    with pytest.raises(KeyError):
        detector.mark("pair")


def test_others_do_not_wait_for_a_rule_that_has_not_come_to_its_end() -> None:
    whole = rules.load(f"{TYPES}{PAIR}\nrule one: define Z() from A() as a")
    detector = Intervals(make("naive"))
    detector.deploy(whole)
    detector.end("pair", 5)
    detector.advance({"A": 8, "B": 3})
    assert detector.marks == {"pair": 3, "one": 8}
    detector.advance({"B": 7})
    assert detector.marks == {"pair": 5, "one": 8}

"""A rule that ends at an instant is a rule (rules.curtailing)."""

from random import Random

import pytest
from cases import Case, Deploy, Push, random_events
from engines import make
from rule_texts import COMPOSITE, PRIMITIVE, SCHEMAS, RuleWriter
from timeline import push

import rules
from matcher.model import MICROSECONDS, TIME_MAX, Event
from routing.delivery.joining import with_batches
from routing.serving.ended import ended, name_of, told, told_causes
from rules.pattern import RuleSet

SECONDS, VERSION = 12, 3


def detected(engine: str, ruleset: RuleSet, events: list[Event]) -> list[Event]:
    """What clients are told of what an engine finds."""
    detector = make(engine)
    detector.deploy(ruleset, version=VERSION)
    push(detector, events, ruleset)
    found = detector.advance(TIME_MAX)
    return list(with_batches(found, told(told_causes(found.batches))).events())


@pytest.mark.parametrize("engine", ["naive", "auto"])
@pytest.mark.parametrize("seed", range(60))
def test_it_finds_what_the_rule_finds_before_and_nothing_else(engine: str, seed: int) -> None:
    """With the same names, ids and causes; whatever a rule can be made of."""
    random = Random(seed)
    primitives = random.sample(list(PRIMITIVE), random.randint(2, 3))
    text = RuleWriter(random, primitives, []).write("r", random.choice(list(COMPOSITE)))
    events = random_events(random, primitives, 30, SECONDS)
    whole = rules.load(str(text), known=SCHEMAS)
    until = random.randint(1, SECONDS) * MICROSECONDS
    (rule,) = whole.rules
    short = ended(rule, name_of("r", VERSION, until))
    expected = [one for one in detected(engine, whole, events) if one.time < until]
    got = detected(engine, RuleSet((short,), whole.schemas), events)
    case = Case(seed, (Deploy((text,)), Push(tuple(events))), True)
    assert [(one, one.cause_full) for one in got] == [(one, one.cause_full) for one in expected], (
        f"until {until}\n{case}"
    )


def test_something_is_found_before_and_after() -> None:
    """So that the random rules above are worth their time."""
    text = "define X(n: int) from A() as a and each B() within 5 s from a where n = 1"
    whole = rules.load(f"event A()\nevent B()\n{text}")
    events = [Event("AB"[at % 2], at * MICROSECONDS, "s", str(at), {}, at) for at in range(1, 9)]
    (rule,) = whole.rules
    short = ended(rule, name_of(rule.name, VERSION, 5 * MICROSECONDS))
    for engine in ("naive", "auto"):
        found = detected(engine, whole, events)
        before = detected(engine, RuleSet((short,), whole.schemas), events)
        assert 0 < len(before) < len(found)
        assert before == [one for one in found if one.time < 5 * MICROSECONDS]

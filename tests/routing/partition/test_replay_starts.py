"""From when on rules are evaluated once more, and what they see then (partition.replay_starts)."""

from dataclasses import replace
from random import Random

import pytest
from cases import Case, Deploy, Push, Remove, batches, random_case
from pairs import seeds

import rules
from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, Event, EventBatch, EventType
from routing.deployment import Deployed
from routing.partition.derivation import reach_of, reaches_of
from routing.partition.replay_starts import replay_starts
from rules.engine import make
from rules.pattern import TIMER, RuleSet

KNOWN = {name: EventType.of(name, n="int") for name in "ABCD"}


def far(text: str) -> dict[str, float]:
    """How far back a rule sees, in seconds, by type."""
    (rule,) = rules.load(
        f"rule r: define R({'n: int' if 'n =' in text else ''}) from {text}", known=KNOWN
    ).rules
    reaches = reaches_of(rule)
    assert max(reaches.values()) <= reach_of(rule)
    return {name: reach / MICROSECONDS for name, reach in reaches.items()}


def test_windows_add_up_to_the_terminator() -> None:
    assert far("A() as a and last B() as b within 5 s from a and each C() within 3 s from b") == {
        "A": 0,
        "B": 5,
        "C": 8,
    }


def test_what_may_not_be_and_what_is_counted_lies_in_windows_too() -> None:
    assert far("A() as a and last B() as b within 5 s from a and not C() between b and a") == {
        "A": 0,
        "B": 5,
        "C": 5,
    }
    assert far("A() as a and not A() within 2 s from a where n = Count(D() within 7 s from a)") == {
        "A": 2,
        "D": 7,
    }


def test_the_widest_window_of_a_type_counts() -> None:
    """Which one is chosen is decided by all in its own window, however close it has to be (S7)."""
    text = "A() as a and first B() as b within 9 s from a and b within 2 s from a"
    assert far(text) == {"A": 0, "B": 9}


def test_of_events_that_come_together_any_is_the_last() -> None:
    found = far("all A() as a, B() as b within 4 s")
    assert found["A"] >= 4
    assert found["B"] >= 4


def found(ruleset: RuleSet, pushed: list[EventBatch]) -> list[Event]:
    """The composite events of these rules over these events."""
    engine = make("naive")
    engine.deploy(ruleset)
    for batch in pushed:
        if len(batch):
            engine.push(batch)
    return list(engine.advance(TIME_MAX).events())


def ruleset_of(case: Case) -> RuleSet | None:
    """The rules of a case, together; None where some have the names of others that were removed, or
    begin where all events do, since they use the clock.
    """
    if any(isinstance(one, Remove) for one in case.steps):
        return None
    texts = [str(rule) for one in case.steps if isinstance(one, Deploy) for rule in one.rules]
    found = rules.load("\n\n".join(texts), known=case.schemas)
    return None if any(TIMER in rule.used_types for rule in found.rules) else found


@pytest.mark.parametrize("seed", seeds(16, 2_000))
def test_events_before_the_horizons_change_nothing_that_is_due(seed: int) -> None:
    random = Random(seed)
    drawn = (random_case(100 * seed + number, long=True) for number in range(100))
    case, ruleset = next((one, it) for one in drawn if (it := ruleset_of(one)) is not None)
    events = [event for one in case.steps if isinstance(one, Push) for event in one.events]
    due = {one.name: random.choice(events).time for one in ruleset.rules}
    deployed = [Deployed(rule, None, 0, number) for number, rule in enumerate(ruleset.rules)]
    needed = replay_starts(deployed, due).horizons
    pushed = batches(events, case.schemas.values())
    left = [one.take(one.time >= needed.get(one.type.name, TIME_MAX)) for one in pushed]

    def is_due(event: Event) -> bool:
        return event.time >= due[event.source.removeprefix(RULE_SOURCE)]

    expected = list(filter(is_due, found(ruleset, pushed)))
    assert list(filter(is_due, found(ruleset, left))) == expected, seed


SHAPES = [
    "define L(n: int) from A() as a and last B() as b within {w} s from a where n = a.n",
    "define L(n: int) from A(n > {k}) as a and each L2() as b within {w} s from a where n = a.n",
    "define L2(n: int) from C() as c and not D() within {w} s from c where n = c.n",
    "define H(n: int) from L() as x and last L2() as y within {w} s from x where n = x.n",
    "define U(n: int) from H() as x and each C() as y within {w} s from x where n = x.n "
    "consuming y",
]


@pytest.mark.parametrize("seed", range(60))
def test_rules_that_are_alike_are_traced_as_one_and_give_what_each_alone_does(seed: int) -> None:
    print("seed", seed)
    random = Random(f"alike {seed}")
    texts = [
        f"rule r{place}: {random.choice(SHAPES).format(w=random.choice((1, 5)), k=place)}"
        for place in range(random.randrange(1, 14))
    ]
    heads = "event L(n: int) event L2(n: int) event H(n: int)\n"
    ruleset = rules.load(heads + "\n".join(texts), known=KNOWN)
    times = [None, TIME_MIN, *(second * MICROSECONDS for second in (0, 3, 9, 10, 40, 41))]
    deployed = tuple(
        Deployed(rule, random.choice(times), 0, place, random.choice((None, None, 20_000_000)))
        for place, rule in enumerate(ruleset.rules)
    )
    far = [replace(one, until=one.until or TIME_MAX - 1) for one in deployed]
    some = {one.rule.name: random.choice(times[1:]) for one in deployed if random.random() < 0.8}
    for states in ({}, None, some):
        due = {one.rule.name: random.choice(times[1:]) for one in deployed if random.random() < 0.8}
        found, alone = replay_starts(deployed, due, states), replay_starts(far, due, states)
        assert (found.horizons, found.marks) == (alone.horizons, alone.marks)
        assert found.starts.items() <= alone.starts.items()

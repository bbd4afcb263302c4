"""Rules that close a cycle from an instant on, and up to one: what is strict is so between these
(S12, S15).
"""

import os
from collections.abc import Callable, Iterator
from functools import cache, partial
from random import Random

import pytest
from agreement import row
from cases import Deploy, Push, random_case
from engines import OF_MEANING, make
from msgspec import structs
from pairs import WHOLE
from rule_texts import SCHEMAS
from timeline import batches

import rules
from matcher.model import TIME_MAX, TIME_MIN, Event, EventBatch
from rules.checking.dependencies import TerminatorCycles
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detector
from rules.engine.order.intervals import Intervals
from rules.engine.threads.parts import PartedEngine
from rules.errors import RuleErrors
from rules.pattern import Rule, RuleSet

COUNT = int(os.environ.get("REXMQ_COMING", "30" if WHOLE else "12"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))


class Coming:
    """Random rules that hold from random instants on, some up to others, and events."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(f"coming {seed}")
        steps = random_case(seed).steps
        texts = [text for step in steps if isinstance(step, Deploy) for text in step.rules]
        once = {text.name: str(text) for text in texts}
        known = rules.load("\n\n".join(once.values()), known=SCHEMAS)
        pushed = [event for step in steps if isinstance(step, Push) for event in step.events]
        events = [
            structs.replace(event, id=f"e{place}", sequence=place)  # none is a repeat (E1)
            for place, event in enumerate(pushed, 1)
        ]
        self.batches = [one for one in batches(events, SCHEMAS.values()) if len(one)]
        times = sorted({event.time for event in events}) or [0]
        self.schemas = known.schemas
        self.held = sorted(
            (
                (random.choice([TIME_MIN, random.choice(times)]), self.end(times), place)
                for place in range(len(known.rules))
            ),
        )
        self.rules = known.rules
        self.times = times

    def end(self, times: list[int]) -> int:
        """Where a rule ends, seldom before all does."""
        return self.random.choice(times) + 1 if self.random.random() < 0.3 else TIME_MAX

    def one_by_one(self, engine: Detector) -> list[Event]:
        """A rule comes, and goes, when all before that has been evaluated, as by the oracle."""
        found: list[Event] = []
        turns = [(since, True, place) for since, until, place in self.held if since < until]
        turns += [(until, False, place) for since, until, place in self.held if since < until]
        for instant, begins, place in sorted(turns, key=lambda turn: (turn[0], turn[1])):
            if instant == TIME_MAX:
                break
            found += engine.advance(instant).events()
            if begins:
                self.deploy(engine, self.rules[place], instant)
                for batch in self.batches:
                    engine.push(batch)
            else:
                engine.remove(self.rules[place].name)
        return [*found, *engine.advance(TIME_MAX).events()]

    def deploy(self, engine: Detector, rule: Rule, since: int) -> None:
        engine.deploy(RuleSet((rule,), self.schemas), since=since)

    def at_once(self, engine: Intervals, *, type_by_type: bool = False) -> list[Event]:
        """All are deployed, with their ends, before anything is evaluated."""
        for since, until, place in self.held:
            rule = self.rules[place]
            if since < until:
                self.deploy(engine, rule, since)
                if until != TIME_MAX:
                    engine.end(rule.name, until)
        found: list[Event] = []
        for batch in self.shuffled():
            engine.push(batch)
        for marks in self.marks() if type_by_type else ():
            found += engine.advance(marks).events()
        return [*found, *engine.advance(TIME_MAX).events()]

    def marks(self) -> Iterator[dict[str, int]]:
        """Marks that rise type by type."""
        published = {one.type.name for one in self.batches}
        defined = {rule.defines.name for rule in self.rules}
        names = [name for name in (*SCHEMAS, "Timer") if name in published or name not in defined]
        marks = dict.fromkeys(names, self.times[0])
        for _ in range(8):
            name = self.random.choice(names)
            marks[name] = max(marks[name], self.random.choice(self.times))
            yield dict(marks)

    def shuffled(self) -> list[EventBatch]:
        order = list(self.batches)
        self.random.shuffle(order)
        return order


def in_order(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda event: (event.time, event.source, event.id))


def parted() -> Detector:
    return PartedEngine([CdpEngine(), CdpEngine()], map)


Maker = Callable[[], Detector]
MAKERS: dict[str, Maker] = {name: partial(make, name) for name in OF_MEANING} | {"parted": parted}


@cache
def found_one_by_one(seed: int) -> list[Event] | None:
    """What the oracle finds, for all engines; None where the rules are refused together."""
    try:
        return Coming(seed).one_by_one(make("naive"))
    except RuleErrors:
        return None


@pytest.mark.parametrize("type_by_type", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_strict_follows_from_the_rules_that_hold_at_an_instant(
    name: str, type_by_type: bool
) -> None:
    for seed in range(FIRST, FIRST + COUNT):
        expected = found_one_by_one(seed)
        if expected is None:
            continue
        got = Coming(seed).at_once(Intervals(MAKERS[name]()), type_by_type=type_by_type)
        if type_by_type:  # what each advance gives is in order, and no more
            got, expected = in_order(got), in_order(expected)
        assert [*map(row, got)] == [*map(row, expected)], f"seed {seed}"


def test_a_cycle_that_is_refused_leaves_all_as_it_was() -> None:
    known = rules.load(
        "rule one: define X(n: int, v: float, s: string) from Y() as y "
        'where n = 1, v = 1.0, s = ""',
        known=SCHEMAS,
    )
    back = rules.load(
        "rule two: define Y(n: int, r: float, f: bool) from X() as x "
        "where n = 1, r = 1.0, f = true",
        known=known.schemas,
    )
    for name, maker in MAKERS.items():
        engine = maker()
        engine.deploy(known)
        with pytest.raises(TerminatorCycles):
            engine.deploy(back, since=5)
        engine.advance(10)
        assert engine.marks == {"one": 10}, name


LOWER = """rule lower: define X(n: int, v: float, s: string) from A() as a
    where n = 1, v = 1.0, s = "" """
UPPER = "rule upper: define Z() from B() as b and not X() within 5 s from b"
APART = "rule apart: define Spread(d: float) from B() as b where d = 1.0"
ABOVE = """rule above: define Y(n: int, r: float, f: bool) from D() as d
    and not X() within 5 s from d where n = 1, r = 1.0, f = true"""
CLOSING = """rule closing: define X(n: int, v: float, s: string) from C() as c
    and each Z() within 2 s from c where n = 1, v = 1.0, s = "" """


def at(time: int) -> list[Event]:
    """An A and a C of an instant."""
    values = {"A": {"p": 1, "v": 1.0, "s": ""}, "C": {"v": 1.0, "p": 1, "s": ""}}
    return [
        Event(name, time, "s", f"{name}{time}", data, 2 * time + place)
        for place, (name, data) in enumerate(values.items())
    ]


def deployed(engine: Detector, *texts: tuple[str, int | None]) -> Detector:
    """The engine with these rules, which hold from then on."""
    known = SCHEMAS
    for text, since in texts:
        ruleset = rules.load(text, known=known)
        known = {**known, **ruleset.schemas}
        engine.deploy(ruleset, since=since)
    return engine


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_cycle_waits_for_nothing_but_what_is_before_it(maker: Maker) -> None:
    """Nor does what has nothing to do with it; what is above waits as ever for its own types."""
    texts = *((text, None) for text in (LOWER, UPPER, APART, ABOVE)), (CLOSING, 10)
    engine = deployed(maker(), *texts)
    engine.advance({"A": 30, "B": 30, "C": 5, "D": 2})
    before = {"lower": 30, "upper": 5, "apart": 30, "above": 2, "closing": 10}
    assert engine.marks == before
    engine.advance({"C": 20})
    assert engine.marks == before | {"upper": 20, "closing": 20}
    engine.advance({"D": 25})
    assert engine.marks["above"] == 20


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_cycle_begins_with_the_last_of_its_rules_to_hold_whichever_came_last(
    maker: Maker,
) -> None:
    """At 7 there is no cycle yet: C sees the Z of its own instant."""
    instant = "rule instant: define Z() from A() as a"
    found = []
    for texts in (
        ((instant, None), (CLOSING, 5), (UPPER, 10)),
        ((instant, None), (UPPER, 10), (CLOSING, 5)),
    ):
        engine = deployed(maker(), *texts)
        for batch in batches(at(7), SCHEMAS.values()):
            engine.push(batch)
        found.append([event.type for event in engine.advance(TIME_MAX).events()])
    assert found == [["Z", "X"], ["Z", "X"]]


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_rule_of_a_cycle_that_ends_opens_it_from_there_on(maker: Maker) -> None:
    """X sees the Z of its own instant at 12, when the rule that closed the cycle holds no more."""
    instant = "rule instant: define Z() from A() as a"
    known = rules.load(f"{CLOSING}\n{UPPER}\n{instant}", known=SCHEMAS)
    engine = Intervals(maker())
    engine.deploy(known)
    engine.end("upper", 10)
    for batch in batches([*at(7), *at(12)], SCHEMAS.values()):
        engine.push(batch)
    found = [(event.type, event.time) for event in engine.advance(TIME_MAX).events()]
    assert found == [("Z", 7), ("X", 12), ("X", 12), ("Z", 12)]  # X with either Z; E4

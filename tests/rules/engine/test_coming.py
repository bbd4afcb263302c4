"""Rules that close a cycle from an instant on: before it nothing is strict (S12, S15)."""

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from random import Random

import pytest
from agreement import same
from cases import Deploy, Push, random_case
from engines import NAMES, make
from rule_texts import SCHEMAS
from timeline import batches

import rules
from matcher.model import TIME_MAX, Event, EventBatch
from rules.checking.dependencies import TerminatorCycles
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detector
from rules.engine.parts import PartedEngine
from rules.errors import RuleErrors
from rules.pattern import RuleSet

COUNT = int(os.environ.get("REXMQ_COMING", "200"))
FIRST = int(os.environ.get("REXMQ_SEED", "0"))


class Coming:
    """Random rules that hold from random instants on, and events."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(f"coming {seed}")
        steps = random_case(seed).steps
        texts = [text for step in steps if isinstance(step, Deploy) for text in step.rules]
        once = {text.name: str(text) for text in texts}
        known = rules.load("\n\n".join(once.values()), known=SCHEMAS)
        pushed = [event for step in steps if isinstance(step, Push) for event in step.events]
        events = [
            replace(event, id=f"e{place}", sequence=place)  # none is a repeat (E1)
            for place, event in enumerate(pushed, 1)
        ]
        self.batches = [one for one in batches(events, SCHEMAS.values()) if len(one)]
        times = sorted({event.time for event in events}) or [0]
        found = [(random.choice([None, random.choice(times)]), rule) for rule in known.rules]
        found.sort(key=lambda pair: -1 if pair[0] is None else pair[0])
        self.sets = [
            (since, RuleSet(tuple(rule for _, rule in some), known.schemas))
            for since, some in groupby(found, lambda pair: pair[0])
        ]
        self.times = times

    def one_by_one(self, engine: Detector) -> list[Event]:
        """Each rule is deployed when all before it has been evaluated, as by the oracle."""
        found: list[Event] = []
        for since, ruleset in self.sets:
            if since is not None:
                found += engine.advance(since).events()
            engine.deploy(ruleset, since=since)
            for batch in self.batches:
                engine.push(batch)
        return [*found, *engine.advance(TIME_MAX).events()]

    def at_once(self, engine: Detector, *, type_by_type: bool = False) -> list[Event]:
        """All are deployed before anything is evaluated."""
        for since, ruleset in self.sets:
            engine.deploy(ruleset, since=since)
        found: list[Event] = []
        for batch in self.shuffled():
            engine.push(batch)
        for marks in self.marks() if type_by_type else ():
            found += engine.advance(marks).events()
        return [*found, *engine.advance(TIME_MAX).events()]

    def marks(self) -> Iterator[dict[str, int]]:
        """Marks that rise type by type."""
        published = {one.type.name for one in self.batches}
        defined = {rule.defines.name for _, own in self.sets for rule in own.rules}
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


MAKERS = {name: partial(make, name) for name in NAMES} | {"parted": parted}


@pytest.mark.parametrize("type_by_type", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_strict_follows_from_the_rules_that_hold_at_an_instant(
    name: str, type_by_type: bool
) -> None:
    for seed in range(FIRST, FIRST + COUNT):
        case = Coming(seed)
        try:
            expected = case.one_by_one(make("naive"))
        except RuleErrors:
            continue
        got = case.at_once(MAKERS[name](), type_by_type=type_by_type)
        if type_by_type:  # what each advance gives is in order, and no more
            got, expected = in_order(got), in_order(expected)
        told = f"seed {seed}\n{got}\n{expected}"
        assert len(got) == len(expected), told
        assert all(itertools.starmap(same, zip(got, expected, strict=True))), told


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


def test_rules_that_have_nothing_to_do_with_the_cycle_wait_for_nothing() -> None:
    """Nor do those of it wait for more than what is before it begins."""
    text = """rule lower: define X(n: int, v: float, s: string) from A() as a
    where n = 1, v = 1.0, s = "" """
    upper = "rule upper: define Z() from B() as b and not X() within 5 s from b"
    apart = "rule apart: define Spread(d: float) from B() as b where d = 1.0"
    closing = """rule closing: define X(n: int, v: float, s: string) from C() as c
    and each Z() within 2 s from c where n = 1, v = 1.0, s = "" """
    for name, maker in MAKERS.items():
        engine, known = maker(), SCHEMAS
        for one in (text, upper, apart):
            ruleset = rules.load(one, known=known)
            known = {**known, **ruleset.schemas}
            engine.deploy(ruleset)
        engine.deploy(rules.load(closing, known=known), since=10)
        engine.advance({"A": 30, "B": 30, "C": 5})
        assert engine.marks == {"lower": 30, "upper": 5, "apart": 30, "closing": 10}, name
        engine.advance({"C": 20})
        assert engine.marks == {"lower": 30, "upper": 20, "apart": 30, "closing": 20}, name

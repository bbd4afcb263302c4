"""Costs of rules: measured for some of their evaluations, and no part of any result."""

from collections.abc import Callable

import pytest
from event_batches import batch_of_events

import rules
from matcher.model import MICROSECONDS, TIME_MAX, Event, EventType
from rules.engine import make
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detector
from rules.engine.threads.parts import PartedEngine

TEMP, SMOKE = EventType.of("Temp", n="int"), EventType.of("Smoke", n="int")
TEXT = """
event Temp(n: int)
event Smoke(n: int)
event Never(n: int)
rule dear: define Dear(n: int) from Smoke() and each Temp(n + Smoke.n < 0) within 1 min from Smoke
  where n = Temp.n
rule cheap: define Cheap(n: int) from Smoke() and last Temp() within 1 min from Smoke
  where n = Temp.n
rule never: define Other(n: int) from Never() where n = Never.n
"""


def parted() -> Detector:
    return PartedEngine([CdpEngine(), CdpEngine()], map)


def run(engine: Detector, count: int) -> None:
    engine.deploy(rules.load(TEXT))
    for type_ in (TEMP, SMOKE):
        events = [
            Event(type_.name, n * MICROSECONDS // 10, type_.name, str(n), {"n": n}, n)
            for n in range(count)
        ]
        engine.push(batch_of_events(type_, events))
    engine.advance(TIME_MAX)


@pytest.mark.parametrize(
    "made", [lambda: make("cdp"), lambda: make("aip"), lambda: make("auto"), parted]
)
def test_a_rule_that_looks_at_much_costs_more(made: Callable[[], Detector]) -> None:
    engine = made()
    assert engine.costs() == {}
    run(engine, 3_000)
    costs = engine.costs()
    assert costs.keys() == {"dear", "cheap"}
    assert costs["dear"] > 2 * costs["cheap"] > 0


def test_an_engine_that_times_no_rule_says_so() -> None:
    engine = make("naive")
    run(engine, 10)
    assert engine.costs() == {}

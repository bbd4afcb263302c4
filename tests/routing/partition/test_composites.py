"""The order of simultaneous composite events of a type (E4), carried from one engine to another."""

import numpy as np
import pytest
from engines import NAMES, make
from timeline import history, push

import rules
from matcher.model import MICROSECONDS, TIME_MAX, EventBatch
from routing.partition.composites import numbered
from rules.engine.engine import Detector

SCHEMAS = "event A(v: int) event B() event X(v: int, w: int)\n"
LOWER = """
rule second: define X(v, w) from A() as a and each A() as b within 5 s from a
where v = a.v, w = b.v
rule first: define X(v, w) from A() where v = A.v, w = -1
"""
UPPER = """
rule one: define Y(v: int, w: int) from B() and last X() within 5 s from B where v = X.v, w = X.w
rule two: define Z(v: int, w: int) from B() and 2-last X() within 5 s from B where v = X.v, w = X.w
"""
RANKS = {"rexmq/rule/second": 0, "rexmq/rule/first": 1}


def values(detector: Detector) -> list[tuple[str, tuple[object, ...]]]:
    found = detector.advance(TIME_MAX).events()
    return sorted((one.type, tuple(one.data.values())) for one in found if one.type in "YZ")


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("turned", [False, True])
def test_the_last_of_simultaneous_composites_is_the_same_elsewhere(engine: str, turned: bool):
    whole = rules.load(SCHEMAS + LOWER + UPPER)
    lower, upper = (rules.load(SCHEMAS + text, known=whole.schemas) for text in (LOWER, UPPER))
    events = history("A@1(5) A@2(7) A@2(6) B@3", whole)
    together, below, above = make(engine), make(engine), make(engine)
    together.deploy(whole)
    below.deploy(lower)
    above.deploy(upper)
    push(together, events, whole)
    push(below, events[:3], lower)
    push(above, events[3:], whole)
    composites = numbered(below.advance(TIME_MAX).batches[0], RANKS)
    # One by one, and not in their order: each comes when its fragment lets it pass.
    places = range(len(composites))
    for place in reversed(places) if turned else places:
        above.push(composites.take(np.array([place])))
        above.advance(2 * MICROSECONDS)
    assert values(above) == values(together) != []


def test_numbers_rise_within_an_instant_by_rule_and_then_as_given():
    below = make("naive")
    lower = rules.load(SCHEMAS + LOWER)
    below.deploy(lower)
    push(below, history("A@1(5) A@2(7) A@2(6)", lower), lower)
    batch = numbered(below.advance(TIME_MAX).batches[0], RANKS)
    assert isinstance(batch, EventBatch)
    order = np.lexsort((batch.ids.sequence, batch.time)).tolist()
    assert order == list(range(len(batch)))
    numbers = batch.ids.sequence[batch.time == 2 * MICROSECONDS].tolist()
    assert len(set(numbers)) == len(numbers) == 6

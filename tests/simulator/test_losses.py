"""What may be lost with a broker that fails and has clients (simulator.losses); nothing else is."""

import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from conversation import schema_of
from event_batches import batch_of_events
from networks import run
from pairs import seeds
from simulator_text import overlay

from matcher.model import MICROSECONDS, Event
from routing.messages import Delivery
from routing.network import strategy
from rules.language import load
from simulator.changes import Held
from simulator.checkers import check
from simulator.clients import Arrival, Gap
from simulator.fuzzing.campaign import differences
from simulator.fuzzing.making import random_case
from simulator.fuzzing.tearing import made_storeless
from simulator.losses import Losses
from simulator.oracle import Answer, delivered

TEMP, FIRE = schema_of("Temp(v: int)"), schema_of("Fire(v: int)")
RULE = """
event Temp(v: int)
event Smoke(v: int)
rule fire: define Fire(v: int)
from Smoke() as s and last Temp() as t within 10 s from s where v = t.v
"""
HELD = Held(load(RULE).rules[0], None, None, 0)
KEPT_AT, FAILED_AT = 20, 25


def temp(second: int) -> Event:
    return Event("Temp", second * MICROSECONDS, "t", str(second), {"v": 1}, second)


def fire(second: int, v: int = 1) -> Event:
    return Event("Fire", second * MICROSECONDS, "rexmq/rule/fire", f"f{second}", {"v": v}, 0)


def arrival(moment: float, *events: Event) -> Arrival:
    schemas = {"Temp": TEMP, "Fire": FIRE}
    batches = tuple(batch_of_events(schemas[one.type], [one]) for one in events)
    return Arrival(moment, Delivery(batches, ((),) * len(batches), None, 0, False))


def left(
    expected: list[Event], arrivals: list[Arrival], gaps: Sequence[Gap] = ()
) -> tuple[list[str], list[str]]:
    """The ids of what is still expected, and of what is still there, when all is excused that is,
    where a broker that had kept the Temp of KEPT_AT has failed.
    """
    losses = Losses(FAILED_AT, [batch_of_events(TEMP, [temp(KEPT_AT)])], [HELD], {})
    composite = tuple(one for one in expected if one.type == "Fire")
    published = tuple(one for one in expected if one.type == "Temp")
    due, got = losses.excuse(Answer(composite, published), arrivals, gaps)
    return (
        [one.id for one in (*due.composite, *due.published)],
        [one.id for one in (*got.composite, *got.published)],
    )


def test_what_was_kept_may_be_missing_and_no_other_event() -> None:
    assert left([temp(KEPT_AT), temp(24)], []) == (["24"], [])


def test_what_depends_on_what_was_kept_may_be_missing_within_the_reach_of_its_rule() -> None:
    assert left([fire(19), fire(20), fire(30), fire(31)], []) == (["f19", "f31"], [])


def test_what_depends_on_it_may_be_there_instead_of_another_once_a_broker_has_failed() -> None:
    came = [arrival(26.0, fire(26)), arrival(32.0, fire(32))]
    assert left([], came) == ([], ["f32"])
    assert left([], [arrival(24.0, fire(24))]) == ([], ["f24"]), "before it had failed"
    assert left([fire(26, v=1)], [arrival(26.0, fire(26, v=2))]) == ([], [])
    assert left([fire(32, v=1)], [arrival(32.0, fire(32, v=2))]) == (["f32"], ["f32"])


def test_nothing_may_come_twice() -> None:
    came = [arrival(26.0, fire(26)), arrival(27.0, fire(26))]
    assert left([fire(26)], came) == (["f26"], ["f26", "f26"])
    assert left([], came) == ([], ["f26"])


def test_a_sink_of_that_broker_may_miss_what_it_had_not_got_and_get_again_what_it_had() -> None:
    gaps = [Gap(FAILED_AT, 40.0, 22 * MICROSECONDS)]
    assert left([fire(35), temp(39), fire(41)], [], gaps) == (["f41"], [])
    assert left([fire(19), temp(19)], [], gaps) == (["f19"], []), "it had got all before 22 s"
    again = [arrival(10.0, temp(10)), arrival(41.0, temp(10))]
    assert left([temp(10)], again, gaps) == (["10"], ["10"])
    thrice = [*again, arrival(42.0, temp(10))]
    assert left([temp(10)], thrice, gaps) == (["10"], ["10", "10"])


@pytest.mark.parametrize("seed", seeds(6, 18))
def test_networks_of_which_a_broker_with_clients_fails_lose_nothing_else(seed: int) -> None:
    """Every strategy has its turn; a case is another than that of the fuzz's own seed."""
    name = strategy.names()[seed % len(strategy.names())]
    case = made_storeless(random_case(seed, name), Random(f"storeless {seed}"))
    case = replace(case, sinks=tuple(replace(one, at_s=None, for_s=None) for one in case.sinks))
    assert differences(replace(case, coming=())) == [], f"seed {seed}, {name}"


LINKED = overlay({"n0 n1": 400.0})
TWO = """
strategy = "{name}"
rules = "rules.tesla"
[protocol]
heartbeat_s = 2.0
lead_s = 60.0
[[source]]
name = "b"
broker = "n1"
events = "b.jsonl"
[[source]]
name = "c"
broker = "n1"
events = "c.jsonl"
[[source]]
name = "d"
broker = "n0"
events = "d.jsonl"
[[sink]]
name = "k1"
broker = "n0"
subscribe = ["Z"]
[[fault]]
kind = "crash"
at_s = 7.534
for_s = 13.649
brokers = ["n1"]
"""


@pytest.mark.parametrize("name", strategy.names())
def test_a_rule_does_not_wait_for_a_type_that_its_broker_has_forgotten(written, name: str) -> None:
    """Its sources had closed before the broker failed; when it was back nobody had published the
    type, as far as anybody said, and rules waited for it for ever (found by the fuzz).
    """
    rules = "".join(f"event {one}(p: int)\n" for one in "BCD")
    rules += "rule r0: define Z() from C(p > 0) or B(p > 0) or D(p > 0) as e0"
    files = {
        f"{one.lower()}.jsonl": json.dumps({"type": one, "time": time, "data": {"p": 1}}) + "\n"
        for one, time in (("B", 8.0), ("C", 0.0), ("D", 6.0))
    }
    outcome = run(written(TWO.format(name=name) + LINKED, rules, **files))
    assert outcome.settled
    assert check(outcome) == []
    (sink,) = outcome.experiment.sinks.values()
    assert sum(len(one.delivery) for one in sink.arrivals) == 2  # of B and of D


BACK = """
strategy = "{name}"
rules = "rules.tesla"
[protocol]
heartbeat_s = 2.0
unasked_events_max = 1
[[source]]
name = "b"
broker = "n0"
events = "b.jsonl"
[[sink]]
name = "k1"
broker = "n1"
subscribe = ["B"]
[[fault]]
kind = "crash"
at_s = 2.0
for_s = 20.0
brokers = ["n0"]
"""


@pytest.mark.parametrize("name", strategy.names())
def test_events_published_before_a_broker_that_is_back_has_heard_its_neighbours_come_to_all(
    written, name: str
) -> None:
    """Its source is there again 0.7 s before the link is, and it had let go of events by then,
    since of a tree of one nobody needs them (found by the fuzz).
    """
    rules = "event B(p: int)\nrule r0: define Z() from B(p > 1) as e0"
    lines = (
        json.dumps({"type": "B", "time": float(time), "data": {"p": 1}}) + "\n"
        for time in range(1, 20)
    )
    text = BACK.format(name=name) + LINKED
    outcome = run(written(text, rules, **{"b.jsonl": "".join(lines)}))
    assert outcome.settled
    assert check(outcome) == []
    (sink,) = outcome.experiment.sinks.values()
    got = {event.time for event in delivered(sink.arrivals).published}
    assert got >= {time * MICROSECONDS for time in range(3, 20)}

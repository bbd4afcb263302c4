"""Which rules linger, as the root decides (routing.network.brokers.lingering)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from matcher.model import TIME_MIN
from routing.network.brokers.ground import Ground
from routing.network.brokers.lingering import Lingering
from routing.network.ways.places import Division
from routing.partition.placement import Partition
from routing.serving.deployment import Deployed, Ended
from rules.language import load

RULE = load("event A(p: int)\nrule r: define X(p: int) from A() as a where p = a.p").rules[0]
UNTIL = 5_000_000
ENDED = Ended(Deployed(RULE, None, 0, 0), UNTIL)


def lingering(*ended: Ended) -> Lingering:
    """At a root where these rules have ended with the last plan, and somebody lacks all that they
    found.
    """
    plans = iter([[(one, TIME_MIN) for one in ended], []])
    detection = SimpleNamespace(take_ended=lambda: next(plans), linger=lambda new, gone: None)
    ground = SimpleNamespace(
        detection=detection,
        deployments=SimpleNamespace(lingering=[], in_force=[]),
        advertisements=SimpleNamespace(schemas={}),
        router=SimpleNamespace(reach=lambda name, mark: None),
        sinks=[],
    )
    found = Lingering(cast(Ground, ground), by_arrival=False)
    found.keep({"r": TIME_MIN})
    return found


def divided(*names: str) -> Division:
    """These rules are evaluated on the single tree."""
    return Division(Partition(dict.fromkeys(names, "b1"), {}, {}), {}, {}, (), {})


def test_a_rule_is_behind_that_had_begun_anew_and_has_not_come_to_its_end_again() -> None:
    found, there = lingering(ENDED), divided(ENDED.name, "r")
    assert found.are_behind(there, {"r": UNTIL - 1})
    assert found.are_behind(there, {}), "it has been evaluated for nothing yet"
    assert not found.are_behind(there, {"r": UNTIL})
    assert not found.are_behind(divided("r"), {}), "its trees are of sinks, and begin anew"


def test_only_rules_that_linger_since_this_plan_are_looked_at() -> None:
    found, there = lingering(ENDED), divided(ENDED.name)
    found.keep({})
    assert not found.are_behind(there, {})
    assert not lingering().are_behind(there, {})

"""When a plan has rules begin anew (routing.network.brokers.planner, Law 2)."""

from __future__ import annotations

from dataclasses import replace

from routing.deployment import Deployed
from routing.network.brokers.planner import has_moved
from routing.partition.placement import Partition
from routing.partition.places import Division
from rules.language import load

RULE = load("event A(p: int)\nrule r: define X(p: int) from A() as a where p = a.p").rules[0]
FIRST, SECOND = Deployed(RULE, None, 0, 0), Deployed(replace(RULE, name="r@1"), 5, 1, 1)
ENDING = replace(FIRST, until=5)


def divided(*rules: Deployed, at: str = "b1") -> Division:
    """These rules are evaluated on the single tree, at one broker."""
    return Division(Partition({one.rule.name: at for one in rules}, {}, {}), {}, {}, rules, {})


def test_a_rule_that_is_evaluated_elsewhere_has_moved() -> None:
    known = {"r"}
    assert not has_moved(known, divided(FIRST), divided(FIRST))
    assert has_moved(known, divided(FIRST), divided(FIRST, at="b2"))
    assert has_moved(known, divided(), divided(FIRST)), "sinks had it from trees of their own"
    assert has_moved(known, divided(FIRST), divided(ENDING, SECOND, at="b2"))
    assert not has_moved(known, divided(FIRST), divided(ENDING, SECOND))
    assert not has_moved(known, divided(FIRST), divided(SECOND, at="b2")), "another version"
    assert not has_moved(set(), divided(), divided(FIRST)), "one that is new"


def test_so_has_one_that_is_evaluated_for_others_now() -> None:
    """It was on the single tree for a rule above, while sinks had it from trees of their own."""
    known = {"r"}
    assert has_moved(known, divided(FIRST), divided(FIRST), {"X"})
    assert has_moved(known, divided(FIRST), divided(ENDING, SECOND), {"X"})
    assert not has_moved(known, divided(FIRST), divided(FIRST), {"Y"})
    assert not has_moved(known, divided(FIRST), divided(SECOND), {"X"}), "another version"
    assert not has_moved(set(), divided(), divided(FIRST), {"X"}), "one that is new"

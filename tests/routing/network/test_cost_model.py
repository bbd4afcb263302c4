"""What divisions of rules cost, counted by hand on a line of three brokers, and which is preferred.

T is published at a and S at c, and c has the sink; b in the middle is the root.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from matcher.model import EventType
from routing.deployment import Deployed
from routing.network.brokers.measurements import preferred
from routing.network.strategy import Adaptive, Choice
from routing.network.ways.cost_model import CostModel, DividedTree, Measured
from routing.partition.placement import Tree, tree_of
from routing.partition.places import Division
from routing.wire.sizes import ASKING_BYTES, MESSAGE, event_bytes, mark_bytes
from rules.language import load
from rules.pattern import Rule

T, S = EventType.of("T", p="int"), EventType.of("S", p="int")
SCHEMAS = {"T": T, "S": S}
ONE, TWO = load(
    f"event {T}\nevent {S}\n"
    "rule one: define X(p: int) from T() as t where p = t.p\n"
    "rule two: define Y(p: int) from S() as s and last T() within 5 s from s where p = s.p\n",
    file="rules.tesla",
).rules
TIME = 1_600_000_000_000_000
MARK, RULE_MARK = mark_bytes("T", TIME), mark_bytes("one", TIME)
"""Of a type; of a rule, whose names are as long here."""
PUBLISHED = {"a": frozenset("T"), "b": frozenset[str](), "c": frozenset("S")}
LINE, FROM_C = tree_of("b", {"a": "b", "c": "b"}), tree_of("c", {"b": "c", "a": "b"})
MEASURED = Measured(
    seconds=60.0, age=60.0, rates={"T": 10.0, "S": 1.0}, found={"one": (200.0, 2.0)}, time=TIME
)
EVENT = 10 * event_bytes(T)
BEHIND = 2 * (MESSAGE + RULE_MARK)
"""Of two batches of composite events a second, but for the events."""


def laid(
    tree: Tree, rules: list[Rule], candidate: str, rates: str = "", mixed: str = ""
) -> DividedTree:
    """Rules over a tree, whose composite events c wants. ``rates``: the type that is rare."""
    often = tuple((name, 1 if name == rates else 100_000) for name in "TS") if rates else ()
    types = {name: tuple(SCHEMAS[one] for one in sorted(own)) for name, own in PUBLISHED.items()}
    found = Adaptive().divide_by(tree, types, rules, Choice(often, candidate))
    deployed = tuple(cast(Deployed, SimpleNamespace(rule=rule)) for rule in rules)
    division = Division(found, tree.fathers, PUBLISHED, deployed, SCHEMAS)
    wants = {"c": frozenset(rule.defines.name for rule in rules)}
    return DividedTree(tree, division, wants, frozenset(mixed))


def model(measured: Measured = MEASURED) -> CostModel:
    return CostModel(measured, PUBLISHED, SCHEMAS, [ONE, TWO])


def test_at_the_centre_events_go_up_and_composite_events_down() -> None:
    up = 10 * (MESSAGE + MARK) + EVENT
    assert model().cost(laid(LINE, [ONE], "centre")) == pytest.approx(up + 200 + BEHIND)


def test_as_deep_as_may_be_only_composite_events_go() -> None:
    cost = model().cost(laid(LINE, [ONE], "distributed-st"))
    assert cost == pytest.approx(2 * (200 + BEHIND))


def test_marks_are_told_where_others_come_from_beyond() -> None:
    """Of X from a to b, where Y is; to c both come over one link, behind what is found."""
    cost = model().cost(laid(LINE, [ONE, TWO], "distributed-st"))
    served = 10 * (MESSAGE + MARK) + EVENT + (MESSAGE + MARK) + event_bytes(S)  # for Y, at b
    told = 10 * (MESSAGE + RULE_MARK) + (2 + 1) * RULE_MARK
    assert cost == pytest.approx(served + 2 * (200 + 2 * MESSAGE) + told)
    mixed = model().cost(laid(LINE, [ONE, TWO], "distributed-st", mixed="c"))
    assert mixed > cost + 10 * MESSAGE


def test_trees_of_sinks_share_messages_and_events() -> None:
    """T goes from a to b for both, and to c for one: b would look at it for its own sinks."""
    from_b = replace(laid(LINE, [TWO], "distributed-mt"), wants={"b": frozenset("Y")})
    from_c = laid(FROM_C, [TWO], "distributed-mt")
    nothing = laid(LINE, [], "distributed-mt")
    both = model().cost(nothing, [from_b, from_c])
    apart = model().cost(nothing, [from_b]) + model().cost(nothing, [from_c])
    assert apart - both == pytest.approx(10 * MESSAGE + EVENT)


def test_a_pulled_rule_costs_what_lies_around_its_masters() -> None:
    rare = replace(MEASURED, rates={"T": 100.0, "S": 0.0}, found={})
    pulled, pushed = (laid(LINE, [TWO], f"{name}-st", "S") for name in ("push-pull", "distributed"))
    expected = 0.5 / 60
    awake = 1 - (60 / 65) ** 0.5
    asked = expected * ASKING_BYTES + awake * 100 * event_bytes(T)  # nothing lies after a master
    assert model(rare).cost(pulled) == pytest.approx(asked)
    assert model(rare).cost(pulled) < 0.15 * model(rare).cost(pushed)
    soon = model(replace(rare, seconds=1.0))  # what is rare may be less so
    assert soon.cost(pulled) > 5 * model(rare).cost(pulled)


def test_windows_fill() -> None:
    """``last`` finds one event more often in a window of 5 s than in what there is of one."""
    young = replace(MEASURED, rates={"T": 0.1, "S": 1.0}, found={"two": (100.0, 0.0)})
    full = model(young).cost(laid(LINE, [TWO], "centre"))
    filling = model(replace(young, age=2.0, seconds=2.0)).cost(laid(LINE, [TWO], "centre"))
    assert 100 * 2 < filling - full < 100 * 5


def test_a_choice_is_left_only_for_a_clearly_cheaper_one() -> None:
    first, now, other = (
        Choice(rates, name) for rates, name in (((), "x"), ((("T", 1),), "x"), ((("T", 2),), "y"))
    )
    assert preferred({first: 100.0, other: 99.0}, first) == other
    assert preferred({now: 100.0, other: 91.0}, now) == now
    assert preferred({now: 100.0, other: 89.0}, now) == other

"""Fragments are derived when they are asked for, and views say enough of them until then."""

from __future__ import annotations

import pytest
from sharp_cases import SharpCase
from tree_cases import TreeCase

from routing.partition import fragments as module
from routing.partition.fragment import Fragment
from routing.partition.fragments import Fragments, Ready, View
from routing.partition.placement import Partition, partition, tree_of
from rules import load

CASES = [(case, seed) for case in (TreeCase, SharpCase) for seed in range(100, 140)]
TEXT = """
event A(x: int)
event B(x: int)
rule r1: define C(x: int) from B() and last A(x > 3) within 5 s from B where x = A.x
rule r2: define D(x: int) from B() and each A() within 5 s from B where x = A.x
"""
TREE = tree_of("b1", {"b2": "b1", "b3": "b1"})
PUBLISHED = {"b2": frozenset("A"), "b3": frozenset("B")}


def divided() -> Partition:
    return partition(TREE, PUBLISHED, load(TEXT).rules)


@pytest.mark.parametrize("is_pulled", [False, True])
def test_views_say_which_types_fragments_forward(is_pulled: bool) -> None:
    asked = 0
    for case, seed in CASES:
        drawn = case(seed)
        rules = drawn.rules.rules
        defined = {rule.defines.name for rule in rules}
        published: dict[str, frozenset[str]] = {}
        for source in drawn.sources():
            published[source.node] = published.get(source.node, frozenset()) | source.types
        found = partition(drawn.tree, published, rules, drawn.masters() if is_pulled else {})
        for which in (found, found.whole(defined)):
            for own in which.fragments.values():
                each = [fragment.pushed for fragment in own.values()]
                assert own.pushed(which.pulls) == frozenset().union(*each), f"{case} {seed}"
                kept = {rule for rule, fragment in own.items() if fragment.kept}
                assert kept <= dict(own.of_pulled(which.pulls)).keys(), f"{case} {seed}"
                asked += len(kept)
    assert (asked > 0) == is_pulled


def test_divisions_are_compared_and_what_children_send_is_known_without_a_fragment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def derived(*_: object) -> Fragment:
        raise AssertionError("nobody has asked for a fragment")

    monkeypatch.setattr(module, "fragment_of", derived)
    one, other = divided(), divided()
    assert one == other
    assert one.whole({"C", "D"}) == other.whole({"C", "D"}) != one
    assert one.fragments_of("b2").pushed(one.pulls) == {"A"}
    assert not one.fragments_of("b1")
    with pytest.raises(AssertionError, match="nobody has asked"):
        one.fragments_of("b2")["r1"]


def test_each_fragment_is_derived_once_and_behind_each_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count, derive = 0, module.fragment_of

    def counted(*view: object) -> Fragment:
        nonlocal count
        count += 1
        return derive(*view)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "fragment_of", counted)
    own = divided().fragments_of("b2")
    assert [count for _ in own.derive({"r1", "r2"})] == [1, 2]
    assert list(own.derive({"r1", "r2"})) == []
    assert {name: own[name] for name in own} == dict(own)
    assert count == 2


def test_where_times_of_arrival_count_static_conditions_alone_do() -> None:
    found = divided()
    for node, own in found.whole({"C", "D"}).fragments.items():
        for rule, fragment in own.items():
            assert fragment == found.fragments[node][rule].whole(None)


def test_fragments_for_no_rule_in_particular_are_given() -> None:
    view = View(load(TEXT).rules[0], frozenset("A"), frozenset("A"), None, frozenset())
    own = Fragments({"": Ready(view.fragment)})
    assert own[""] == view.fragment
    assert own.pushed(()) == {"A"}
    assert own == Fragments({"": Ready(view.fragment)}) != Fragments({"": view})

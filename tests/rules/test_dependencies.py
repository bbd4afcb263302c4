"""Ranks of rules and the strict past within cycles (S12)."""

from dataclasses import replace

import pytest

import rules
from rules.checking.dependencies import TerminatorCycles, arrange
from rules.pattern import Rule, uses_of
from rules.terms import Aggregate

SCHEMAS = "event E(n: int) "


def rules_of(text: str) -> tuple[Rule, ...]:
    return rules.load(SCHEMAS + text).rules


def strict_types(rule: Rule) -> list[str]:
    return [use.type.name for use in uses_of(rule) if use.strict]


def test_rules_of_a_type_run_before_the_rules_that_use_it() -> None:
    found = rules_of(
        "define C() from B() define B() from A() and not D() within 1 s from A "
        "define A() from E() define D() from E() define A() from E(n > 3)"
    )
    ranks = dict(zip([rule.name for rule in found], arrange(found).ranks, strict=True))
    assert ranks["A"] == ranks["A#2"]
    assert max(ranks["A"], ranks["D"]) < ranks["B"] < ranks["C"]


@pytest.mark.parametrize(
    "clause",
    [
        "each A() as a within 1 s from E",
        "last A() as a within 1 s from E",
        "not A() within 1 s from E",
        "0 < Count(A() within 1 s from E)",
        "$c = Count(A() within 1 s from E)",
        "(1 = 2 or not 0 < Count(A() within 1 s from E))",
        "each E(n > Count(A() within 1 s from x)) as y within 1 s from x",
        "1 = 1",
    ],
)
def test_within_a_cycle_all_but_terminators_see_the_strict_past(clause: str) -> None:
    terminator = "E() as x" if "from x" in clause else "E()"
    [rule] = rules_of(f"define A() from {terminator} and {clause}")
    expected = [] if clause == "1 = 1" else ["A"]
    assert strict_types(rule) == expected


def test_aggregates_in_where_are_strict_within_a_cycle_too() -> None:
    [rule] = rules_of("define A(c: int) from E() where c = -Count(A() within 1 s from E) + 1")
    assert strict_types(rule) == ["A"]


def test_outside_the_cycle_nothing_is_strict() -> None:
    found = rules_of(
        "define A() from E() and last B() within 1 s from E and not D() within 1 s from E "
        "define B() from E() and not A() within 1 s from E "
        "define D() from E() "
        "define F() from B() and each A() within 1 s from B"
    )
    assert [strict_types(rule) for rule in found] == [["B"], ["A"], [], []]
    ranks = arrange(found).ranks
    assert max(ranks[0], ranks[1]) < ranks[3]
    assert ranks[2] < ranks[0]


def test_a_cycle_may_pass_through_terminators_if_not_through_them_alone() -> None:
    found = rules_of("define A() from B() define B() from E() and last A() within 1 s from E")
    assert [strict_types(rule) for rule in found] == [[], ["A"]]
    ranks = arrange(found).ranks
    assert ranks[1] < ranks[0]


def test_cycles_of_terminators_are_all_named() -> None:
    found = rules_of("define A() from E() define B() from A() define D() from E()")
    by_name = {rule.name: rule for rule in found}

    def turned(rule: str, terminator: str) -> Rule:
        return replace(by_name[rule], terminator=by_name[terminator].defines)

    with pytest.raises(TerminatorCycles) as caught:
        arrange([turned("A", "B"), by_name["B"], turned("D", "D")])
    assert caught.value.cycles == (("A", "B"), ("D",))
    assert [problem.message for problem in caught.value.problems] == [
        "a cycle of terminators could never fire: A -> B -> A (tesla.md S12)",
        "a cycle of terminators could never fire: D -> D (tesla.md S12)",
    ]


def test_deciding_again_with_more_rules_changes_what_is_strict() -> None:
    [first] = rules_of("event B() define A() from E() and last B() within 1 s from E")
    assert strict_types(first) == []
    [second] = rules_of("event A() define B() from E() and last A() within 1 s from E")
    together = arrange([first, second])
    assert [strict_types(rule) for rule in together.rules] == [["B"], ["A"]]
    [alone] = arrange([together.rules[0]]).rules
    assert alone == first


def test_nested_aggregates_are_used_types() -> None:
    [rule] = rules_of(
        "event F(n: int) event G(n: int) define A() from E() and "
        "1 < Sum(F(n > Avg(G().n within 1 s from E)).n within 1 s from E)"
    )
    assert [use.type.name for use in uses_of(rule)] == ["G", "F"]
    assert all(isinstance(use, Aggregate) for use in uses_of(rule))
    assert [used.name for used in rule.used_types] == ["E", "G", "F"]

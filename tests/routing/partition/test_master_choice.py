"""Which masters cost least (thesis 7.3.8)."""

import rules
from matcher.model import EventType
from routing.partition.master_choice import Weights
from routing.partition.placement import Tree

KNOWN = {name: EventType.of(name, v="int") for name in "ABCD"}
LINE = Tree("r", {"r": ("a", "b"), "b": ("c",)})
HOMES = {"a": frozenset("A"), "b": frozenset("B"), "c": frozenset("CD")}
ONE = "define X() from A() and last B() within 10 s from A and last C() within 10 s from B"
TWO = "define Y() from B() and last C() within 10 s from B"


def weights(rates: dict[str, float], *texts: str, homes=HOMES) -> Weights:
    text = "\n".join(f"rule r{place}: {text}" for place, text in enumerate(texts))
    return Weights(LINE, homes, rules.load(text, known=KNOWN).rules, rates)


def test_the_rarest_is_the_master() -> None:
    assert weights({"A": 0.001, "B": 1, "C": 10}, ONE).choose() == {"r0": 0}
    assert weights({"A": 1, "B": 0.001, "C": 10}, ONE).choose() == {"r0": 1}
    assert weights({"A": 1, "B": 10, "C": 0.001}, ONE).choose() == {"r0": 2}


def test_where_windows_around_masters_leave_nothing_out_there_is_none() -> None:
    assert weights({"A": 1, "B": 1, "C": 1}, ONE).choose() == {}
    assert weights({"A": 5, "B": 9, "C": 9}, ONE).choose() == {}


def test_what_is_sent_for_another_rule_is_not_worth_waiting_for() -> None:
    """B and C come seldom beside A, but all of them are sent for the second rule."""
    alone = weights({"A": 0.02, "B": 0.5, "C": 0.5}, ONE)
    assert alone.choose() == {"r0": 0}
    both = weights({"A": 0.02, "B": 0.5, "C": 0.5}, ONE, TWO)
    assert both.choose() == {}


def test_what_crosses_no_link_costs_nothing() -> None:
    """All of C and B is where the rule is evaluated: A is rare, and nothing is won by asking."""
    homes = {"r": frozenset("BC"), "a": frozenset("A")}
    made = weights({"A": 0.01, "B": 5, "C": 5}, ONE, homes=homes)
    assert made.choose() == {}

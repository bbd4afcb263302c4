"""Chapter 7 of the thesis, "Distributed Event Processing": its derived rules, taken at their word.

A derived rule as printed sends the sets of events that satisfy its pattern. Where that is not
exact, a test shows a history for which the composite events are others than those of one engine;
what is sent instead is held by the scripts of tests/routing/partition.
"""

import pytest
from timeline import batches, detect, history, push, written

import rules
from matcher.model import TIME_MAX
from rules.engine import make

LETTERS = "event A(v: int) event B(v: int) event C(v: int) event D(v: int) event E(v: int)\n"
R11 = """define CompEvent()
from A() and last B() within 5 min from A and last C() within 5 min from B
     and last D() within 5 min from C and last E() within 5 min from D"""
R12 = """define CompEvent()
from A(v=$x) and last B(v=$x) within 5 min from A and last C() within 5 min from B"""
R13 = """define CompEvent()
from A() and last B() within 5 min from A and last C() within 5 min from B
     and not D() between C and B"""
MINUTE = 60


def at_the_word(rule: str, derived: dict[str, str], events: str) -> list[str]:
    """What is detected from what the derived rules send: for each pattern, the types it is about.

    A pattern is detected by the oracle as a rule of its own; what its matches consist of is sent.
    """
    ruleset = rules.load(LETTERS + rule)
    given = history(events, ruleset, unit=MINUTE)
    sent = set()
    for pattern, types in derived.items():
        engine = make("naive")
        engine.deploy(rules.load(f"{LETTERS} define Sent() from {pattern}"))
        for batch in batches(given, ruleset.schemas.values()):
            if batch.type.name in types:
                engine.push(batch)
        for found in engine.advance(TIME_MAX).events():
            sent.update(found.cause)
    root = make("naive")
    root.deploy(ruleset)
    push(root, [event for event in given if event.id in sent], ruleset)
    return written(root.advance(TIME_MAX).events(), unit=MINUTE)


def in_truth(rule: str, events: str) -> list[str]:
    return detect("naive", LETTERS + rule, events, unit=MINUTE)


FIGURE_7_4 = {
    "A() and last B() within 5 min from A": "AB",
    "C() and each E() within 10 min from C": "CE",
    "D()": "D",
}
FIGURE_7_5 = {
    "A() and last B() within 5 min from A": "AB",
    "D() and last E() within 5 min from D": "DE",
    "C()": "C",
}
FIGURE_7_6_A = {"A(v=$x) and last B(v=$x) within 5 min from A": "AB", "C()": "C"}
FIGURE_7_6_B = {"A()": "A", "B() and last C() within 5 min from B": "BC"}
FIGURE_7_7_A = {
    "A()": "A",
    "B() and last C() within 5 min from B and not D() between C and B": "BCD",
}
FIGURE_7_7_B = {
    "A() and last B() within 5 min from A": "AB",
    "C()": "C",
    "D()": "D",
}


@pytest.mark.parametrize(
    ("rule", "derived", "events"),
    [
        (R11, FIGURE_7_4, "E@1(0) D@2(0) C@3(0) B@6(0) B@8(0) A@9(0) A@20(0)"),
        (R11, FIGURE_7_5, "E@1(0) D@2(0) C@3(0) B@6(0) B@8(0) A@9(0) A@20(0)"),
        (R12, FIGURE_7_6_A, "C@1(0) B@2(1) B@3(2) A@4(1) A@9(2)"),
        (R12, FIGURE_7_6_B, "C@1(0) B@2(1) B@3(2) A@4(1) A@9(2)"),
        (R13, FIGURE_7_7_A, "D@0(0) C@1(0) B@2(1) A@4(1)"),
        (R13, FIGURE_7_7_B, "D@0(0) C@1(0) B@2(1) D@3(1) A@4(1)"),
    ],
)
def test_derived_rules_serve_on_simple_histories(rule: str, derived: dict[str, str], events: str):
    assert at_the_word(rule, derived, events) == in_truth(rule, events) != []


@pytest.mark.parametrize(
    ("rule", "derived", "events"),
    [
        # The last C before B has no E before it, and hides an older C that has one.
        (R11, FIGURE_7_4, "E@0(0) D@4(0) C@6(0) C@11(0) B@11(0) A@12(0)"),
        # The last D before C has no E before it, and hides an older D that has one.
        (R11, FIGURE_7_5, "E@0(0) D@4(0) D@8(0) C@8(0) B@9(0) A@9(0)"),
        # The last B before A has no C before it, and hides an older B that has one.
        (R12, FIGURE_7_6_B, "B@2(1) C@5(0) B@9(1) B@12(1) A@13(1)"),
        # The last B before A is negated by a D, and hides an older B that is not.
        (R13, FIGURE_7_7_A, "C@0(0) B@1(0) C@2(0) D@3(0) B@4(0) A@5(0)"),
    ],
    ids=["R11", "R11 several sources", "R12 b", "R13 a"],
)
def test_derived_rules_that_hide_the_last_event(rule: str, derived: dict[str, str], events: str):
    """Without it, an older one is taken for the last, and something is detected that is not so."""
    assert in_truth(rule, events) == []
    assert at_the_word(rule, derived, events) != []

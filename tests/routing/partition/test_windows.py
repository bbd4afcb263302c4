"""Windows add up, in both directions; the bounds are never narrower than a match's."""

from itertools import pairwise
from random import Random

import rules
from matcher.model import MICROSECONDS
from routing.partition.derivation import fragment_of
from routing.partition.windows import Distances, Span, reach
from rules.pattern import uses_of
from rules.terms import Between, Within

SCHEMAS = "event A() event B() event C() event D() event E()\n"
MINUTE = 60 * MICROSECONDS


def rule_of(text: str):
    return rules.load(SCHEMAS + "define X() from " + text).rules[0]


def test_windows_add_up_along_a_chain():
    distances = Distances.of(
        rule_of(
            "A() and last B() within 5 min from A and last C() within 4 min from B"
            " and last D() within 3 min from C"
        )
    )
    assert distances.between(3, 1) == Span(0, 7 * MINUTE)
    assert distances.between(3, 0) == Span(0, 12 * MINUTE)
    assert distances.longest == 12 * MINUTE


def test_of_two_events_before_a_third_either_may_be_the_earlier():
    distances = Distances.of(
        rule_of("A() and last B() within 5 min from A and last C() within 2 min from A")
    )
    assert distances.between(1, 2) == Span(-2 * MINUTE, 5 * MINUTE)


def test_a_timed_clause_shortens_every_path():
    distances = Distances.of(
        rule_of(
            "A() and last B() within 5 min from A and last C() within 5 min from B"
            " and C within 3 min from A"
        )
    )
    assert distances.between(2, 0) == Span(0, 3 * MINUTE)
    assert distances.between(1, 0) == Span(0, 3 * MINUTE)


def test_what_is_in_a_window_is_near_every_event_of_the_match():
    distances = Distances.of(
        rule_of("A() and last B() within 5 min from A and last C() within 2 min from B")
    )
    assert distances.from_window(Within(MINUTE, 1), 0) == Span(0, 6 * MINUTE)
    assert distances.from_window(Within(MINUTE, 1), 2) == Span(-2 * MINUTE, MINUTE)
    assert distances.from_window(Between(2, 0), 1) == Span(-5 * MINUTE, 2 * MINUTE)


def test_negations_and_aggregates_count_for_the_reach():
    rule = rule_of("A() and last B() within 5 min from A and not C() within 9 min from B")
    windows = [use.window for use in uses_of(rule)]
    assert reach(rule, Distances.of(rule), windows) == 14 * MINUTE
    assert reach(rule, Distances.of(rule), []) == 5 * MINUTE


def test_what_a_timed_clause_rules_out_can_still_be_selected():
    rule = rule_of("A() and last B() within 5 min from A and B within 1 min from A")
    assert Distances.of(rule).longest == MINUTE
    fragment = fragment_of(rule, frozenset("AB"), frozenset("AB"))
    assert fragment is not None
    assert fragment.reach == 5 * MINUTE


def test_matches_keep_to_the_bounds():
    random = Random(5)
    for _ in range(300):
        windows = [(random.randrange(number), random.randint(1, 9)) for number in range(1, 5)]
        clauses = "".join(
            f" and each {'ABCDE'[number]}() within {minutes} min from {'ABCDE'[anchor]}"
            for number, (anchor, minutes) in enumerate(windows, start=1)
        )
        distances = Distances.of(rule_of("A()" + clauses))
        times = [0]
        for anchor, minutes in windows:
            times.append(times[anchor] - random.randint(0, minutes))
        for one, other in [*pairwise(range(5)), (0, 4), (1, 3)]:
            span = distances.between(one, other)
            assert span.least <= (times[other] - times[one]) * MINUTE <= span.most, (windows, times)

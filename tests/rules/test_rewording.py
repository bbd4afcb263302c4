"""Checked rules back in words: what is written means what was read (rules.explaining.rewording)."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from cases import Case, random_case
from iteration_cases import iteration_case
from pairs import seeds
from recordings import plain_cases, recording_of

import rules
from rules.explaining.rewording import Rewording, elapsed_text
from rules.pattern import Selected


def reworded(rule: rules.Rule) -> str:
    """The pattern of a rule in its own words, as a rule."""
    words = Rewording(rule)
    if rule.together is None:
        clauses = " and ".join((words.terminator(), *map(words.clause, rule.clauses)))
    else:
        others = (one for one in rule.clauses if not isinstance(one, Selected))
        clauses = " and ".join((words.together(), *map(words.clause, others)))
    return f"define Reworded() from {clauses}"


def ways(rule: rules.Rule) -> tuple[rules.Rule, ...]:
    """The rules that a rule is where its events are of either type (X2)."""
    return rule.alternatives or (rule,)


def without_rivals(rule: rules.Rule) -> rules.Rule:
    """A parameter that either type binds is written as what the one binds, unlike the other."""
    clauses = [
        replace(one, rivals=()) if isinstance(one, Selected) else one for one in rule.clauses
    ]
    return replace(rule, clauses=tuple(clauses))


def test_events_of_either_type_are_written_with_or_between_them():
    (rule,) = rules.load(
        "event A(x: int) event B(x: int, y: float) event C(x: int) "
        "define D() from A(x = $x) or B(y < 2.0, x = $x) as e and last B(x < $x) or C(x = $x) as f "
        "within 1 min from e and each A() or C() as g within 1 min from f"
    ).rules
    assert Rewording(rule).opening() == "A() or B(y < 2.0) as e"
    assert [Rewording(one).clause(one.clauses[0]) for one in rule.alternatives[::2]] == [
        "last B(x < e.x) or C(x = e.x) as f within 1 min from e",
        "last C(x = e.x) or B(x < e.x) as f within 1 min from e",
    ] * 2
    words = [Rewording(one).clause(one.clauses[1]) for one in rule.alternatives[:2]]
    assert words == ["each A() as g within 1 min from f", "each C() as g within 1 min from f"]


@pytest.mark.parametrize(
    ("case_of", "count"), [(random_case, len(seeds(100, 200))), (iteration_case, 60)]
)
def test_what_is_written_reads_as_the_same_pattern(case_of: Callable[[int], Case], count: int):
    for case in plain_cases(range(count), case_of):
        recording = recording_of(case)
        every = itertools.chain.from_iterable(map(ways, recording.rules.values()))
        for rule in map(without_rivals, every):
            text = reworded(rule)
            known = {type_.name: type_ for type_ in rule.used_types if type_.name != "Timer"}
            (again,) = rules.load(text, known=known).rules
            # What a cycle makes strict depends on the other rules, and is not written.
            assert reworded(again) == text, f"seed {case.seed}\n{rule.text}"
            assert again.terminator == rule.terminator
            assert again.conditions == rule.conditions
            assert len(again.clauses) == len(rule.clauses)


def test_times_and_durations_are_written_as_such():
    (rule,) = rules.load(
        "event A() event B(x: int) define C() from A() and each B(time < A.time - 90 s, x < 2) "
        "within 1 h from A and Max(B().time within 1 h from A) > A.time - 0.5 h"
    ).rules
    words = Rewording(rule)
    assert list(map(words.clause, rule.clauses)) == [
        "each B(time < A.time - 90 s, x < 2) within 1 h from A",
        "Max(B().time within 1 h from A) > A.time - 30 min",
    ]


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 s"),
        (1, "0.000001 s"),
        (1_500_000, "1.5 s"),
        (60_000_000, "1 min"),
        (3_725_000_000, "1 h 2 min 5 s"),
        (90_000_000_000 + 86_400_000_000, "2 days 1 h"),
    ],
)
def test_elapsed_time(microseconds: int, text: str):
    assert elapsed_text(microseconds) == text

"""Checked rules back in words: what is written means what was read (rules.rewording)."""

import pytest
from recordings import plain_cases, recording_of

import rules
from rules.pattern import Selected
from rules.rewording import Rewording, elapsed_text


def reworded(rule: rules.Rule) -> str:
    """The pattern of a rule in its own words, as a rule."""
    words = Rewording(rule)
    if rule.together is None:
        clauses = " and ".join((words.terminator(), *map(words.clause, rule.clauses)))
    else:
        others = (one for one in rule.clauses if not isinstance(one, Selected))
        clauses = " and ".join((words.together(), *map(words.clause, others)))
    return f"define Reworded() from {clauses}"


def test_what_is_written_reads_as_the_same_pattern():
    for case in plain_cases(range(200)):
        recording = recording_of(case)
        for rule in recording.rules.values():
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

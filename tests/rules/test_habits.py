"""Hints for who writes TESLA as another language is written."""

import pytest

import rules
from rules.errors import RuleErrors


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ("from T() as t where v > 5", "where gives an attribute its value"),
        ("from T() as t where t.v > 5", "where gives an attribute its value"),
        ('from T(s like "a%")', "write prefix, suffix, contains or matches"),
        ("from T(v between 1 and 5)", "write 1 <= value <= 5"),
        ("from T() as t group by t.v", "a parameter makes groups"),
        ("from T() having v > 5", "a condition on an aggregate is a clause"),
        ("from T() order by v", "composite events come in the order of time"),
        ("from T() as a -> T() as b", "events look back from the last one"),
        ("from T() as a and last T() as b within 5 min where v = 1", "a window ends at an event"),
        (
            "from T() as a where v = Count(distinct T().s within 1 h from a)",
            "define first uses by a rule",
        ),
        ("from T where v = T.v", "an event has parentheses: T()"),
    ],
)
def test_habits_of_other_languages_get_a_hint(rule: str, hint: str):
    with pytest.raises(RuleErrors) as error:
        rules.load(f"event T(v: int, s: string) define X(v) {rule}")
    [problem] = error.value.problems
    assert problem.hint is not None
    assert problem.hint.startswith(hint)


def test_a_query_is_told_what_a_rule_is():
    with pytest.raises(RuleErrors) as error:
        rules.load("select v from T where v > 5")
    assert error.value.problems[0].hint == (
        "a rule is: define TYPE(name) from EVENT(conditions) where name = value"
    )


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ('concat(T.s, "a")', "no function makes new texts"),
        ("sin(T.v)", "machines round it otherwise"),
        ("Median(T().v within 1 h from T)", "the page on coming from other languages"),
        ("pow(T.v, 2)", "multiply: x * x"),
        ("lag(T.v)", "write previous.value"),
        ("lenght(T.s)", "did you mean length?"),
        ("frobnicate(T.v)", "functions are Avg, Sum, Count, Min, Max, StdDev, First, abs, sqrt,"),
    ],
)
def test_functions_of_other_languages_get_a_hint(call: str, hint: str):
    with pytest.raises(RuleErrors) as error:
        rules.load(f"event T(v: int, s: string) define X(v) from T() where v = {call}")
    assert str(error.value.problems[0].hint).startswith(hint)

"""Advice on rules that are right and may mean something else than they seem to."""

import pytest

import rules
from rules.explaining.advice import advice

TYPES = "event T(v: float) event S(x: int)"
RUN = "define Out(n) from S() as s and {} as run within 1 h from s where n = Count(run)"
SUM = "define Out(n) from Timer({}) as t where n = Sum(T({}).v within {} from t)"
NEVER_ASKED = (
    "rule Out: a run of one event is never asked v > 25.0, since that stands with previous; "
    "write while v > 25.0 in run"
)
TWICE = (
    "rule Out: a T at a tick is in two windows of 5 min, for both their ends count; "
    "write T(time > t.time - 5 min) to have it in one"
)


NEXT = """define Out(n) from T(v = $v) as next and {} T({}) as run within 1 h from next
    and {} where n = Count(run)"""
REACHED = (
    "rule Out: run has next, too, so run.time is next.time; "
    "write time < next.time in run to leave it out"
)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RUN.format("last 1.. T((v > 25.0 and previous.v > 25.0))"), [NEVER_ASKED]),
        (RUN.format("each 1..3 T((v > 25.0 and previous.v > 25.0))"), [NEVER_ASKED]),
        (RUN.format("last 2.. T((v > 25 and previous.v > 25))"), []),
        (RUN.format("last 1.. T(while v > 25)"), []),
        (RUN.format("last 1.. T(v > previous.v)"), []),
        (SUM.format("M % 5 = 0", "", "5 min"), [TWICE]),
        (SUM.format("M % 5 = 0", "time > t.time - 5 min", "5 min"), []),
        (SUM.format("M % 5 = 0", "", "15 min"), []),
        (NEXT.format("last 1..", "v = $v", "next.time - run.time > 30 min"), [REACHED]),
        (NEXT.format("last 1..3", "time - previous.time < 1 s", "run.time < next.time"), [REACHED]),
        (NEXT.format("last 1..", "v = $v, time < next.time", "run.time < next.time"), []),
        (NEXT.format("last 1..", "while v > 5", "run.time < next.time"), []),
        (NEXT.format("last 2..", "v = $v", "run.time < next.time"), []),
        (NEXT.format("each 1..", "v = $v", "run.time < next.time"), []),
        (NEXT.format("last 1..", "v = $v", "next.time - First(run.time) > 30 min"), []),
        (SUM.format('M = 0, zone = "Europe/Rome"', "", "10 min"), []),
    ],
)
def test_advice_is_given_where_a_rule_seems_to_mean_something_else(rule: str, expected: list[str]):
    assert list(advice(rules.load(f"{TYPES} {rule}"))) == expected

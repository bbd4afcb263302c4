"""Values that are known to be instants."""

import pytest

import rules
from rules.explaining.moments import instants_of

RULE = """event T(v: int) define Out(x) from T() as t and last 1.. T() as r within 1 h from t
    where x = {}"""


@pytest.mark.parametrize(
    ("value", "is_instant"),
    [
        ("t.time", True),
        ("First(r.time)", True),
        ("Max(T().time within 1 h from t)", True),
        ("date(t.time)", True),
        ("t.time - 5 min", True),
        ("least(t.time, 2024-06-01)", True),
        ("t.time - r.time", False),
        ("least(t.time, t.v)", False),
        ("Avg(r.time)", False),
        ("Count(T() within 1 h from t)", False),
        ("hour(t.time)", False),
        ("t.v + 1", False),
    ],
)
def test_values_that_are_times_are_instants(value: str, is_instant: bool):
    found = instants_of(rules.load(RULE.format(value)))
    assert found == {"Out": {"x"} if is_instant else set()}


def test_an_attribute_is_an_instant_if_it_is_by_all_rules_of_its_type():
    text = """event T(v: int) define Out(x, y) from T(v > 1) as t where x = t.time, y = t.time
        define Out(x, y) from T() as t where x = t.time, y = -1"""
    assert instants_of(rules.load(text)) == {"Out": {"x"}}

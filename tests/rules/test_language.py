"""``rules.load``: from text to checked rules, in time."""

import doctest
from dataclasses import replace

import pytest

import rules
import rules.language
from rules.pattern import Selected

SCHEMAS = """event Smoke(area: string, level: int)
event Temp(area: string, value: float)
event Rain(area: string, amount: float)
"""


def test_the_docstring_is_true() -> None:
    assert doctest.testmod(rules.language).failed == 0


def test_errors_of_syntax_and_of_meaning_come_in_one_report() -> None:
    with pytest.raises(rules.RuleErrors) as caught:
        rules.load("event A(x: int) define B() from A(y = 1) define C() form A()", file="f")
    assert [problem.message for problem in caught.value.problems] == [
        "A has no attribute y",
        'expected "from", found "form"',
    ]
    assert str(caught.value).startswith("f:1:35: A has no attribute y\n  event A(x: int)")


def test_a_thousand_rules_are_read_and_checked() -> None:
    text = SCHEMAS + "".join(
        f"rule r{number}: define Fire(area: string, measuredTemp: float) "
        f"from Smoke(area = $a, level > {number}) and "
        f"last Temp(area = $a, value > {number % 50}) within 5 min from Smoke and "
        "not Rain(area = $a, amount > 3.5) between Temp and Smoke and "
        "20 < $t = Avg(Temp(area = $a).value within 5 min from Smoke) "
        "where area = Smoke.area, measuredTemp = $t\n"
        for number in range(1_000)
    )
    checked = rules.load(text)
    assert len(checked.rules) == 1_000
    assert isinstance(checked.rules[-1].clauses[0], Selected)


def test_a_rule_by_another_name_is_the_same_otherwise() -> None:
    (rule,) = rules.load(
        "event A(x: int) rule r: define B(x) from A() as a and last A(x > Max(A().x within 1 min "
        "from a)) as b within 5 s from a where x = b.x consuming b"
    ).rules
    named = rule.named("other")
    assert named == replace(rule, name="other") != rule
    assert (named.used_types, named.is_strict) == (rule.used_types, rule.is_strict)
    assert hash(named) == hash(replace(rule, name="other"))

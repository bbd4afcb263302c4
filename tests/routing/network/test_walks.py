"""What a rule more costs beside many: what it concerns, not what is there (benchmarks.walks)."""

from __future__ import annotations

from benchmarks.walks import Alone, calls_of

FEW, MANY = 50, 150
MOST = 12
"""Calls for each rule that is there; there were 181 once, and 112 for a rule less."""


def test_a_rule_more_or_less_and_a_subscription_call_few_functions_for_each_that_is_there() -> None:
    calls = []
    for rules in (FEW, MANY):
        alone = Alone(rules)
        for action in alone.actions().values():  # what is remembered from the first is there
            action()
        calls.append({name: calls_of(action) for name, action in alone.actions().items()})
    few, many = calls
    for name in ("a rule more", "a rule less", "a subscription"):
        assert many[name] - few[name] <= MOST * (MANY - FEW), name

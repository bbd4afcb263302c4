"""Iterations (tesla.md X4) in random networks: what one engine finds, under every strategy."""

from dataclasses import replace
from random import Random

import pytest
from iteration_cases import iteration_rules
from pairs import seeds

from simulator.fuzzing.campaign import differences, strategies as registered
from simulator.fuzzing.case import Case
from simulator.fuzzing.making import random_case

STRATEGIES = registered()


def network_case(seed: int) -> Case:
    """A random network whose rules have iterations, over the types that are published there."""
    case = random_case(seed, STRATEGIES[seed % len(STRATEGIES)])
    types = sorted({event.type for event in case.events} & set("ABCD"))
    optional = any(rule.optional for rule in case.rules)
    made = iteration_rules(Random(seed), types)
    rules = tuple(replace(rule, optional=optional) for rule in made)
    wanted = tuple(dict.fromkeys(rule.defines for rule in rules))
    sinks = tuple(replace(sink, filters=wanted, then=()) for sink in case.sinks)
    return replace(case, rules=rules, changes=(), sinks=sinks)


@pytest.mark.parametrize("seed", seeds(8, 40))
def test_a_random_network_is_as_the_oracle_says(seed: int) -> None:
    case = network_case(seed)
    assert differences(case) == [], f"seed {seed}, {case.strategy}"

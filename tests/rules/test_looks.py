"""What no rule looks at changes nothing (rules.cutting.looks)."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from agreement import row
from cases import Case, random_case
from cut_cases import Cut, cut_case, found_in_whole
from iteration_cases import iteration_case
from msgspec import structs
from rule_texts import SCHEMAS

import rules
from matcher.model import Event, Kind
from rules.cutting.looks import looked_at
from rules.pattern import TIMER

OTHER = {Kind.INT: 77, Kind.FLOAT: -7.5, Kind.BOOL: True, Kind.STRING: "other"}


def blurred(cut: Cut, random: Random) -> tuple[Cut, int]:
    """The same with other values wherever no rule looks; and how many there are."""
    looks = looked_at(cut.ruleset.rules)
    count = 0

    def of(event: Event) -> Event:
        nonlocal count
        data = dict(event.data)
        for place, attribute in enumerate(SCHEMAS[event.type].attributes):
            if place not in looks.get(event.type, ()) and random.random() < 0.8:
                data[attribute.name] = OTHER[attribute.kind]
                count += 1
        return structs.replace(event, data=data)

    return replace(cut, events=tuple(map(of, cut.events))), count


@pytest.mark.parametrize("case_of", [random_case, iteration_case])
def test_rules_find_the_same_whatever_stands_where_they_do_not_look(
    case_of: Callable[[int], Case],
) -> None:
    fired = changed = 0
    for seed in range(24):
        cut = cut_case(seed, case_of)
        other, count = blurred(cut, Random(seed))
        found = list(map(row, found_in_whole(cut)))
        fired += len(found) > 0
        changed += count > 0
        assert list(map(row, found_in_whole(other))) == found, f"seed {seed}\n{cut.text}"
    assert fired > 8
    assert changed > 8


def test_looks_are_those_of_conditions_values_and_aggregates() -> None:
    ruleset = rules.load(
        """
        event A(n: int, v: float, unseen: string)
        event B(n: int, area: string, w: float)
        rule one: define C(n: int, m: float)
        from A(n > 3) as a and last B(area = "x") within 5 s from a
        and not B(n = a.n) between B and a
        and $m = Avg(B(n > 0).w within 9 s from a)
        where n = 1, m = $m
        """
    )
    assert looked_at(ruleset.rules) == {"A": {0}, "B": {0, 1, 2}}


def test_looks_name_attributes_that_there_are() -> None:
    for seed in range(100):
        ruleset = cut_case(seed).ruleset
        known = {**SCHEMAS, **ruleset.schemas, TIMER.name: TIMER}
        for name, places in looked_at(ruleset.rules).items():
            assert places <= set(range(len(known[name].attributes))), f"seed {seed}"

"""Groups have the least mark of their types, and marks never go back."""

import random

import numpy as np
import pytest

import rules
from matcher.model import TIME_MIN, EventType
from matcher.single import Row, Single
from rules.engine.cdp import WAITING_MAX, CdpEngine
from rules.engine.order.groups import Groups

NAMES = [f"t{number}" for number in range(6)]


@pytest.mark.parametrize("seed", range(20))
def test_marks_are_the_least_of_those_of_types(seed: int):
    random_ = random.Random(seed)
    members = {frozenset(random_.sample(NAMES, random_.randint(1, 4))) for _ in range(5)}
    wanted = sorted(members, key=sorted)
    types, marks = dict.fromkeys(NAMES, TIME_MIN), dict.fromkeys(wanted, TIME_MIN)
    groups = Groups.of(wanted, np.full(len(wanted), TIME_MIN))
    for _ in range(200):
        if random_.random() < 0.1:
            least = random_.randrange(100)
            types = {name: max(mark, least) for name, mark in types.items()}
            groups.raise_types(least)
        else:
            name, mark = random_.choice(NAMES), random_.randrange(100)
            types[name] = max(types[name], mark)
            groups.raise_type(name, mark)
        before = marks
        marks = {group: min(types[name] for name in group) for group in wanted}
        assert groups.rise() == (marks != before), f"seed {seed}"
        assert groups.marks.tolist() == [groups.mark(group) for group in wanted]
        assert groups.marks.tolist() == list(marks.values()), f"seed {seed}"
        if marks != before:  # else what kernels are told may be of an earlier advance
            assert groups.records["evaluated"].tolist() == list(before.values()), f"seed {seed}"


def test_a_type_of_no_group_raises_nothing():
    groups = Groups.of([frozenset(["a"])], np.array([TIME_MIN]))
    groups.raise_type("b", 5)
    assert not groups.rise()


def test_other_groups_keep_the_marks_of_those_that_stay():
    groups = Groups.of([frozenset(["a"]), frozenset(["b"])], np.array([3, 4]))
    groups.raise_to(4)
    followed = groups.followed_by([frozenset(["b"]), frozenset(["c"])])
    assert followed.marks.tolist() == [4, TIME_MIN]


def test_events_wait_for_a_rule_whose_mark_stays_but_not_without_bound():
    engine, kind = CdpEngine(), EventType.of("A")
    text = "event A() event B() define C() from A() and not B() within 1 s from A"
    engine.deploy(rules.load(text))
    for number in range(WAITING_MAX - 1):
        engine.push(Single(kind, Row(number, "s", number, None, ())))
        engine.advance({"A": number + 1})
    assert (engine.entered, engine.memory()["pending"]) == (0, WAITING_MAX - 1)
    engine.push(Single(kind, Row(WAITING_MAX, "s", WAITING_MAX, None, ())))
    assert len(engine.advance({"A": WAITING_MAX + 1})) == 0
    assert (engine.entered, engine.memory()["pending"]) == (WAITING_MAX, 0)
    assert len(engine.advance({"B": WAITING_MAX + 1})) == WAITING_MAX

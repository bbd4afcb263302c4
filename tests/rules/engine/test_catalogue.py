"""Deployed rules: what is refused, in which order they run, how marks rise."""

import random
from dataclasses import replace

import pytest

import rules
from matcher.model import TIME_MAX, TIME_MIN
from rules.engine.order.catalogue import Catalogue, Deployed
from rules.errors import RuleErrors
from rules.pattern import Rule, RuleSet

BASE = "event A() event B() event C()\n"


def deploy(catalogue: Catalogue, text: str, since: int = TIME_MIN) -> tuple[Deployed, ...]:
    return catalogue.deploy(rules.load(BASE + text, known=catalogue.schemas), since, 0)


def names(catalogue: Catalogue) -> list[str]:
    return [one.rule.name for one in catalogue.rules]


def test_rules_run_by_rank_and_then_by_position():
    catalogue = Catalogue()
    deploy(catalogue, "rule top: define T() from M() rule mid: define M() from A()")
    deploy(catalogue, "rule also: define U() from A()", since=5)
    assert names(catalogue) == ["mid", "also", "top"]
    assert [one.place for one in catalogue.rules] == [(TIME_MIN, 1), (5, 2), (TIME_MIN, 0)]


def test_rules_of_one_rank_run_by_since_first():
    catalogue = Catalogue()
    deploy(catalogue, "rule late: define L() from A()", since=5)
    deploy(catalogue, "rule early: define E() from A()")
    assert names(catalogue) == ["early", "late"]


def test_a_position_is_never_given_twice():
    catalogue = Catalogue()
    deploy(catalogue, "rule one: define O() from A()")
    catalogue.remove("one")
    (again,) = deploy(catalogue, "rule one: define O() from A()")
    assert again.position == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rule one: define P() from A()", "a rule named one is already deployed"),
        ("rule two: define P() from A2() rule three: define P() from Q()", "cycle"),
    ],
)
def test_a_refused_set_changes_nothing(text: str, complaint: str):
    catalogue = Catalogue()
    deploy(catalogue, "event P() rule one: define Q() from P()")
    before = catalogue.rules, catalogue.marks, dict(catalogue.schemas)
    with pytest.raises(RuleErrors, match=complaint):
        catalogue.deploy(_loaded_apart(text), TIME_MIN, 0)
    assert (catalogue.rules, catalogue.marks, dict(catalogue.schemas)) == before
    assert catalogue.advance(3) == {"one": (TIME_MIN, 3)}


def _loaded_apart(text: str) -> RuleSet:
    return rules.load(f"event A() event A2() event Q() {text}")


def test_a_second_schema_is_refused_and_both_are_named():
    catalogue = Catalogue()
    deploy(catalogue, "rule one: define O() from A()")
    other = rules.load("event A(x: int) define P() from A()")
    with pytest.raises(RuleErrors, match=r"A\(x: int\) is already known as A\(\)"):
        catalogue.deploy(other, TIME_MIN, 0)


def test_a_schema_goes_with_its_last_rule():
    catalogue = Catalogue()
    deploy(catalogue, "rule one: define O() from A()")
    catalogue.remove("one")
    catalogue.deploy(rules.load("event A(x: int) define P() from A()"), TIME_MIN, 0)
    assert "x" in catalogue.schemas["A"].names


def test_one_mark_for_all_types():
    catalogue = Catalogue()
    deploy(catalogue, "rule one: define O() from A()")
    assert catalogue.advance(10) == {"one": (TIME_MIN, 10)}
    assert catalogue.advance(10) == {}
    assert catalogue.advance(5) == {}
    assert catalogue.advance(TIME_MAX) == {"one": (10, TIME_MAX)}


def test_a_rule_waits_for_every_type_that_it_uses_through_other_rules_too():
    catalogue = Catalogue()
    deploy(
        catalogue,
        "rule low: define L() from A() rule top: define T() from L() and not B() within 1 s from L",
    )
    assert catalogue.advance({"A": 9}) == {"low": (TIME_MIN, 9)}
    assert catalogue.advance({"B": 4}) == {"top": (TIME_MIN, 4)}
    assert catalogue.advance({"B": 20}) == {"top": (4, 9)}
    # L is published as well from now on, and its mark is named: it binds.
    catalogue.advance({"A": 30, "L": 12})
    assert catalogue.marks == {"low": 30, "top": 12}


def test_a_type_whose_mark_was_forgotten_is_that_of_its_rules_until_one_is_named():
    catalogue = Catalogue()
    deploy(catalogue, "event L() rule top: define T() from L() and not B() within 1 s from L")
    catalogue.advance({"A": 9, "B": 9, "L": 4})
    deploy(catalogue, "event L() rule low: define L() from A()")
    assert catalogue.advance({"A": 12, "B": 12}) == {"low": (TIME_MIN, 12)}
    catalogue.forget_named()
    assert catalogue.marks == {"low": 12, "top": 4}
    assert catalogue.advance({"A": 7, "B": 7}) == {"top": (4, 7)}
    assert catalogue.advance({"A": 20, "B": 20, "L": 8}) == {"low": (12, 20), "top": (7, 8)}


def test_one_mark_for_all_types_counts_again_where_named_ones_were_forgotten():
    catalogue = Catalogue()
    deploy(catalogue, "rule one: define O() from A() rule two: define P() from B()")
    catalogue.advance({"A": 9, "B": 4})
    catalogue.forget_named()
    assert catalogue.is_level
    assert catalogue.advance(7) == {"two": (4, 7)}
    assert catalogue.advance(12) == {"one": (9, 12), "two": (7, 12)}


def test_the_timer_has_a_mark_of_its_own():
    catalogue = Catalogue()
    deploy(
        catalogue,
        "rule tick: define T() from Timer(S = 0) and Count(A() within 1 s from Timer) = 0",
    )
    assert catalogue.advance({"A": 9}) == {}
    assert catalogue.advance({"Timer": 7}) == {"tick": (TIME_MIN, 7)}


def test_marks_start_at_since():
    catalogue = Catalogue()
    deploy(catalogue, "rule one: define O() from A()", since=50)
    assert catalogue.advance(40) == {}
    assert catalogue.advance(60) == {"one": (50, 60)}


def test_removing_an_unknown_rule_is_a_key_error():
    with pytest.raises(KeyError):
        Catalogue().remove("none")


def arranged_anew(catalogue: Catalogue) -> dict[str, tuple[Rule, int, frozenset[str]]]:
    """What a catalogue that takes all rules at once, in their order, says of each."""
    anew = Catalogue()
    given = [
        replace(one, floor=catalogue.mark(one.rule.name))
        for one in sorted(catalogue.rules, key=lambda one: one.position)
    ]
    anew._arrange(given)
    return {one.rule.name: (one.rule, one.rank, one.group) for one in anew.rules}


TYPES = [f"L{level}{letter}" for level in range(3) for letter in "xy"]
SCHEMAS = BASE + "".join(f"event {name}() " for name in TYPES)


def random_rule(random_: random.Random, name: str, *, may_close_cycles: bool) -> str:
    """A rule over the types of the level below, or, at times, over any."""
    level = random_.randrange(3)
    below = ["A", "B", "C"] if level == 0 else [f"L{level - 1}{letter}" for letter in "xy"]
    others = [*TYPES, "A"] if may_close_cycles and random_.random() < 0.15 else [*below, "A"]
    return (
        f"rule {name}: define L{level}{random_.choice('xy')}() from {random_.choice(below)}() as a"
        f" and each {random_.choice(others)}() as b within 1 s from a"
    )


@pytest.mark.parametrize("may_close_cycles", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_rules_that_come_and_go_alone_stand_as_if_arranged_together(
    seed: int, may_close_cycles: bool
):
    """Law 4: ranks, groups, schemas and what is strict, without a look at all rules."""
    random_, catalogue, deployed = random.Random(seed), Catalogue(), []
    marks: dict[str, int] = {}
    for step in range(60):
        if deployed and random_.random() < 0.4:
            marks.pop(gone := deployed.pop(random_.randrange(len(deployed))))
            catalogue.remove(gone)
        else:
            text = random_rule(random_, f"r{step}", may_close_cycles=may_close_cycles)
            catalogue.deploy(rules.load(f"{SCHEMAS}{text}"), step - 1, 0)  # where all others are
            deployed.append(f"r{step}")
        stands = {one.rule.name: (one.rule, one.rank, one.group) for one in catalogue.rules}
        assert stands == arranged_anew(catalogue), f"seed {seed}"
        ranks = {one.rule.defines.name: one.rank for one in catalogue.rules}
        if not may_close_cycles:
            for one in catalogue.rules:
                assert all(ranks.get(used.name, -1) < one.rank for used in one.rule.used_types)
        assert set(catalogue.groups.numbers) == {one.group for one in catalogue.rules}
        known = {schema.name for one in catalogue.rules for schema in one.rule.used_types}
        assert set(catalogue.used) == known
        assert set(catalogue.schemas) == known | set(ranks)
        # Marks are never lost, whichever groups rules are moved to.
        assert all(catalogue.mark(name) >= mark for name, mark in marks.items())
        catalogue.advance(step)
        marks = dict(catalogue.marks)
        assert all(marks[name] >= step for name in deployed)


def test_changed_rules_are_named_once():
    catalogue = Catalogue()
    deploy(catalogue, "rule one: define O() from A()")
    assert [one.rule.name for one in catalogue.take_changed()] == ["one"]
    deploy(catalogue, "rule two: define P() from B()")
    assert [one.rule.name for one in catalogue.take_changed()] == ["two"]
    deploy(catalogue, "event O() rule three: define A() from C()")  # A now comes from C
    assert [one.rule.name for one in catalogue.take_changed()] == ["one", "three"]
    catalogue.remove("two")
    assert catalogue.take_changed() == ()

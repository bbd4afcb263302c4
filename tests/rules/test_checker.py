"""Meaning of names, parameters, types and clauses, as checked rules; and refusals, as printed.

``testdata/refused.txt`` holds the refusals: a title, rules, ``----`` and what RuleErrors prints.
``python tests/rules/test_checker.py`` writes the file anew; read the difference before you
believe it.
"""

from pathlib import Path

import pytest

import rules
from matcher.model import EventType, Kind
from rules.pattern import Constraint, Let, Negated, Policy, Rule, Selected, Timed
from rules.terms import (
    CANDIDATE,
    TIME,
    Aggregate,
    Arithmetic,
    AttributeOf,
    Between,
    Compare,
    Comparison,
    Convert,
    Function,
    Literal,
    Operator,
    Or,
    Slot,
    Within,
)

REFUSED = Path(__file__).with_name("testdata") / "refused.txt"
BETWEEN_CASES, BEFORE_MESSAGE = "====\n", "----\n"
SCHEMAS = """
event Smoke(area: string, level: int)
event Temp(area: string, value: float)
event Rain(area: string, mm: float)
event Flag(up: bool, n: int)
"""
MINUTE = 60_000_000


def rule_of(text: str) -> Rule:
    return rules.load(SCHEMAS + text).rules[-1]


def refused_cases() -> list[tuple[str, str]]:
    cases = []
    for case in REFUSED.read_text("utf-8").split(BETWEEN_CASES):
        text, _, message = case.partition(BEFORE_MESSAGE)
        cases.append((text, message))
    return cases


def message_of(text: str) -> str:
    try:
        rules.load(text)
    except rules.RuleErrors as errors:
        return f"{errors}\n"
    return "accepted\n"


@pytest.mark.parametrize(
    ("text", "message"), refused_cases(), ids=lambda value: value.partition("\n")[0][2:60]
)
def test_refusals_are_reported_all_at_once(text: str, message: str) -> None:
    assert message_of(text) == message


# --- names -----------------------------------------------------------------------------------


def test_events_are_numbered_and_known_by_type_or_alias() -> None:
    rule = rule_of(
        "define A(x: float) from Smoke() and last Temp() as t within 5 min from Smoke "
        "and each Rain() within 3 min from t where x = Rain.mm"
    )
    assert rule.event_names == ("Smoke", "t", "Rain")
    assert [clause.event for clause in rule.selected] == [1, 2]
    assert [clause.window for clause in rule.selected] == [
        Within(5 * MINUTE, 0),
        Within(3 * MINUTE, 1),
    ]
    assert rule.values == (AttributeOf(2, 1, Kind.FLOAT),)


def test_an_event_with_an_alias_keeps_the_name_of_its_type() -> None:
    rule = rule_of(
        "define A() from Smoke() as s and last Temp() as t within 5 min from Smoke "
        "and t within 1 min from s and Temp within 2 min from Smoke"
    )
    assert rule.clauses[1:] == (Timed(1, Within(MINUTE, 0)), Timed(1, Within(2 * MINUTE, 0)))


def test_events_that_share_a_type_are_shown_numbered() -> None:
    rule = rule_of(
        "define A() from Smoke() as s and each Temp() within 1 s from s "
        "and each Temp() within 1 s from s"
    )
    assert rule.event_names == ("s", "Temp", "Temp#2")


def test_rules_without_a_name_are_called_after_their_type() -> None:
    text = """define A() from Smoke() rule A: define A() from Temp() define A() from Rain()
              define B() from Smoke() rule x: define B() from Temp()"""
    assert [rule.name for rule in rules.load(SCHEMAS + text).rules] == [
        "A#2",
        "A",
        "A#3",
        "B",
        "x",
    ]


def test_bare_weekdays_are_values_at_a_timer() -> None:
    rule = rule_of("define A() from Timer(H = 9, D = Friday) and Timer.D != Monday")
    assert rule.conditions[1] == Compare(
        Comparison.EQUAL, AttributeOf(0, 5, Kind.STRING), Literal("Friday", Kind.STRING)
    )
    assert rule.clauses == (
        Constraint(
            Compare(
                Comparison.UNEQUAL, AttributeOf(0, 5, Kind.STRING), Literal("Monday", Kind.STRING)
            )
        ),
    )


# --- parameters (S3, S5) ---------------------------------------------------------------------


def test_a_parameter_stands_for_the_attribute_it_was_bound_to() -> None:
    rule = rule_of(
        "define A() from Smoke(area = $a, $l = level) and "
        "each Temp(value > $l * 2 and $a = area) within 5 min from Smoke"
    )
    assert rule.conditions == ()
    level = AttributeOf(0, 1, Kind.INT)
    twice = Arithmetic(Operator.MULTIPLY, level, Literal(2, Kind.INT), Kind.INT)
    assert rule.selected[0].conditions == (
        Compare(Comparison.GREATER, AttributeOf(1, 1, Kind.FLOAT), twice),
        Compare(Comparison.EQUAL, AttributeOf(0, 0, Kind.STRING), AttributeOf(1, 0, Kind.STRING)),
    )


def test_positional_parameters_bind_and_use_by_place() -> None:
    rule = rule_of(
        "define A() from Smoke($a, $l) and not Temp($a, value > $l) within 1 min from Smoke"
    )
    assert rule.conditions == ()
    assert rule.clauses[0].conditions == (
        Compare(
            Comparison.EQUAL, AttributeOf(CANDIDATE, 0, Kind.STRING), AttributeOf(0, 0, Kind.STRING)
        ),
        Compare(
            Comparison.GREATER, AttributeOf(CANDIDATE, 1, Kind.FLOAT), AttributeOf(0, 1, Kind.INT)
        ),
    )


def test_in_a_chain_the_binding_counts_first() -> None:
    rule = rule_of(
        "define A(t: float) from Smoke(area = $a) and "
        "45 < $t = Avg(Temp(area = $a).value within 5 min from Smoke) where t = $t"
    )
    let, constraint = rule.clauses
    assert isinstance(let, Let)
    assert let.slot == 0
    assert isinstance(let.value, Aggregate)
    assert constraint == Constraint(
        Compare(Comparison.LESS, Literal(45, Kind.INT), Slot(0, Kind.FLOAT))
    )
    assert rule.values == (Slot(0, Kind.FLOAT),)
    assert rule.slots == (Kind.FLOAT,)


def test_a_chain_within_an_event_binds_to_its_own_attribute() -> None:
    rule = rule_of("define A() from Smoke(3 < $l = level < 9)")
    level = AttributeOf(0, 1, Kind.INT)
    assert rule.conditions == (
        Compare(Comparison.LESS, Literal(3, Kind.INT), level),
        Compare(Comparison.LESS, level, Literal(9, Kind.INT)),
    )


def test_one_binding_may_make_another_possible() -> None:
    rule = rule_of("define A(x: int) from Smoke() and $a = $b = Smoke.level + 1 where x = $a")
    assert [type(clause) for clause in rule.clauses] == [Let]
    assert rule.values == (Slot(0, Kind.INT),)


def test_what_needs_no_computing_gets_no_slot() -> None:
    rule = rule_of(
        "define A(x: int, y: int) from Smoke() and $a = Smoke.level and $c = 7 where x = $a, y = $c"
    )
    assert rule.clauses == ()
    assert rule.values == (AttributeOf(0, 1, Kind.INT), Literal(7, Kind.INT))


def test_parentheses_around_and_change_nothing() -> None:
    plain = rule_of("define A() from Smoke(level = $x, $x > 3 and level < 9)")
    nested = rule_of("define A() from Smoke(((level = $x and $x > 3) and level < 9))")
    assert plain.conditions == nested.conditions


# --- clauses ---------------------------------------------------------------------------------


def test_selection_policies_and_ranks() -> None:
    rule = rule_of(
        "define A() from Smoke() and each Temp() within 1 s from Smoke and "
        "FIRST Rain() as r within 1 s from Smoke and 3-last Flag() within 1 s from Smoke and "
        "2 - first Rain() as q within 1 s from r"
    )
    assert [(clause.policy, clause.rank) for clause in rule.selected] == [
        (Policy.EACH, 0),
        (Policy.FIRST, 1),
        (Policy.LAST, 3),
        (Policy.FIRST, 2),
    ]


@pytest.mark.parametrize("names", ["Smoke and Temp", "Temp and Smoke"])
def test_between_takes_its_names_in_either_order(names: str) -> None:
    rule = rule_of(
        "define A() from Smoke() and last Rain() within 5 min from Smoke and "
        f"last Temp() within 5 min from Rain and not Flag(up = true) between {names}"
    )
    negated = rule.clauses[-1]
    assert isinstance(negated, Negated)
    assert negated.window == Between(earlier=2, later=0)  # anchored through Rain


@pytest.mark.parametrize(
    "aggregate",
    [
        "Sum(Temp(area = $a, value > 3).value within 5 min from Smoke)",
        "sum(Temp(area = $a, value > 3).value) within 5 min. from Smoke",
    ],
)
def test_both_forms_of_aggregates_mean_the_same(aggregate: str) -> None:
    rule = rule_of(f"define A(x: float) from Smoke($a) where x = {aggregate}")
    area, value = AttributeOf(CANDIDATE, 0, Kind.STRING), AttributeOf(CANDIDATE, 1, Kind.FLOAT)
    assert rule.values == (
        Aggregate(
            Function.SUM,
            EventType.of("Temp", area="string", value="float"),
            (
                Compare(Comparison.EQUAL, area, AttributeOf(0, 0, Kind.STRING)),
                Compare(Comparison.GREATER, value, Literal(3, Kind.INT)),
            ),
            value,
            Within(5 * MINUTE, 0),
            False,
            Kind.FLOAT,
        ),
    )


@pytest.mark.parametrize(
    ("aggregate", "kind"),
    [
        ("Count(Smoke() within 1 s from Rain)", Kind.INT),
        ("Count(Smoke().level within 1 s from Rain)", Kind.INT),
        ("Sum(Smoke().level within 1 s from Rain)", Kind.INT),
        ("Min(Smoke().level within 1 s from Rain)", Kind.INT),
        ("Max(Smoke().area within 1 s from Rain)", Kind.STRING),
        ("Avg(Smoke().level within 1 s from Rain)", Kind.FLOAT),
        ("StdDev(Smoke().level within 1 s from Rain)", Kind.FLOAT),
        ("1 + 2", Kind.INT),
        ("1 / 2", Kind.FLOAT),
        ("3 % 2", Kind.INT),
        ("3 % 2.0", Kind.FLOAT),
        ("-Rain.mm", Kind.FLOAT),
        ("Rain.mm > 3", Kind.BOOL),
    ],
)
def test_kinds_of_values_follow_from_where(aggregate: str, kind: Kind) -> None:
    found = rule_of(f"define A(x) from Rain() where x = {aggregate}")
    assert found.defines.attributes[0].kind is kind


def test_an_aggregate_in_the_condition_of_an_aggregate() -> None:
    rule = rule_of(
        "define A() from Smoke() and 3 < Count(Temp(value > "
        "Avg(Rain(mm > 1).mm within 1 h from Smoke)) within 1 h from Smoke)"
    )
    [constraint] = rule.clauses
    outer = constraint.condition.right
    inner = outer.conditions[0].right
    assert inner.type.name == "Rain"
    assert inner.conditions[0].left == AttributeOf(CANDIDATE, 1, Kind.FLOAT)


def test_or_and_not_stay_whole() -> None:
    rule = rule_of("define A() from Smoke((level > 3 or area = 'x') and not level = 5)")
    assert isinstance(rule.conditions[0], Or)
    assert len(rule.conditions) == 2


def test_an_int_given_to_a_float_is_converted() -> None:
    rule = rule_of("define A(x: double) from Smoke() where x = Smoke.level")
    assert rule.values == (Convert(AttributeOf(0, 1, Kind.INT)),)


def test_the_time_of_an_event_is_an_int_of_its_own() -> None:
    rule = rule_of(
        "event T(x: int) define A(t) from T(time = $t) as a"
        " and last T(time < $t) as b within 1 s from a"
        " where t = b.time + 1 ms",
    )
    time = AttributeOf(0, TIME, Kind.INT)
    assert rule.conditions == ()
    assert rule.selected[0].conditions == (
        Compare(Comparison.LESS, AttributeOf(1, TIME, Kind.INT), time),
    )
    added = Literal(1_000, Kind.INT)
    assert rule.values == (
        Arithmetic(Operator.ADD, AttributeOf(1, TIME, Kind.INT), added, Kind.INT),
    )


def test_an_attribute_called_time_comes_first() -> None:
    rule = rule_of("event T(time: string) define A(t) from T() where t = T.time")
    assert rule.values == (AttributeOf(0, 0, Kind.STRING),)


def test_consumed_events_are_listed_ascending() -> None:
    rule = rule_of(
        "define A() from Smoke() and each Temp() within 1 s from Smoke and "
        "each Rain() within 1 s from Temp consuming Rain, Smoke"
    )
    assert rule.consuming == (0, 2)


def test_values_stand_in_the_order_of_the_type() -> None:
    rule = rule_of("define A(x: int, y: int) from Smoke() where y = 2 and x = 1")
    assert rule.values == (Literal(1, Kind.INT), Literal(2, Kind.INT))


# --- types of rules --------------------------------------------------------------------------


def test_a_recursive_type_gets_its_kinds_from_its_other_rule() -> None:
    checked = rules.load(
        SCHEMAS + "define R(n, v) from Rain(mm = $m) and last R(v <= $m) within 1 h from Rain "
        "where n = R.n + 1, v = $m "
        "define R(n, v) from Rain() where n = 1, v = Rain.mm"
    )
    assert checked.schemas["R"] == EventType.of("R", n="int", v="float")
    [use] = checked.rules[0].selected
    assert use.strict  # a cycle sees the strict past (S12)


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        (  # no other rule defines it, and its values say nothing of itself
            "define A(area) from Smoke(area = $a) and not A(area = $a) within 5 min from Smoke "
            "where area = $a",
            ["A(area: string)"],
        ),
        (  # two types that use each other: the second follows once the first is known
            "define A(x) from B() as b where x = b.y define B(y) from Smoke() and "
            "not A() within 1 s from Smoke where y = Smoke.level",
            ["A(x: int)", "B(y: int)"],
        ),
        (  # a rule whose values do depend on it comes first in the text
            "define A(x) from Rain() and last A() within 1 h from Rain where x = A.x "
            "define A(x) from Rain() and not A() within 1 h from Rain where x = Rain.mm",
            ["A(x: float)", "A(x: float)"],
        ),
    ],
)
def test_a_recursive_type_follows_from_values_that_do_not_depend_on_it(
    text: str, defined: list[str]
) -> None:
    assert [str(rule.defines) for rule in rules.load(SCHEMAS + text).rules] == defined


def test_many_recursive_types_that_nothing_settles_are_refused_in_time() -> None:
    """Each rule is tried once for what it waits for, not once for each other that was settled."""
    rings = [
        f"define A{i}(x) from Rain() and last A{i}() within 1 s from Rain where x = A{i}.x "
        f"define B{i}(x) from Rain() and not B{i}() within 1 s from Rain where x = Rain.mm "
        for i in range(300)
    ]
    with pytest.raises(rules.RuleErrors) as caught:
        rules.load(SCHEMAS + "".join(rings))
    assert {problem.message for problem in caught.value.problems} == {
        "the type of x cannot be inferred"
    }
    assert len(caught.value.problems) == 300


def test_types_are_found_through_hierarchies_in_any_order() -> None:
    count = 200
    chain = [f"define T{i}(x) from T{i + 1}() where x = T{i + 1}.x" for i in range(count)]
    checked = rules.load(
        f"{SCHEMAS} {' '.join(chain)} define T{count}(x) from Rain() where x = Rain.mm"
    )
    assert {str(checked.schemas[f"T{i}"]) for i in range(count)} == {
        f"T{i}(x: float)" for i in range(count)
    }
    assert not any(use.strict for rule in checked.rules for use in rule.selected)


def test_rules_of_a_type_complete_each_others_schema() -> None:
    text = """define A(x: float, y) from Smoke() where x = 1, y = Smoke.area
              define A(x, y) from Smoke() where x = 2, y = "b" """
    checked = rules.load(SCHEMAS + text)
    assert checked.schemas["A"] == EventType.of("A", x="float", y="string")
    assert checked.rules[1].values[0] == Convert(Literal(2, Kind.INT))


def test_known_types_need_no_declaration_and_appear_among_the_schemas() -> None:
    known = {"Wind": EventType.of("Wind", speed="float")}
    checked = rules.load("define A(v) from Wind() where v = Wind.speed", known=known)
    assert checked.schemas == {**known, "A": EventType.of("A", v="float")}
    with pytest.raises(rules.RuleErrors, match="another schema for Wind"):
        rules.load("event Wind(speed: int)", known=known)


def test_a_type_may_be_published_and_defined() -> None:
    text = "define Rain(area, mm) from Smoke() where area = Smoke.area, mm = 3"
    assert rule_of(text).values[1] == Convert(Literal(3, Kind.INT))


def test_the_same_schema_may_be_declared_twice() -> None:
    assert rules.load("event A(x: int) event A(x: int)").schemas == {
        "A": EventType.of("A", x="int")
    }


def test_a_tree_is_checked_as_its_text_is() -> None:
    text = SCHEMAS + "define A(x: int) from Flag(n = $n, up = true) where x = $n + 1"
    assert rules.check(rules.parse(text)) == rules.load(text)
    known = {"B": EventType.of("B", x="int")}
    assert rules.check(rules.parse("define A() from B(x > 3)"), known).rules[0].name == "A"
    with pytest.raises(rules.RuleErrors, match=r"f\.tesla:1:17: unknown event type B"):
        rules.check(rules.parse("define A() from B(x > 3)", file="f.tesla"))


def test_nothing_at_all_is_a_rules_file() -> None:
    assert rules.load("") == rules.load(" \n# nothing\n") == rules.RuleSet((), {})


def test_selected_conditions_of_a_rule_are_canonical_text() -> None:
    rule = rule_of(
        "define A ( ) from Smoke( area==$a )and each Temp(area=$a) within 300s from Smoke;"
    )
    assert rule.text == (
        "define A()\nfrom Smoke(area = $a) and\n     each Temp(area = $a) within 5 min from Smoke"
    )
    assert isinstance(rule.clauses[0], Selected)


# --- beyond the thesis ---------------------------------------------------------------------------


def test_so_many_events_may_come_together() -> None:
    def text(count: int) -> str:
        events = ",\n".join(f"Temp() as t{number}" for number in range(1, count + 1))
        return f"define A() from all {events} within 1 s"

    assert len(rule_of(text(64)).event_names) == 64
    (line,) = message_of(SCHEMAS + text(66)).splitlines()[:1]
    assert line.endswith(":1: all is of 66 events, more than 64")
    place = int(line.split(":")[1])
    assert (SCHEMAS + text(66)).splitlines()[place - 1] == "Temp() as t65,"


def test_events_that_come_together_are_selected_and_have_no_anchor() -> None:
    rule = rule_of(
        "define A() from all Smoke($a) as s, Rain(area = $a) as r within 1 min and s.level > 1"
    )
    assert (rule.together, rule.event_names) == (MINUTE, ("s", "r"))
    equal = Compare(
        Comparison.EQUAL, AttributeOf(1, 0, Kind.STRING), AttributeOf(0, 0, Kind.STRING)
    )
    assert [one.conditions for one in rule.selected] == [(equal,)]
    assert isinstance(rule.clauses[-1], Constraint)
    assert [type_.name for type_ in rule.opening] == ["Smoke", "Rain"]


def test_either_type_is_one_rule_for_each_way_to_choose() -> None:
    rule = rule_of(
        "define A(a, n) from Smoke(area = $a, level > 1) or Temp(area = $a) as e "
        "and last Rain(area = $a) or Flag(n = 2) as f within 1 min from e "
        "where a = e.area, n = f.time"
    )
    types = [(one.terminator.name, one.selected[0].type.name) for one in rule.alternatives]
    assert types == [("Smoke", "Rain"), ("Smoke", "Flag"), ("Temp", "Rain"), ("Temp", "Flag")]
    assert [type_.name for type_ in rule.opening] == ["Smoke", "Temp"]
    assert {type_.name for type_ in rule.used_types} == {"Smoke", "Temp", "Rain", "Flag"}
    assert {one.event_names for one in rule.alternatives} == {("e", "f")}
    for one in rule.alternatives:
        (selected,) = one.selected
        (rival,) = selected.rivals
        assert {selected.type.name, rival.type.name} == {"Rain", "Flag"}
        assert one.values[0] == AttributeOf(0, 0, Kind.STRING)
    assert all(not one.selected[0].rivals for one in each_of(rule))


def each_of(rule: Rule) -> tuple[Rule, ...]:
    return rule_of(rule.text.replace("last", "each")).alternatives


if __name__ == "__main__":
    REFUSED.write_text(
        BETWEEN_CASES.join(
            f"{text}{BEFORE_MESSAGE}{message_of(text)}" for text, _ in refused_cases()
        ),
        "utf-8",
    )

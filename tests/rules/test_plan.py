"""Rules as plain tables: columns, keys, steps and programs (thesis 5.4)."""

import pytest

import rules
from matcher.model import MICROSECONDS
from rules.planning.plan import RulePlan, StepKind
from rules.planning.planner import compile_rule
from rules.planning.program import TRUE, Op

SCHEMAS = "event A(k: int, s: string, v: float) event B(k: int, s: string) event C(k: int) "
SECOND = MICROSECONDS


def plan(text: str) -> RulePlan:
    (rule,) = rules.load(SCHEMAS + text).rules
    return compile_rule(rule)


def kinds(made: RulePlan) -> list[str]:
    return [step.kind.name for step in made.steps]


def test_static_conditions_are_a_column_whatever_their_order_and_whoever_asks():
    one = plan("define X() from A(k = 1, s = 'x') as a and each B(k > 2) within 1 s from a")
    other = plan("define Y() from B(k > 2) as b and last A(s = 'x', k = 1) within 9 s from b")
    assert one.terminator == other.steps[0].access.column
    assert other.terminator == one.steps[0].access.column


def test_equalities_with_what_is_known_are_keys_and_the_rest_is_tested():
    made = plan("""define X() from A(k = $k, s = $s, v = $v) as a
        and each B(s = $s, k = $k, k > $v) as b within 1 s from a""")
    (step,) = made.steps
    assert step.access.keys == (0, 1)
    assert [probe.program.code[0].offset for probe in step.probes] == [0, 1]
    assert [one.op for one in step.residue.code].count(Op.CHECK) == 1


@pytest.mark.parametrize(
    ("conditions", "attribute", "lower", "upper"),
    [
        ("v < $v", 2, None, True),
        ("$v <= v", 2, False, None),
        ("k > $k, v < $v, v >= $k", 2, False, True),  # bounded on both sides
        ("k > $k, v < $v", 0, True, None),  # the first
        ("k = $k, v > a.k * 2", 2, True, None),
        ("v * 2 < $v", None, None, None),
        ("s < $s", None, None, None),  # no number
        ("v < k + $k", None, None, None),  # of the event itself too
        ("v <> $v", None, None, None),
    ],
)
def test_inequalities_of_one_attribute_are_a_range(
    conditions: str, attribute: int | None, lower: bool | None, upper: bool | None
):
    made = plan(f"""define X() from A(k = $k, s = $s, v = $v) as a
        and each A({conditions}) as b within 1 s from a""")
    (step,) = made.steps
    assert step.residue is not TRUE, "the residue tests what the range admits"
    if attribute is None:
        assert step.ordered is None
        return
    assert step.ordered.attribute == attribute
    for bound, is_strict in ((step.ordered.lower, lower), (step.ordered.upper, upper)):
        assert (None if bound is None else bound.is_strict) == is_strict


def test_two_keys_are_enough():
    made = plan("""define X() from A(k = $k, s = $s, v = $v) as a
        and each A(k = $k, s = $s, v = $v) as b within 1 s from a""")
    assert made.steps[0].access.keys == (0, 1)
    assert made.steps[0].residue is not TRUE


def test_an_event_that_binds_is_not_looked_up_by_what_it_binds():
    made = plan("define X() from A() as a and last B(k = $k) as b within 1 s from a"
                " and each C(k = $k) within 1 s from b")  # fmt: skip
    assert [step.access.keys for step in made.steps] == [(), (0,)]


def test_a_negation_waits_for_the_last_selection_of_its_type():
    made = plan("""define X() from A() as a and not B(k = 1) within 5 s from a
        and each C() as c within 5 s from a and each B() as b within 5 s from c
        and not C() within 1 s from b""")
    assert kinds(made) == ["SELECT", "SELECT", "NEGATE", "NEGATE"]
    assert made.steps[2].access.column.type.name == "B"


@pytest.mark.parametrize(
    ("condition", "outer", "inner"),
    [
        ("v > Avg(A(s = a.s).v within 5 s from a)", ["AGGREGATE", "SELECT"], 0),
        ("v > Avg(A(s = $s).v within 5 s from a)", ["AGGREGATE", "SELECT"], 0),
        ("k = $n, v > Sum(A(k = $n).v within 5 s from a)", ["SELECT"], 1),
    ],
)
def test_an_aggregate_waits_for_the_candidate_only_if_it_reads_it(
    condition: str, outer: list[str], inner: int
):
    made = plan(f"define X() from A(s = $s) as a and last A({condition}) as b within 1 s from a")
    assert kinds(made) == outer
    assert len(made.steps[-1].inner) == inner


def test_aggregates_of_values_and_constraints_come_right_before_their_use():
    made = plan("""define X(n: int) from A() as a and Count(B() within 2 s from a) > 3
        where n = Count(C() within 1 s from a)""")
    assert kinds(made) == ["AGGREGATE", "TEST", "AGGREGATE"]
    assert [made.steps[0].slot, made.steps[2].slot] == [0, 1]
    assert made.slots == 2


def test_the_reach_of_an_access_adds_up_along_the_chain():
    made = plan("""define X() from A() as a and each B() as b within 3 s from a
        and last C() as c within 4 s from b and not A(k = 1) between c and a
        and b within 1 s from a""")
    reaches = [step.access.reach if step.access else None for step in made.steps]
    assert reaches == [3 * SECOND, 7 * SECOND, 7 * SECOND, None]
    assert made.reach == 7 * SECOND


def test_what_a_rule_consumes_is_in_columns_of_its_own():
    made = plan("rule own: define X() from A() as a and each B() as b within 1 s from a"
                " and not B(k = 1) within 1 s from a and each C() within 1 s from a"
                " consuming b")  # fmt: skip
    assert made.terminator.owner == ""
    assert [step.access.column.owner for step in made.steps] == ["own", "own", ""]


@pytest.mark.parametrize(
    ("conditions", "zeros"),
    [("", 0), ("S % 5 == 0", 0), ("M % 5 == 0", 1), ("H = 9", 2), ("H = 9, D = Friday", 2),
     ("D = Friday", 3), ("day = 1", 3), ("M = 3, S = 4", 0)],
)  # fmt: skip
def test_fields_finer_than_a_timer_mentions_are_zero(conditions: str, zeros: int):
    """And the zone is UTC, where the conditions name none."""
    (rule,) = rules.load(f"define X() from Timer({conditions})").rules
    extra = len(compile_rule(rule).terminator.conditions) - len(rule.conditions)
    assert extra == zeros + 1


def test_programs_are_postfix_and_say_how_deep_they_go():
    made = plan("define X(r: float) from A() as a where r = a.v - (a.k + 2) / 4")
    (program,) = made.values
    assert [one.op for one in program.code] == [
        *(Op.LOAD, Op.LOAD, Op.CONST, Op.ADD_I, Op.TO_FLOAT, Op.CONST, Op.TO_FLOAT),
        *(Op.DIVIDE_F, Op.SUBTRACT_F, Op.END),
    ]
    assert program.depth == 3


def test_bindings_keep_their_place_among_constraints():
    made = plan("""define X(t: float) from A() as a
        and 45 < $t = Avg(A().v within 5 s from a) where t = $t""")
    assert [step.kind for step in made.steps] == [
        StepKind.AGGREGATE,
        StepKind.LET,
        StepKind.TEST,
    ]

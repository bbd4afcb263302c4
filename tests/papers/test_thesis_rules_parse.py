"""The rules of the thesis parse, check and print; tesla.md section 7 lists the two departures."""

import pytest

import rules
from matcher.model import Kind
from rules.pattern import Constraint, Let, Negated, Policy, RuleSet, Timed
from rules.syntax import ast
from rules.syntax.parser import parse
from rules.syntax.printer import print_file
from rules.terms import AttributeOf, Between, Compare, Comparison, Function, Within

MINUTE = 60_000_000
VAL = "event Smoke(Area: string) event Temp(Area: string, Val: float) event Rain(Area: string)\n"
FIRE = """event Smoke(area: string) event Temp(area: string, value: float)
event Wind(area: string, speed: float) event Rain(area: string)
"""
POINTS = "event A(p: int) event B(p: int, v: int) event C(p: int)\n"
LETTERS = "event A(v: int) event B(v: int) event C(v: int) event D(v: int) event E(v: int)\n"

# Where a rule stands in the thesis, the schemas it needs, and its text.
RULES: dict[str, tuple[str, str]] = {
    "3.4 each-within": (
        VAL,
        """define Fire(Val) from Smoke() and each Temp(Val > 45) within 5min from Smoke
           where Val = Temp.Val""",
    ),
    "3.4 last-within": (
        VAL,
        """define Fire(Val) from Smoke() and last Temp(Val > 45) within 5min from Smoke
           where Val = Temp.Val""",
    ),
    "3.4 composition": (
        LETTERS.replace("D(v: int)", "Dummy()"),
        """define D()
           from A() and each B() within 5min from A and last C() within 3min from A and
                last Dummy() as D within 6min from B and first E() within 2min from D and
                E within 8min from A""",
    ),
    "3.4 parameterization": (
        VAL,
        """define Fire(Val) from Smoke(Area = $x) and
                each Temp(Val > 45 and Area = $x) within 5min from Smoke
           where Val = Temp.Val""",
    ),
    "3.4 timers": (VAL, "define Friday() from Timer(H = 9, M = 00, D = Friday)"),
    "3.4 negation between": (
        VAL,
        """define Fire(Val) from Smoke(Area = $x) and
                each Temp(Val > 45 and Area = $x) within 5min from Smoke and
                not Rain(Area = $x) between Temp and Smoke
           where Val = Temp.Val""",
    ),
    "3.4 negation within": (
        VAL,
        """define Fire(Val) from Smoke(Area = $x) and
                each Temp(Val > 45 and Area = $x) within 5min from Smoke and
                not Rain(Area = $x) within 5min from Smoke
           where Val = Temp.Val""",
    ),
    "3.4 consumption": (
        VAL.replace("Val: float", "Val: float, Value: float"),
        """define Fire(Val)
           from Smoke() and each Temp(Val > 45) within 5min from Smoke
           where Val = Temp.Value
           consuming Temp""",
    ),
    "3.4 AvgTemp": (
        "event Temp(Value: float)\n",
        """define AvgTemp(Val) from Timer(M%5 == 0)
           where Val = Avg(Temp().Value) within 5min from Timer""",
    ),
    "3.4 HighVal": (
        "event Stock(Name: string, Val: float) event Opening()\n",
        """define HighVal(Name, Val)
           from Stock(Name = $y, Val = $x) and last Opening() within 1day from Stock and
                $x > Avg(Stock(Name = $y).Val) between Opening and Stock
           where Val = Stock.Val, Name = Stock.Name""",
    ),
    "3.4.1 iterations": (
        "event A(Val: float)\n",
        """define RepA(Times, Val) from A() where Times = 1 and Val = A.Val
           define RepA(Times, Val) from A($x) and last RepA(Val ≤ $x) within 3min from A
           where Times = RepA.Times + 1 and Val = $x
           consuming RepA
           define B(Times) from RepA() where Times = RepA.Times""",
    ),
    "5 R1": (
        FIRE,
        """define Fire(area: string, measuredTemp: double)
           from Smoke(area=$a) and each Temp(area=$a and value>45) within 5 min. from Smoke
           where area=Smoke.area and measuredTemp=Temp.value""",
    ),
    "5 R2": (
        FIRE,
        """define Fire(area: string, measuredTemp: double)
           from Smoke(area=$a) and each Temp(area=$a and value>45) within 5 min. from Smoke and
                each Wind(area=$a and speed>20) within 5 min. from Smoke and
                not Rain(area=$a) between Smoke and Wind
           where area=Smoke.area and measuredTemp=Temp.value""",
    ),
    "5 R3": (
        FIRE,
        """define Fire(area: string, measuredTemp: double)
           from Smoke(area=$a) and last Temp(area=$a and value>45) within 5 min. from Smoke
           where area=Smoke.area and measuredTemp=Temp.value consuming Temp""",
    ),
    "5 R4": (
        FIRE,
        """define Fire(area: string, measuredTemp: double)
           from Smoke(area=$a) and first Temp(area=$a and value>45) within 5 min. from Smoke
           where area=Smoke.area and measuredTemp=Temp.value""",
    ),
    "5 R5": (
        POINTS,
        """define ComplexEvent()
           from C(p=$x) and each B(p=$x and v>10) within 8 min. from C and
                last A(p=$x) within 3 min. from B""",
    ),
    "5 R6": (
        LETTERS,
        """define ComplexEvent()
           from E() and each D() within 3 min. from E and each C() within 3 min. from E
                and each B() within 3 min. from D and each A() within 3 min. from C""",
    ),
    "5 R7": (
        FIRE,
        """define Fire(area: string, measuredTemp: double)
           from Smoke(area=$a) and
                45 < $t=Avg(Temp(area=$a).value within 5 min. from Smoke)
           where area=Smoke.area and measuredTemp=$t""",
    ),
    "5 R8": (
        FIRE,
        """define Fire(area: string, measuredTemp: double)
           from Temp(area=$a and value>45) and not Rain(area=$a) within 5 min. from Temp
           where area=Temp.area and measuredTemp=Temp.value""",
    ),
    "6 R9": (
        POINTS,
        """define ComplexEvent()
           from C(p=$x) and each B(p=$x and v>10) within 8 min. from C and
                last A(p=$x) within 3 min. from B""",
    ),
    "6 R10": (
        "event A(att: int, value: int) event B(att: int, value: int) event C(att: int)\n",
        """define CE(att1: int, att2: int)
           from C(att=$x) and last B(att=$x) within 10000 us from C and
                last A(att=$x) within 10000 us from B
           where att1=$x and att2=Sum(A(att=$x).value within 100000 us from B)""",
    ),
    "7 R11": (
        LETTERS,
        """define CompEvent()
           from A() and last B() within 5 min. from A and last C() within 5 min. from B
                and last D() within 5 min. from C and last E() within 5 min. from D""",
    ),
    "7 R12": (
        LETTERS,
        """define CompEvent()
           from A(v=$x) and last B(v=$x) within 5 min. from A
                and last C() within 5 min. from B""",
    ),
    "7 R13": (
        LETTERS,
        """define CompEvent()
           from A() and last B() within 5 min. from A and last C() within 5 min. from B
                and not D() between C and B""",
    ),
}


def load(place: str) -> RuleSet:
    schemas, text = RULES[place]
    return rules.load(schemas + text)


@pytest.mark.parametrize("place", RULES)
def test_every_rule_is_read_and_printed(place: str) -> None:
    schemas, text = RULES[place]
    checked = load(place)
    assert len(checked.rules) == text.count("define")
    printed = print_file(parse(schemas + text))
    assert parse(printed) == parse(schemas + text)
    assert rules.load(printed) == checked
    for rule, statement in zip(checked.rules, parse(text).statements, strict=True):
        assert parse(rule.text).statements == (statement,)


def test_3_4_a_composition_has_the_structure_of_its_figure() -> None:
    [rule] = load("3.4 composition").rules
    assert [(one.type.name, one.policy, one.window) for one in rule.selected] == [
        ("B", Policy.EACH, Within(5 * MINUTE, 0)),
        ("C", Policy.LAST, Within(3 * MINUTE, 0)),
        ("Dummy", Policy.LAST, Within(6 * MINUTE, 1)),
        ("E", Policy.FIRST, Within(2 * MINUTE, 3)),
    ]
    assert rule.clauses[-1] == Timed(4, Within(8 * MINUTE, 0))


def test_3_4_the_rule_that_defines_and_uses_d_is_a_recursive_one() -> None:
    # As printed, the composition of section 3.4 both selects and defines D (S12).
    text = RULES["3.4 composition"][1].replace("Dummy() as D", "D()")
    [rule] = rules.load(LETTERS.replace("D(v: int)", "D()") + text).rules
    assert [one.type.name for one in rule.selected if one.strict] == ["D"]


def test_3_4_both_negations_bound_their_intervals() -> None:
    [between] = load("3.4 negation between").rules
    [within] = load("3.4 negation within").rules
    assert [one.window for one in between.clauses if isinstance(one, Negated)] == [Between(1, 0)]
    assert [one.window for one in within.clauses if isinstance(one, Negated)] == [
        Within(5 * MINUTE, 0)
    ]


def test_3_4_an_aggregate_is_assigned_or_constrains() -> None:
    [assigned] = load("3.4 AvgTemp").rules
    assert assigned.values[0].function is Function.AVG
    assert assigned.values[0].window == Within(5 * MINUTE, 0)
    assert str(assigned.defines) == "AvgTemp(Val: float)"
    [constraining] = load("3.4 HighVal").rules
    [constraint] = [one for one in constraining.clauses if isinstance(one, Constraint)]
    comparison = constraint.condition
    assert isinstance(comparison, Compare)
    assert comparison.left == AttributeOf(0, 1, Kind.FLOAT)
    assert comparison.right.window == Between(earlier=1, later=0)
    assert str(constraining.defines) == "HighVal(Name: string, Val: float)"


def test_3_4_1_an_iteration_sees_its_own_past() -> None:
    first, again, last = load("3.4.1 iterations").rules
    assert (first.name, again.name, last.name) == ("RepA", "RepA#2", "B")
    [use] = again.selected
    assert use.strict
    assert use.conditions == (
        Compare(
            Comparison.LESS_EQUAL, AttributeOf(1, 1, Kind.FLOAT), AttributeOf(0, 0, Kind.FLOAT)
        ),
    )
    assert again.consuming == (1,)
    assert str(again.defines) == "RepA(Times: int, Val: float)"


def test_5_r2_wind_is_the_earlier_bound_though_named_last() -> None:
    [rule] = load("5 R2").rules
    assert rule.clauses[-1].window == Between(earlier=2, later=0)


def test_5_r7_binds_the_average_before_it_is_compared() -> None:
    [rule] = load("5 R7").rules
    assert [type(clause) for clause in rule.clauses] == [Let, Constraint]


def test_7_r13_the_names_of_between_stand_in_either_order() -> None:
    [rule] = load("7 R13").rules
    assert rule.clauses[-1].window == Between(earlier=2, later=1)


def test_the_slip_in_high_val_is_found() -> None:
    schemas, text = RULES["3.4 HighVal"]
    with pytest.raises(rules.RuleErrors, match="unknown event S"):
        rules.load(schemas + text.replace("Stock.Val", "S.Val"))


def test_windows_need_a_unit() -> None:
    schemas, text = RULES["6 R10"]
    with pytest.raises(rules.RuleErrors, match='expected a duration, like 5 min, found "10000"'):
        rules.load(schemas + text.replace(" us", ""))


def test_names_of_chapter_3_are_plain_nodes() -> None:
    [rule] = parse(RULES["3.4 timers"][1]).statements
    assert isinstance(rule, ast.Rule)
    day = rule.terminator.conditions[2]
    assert day.operands[1] == ast.Attribute(None, ast.Name("Friday"))

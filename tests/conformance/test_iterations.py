"""Iterations: what each sentence of tesla.md X4 says, for every engine."""

import pytest
from cases import run
from engines import OF_MEANING, make
from iteration_cases import iteration_case
from timeline import detect

import rules
from rules.errors import RuleErrors
from runtime.guarded import Side
from runtime.memory import guarding

TYPES = """
event A(k: int)
event B(k: int, x: int, v: float)
"""
DRAWN = (
    "B1=B@1(0, 1, 0) B2=B@2(0, 4, 0) B3=B@3(0, 6, 0) B4=B@4(0, 9, 0) B5=B@5(0, 2, 0) "
    "B6=B@6(0, 5, 0) B7=B@7(0, 3, 0) A=A@8(0)"
)
"""The history that is drawn in the specification."""

each_engine = pytest.mark.parametrize("engine", OF_MEANING)


def found(engine: str, pattern: str, events: str, where: str = "Count(r)") -> list[str]:
    """What a rule with one iteration detects, without times and types."""
    text = f"{TYPES} define Out(n) from A(k = $k) as a and {pattern} where n = {where}"
    return [one.split("(", 1)[1] for one in detect(engine, text, events)]


@each_engine
def test_the_elements_fall_into_runs_each_as_long_as_it_can_be(engine: str):
    pattern = "B(x > previous.x) as r within 9 s from a"
    assert found(engine, f"each 1.. {pattern}", DRAWN) == ["4) <- A B4", "2) <- A B6", "1) <- A B7"]
    assert found(engine, f"each 2.. {pattern}", DRAWN) == ["4) <- A B4", "2) <- A B6"]
    assert found(engine, f"each 3.. {pattern}", DRAWN) == ["4) <- A B4"]
    assert found(engine, f"each 5.. {pattern}", DRAWN) == []


@each_engine
def test_of_a_longer_run_the_last_elements_are_meant(engine: str):
    pattern = "each 2..3 B(x > previous.x) as r within 9 s from a"
    assert found(engine, pattern, DRAWN) == ["3) <- A B4", "2) <- A B6"]
    assert found(engine, pattern, DRAWN, "First(r.x)") == ["4) <- A B4", "2) <- A B6"]


@each_engine
def test_single_selections_choose_among_the_runs_that_count(engine: str):
    for policy, chosen in (("last", "B6"), ("first", "B4"), ("2-last", "B4"), ("2-first", "B6")):
        [one] = found(engine, f"{policy} 2.. B(x > previous.x) as r within 9 s from a", DRAWN)
        assert one.endswith(f"<- A {chosen}")
    assert not found(engine, "3-last 2.. B(x > previous.x) as r within 9 s from a", DRAWN)


@each_engine
def test_without_previous_all_elements_are_one_run(engine: str):
    assert found(engine, "each 1.. B() as r within 9 s from a", DRAWN) == ["7) <- A B7"]
    assert found(engine, "each 1.. B(x > 3) as r within 9 s from a", DRAWN) == ["4) <- A B6"]


@each_engine
def test_other_conditions_leave_events_out_and_break_nothing(engine: str):
    events = "B1=B@1(0, 1, 0) B2=B@2(9, 0, 0) B3=B@3(0, 3, 0) A=A@4(0)"
    [one] = found(engine, "each 2.. B(k = $k, x > previous.x) as r within 9 s from a", events)
    assert one == "2) <- A B3"
    strict = "each 2.. B((k = $k and previous.k = $k), x > previous.x) as r within 9 s from a"
    assert found(engine, strict, events) == []


@each_engine
def test_a_run_lies_in_its_window(engine: str):
    assert found(engine, "each 2.. B(x > previous.x) as r within 5 s from a", DRAWN) == [
        "2) <- A B4",
        "2) <- A B6",
    ]


@each_engine
def test_simultaneous_elements_are_neighbours_in_the_order_of_e4(engine: str):
    events = "B1=B@1(0, 1, 0) B2=B@1(0, 2, 0) B3=B@1(0, 1, 0) B4=B@1(0, 5, 0) A=A@1(0)"
    assert found(engine, "each 1.. B(x > previous.x) as r within 1 s from a", events) == [
        "2) <- A B2",
        "2) <- A B4",
    ]


@each_engine
def test_a_link_that_is_undefined_ends_a_run(engine: str):
    events = "B1=B@1(0, 1, 0) B2=B@2(0, 0, 0) B3=B@3(0, 1, 0) B4=B@4(0, 1, 0) A=A@5(0)"
    pattern = "each 1.. B(1 / x >= 1 / previous.x) as r within 9 s from a"
    assert found(engine, pattern, events) == ["1) <- A B1", "1) <- A B2", "2) <- A B4"]


@each_engine
def test_events_that_other_clauses_have_selected_are_elements(engine: str):
    text = f"""{TYPES} define Out(n) from B() as b and last B() as c within 9 s from b and
        each 1.. B(x > previous.x) as r within 9 s from b where n = Count(r)"""
    events = "B1=B@1(0, 1, 0) B2=B@2(0, 2, 0) B3=B@3(0, 3, 0) B4=B@4(0, 4, 0)"
    assert detect(engine, text, events)[-1] == "Out@4(4) <- B4 B3 B4"


@each_engine
def test_two_runs_of_one_type_have_what_each_of_them_asks_for(engine: str):
    text = f"""{TYPES} define Out(three, five, n) from A() as a and
        last 3..3 B() as f within 9 s from a and last 1..5 B() as g within 9 s from a
        where three = Avg(f.x), five = Avg(g.x), n = Count(g)"""
    events = "B@1(0, 10, 0) B@2(0, 20, 0) B@3(0, 30, 0) B@4(0, 40, 0) B5=B@5(0, 50, 0) A=A@6(0)"
    assert detect(engine, text, events) == ["Out@6(40.0, 30.0, 5) <- A B5 B5"]


@each_engine
def test_the_events_of_a_run_are_left_to_other_clauses(engine: str):
    events = "B1=B@1(0, 1, 0) B2=B@2(0, 2, 0) A=A@3(0)"
    run = "last 2.. B() as r within 9 s from a"
    assert found(engine, f"{run} and each B() as c within 9 s from a", events) == [
        "2) <- A B2 B1",
        "2) <- A B2 B2",
    ]
    assert not found(engine, f"{run} and not B() within 9 s from a", events)
    assert not found(engine, f"{run} and not B() within 500 ms from r", events)
    assert found(engine, f"{run} and not B() between r and a", events) == ["2) <- A B2"]
    assert found(engine, f"{run} and last B() as c within 1 s from r", events) == ["2) <- A B2 B2"]


@each_engine
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("Sum(r.x)", "19"),
        ("Sum(r.x * 2 - 1)", "35"),
        ("Min(r.x)", "4"),
        ("Max(r.x)", "9"),
        ("Avg(r.x)", "6.333333333333333"),
        ("First(r.x)", "4"),
        ("First(r.time)", "2000000"),
        ("First(r.x / (r.x - 4))", "3.0"),
        ("r.x - First(r.x)", "5"),
        ("Count(r.x / (r.x - 4))", "2"),
        ("Sum(r.x + a.k)", "19"),
    ],
)
def test_aggregates_of_a_run_are_of_its_elements(engine: str, value: str, shown: str):
    pattern = "first 3..3 B(x > previous.x) as r within 9 s from a"
    assert found(engine, pattern, DRAWN, value) == [f"{shown}) <- A B4"]


@each_engine
def test_constraints_and_later_clauses_may_ask_for_what_a_run_has(engine: str):
    pattern = "each 1.. B(x > previous.x) as r within 9 s from a and Count(r) in (1, 2)"
    assert found(engine, pattern, DRAWN) == ["2) <- A B6", "1) <- A B7"]
    text = f"{pattern} and not Count(r) > 1 and last B(x > Avg(r.x)) as c within 9 s from a"
    assert found(engine, text, DRAWN) == ["1) <- A B7 B6"]


@each_engine
def test_composite_events_repeat_too_those_of_the_rule_itself_when_they_are_earlier(engine: str):
    text = """event B(k: int, x: int, v: float)
        define Up(n: int) from B() as b and last 1.. Up() as r within 9 s from b where n = Count(r)
        define Up(n: int) from B(x = 0) where n = 0"""
    found = detect(engine, text, "B@1(0, 0, 0) B@2(0, 1, 0) B@3(0, 1, 0)")
    assert [one.split(" <- ")[0] for one in found] == ["Up@1(0)", "Up@2(1)", "Up@3(2)"]


@each_engine
def test_other_events_of_the_rule_may_be_consumed(engine: str):
    text = f"""{TYPES} define Out(n) from A() as a and last B(x = 1) as b within 9 s from a and
        last 1.. B() as r within 9 s from a where n = Count(r) consuming b"""
    events = "B1=B@1(0, 1, 0) B2=B@2(0, 2, 0) B3=B@3(0, 1, 0) A1=A@4(0) A2=A@5(0) A3=A@6(0)"
    assert detect(engine, text, events) == ["Out@4(3) <- A1 B3 B3", "Out@5(2) <- A2 B1 B2"]


@each_engine
def test_the_events_of_a_run_are_consumed(engine: str):
    text = f"""{TYPES} define Out(n) from A() as a and
        last 2.. B(x > previous.x) as r within 9 s from a where n = Count(r) consuming r"""
    events = f"{DRAWN} A2=A@8.25(0) A3=A@8.5(0) A4=A@9(0)"
    assert detect(engine, text, events) == [
        "Out@8(2) <- A B6 B5",
        "Out@8.25(4) <- A2 B4 B3 B2 B1",
    ]


@each_engine
def test_what_a_run_leaves_makes_neighbours_of_the_others(engine: str):
    text = f"""{TYPES} define Out(n) from A() as a and
        last 2.. B(x = previous.x) as r within 9 s from a where n = Count(r) consuming r"""
    events = (
        "B1=B@1(0, 5, 0) B2=B@2(0, 7, 0) B3=B@3(0, 7, 0) B4=B@4(0, 5, 0) A=A@5(0) C=A@6(0) D=A@7(0)"
    )
    assert detect(engine, text, events) == ["Out@5(2) <- A B3 B2", "Out@6(2) <- C B4 B1"]


@each_engine
def test_of_a_longer_run_the_elements_that_are_meant_are_consumed(engine: str):
    """With the other events of the match, and those of a second run."""
    text = f"""{TYPES} define Out(n, m) from A() as a and last 2..2 B() as r within 9 s from a and
        last 1..1 B(x < 3) as s within 9 s from a and first B() as b within 9 s from a
        where n = Count(r), m = Count(s) consuming r, s, b"""
    events = f"{DRAWN} A2=A@9(0) A3=A@9.5(0)"
    assert detect(engine, text, events) == [
        "Out@8(2, 1) <- A B7 B5 B1 B6",
    ]


@each_engine
def test_a_consumed_run_is_no_longer_counted_nor_found_by_aggregates(engine: str):
    text = f"""{TYPES} define Out(n) from A() as a and
        each 2.. B(x > previous.x) as r within 9 s from a
        where n = Count(B() within 9 s from a) consuming r"""
    events = f"{DRAWN} B8=B@8(0, 4, 0) A2=A@9(0) A3=A@10(0)"
    assert detect(engine, text, events) == [
        "Out@8(8) <- A B4 B3 B2 B1",
        "Out@8(8) <- A B6 B5",
        "Out@8(8) <- A B8 B7",
    ]


@each_engine
def test_what_one_form_of_a_rule_consumes_is_gone_for_the_other(engine: str):
    text = f"""{TYPES} event C(k: int) define Out(n) from A() or C() as e and
        last 2..2 B() as r within 9 s from e where n = Count(r) consuming r"""
    events = (
        "B1=B@1(0, 1, 0) B2=B@2(0, 2, 0) B3=B@3(0, 3, 0) C=C@4(0) A=A@5(0) B4=B@6(0, 1, 0) D=A@7(0)"
    )
    assert detect(engine, text, events) == ["Out@4(2) <- C B3 B2", "Out@7(2) <- D B4 B1"]


HOT = "B1=B@1(0, 30, 0) B2=B@2(0, 31, 0) B3=B@3(0, 10, 0) B4=B@4(0, 11, 0) A=A@5(0)"


@each_engine
def test_while_is_asked_of_every_event_of_a_run_and_breaks_it(engine: str):
    pattern = "B(while x > 25) as r within 9 s from a"
    assert found(engine, f"each 1.. {pattern}", HOT) == ["2) <- A B2"]
    assert found(engine, f"each 2.. {pattern}", HOT) == ["2) <- A B2"]
    assert not found(engine, f"each 3.. {pattern}", HOT)
    assert found(engine, "each 1.. B(while x < 25) as r within 9 s from a", HOT) == ["2) <- A B4"]
    both = "each 1.. B(x != 10, while x > 10, while x > previous.x) as r within 9 s from a"
    assert found(engine, both, HOT) == ["2) <- A B2", "1) <- A B4"]
    assert found(engine, "last 1.. B(while k = $k) as r within 9 s from a", HOT) == ["4) <- A B4"]


@each_engine
def test_while_leaves_no_event_out(engine: str):
    events = "B1=B@1(0, 30, 0) B2=B@2(0, 10, 0) B3=B@3(0, 30, 0) A=A@5(0)"
    run = "each 1.. B(while x > 25) as r within 9 s from a"
    assert found(engine, run, events) == ["1) <- A B1", "1) <- A B3"]
    assert found(engine, "each 1.. B(x > 25) as r within 9 s from a", events) == ["2) <- A B3"]


def test_while_is_a_name_where_it_is_no_word():
    text = """event while(while: int, x: int)
        define Out(n) from while(while > 1, while = 2 and while prefix "a") as a
        where n = a.while"""
    assert problems_of(text) == ["prefix compares strings, not an int"]
    assert problems("last B(while x > 1) as b within 1 s from A") == ["while is of an iteration"]


BOUNDS = "an iteration's bounds are from 1 to 2147483647, the least first"
REFUSED = {
    "each 0..2 B() as r": BOUNDS,
    "each 3..2 B() as r": BOUNDS,
    "each 2.5.. B() as r": "an iteration's bounds are whole numbers",
    "each 2.. B(k = $x) as r": "parameter $x is used before it is bound",
    "each 2.. B(v > previous.w) as r": "B has no attribute w",
    "each B(x > previous.x) as r": "unknown event previous",
    "each 2.. B() or N() as r": "an iteration is of events of one type",
    "each 2.. B(x > previous.x + Count(A() within 1 s from A)) as r": (
        "neighbours are compared without aggregates"
    ),
    "each 2.. Timer(S = 1) as r": "a Timer may only be a terminator, not selected",
}
REFUSED_BEHIND = {
    "and Count(A) > 2": "Count ranges over no iteration",
    "and Avg(r) > 2": "Avg needs an attribute",
    "and Avg(r.x within 1 s from A) > 2": "an aggregate over a run has no window",
    "and Avg(r.y) > 2": "B has no attribute y",
    "and Count(B()) > 2": "Count has no window",
    "and First(B().x within 1 s from A) > 2": "First is of an iteration",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_refused(pattern: str):
    assert problems(f"{pattern} within 1 s from A") == [REFUSED[pattern]]


@pytest.mark.parametrize("rest", REFUSED_BEHIND)
def test_what_is_refused_of_a_run(rest: str):
    assert problems(f"each 2.. B() as r within 1 s from A {rest}") == [REFUSED_BEHIND[rest]]


def test_what_is_aggregated_over_a_run_is_asked_for():
    pattern = "each 2.. N({}) as r within 1 s from A and Avg(r.x) > 2"
    assert problems(pattern.format("")) == ["what is aggregated over a run may be null"]
    assert problems(pattern.format("x is not null")) == []
    assert problems(pattern.format("while x > 2")) == []


def problems(pattern: str) -> list[str]:
    """The messages for a rule with such clauses."""
    return problems_of(f"{TYPES} event N(x: int?) define Out() from A() and {pattern}")


def problems_of(text: str) -> list[str]:
    """The messages for a text."""
    try:
        rules.load(text)
    except RuleErrors as error:
        return [one.message for one in error.problems]
    return []


def test_elements_that_nobody_has_sent_yet_have_no_list():
    """Asked for the record of that list, the process crashed or not, by what stood there."""
    case = iteration_case(37)
    with guarding(Side.FRONT):
        found, expected = run(case, make("aip")), run(case, make("naive"))
    assert [len(one) for one in found.advances] == [len(one) for one in expected.advances]

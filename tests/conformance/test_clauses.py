"""Small histories that show each clause of tesla.md sections 1, 3 and 4, for every engine."""

import json

import numpy as np
import pytest
from engines import OF_MEANING, make
from timeline import SOURCE, detect, history, push, written

import rules
from matcher.identity import composite_key, event_key, printed, rule_key
from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, EventBatch, EventIds, StringColumn
from matcher.rows import batch_of
from rules.engine.conflict import Conflict
from rules.engine.engine import Detector
from rules.errors import RuleErrors
from rules.pattern import RuleSet

pytestmark = pytest.mark.parametrize("engine", OF_MEANING)

TYPES = """
event A(x: int, v: float, s: string)
event B(x: int, v: float, s: string)
event C(x: int)
"""
INT_MAX = 2**63 - 1
END = 'A@9(0, 0, "")'


def deployed(engine: str, text: str) -> tuple[Detector, RuleSet]:
    ruleset = rules.load(TYPES + text)
    detector = make(engine)
    detector.deploy(ruleset)
    return detector, ruleset


def found(engine: str, text: str, events: str) -> list[str]:
    return detect(engine, TYPES + text, events)


def values(engine: str, expression: str, kind: str, events: str) -> list[object]:
    """The values of an expression over A, as the attribute of a composite event."""
    text = f"define Out(y: {kind}) from A() where y = {expression}"
    return [json.loads(one.split("(")[1].split(")")[0]) for one in found(engine, text, events)]


# --- E: events -----------------------------------------------------------------------------------


def test_e1_a_repeat_is_dropped_and_counted(engine: str):
    detector, ruleset = deployed(engine, "define Out() from A()")
    for _ in range(2):
        push(detector, history('A1=A@1(1, 1, "a") A@2(1, 1, "a")', ruleset), ruleset)
    assert len(detector.advance(TIME_MAX)) == 2
    assert detector.duplicates == 2


def test_e1_another_event_of_an_id_is_dropped_and_told_from_a_repeat(engine: str):
    detector, ruleset = deployed(engine, "define Out() from A()\ndefine Also() from C()")
    for x, identity in ((1, "e"), (1, "e"), (2, "e"), (1, "7"), (2, "7")):
        batch = batch_of(ruleset.schemas["C"], [{"x": x}], source="s", times=[5], ids=[identity])
        detector.push(batch)
    assert (detector.duplicates, detector.conflicts) == (3, 2)
    assert detector.take_conflict() == Conflict("s", "e", "C", 5, 5)
    push(detector, history('e=A@1(1, 1, "a")', ruleset), ruleset)
    assert detector.take_conflict() is None  # another source
    found = [event.type for event in detector.advance(TIME_MAX).events()]
    assert sorted(found) == ["Also", "Also", "Out"]


def test_e1_the_same_id_of_another_source_is_another_event(engine: str):
    detector, ruleset = deployed(engine, "define Out() from C()")
    for source in ("one", "two"):
        detector.push(batch_of(ruleset.schemas["C"], [{"x": 1}], source=source, times=[5]))
    assert len(detector.advance(TIME_MAX)) == 2
    assert detector.duplicates == 0


def test_e4_simultaneous_events_go_by_source_in_bytes_and_then_by_number(engine: str):
    detector, ruleset = deployed(
        engine, "define Out(x) from A() and last C() within 1 s from A where x = C.x"
    )
    schema = ruleset.schemas["C"]
    # In bytes "Z" < "a" < "é"; the greatest number of the last source is the last event.
    for x, (source, number) in enumerate([("é", 1), ("é", 2), ("a", 9), ("Z", 99)]):
        detector.push(
            batch_of(schema, [{"x": x}], source=source, first_sequence=number, times=[MICROSECONDS])
        )
    push(detector, history('A@1(0, 0, "")', ruleset), ruleset)
    assert [event.data["x"] for event in detector.advance(TIME_MAX).events()] == [1]


def last_of(engine: str, text: str, terminator: str, *batches: EventBatch) -> list[int]:
    """What a rule finds at the instant 5 of all these, and of a terminator that comes last."""
    detector, ruleset = deployed(engine, text)
    for batch in batches:
        detector.push(batch)
    push(detector, history(f'{terminator}@0.000005(0, 0, "")', ruleset), ruleset)
    return [event.data["x"] for event in detector.advance(TIME_MAX).events()]


def simultaneous(type_: str, x: int, *, source: str, id_: str | None, sequence: int) -> EventBatch:
    ids = None if id_ is None else [id_]
    schema, values = rules.load(TYPES).schemas[type_], {"x": x, "v": 0.0, "s": ""}
    row = {name: values[name] for name in schema.names}
    return batch_of(schema, [row], source=source, first_sequence=sequence, times=[5], ids=ids)


@pytest.mark.parametrize(
    ("one", "other"), [("x", "y"), ("10", "9"), ("a", "\u00e9"), (None, "x"), ("-1", None)]
)
def test_e4_the_id_settles_what_source_and_number_leave_open(
    engine: str, one: str | None, other: str | None
):
    text = "define Out(x) from A() and last C() within 1 s from A where x = C.x"
    first = simultaneous("C", 1, source="s", id_=one, sequence=7)
    second = simultaneous("C", 2, source="s", id_=other, sequence=7)
    assert last_of(engine, text, "A", first, second) == [2]
    assert last_of(engine, text, "A", second, first) == [2]


def test_e4_the_id_settles_it_among_events_of_either_type(engine: str):
    text = "define Out(x) from A() and last B() or C() as e within 1 s from A where x = e.x"
    for first, second in (("B", "C"), ("C", "B")):
        lesser = simultaneous(first, 1, source="s", id_="x", sequence=7)
        greater = simultaneous(second, 2, source="s", id_="y", sequence=7)
        assert last_of(engine, text, "A", lesser, greater) == [2]
        assert last_of(engine, text, "A", greater, lesser) == [2]


def test_e4_the_id_settles_it_among_terminators(engine: str):
    text = "define Out(x) from C() and last A() within 1 s from C where x = C.x"
    first = simultaneous("C", 1, source="s", id_="x", sequence=7)
    second = simultaneous("C", 2, source="s", id_="y", sequence=7)
    assert last_of(engine, text, "A", second, first) == [1, 2]


def test_e4_the_sources_of_rules_are_names_like_others_for_primitive_events(engine: str):
    text = "define Out(x) from A() and last C() within 1 s from A where x = C.x"
    warm = simultaneous("C", 2, source="rexmq/rule/warm", id_="y", sequence=1)
    hot = simultaneous("C", 1, source="rexmq/rule/hot", id_="x", sequence=2)
    assert last_of(engine, text, "A", warm, hot) == [2]
    assert last_of(engine, text, "A", hot, warm) == [2]
    later = simultaneous("C", 3, source="s", id_="x", sequence=0)
    assert last_of(engine, text, "A", later, warm) == [3]
    earlier = simultaneous("C", 4, source="a", id_="z", sequence=9)
    assert last_of(engine, text, "A", warm, earlier) == [2]


def test_e4_composite_events_of_other_engines_come_before_those_of_rules_here(engine: str):
    detector, ruleset = deployed(
        engine,
        """define Own(x) from C() where x = C.x
           define Out(x) from A() and last Own() or B() as e within 1 s from A where x = e.x""",
    )
    source, digest = StringColumn.constant("rexmq/rule/B", 1), np.ones((1, 2), np.uint64)
    ids = EventIds(source, np.array([3]), None, digest)
    values = np.array([1]), np.array([0.0]), StringColumn.from_strings([""])
    detector.push(EventBatch(ruleset.schemas["B"], np.array([5]), ids, values))
    detector.push(simultaneous("C", 2, source="s", id_=None, sequence=1))
    push(detector, history('A@0.000005(0, 0, "")', ruleset), ruleset)
    found = [one.data["x"] for one in detector.advance(TIME_MAX).events() if one.type == "Out"]
    assert found == [2]


def test_e4_composite_events_stand_by_rule_and_then_by_causes(engine: str):
    text = """
    define Second() from Timer(S >= 0) and each C() within 9 s from Timer
    define First() from A() and each C() within 9 s from A
    """
    events = 'C2=C@1(2) C1=C@0.5(1) A1=A@2(1, 1, "") A2=A@2(1, 1, "")'
    assert [one for one in found(engine, text, events) if "@2(" in one] == [
        "Second@2() <- timer/2 C1",
        "Second@2() <- timer/2 C2",
        "First@2() <- A1 C1",
        "First@2() <- A1 C2",
        "First@2() <- A2 C1",
        "First@2() <- A2 C2",
    ]


# --- S1 to S5: selection -------------------------------------------------------------------------


def test_s1_both_ends_of_a_window_are_included(engine: str):
    text = "define Out() from A() and each C() within 5 s from A"
    events = 'C@0.999999(1) C2=C@1(1) C3=C@6(1) C@6.000001(1) A=A@6(1, 1, "")'
    assert found(engine, text, events) == ["Out@6() <- A C2", "Out@6() <- A C3"]


def at_times(engine: str, text: str, **times: int) -> list[str]:
    """What rules find of one event of each type, with these times in microseconds."""
    detector, ruleset = deployed(engine, text)
    for name, time in times.items():
        row = dict.fromkeys(ruleset.schemas[name].names, 1)
        row = {key: "" if key == "s" else value for key, value in row.items()}
        detector.push(batch_of(ruleset.schemas[name], [row], source=name, times=[time]))
    return [f"{one.type} {' '.join(one.cause_full)}" for one in detector.advance(TIME_MAX).events()]


@pytest.mark.parametrize("policy", ["each", "last", "first"])
def test_s1_a_window_may_begin_before_all_times(engine: str, policy: str):
    text = f"define Out() from A() and {policy} B() within 5 s from A"
    assert at_times(engine, text, B=TIME_MIN, A=TIME_MIN + 700_000) == ["Out A#1 B#1"]
    assert at_times(engine, text, B=TIME_MIN, A=TIME_MIN + 5_000_001) == []
    text = "define Out() from A() and not B() within 5 s from A"
    assert at_times(engine, text, B=TIME_MIN, A=TIME_MIN + 700_000) == []


def test_s1_windows_of_a_chain_may_reach_beyond_all_times_together(engine: str):
    text = """define Out() from A() and each B() within 4611686018427387904 us from A
              and 1-first C() within 3074457345618258432 us from B"""
    late, day = -2_049_638_230_412_172_288, 86_400 * MICROSECONDS
    middle = late - 4_611_686_018_427_387_904
    assert at_times(engine, text, C=TIME_MIN + day, B=middle, A=late) == ["Out A#1 B#1 C#1"]
    assert at_times(engine, text, C=TIME_MIN, B=middle, A=late) == ["Out A#1 B#1 C#1"]
    assert at_times(engine, text, C=TIME_MIN, B=middle - 1, A=late) == []


def test_s1_the_events_of_a_match_are_distinct(engine: str):
    text = """define Out() from C() as c and each C() as b within 5 s from c
              and each C() as a within 5 s from c"""
    assert found(engine, text, "C1=C@1(1) C2=C@1(1) C3=C@1(1)") == [
        f"Out@1() <- C{c} C{b} C{a}"
        for c in (1, 2, 3)
        for b in (1, 2, 3)
        for a in (1, 2, 3)
        if len({a, b, c}) == 3
    ]


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [("first", "1"), ("last", "4"), ("2-first", "2"), ("2-last", "3"), ("4-last", "1")],
)
def test_s2_single_selection_by_time_and_order(engine: str, policy: str, chosen: str):
    text = f"define Out() from A() and {policy} C() within 5 s from A"
    # 2 and 3 are simultaneous: their numbers order them.
    events = 'C0=C@0(1) C1=C@2(1) C2=C@3(1) C3=C@3(1) C4=C@4(1) A=A@6(1, 1, "")'
    assert found(engine, text, events) == [f"Out@6() <- A C{chosen}"]
    assert found(engine, text.replace(policy, "5-last"), events) == []


def test_s3_single_selection_is_among_the_events_that_satisfy_the_clause(engine: str):
    text = "define Out() from A(x = $x) and last C(x > $x) within 5 s from A and C.x < 9"
    assert found(engine, text, 'C5=C@1(5) C1=C@2(1) A=A@3(2, 1, "")') == ["Out@3() <- A C5"]
    # A later clause filters; it does not make ``last`` choose the 5.
    assert found(engine, text, 'C5=C@1(5) C9=C@2(9) A=A@3(2, 1, "")') == []


def test_s3_events_selected_before_are_no_candidates(engine: str):
    text = "define Out() from C() as c and last C() as b within 9 s from c"
    assert found(engine, text, "C1=C@1(1) C2=C@2(1)") == ["Out@2() <- C2 C1"]


def test_s4_simultaneous_events_follow_one_another_in_either_order(engine: str):
    text = """define Out() from A() and each B() within 1 s from A
              and each C() within 1 s from B"""
    events = 'A=A@1(1, 1, "") C=C@1(1) B=B@1(1, 1, "")'
    assert found(engine, text, events) == ["Out@1() <- A B C"]


def test_s5_a_parameter_means_equal_values_and_any_comparison(engine: str):
    text = """define Out() from A(x = $x, s = $s)
              and each B(s = $s, v >= $x, x * 2 < $x) within 9 s from A"""
    events = """B1=B@1(1, 3, "a") B2=B@1(1, 2.75, "a") B3=B@1(1, 3, "b") B4=B@1(2, 3, "a")
                A=A@2(3, 0, "a")"""
    assert found(engine, text, events) == ["Out@2() <- A B1"]


# --- S6 to S8: negation, time, aggregates --------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "fires"), [(0.999999, True), (1, False), (6, False), (6.000001, True)]
)
def test_s6_not_within_includes_both_ends(engine: str, time: float, fires: bool):
    text = "define Out() from A() and not C() within 5 s from A"
    assert bool(found(engine, text, f'A@6(1, 1, "") C@{time}(1)')) is fires


@pytest.mark.parametrize(("time", "fires"), [(2, True), (2.000001, False), (6, False)])
@pytest.mark.parametrize("names", ["A and B", "B and A"])
def test_s6_not_between_is_open_at_the_earlier(engine: str, time: float, fires: bool, names: str):
    text = f"define Out() from A() and each B() within 5 s from A and not C() between {names}"
    assert bool(found(engine, text, f'A@6(1, 1, "") B@2(1, 1, "") C@{time}(1)')) is fires


def test_s6_events_of_the_match_do_not_count(engine: str):
    """The events of later clauses too: each of two matches is spoilt by the other's C."""
    text = """define Out() from A() and not C() within 5 s from A
              and each C() within 5 s from A"""
    assert found(engine, text, 'C1=C@1(1) A=A@2(1, 1, "")') == ["Out@2() <- A C1"]
    assert found(engine, text, 'C1=C@1(1) C2=C@1(1) A=A@2(1, 1, "")') == []


def test_s7_an_event_selected_before_can_be_bound_in_time(engine: str):
    text = """define Out() from A() and each B() within 5 s from A
              and each C() within 5 s from B and C within 6 s from A"""
    events = 'C1=C@3(1) C2=C@4(1) B=B@8(1, 1, "") A=A@10(1, 1, "")'
    assert found(engine, text, events) == ["Out@10() <- A B C2"]


def test_s8_aggregates_include_both_ends_and_the_match(engine: str):
    text = """define Out(n, m) from A() and last C() within 9 s from A
              where n = Count(C() within 5 s from A), m = Sum(C(x > 0).x) between C and A"""
    events = 'C@0(1) C@1(2) C@3(3) C@6(5) A=A@6(1, 1, "") C@6(7) C@7(9)'
    assert [one.split(" <- ")[0] for one in found(engine, text, events)] == ["Out@6(4, 12)"]


def test_s8_aggregates_of_nothing(engine: str):
    alone = 'A@9(1, 1, "")'

    def value(aggregate: str, kind: str) -> list[object]:
        return values(engine, f"{aggregate} within 1 s from A", kind, alone)

    assert value("Count(B())", "int") == [0]
    assert value("Sum(B().x)", "int") == [0]
    assert value("Sum(B().v)", "float") == [0.0]
    for function in ("Avg", "Min", "Max", "StdDev"):
        assert value(f"{function}(B().v)", "float") == []
    assert value("Min(B().s)", "string") == []


def test_s8_each_function(engine: str):
    events = 'B@1(1, 0.5, "b") B@2(3, 1.5, "ab") B@3(8, 4, "é") A@3(0, 0, "")'

    def value(aggregate: str, kind: str) -> object:
        return values(engine, f"{aggregate} within 9 s from A", kind, events)[0]

    assert value("Sum(B().x)", "int") == 12
    assert value("Min(B().x)", "int") == 1
    assert value("Max(B().x)", "int") == 8
    assert value("Avg(B().x)", "float") == 4.0
    assert value("Avg(B().v)", "float") == 2.0
    assert value("StdDev(B().x)", "float") == 2.943920288775949  # the root of 26 / 3
    assert value("StdDev(B().v)", "float") == 1.4719601443879744  # of 6.5 / 3
    assert value("Min(B().s)", "string") == "ab"
    assert value("Max(B().s)", "string") == "é"


@pytest.mark.parametrize(
    ("aggregate", "numbers", "expected"),
    [
        ("Avg", "0.1 0.2 0.3", 0.2),  # the float nearest to the sum gives less
        ("StdDev", "6.4 67.3 45.8", 25.21776269924744),
        ("Avg", "1e308 1e308 1e308", 1e308),  # whatever the sum
        ("StdDev", "1.7976931348623157e308 -1.7976931348623157e308", 1.7976931348623157e308),
        ("Avg", "5e-324 1e-323", 1e-323),  # halfway, to the even one
        ("Avg", "-5e-324 0.0", -0.0),
        ("Avg", "-0.0 -0.0", 0.0),
        ("Sum", "-0.0 -0.0", 0.0),
        ("StdDev", "0.1 0.1 0.1", 0.0),
    ],
)
def test_s8_what_is_exact_is_rounded_once(
    engine: str, aggregate: str, numbers: str, expected: float
):
    events = " ".join(f'B@{time}(0, {one}, "")' for time, one in enumerate(numbers.split()))
    (found,) = values(engine, f"{aggregate}(B().v) within 9 s from A", "float", f"{events} {END}")
    assert repr(found) == repr(expected)


@pytest.mark.parametrize(
    ("aggregate", "numbers", "expected"),
    [
        ("Avg", "9007199254740993 9007199254740993 9007199254740994", 2.0**53 + 2),
        ("Avg", "9223372036854775807 9223372036854775807 9223372036854775807", 2.0**63),
        ("StdDev", "9223372036854775807 -9223372036854775808", 2.0**63),
    ],
)
def test_s8_averages_of_ints_are_those_of_exact_sums(
    engine: str, aggregate: str, numbers: str, expected: float
):
    """A sum beyond 64 bits, which is undefined by itself (S9), has an average all the same."""
    events = " ".join(f'B@{time}({one}, 0, "")' for time, one in enumerate(numbers.split()))
    found = values(engine, f"{aggregate}(B().x) within 9 s from A", "float", f"{events} {END}")
    assert found == [expected]


@pytest.mark.parametrize("zeros", ["0.0 -0.0", "-0.0 0.0"])
def test_s8_extremes_tell_the_zeros_apart_whichever_came_first(engine: str, zeros: str):
    """They are equal, but their digits differ, and so do checksums of what holds them."""
    events = " ".join(f'B@{place}(0, {zero}, "")' for place, zero in enumerate(zeros.split()))
    events += ' A@2(0, 0, "")'
    least, greatest = (
        values(engine, f"{function}(B().v within 9 s from A)", "float", events)[0]
        for function in ("Min", "Max")
    )
    assert (str(least), str(greatest)) == ("-0.0", "0.0")


def test_s8_sums_are_exact_where_partial_sums_are(engine: str):
    """A prefix sum that began with the large values would have lost the small ones."""
    events = " ".join(f'B@{second}(0, {2.0**60}, "")' for second in range(5))
    events += ' B@50(0, 0.25, "") B@51(0, 0.5, "") A@52(0, 0, "")'
    assert values(engine, "Sum(B().v) within 5 s from A", "float", events) == [0.75]
    assert values(engine, "Avg(B().v) within 5 s from A", "float", events) == [0.375]


# --- S9, S10: values -----------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["A.x / B.x", "A.x % B.x", "B.v / B.x", "B.v % 0"])
def test_s9_division_by_zero_emits_and_consumes_nothing(engine: str, where: str):
    text = f"""define Out(y: float) from A() and last B(x < 5) within 9 s from A
              where y = {where} consuming B
              define Seen() from B()"""
    events = 'B1=B@1(1, 1, "") B0=B@2(0, 1, "") A1=A@3(4, 1, "") A2=A@4(4, 1, "")'
    assert found(engine, text, events) == ["Seen@1() <- B1", "Seen@2() <- B0"]


@pytest.mark.parametrize(
    "expression", ["A.x + 1", "A.x * 2", "-(0 - A.x - 1) + 0", "Sum(A().x within 9 s from A)"]
)
def test_s9_integer_overflow_is_undefined(engine: str, expression: str):
    events = f'A@1({INT_MAX}, 1, "") A@2({INT_MAX}, 1, "")'
    sums = "Sum" in expression
    assert values(engine, expression, "int", events) == ([INT_MAX] if sums else [])


def test_s9_an_or_with_a_true_side_is_true(engine: str):
    text = "define Out() from A() and (1 / A.x > 0 or A.v > 0)"
    assert found(engine, text, 'A1=A@1(0, 1, "") A0=A@2(0, 0, "")') == ["Out@1() <- A1"]
    assert found(engine, text.replace("(1", "not (1"), 'A0=A@2(0, 0, "") A1=A@2(0, 1, "")') == []


def test_s9_in_its_own_condition_only_the_candidate_fails(engine: str):
    text = "define Out() from A() and last B(6 / x > 1) within 9 s from A"
    events = 'B1=B@1(3, 0, "") B2=B@2(0, 0, "") A=A@3(1, 1, "")'
    assert found(engine, text, events) == ["Out@3() <- A B1"]
    absent = "define Out() from A() and not B(6 / x > 1) within 9 s from A"
    assert found(engine, absent, 'B2=B@2(0, 0, "") A=A@3(1, 1, "")') == ["Out@3() <- A"]


@pytest.mark.parametrize(
    ("expression", "kind", "expected"),
    [
        ("A.x / 2", "float", [3.5]),
        ("A.x % (-3)", "int", [-2]),
        ("-A.x % 3", "int", [2]),
        ("-A.v % 2.0", "float", [1.5]),
        ("A.x", "float", [7.0]),
    ],
)
def test_s10_division_remainder_and_conversion(
    engine: str, expression: str, kind: str, expected: list[object]
):
    assert values(engine, expression, kind, 'A@1(7, 2.5, "")') == expected


def test_s10_int_and_float_compare_by_value(engine: str):
    """2**53 + 1 is no float: compared as floats the two would be equal."""
    text = "define Out() from A(x = v)"
    exact = 2**53
    assert found(engine, text, f'A@1({exact + 1}, {float(exact)}, "")') == []
    assert len(found(engine, text, f'A@1({exact}, {float(exact)}, "")')) == 1
    assert len(found(engine, "define Out() from A(x < v)", f'A@1({INT_MAX}, {2.0**63}, "")')) == 1


def test_s10_strings_compare_by_code_point_and_by_part(engine: str):
    def holds(condition: str) -> bool:
        return bool(found(engine, f"define Out() from A({condition})", 'A@1(0, 0, "Zebra")'))

    assert holds('s < "a"')
    assert holds('s < "é"')
    assert holds('s prefix "Ze"')
    assert holds('s suffix "bra"')
    assert holds('s contains ""')
    assert not holds('s contains "zeb"')
    assert holds('s > "Zebr"')


# --- S11, S12: consumption, hierarchies ----------------------------------------------------------


def test_s11_consumed_events_are_gone_in_every_role_of_the_rule(engine: str):
    text = """define Out(n) from A() and last C(x > 5) as big within 9 s from A
              where n = Count(C() within 9 s from A) consuming big"""
    events = 'C@1(9) C@2(1) C@3(8) A1=A@4(1, 1, "") A2=A@5(1, 1, "") A3=A@6(1, 1, "")'
    assert [one.split(" <- ")[0] for one in found(engine, text, events)] == ["Out@4(3)", "Out@5(2)"]


def test_s11_a_consumed_event_no_longer_negates(engine: str):
    text = """define Out() from A(x = $x) and each C(x >= $x) as c within 9 s from A
              and not C(x < 0) within 9 s from A consuming c"""
    events = 'C1=C@1(-1) A1=A@2(-1, 1, "") C2=C@3(5) A2=A@4(1, 1, "")'
    assert found(engine, text, events) == ["Out@2() <- A1 C1", "Out@4() <- A2 C2"]


def test_s11_all_matches_of_one_instant_see_the_same_history(engine: str):
    text = "define Out() from A() and last C() within 9 s from A consuming C"
    events = 'C=C@1(1) A1=A@2(1, 1, "") A2=A@2(1, 1, "") A3=A@3(1, 1, "")'
    assert found(engine, text, events) == ["Out@2() <- A1 C", "Out@2() <- A2 C"]


def test_s12_a_composite_event_counts_at_its_own_instant_for_rules_above(engine: str):
    text = """
    define Top() from Middle(n > 0) and not Low() within 1 s from Middle
    define Middle(n) from A() where n = Count(Low() within 1 s from A)
    define Low() from C()
    """
    assert found(engine, text, 'C1=C@1(1) A1=A@1(1, 1, "")') == [
        "Middle@1(1) <- A1",
        "Low@1() <- C1",
    ]


def test_s12_within_a_cycle_only_earlier_events_are_seen(engine: str):
    text = """
    define N(n) from C() where n = 1
    define N(n) from C() and last N() within 9 s from C where n = N.n + 1
    """
    found_events = found(engine, text, "C@1(1) C@1(1) C@2(1)")
    assert [one.split(" <- ")[0] for one in found_events] == [
        "N@1(1)",
        "N@1(1)",
        "N@2(1)",
        "N@2(2)",
    ]


def test_s12_a_type_may_be_published_and_defined(engine: str):
    text = "define C(x: int) from A() where x = A.x define Out(x) from C() where x = C.x"
    one = found(engine, text, 'C@1(5) A@2(6, 1, "")')
    assert [text.split(" <- ")[0] for text in one] == ["Out@1(5)", "C@2(6)", "Out@2(6)"]


def test_s12_a_cycle_of_terminators_across_deployments_is_refused(engine: str):
    text = "event Q() define P() from Q() define P() from A()"
    detector, ruleset = deployed(engine, text)
    closing = rules.load("define Q() from P()", known=ruleset.schemas)
    with pytest.raises(RuleErrors):
        detector.deploy(closing)
    assert set(detector.marks) == {rule.name for rule in ruleset.rules}
    push(detector, history('A@1(1, 1, "")', ruleset), ruleset)
    assert len(detector.advance(TIME_MAX)) == 1


# --- S13: timers ---------------------------------------------------------------------------------


def test_s13_timers_tick_from_the_least_to_the_greatest_time(engine: str):
    text = "define Tick() from Timer(S % 2 = 0)"
    assert found(engine, text, "C@3.5(1) C@8(1)") == [
        "Tick@4() <- timer/4",
        "Tick@6() <- timer/6",
        "Tick@8() <- timer/8",
    ]


def test_s13_a_tick_carries_the_calendar(engine: str):
    text = "define Now(day, month, H, M) from Timer(M = 30, D = Monday, month = 2) " + (
        "where day = Timer.day, month = Timer.month, H = Timer.H, M = Timer.M"
    )
    one_minute = 60 * (30 + 60 * 5)
    monday = 86_400 * (31 + 1)  # 2 February 1970
    found_events = found(engine, text, f"C@{monday + one_minute - 60}(1) C@{monday + 23_400}(1)")
    assert [one.split(" <- ")[0].split("(")[1] for one in found_events] == [
        "2, 2, 5, 30)",
        "2, 2, 6, 30)",
    ]


# --- S14, S15: order of arrival, lifetime --------------------------------------------------------


def test_s14_an_instant_is_evaluated_once_its_mark_has_passed(engine: str):
    detector, ruleset = deployed(engine, "define Out() from A() and each C() within 9 s from A")
    push(detector, history('C1=C@1(1) A1=A@2(1, 1, "")', ruleset), ruleset)
    assert len(detector.advance(2 * MICROSECONDS)) == 0
    push(detector, history("C2=C@1.5(1) C3=C@2(1)", ruleset), ruleset)
    assert written(detector.advance(2 * MICROSECONDS + 1).events()) == [
        "Out@2() <- A1 C1",
        "Out@2() <- A1 C2",
        "Out@2() <- A1 C3",
    ]
    assert len(detector.advance(TIME_MAX)) == 0


def test_s14_an_event_older_than_the_mark_is_selected_but_never_terminates(engine: str):
    detector, ruleset = deployed(engine, "define Out() from A() and each C() within 9 s from A")
    detector.advance(5 * MICROSECONDS)
    push(detector, history('C1=C@1(1) A1=A@2(1, 1, "") A2=A@6(1, 1, "")', ruleset), ruleset)
    assert written(detector.advance(TIME_MAX).events()) == ["Out@6() <- A2 C1"]


def test_s14_each_rule_has_the_mark_of_its_types(engine: str):
    text = """rule low: define L() from A()
              rule high: define H() from L() and not C() within 1 s from L"""
    detector, _ = deployed(engine, text)
    detector.advance({"A": 7})
    assert detector.marks["low"] == 7
    assert detector.marks["high"] < 0
    detector.advance({"C": 5})
    assert detector.marks == {"low": 7, "high": 5}
    detector.advance({"A": 3, "C": 9})
    assert detector.marks == {"low": 7, "high": 7}


def test_s15_a_rule_sees_events_from_since_on(engine: str):
    ruleset = rules.load(TYPES + "define Out(n) from A() where n = Count(C() within 9 s from A)")
    detector = make(engine)
    detector.deploy(ruleset, since=3 * MICROSECONDS)
    push(detector, history('C@2(1) A@2(1, 1, "") C@3(1) A@3(1, 1, "")', ruleset), ruleset)
    found_events = written(detector.advance(TIME_MAX).events())
    assert [one.split(" <- ")[0] for one in found_events] == ["Out@3(1)"]


def test_s15_a_removed_rule_is_gone_and_the_others_go_on(engine: str):
    detector, ruleset = deployed(
        engine, "rule one: define One() from A() rule two: define Two() from A()"
    )
    push(detector, history('A1=A@1(1, 1, "")', ruleset), ruleset)
    assert len(detector.advance(2 * MICROSECONDS)) == 2
    detector.remove("one")
    with pytest.raises(KeyError):
        detector.remove("one")
    push(detector, history('A2=A@3(1, 1, "")', ruleset), ruleset)
    assert written(detector.advance(TIME_MAX).events()) == ["Two@3() <- A2"]


def test_s15_the_version_enters_the_ids(engine: str):
    ids = []
    for version in (0, 1):
        detector = make(engine)
        ruleset = rules.load("event A() define Out() from A()")
        detector.deploy(ruleset, version=version)
        push(detector, history("A1=A@1", ruleset), ruleset)
        ids += [event.id for event in detector.advance(TIME_MAX).events()]
    assert len(set(ids)) == 2


# --- section 4: what a composite event carries ---------------------------------------------------


def test_section_4_source_id_and_causes(engine: str):
    detector, ruleset = deployed(
        engine, "rule pair: define Out() from A() and each C() within 9 s from A"
    )
    push(detector, history('C1=C@1(1) A@2(1, 1, "")', ruleset), ruleset)
    (event,) = detector.advance(TIME_MAX).events()
    assert event.source == "rexmq/rule/pair"
    assert event.cause_full == (f"{SOURCE}#2", f"{SOURCE}#C1")
    causes = [event_key(SOURCE, "2"), event_key(SOURCE, "C1")]
    assert event.id == printed(composite_key(rule_key("pair", 0), causes))


def test_section_4_a_composite_cause_is_named_by_its_digest(engine: str):
    text = "rule low: define Low() from A() rule top: define Top() from Low() as l"
    detector, ruleset = deployed(engine, text)
    push(detector, history('A@2(1, 1, "")', ruleset), ruleset)
    low, top = detector.advance(TIME_MAX).events()
    assert top.cause_full == (f"rexmq/rule/low#{low.id}",)
    key = event_key(low.source, low.id)
    assert top.id == printed(composite_key(rule_key("top", 0), [key]))


def test_events_of_types_that_no_rule_uses_are_dropped(engine: str):
    detector, _ = deployed(engine, "define Out() from A()")
    other = rules.load("event Other()\ndefine Out() from Other()").schemas["Other"]
    ids = EventIds(StringColumn.constant("s", 1), np.array([1]))
    for _ in range(2):
        detector.push(EventBatch(other, np.array([1]), ids, ()))
    assert len(detector.advance(TIME_MAX)) == 0
    assert detector.duplicates == 0


# --- X: beyond the thesis ------------------------------------------------------------------------

TWO = "event A(x: int) event B(x: int) "


def test_x1_events_come_in_any_order_and_each_assignment_matches_once(engine: str):
    text = TWO + "define C() from all A() as a, B() as b, A(x > a.x) as c within 2 s"
    assert detect(engine, text, "A1=A@1(1) B1=B@2(0) A2=A@3(2) B2=B@4(0) B3=B@6(0)") == [
        "C@3() <- A1 B1 A2",
    ]
    tied = detect(engine, text, "A1=A@1(1) A2=A@1(2) A3=A@1(3) B1=B@1(0)")
    assert tied == ["C@1() <- A1 B1 A2", "C@1() <- A1 B1 A3", "C@1() <- A2 B1 A3"]


def test_x1_pairs_are_no_further_apart_than_the_window(engine: str):
    text = TWO + "define C() from all A() as a, B() as b, A() as c within 2 s"
    assert detect(engine, text, "A1=A@1(1) B1=B@2.5(0) A2=A@3.000001(2)") == []
    assert len(detect(engine, text, "A1=A@1(1) B1=B@2.5(0) A2=A@3(2)")) == 2


def test_x1_the_same_events_under_other_names_are_another_match(engine: str):
    ruleset = rules.load(TWO + "define C() from all A() as a, A() as b within 2 s")
    detector = make(engine)
    detector.deploy(ruleset)
    push(detector, history("A1=A@1(1) A2=A@2(2)", ruleset), ruleset)
    found = list(detector.advance(TIME_MAX).events())
    assert [event.cause for event in found] == [("A2", "A1"), ("A1", "A2")]
    assert found[0].id != found[1].id


def test_x1_what_one_consumes_is_gone_whoever_comes_last(engine: str):
    text = TWO + "define C() from all A() as a, B() as b within 5 s consuming a"
    assert detect(engine, text, "A1=A@1(1) B1=B@2(0) B2=B@3(0) A2=A@4(0) B3=B@5(0)") == [
        "C@2() <- A1 B1",
        "C@4() <- A2 B1",
        "C@4() <- A2 B2",
    ]


def test_x1_matches_of_one_instant_go_by_the_latest_name_and_then_by_causes(engine: str):
    text = (
        TWO
        + """
    event E()
    define C(k) from all A() as a, B() as b within 2 s where k = 10 * a.x + b.x
    define First(k) from E() and first C() within 0.5 s from E where k = C.k
    define Last(k) from E() and last C() within 0.5 s from E where k = C.k
    """
    )
    found = detect(engine, text, "B@0(0) A@1(1) B@1(1) A@2(2) B@2(2) E@2")
    assert [one.split(" <-")[0] for one in found if "@2" in one] == [
        *("C@2(20)", "C@2(21)", "C@2(22)"),  # the A of 2 is the latest, and named before the B
        "C@2(12)",
        "First@2(20)",
        "Last@2(12)",
    ]


MIXED = "event A(x: int) event B(y: float, x: int) event E(x: int) "
TIES = "A1=A@1(1) B1=B@1(0.5, 2) A2=A@1(3) B2=B@1(0.5, 4)"


def test_x2_a_terminator_is_of_either_type(engine: str):
    text = MIXED + "define C(x) from A(x > 1) or B(y < 1, x = $x) as e where x = e.x"
    text = text.replace("x > 1", "x > 1, x = $x")
    assert detect(engine, text, "A@1(1) A2=A@2(2) B1=B@2(0.5, 7) B@3(1.5, 8) E@4(9)") == [
        "C@2(2) <- A2",
        "C@2(7) <- B1",
    ]


def test_x2_each_selects_events_of_either_type(engine: str):
    text = (
        MIXED
        + """
    define C(x) from E(x = $x) and each A(x < $x) or B(x >= $x) as e within 2 s from E
    where x = e.x
    """
    )
    assert detect(engine, text, "A1=A@1(1) A@1(5) B@2(0, 2) B1=B@3(0, 4) E1=E@3(4)") == [
        "C@3(1) <- E1 A1",
        "C@3(4) <- E1 B1",
    ]


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        ("first", "A1"),
        ("2-first", "B1"),
        ("3-first", "A2"),
        ("4-first", "B2"),
        ("last", "B2"),
        ("2-last", "A2"),
        ("3-last", "B1"),
        ("4-last", "A1"),
        ("5-first", None),
        ("5-last", None),
    ],
)
@pytest.mark.parametrize("times", ["1 1 1 1", "1 2 3 4", "1 1 2 2", "1 2 2 3"])
def test_x2_a_single_selection_chooses_among_both_types(
    engine: str, policy: str, chosen: str | None, times: str
):
    text = MIXED + f"define C() from E() and {policy} A() or B() as e within 9 s from E"
    events = [
        f"{name}@{time}({'0, ' if name[0] == 'B' else ''}1)"
        for name, time in zip(("A1=A", "B1=B", "A2=A", "B2=B"), times.split(), strict=True)
    ]
    found = detect(engine, text, " ".join([*events, "E1=E@5(0)"]))
    assert found == ([] if chosen is None else [f"C@5() <- E1 {chosen}"])


def test_x2_only_candidates_of_either_type_that_fit_count_for_the_rank(engine: str):
    text = (
        MIXED
        + """
    define C(x) from E() and 2-last A(x > E.x) or B(x > E.x, y < 1) as e within 9 s from E
    where x = e.x
    """
    )
    history_ = "A1=A@1(7) B1=B@2(0, 5) B@3(3, 8) A@4(1) A2=A@4(9) B@5(0, 2) E1=E@6(2)"
    assert detect(engine, text, history_) == ["C@6(5) <- E1 B1"]


def test_x2_events_of_a_match_are_distinct_whatever_they_are_selected_as(engine: str):
    text = (
        MIXED
        + """
    define C() from E() and last A() as a within 9 s from E
     and last A() or B() as e within 9 s from E and not A() within 9 s from E
    """
    )
    assert detect(engine, text, "A1=A@1(1) A2=A@2(1) E1=E@3(0)") == ["C@3() <- E1 A2 A1"]
    assert detect(engine, text, "B1=B@1(1, 1) A2=A@2(1) E1=E@3(0)") == ["C@3() <- E1 A2 B1"]
    assert detect(engine, text, "A1=A@1(1) B2=B@2(1, 1) A2=A@3(1) E1=E@3(0)") == []


@pytest.mark.parametrize("policy", ["each", "last", "2-first"])
def test_x2_events_of_either_type_may_hang_on_one_that_waits_for_both(engine: str, policy: str):
    text = (
        MIXED
        + f"""
    define C() from E() as g and each E() as f within 9 s from g
     and {policy} A() or B() as e within 9 s from f
    """
    )
    events = "A1=A@1(1) B1=B@1(0, 1) E1=E@2(0) B2=B@2(0, 1) A2=A@3(1) E2=E@4(0) E3=E@4(0)"
    count = {"each": 2 * (3 + 4), "last": 4, "2-first": 4}[policy]
    found = detect(engine, text, events)
    assert len(found) == len(set(found)) == count


def test_x2_what_is_consumed_as_one_type_is_gone_in_every_role(engine: str):
    text = (
        MIXED
        + """
    define C(n) from E() and first A() or B() as e within 9 s from E
    where n = Count(A() within 9 s from E) * 10 + Count(B() within 9 s from E) consuming e
    """
    )
    events = "A1=A@1(1) B1=B@2(1, 1) A2=A@3(1) E1=E@4(0) E2=E@5(0) E3=E@6(0) E4=E@7(0)"
    assert detect(engine, text, events) == [
        "C@4(21) <- E1 A1",
        "C@5(11) <- E2 B1",
        "C@6(10) <- E3 A2",
    ]


def test_x2_a_parameter_stands_for_what_the_event_that_occurs_binds(engine: str):
    text = (
        MIXED
        + """
    define C(x) from A(x = $x) or E(x = $x) as e and each B(x = $x) within 2 s from e
    where x = $x + B.x
    """
    )
    assert detect(engine, text, "B1=B@1(0, 1) B2=B@1(0, 2) A1=A@2(1) E1=E@2(2)") == [
        "C@2(2) <- A1 B1",
        "C@2(4) <- E1 B2",
    ]


def test_x2_matches_of_one_instant_go_by_the_types_and_then_by_causes(engine: str):
    text = (
        MIXED
        + """
    define C(x) from A() or B() as e where x = e.x
    define First(x) from E() and first C() within 0.5 s from E where x = C.x
    define Last(x) from E() and last C() within 0.5 s from E where x = C.x
    """
    )
    found = detect(engine, text, f"{TIES} E@1(0)")
    assert [one.split(" <-")[0] for one in found] == [
        *("C@1(1)", "C@1(3)", "C@1(2)", "C@1(4)"),
        "First@1(1)",
        "Last@1(4)",
    ]


def test_x2_in_a_cycle_only_the_type_of_the_cycle_is_strictly_earlier(engine: str):
    text = (
        MIXED
        + """
    define R(n: int) from E() and last A() or R() as r within 9 s from E where n = r.time / 1000000
    """
    ).replace("n: int", "n: float")
    events = "A1=A@1(0) E1=E@1(0) E2=E@2(0) E3=E@2(0) A2=A@3(0) E4=E@3(0)"
    assert [one.split(" <-")[0] for one in detect(engine, text, events)] == [
        *("R@1(1.0)", "R@2(1.0)", "R@2(1.0)", "R@3(3.0)"),
    ]

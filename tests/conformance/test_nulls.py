"""Optional attributes: what null means in conditions, aggregates and values (tesla.md S9)."""

import pytest
from engines import OF_MEANING
from timeline import detect

TYPES = """
event A(x: int?, v: float?, s: string?, f: bool?)
event B(x: int?, n: int)
"""
NULLS = "A@1(null, null, null, null)"
FULL = 'A@1(3, 2.5, "ab", true)'
everywhere = pytest.mark.parametrize("engine", OF_MEANING)


def fires(engine: str, conditions: str, event: str) -> bool:
    return bool(detect(engine, f"{TYPES} define Out() from A({conditions})", event))


@everywhere
@pytest.mark.parametrize(
    "condition",
    [
        "x = 0",
        "x != 0",
        "x < 5",
        "x >= -5",
        "not x = 3",
        "not (x > 1 and v > 1)",
        "x = x",
        "v + 1 > 0",
        "x / x = 1",
        's = ""',
        's prefix ""',
        "f",
        "not f",
        "f = false",
        "f = f",
        "(x > 0 or v > 0)",
        "not (x > 0 or v > 0)",
    ],
)
def test_s9_no_comparison_is_true_of_null(engine: str, condition: str):
    assert not fires(engine, condition, NULLS)


@everywhere
@pytest.mark.parametrize(
    ("condition", "event", "expected"),
    [
        ("x is null", NULLS, True),
        ("x is not null", NULLS, False),
        ("x is null", FULL, False),
        ("not x is null", FULL, True),
        ("x + v is null", 'A@1(1, null, "", true)', True),
        ("x + v is not null", 'A@1(1, null, "", true)', False),
        # One side that is true decides, and so does one that is false.
        ('(x > 0 or s = "ab")', 'A@1(null, 1.5, "ab", true)', True),
        ('not (x > 0 and s = "b")', 'A@1(null, 1.5, "ab", true)', True),
        ('(x > 0 and s = "b") is null', 'A@1(null, 1.5, "ab", true)', False),
        ('(x > 0 and s = "ab") is null', 'A@1(null, 1.5, "ab", true)', True),
        ("(x is null or x > 2)", FULL, True),
        ("x = 0 and x is not null", "A@1(0, null, null, null)", True),
    ],
)
def test_s9_is_null_tells(engine: str, condition: str, event: str, expected: bool):
    assert fires(engine, condition, event) is expected


@everywhere
def test_s5_null_equals_no_null(engine: str):
    rule = "define Out(n: int) from A(x = $x) and each B(x = $x) within 9 s from A where n = B.n"
    events = "B@1(null, 1) B@1(7, 2) B@1(0, 3)"
    assert detect(engine, TYPES + rule, f'{events} A@2(null, 0, "", true)') == []
    assert detect(engine, TYPES + rule, f'{events} A@2(0, 0, "", true)') == ["Out@2(3) <- 4 3"]


@everywhere
def test_s6_a_negation_is_not_violated_by_what_a_null_leaves_undecided(engine: str):
    rule = "define Out() from A() and not B(x > A.x) within 9 s from A"
    assert detect(engine, TYPES + rule, 'B@1(null, 1) A@2(1, 0, "", true)') == ["Out@2() <- 2"]
    assert detect(engine, TYPES + rule, 'B@1(5, 1) A@2(null, 0, "", true)') == ["Out@2() <- 2"]
    assert detect(engine, TYPES + rule, 'B@1(5, 1) A@2(1, 0, "", true)') == []


@everywhere
def test_s8_aggregates_leave_nulls_out(engine: str):
    rule = """define Out(a: float, s: int, c: int, all: int, low: int)
    from A() and $c = Count(B().x) within 9 s from A
    where a = Avg(B().x within 9 s from A), s = Sum(B().x within 9 s from A), c = $c,
          all = Count(B() within 9 s from A), low = Min(B().x within 9 s from A)"""
    events = 'B@1(null, 1) B@1(4, 2) B@2(null, 3) B@2(1, 4) A@3(null, 0, "", true)'
    assert detect(engine, TYPES + rule, events) == ["Out@3(2.5, 5, 2, 4, 1) <- 5"]


@everywhere
def test_s8_of_nulls_alone_an_aggregate_is_one_of_nothing(engine: str):
    text = "define Out(s: int, c: int) from A() and not B(n > 5) within 1 s from A where "
    rule = f"{text} s = Sum(B().x within 9 s from A), c = Count(B().x within 9 s from A)"
    assert detect(engine, TYPES + rule, f"B@1(null, 1) {NULLS}") == ["Out@1(0, 0) <- 2"]
    rule = "define Out(a: float?) from A() where a = Avg(B().x within 9 s from A)"
    assert detect(engine, TYPES + rule, f"B@1(null, 1) {NULLS}") == []  # undefined, not null


@everywhere
def test_s10_null_is_assigned_and_null_comes_of_null(engine: str):
    rule = """define Out(x: float?, y: int?, z: float?, s: string?, f: bool?, n: int)
    from A((f is null or f)) and each B() within 9 s from A
    where x = A.x, y = A.x * 2 + B.x, z = B.n / A.v, s = A.s, f = A.x > 2, n = B.n"""
    assert detect(engine, TYPES + rule, f"B@1(1, 7) {NULLS}") == [
        "Out@1(null, null, null, null, null, 7) <- 2 1"
    ]
    assert detect(engine, TYPES + rule, f"B@1(1, 5) {FULL}") == [
        'Out@1(3.0, 7, 2.0, "ab", true, 5) <- 2 1'
    ]
    # What is undefined for another reason is no null: the match fails.
    assert detect(engine, TYPES + rule, 'B@1(1, 5) A@1(3, 0.0, "ab", true)') == []


@everywhere
def test_s12_null_goes_through_a_hierarchy(engine: str):
    rules = """define Mid(y) from A() where y = A.x
    define Top(y: int) from Mid(y is not null) where y = Mid.y
    define Lost() from Mid(y is null)"""
    found = detect(engine, TYPES + rules, FULL)
    assert [one.split("@")[0] for one in found] == ["Mid", "Top"]
    found = detect(engine, TYPES + rules, NULLS)
    assert [one.split("@")[0] for one in found] == ["Mid", "Lost"]
    assert found[0].startswith("Mid@1(null)")


@everywhere
def test_x2_either_type_may_be_null(engine: str):
    rule = "define Out(x) from A(s is null) or B(n > 0) as e where x = e.x"
    assert detect(engine, TYPES + rule, f"B@1(null, 1) B@2(5, 1) {FULL}") == [
        "Out@1(null) <- 1",
        "Out@2(5) <- 2",
    ]

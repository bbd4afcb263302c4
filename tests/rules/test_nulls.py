"""Optional attributes in rules and filters: what the checker makes of them (tesla.md S9)."""

from random import Random

import numpy as np
import pytest

import rules
from matcher.model import EventType
from matcher.rows import batch_of
from matcher.single import singles
from routing.delivery.selection import Selection
from rules.errors import RuleErrors
from rules.explaining.rewording import Rewording
from rules.subscription import parse_subscription

TYPES = "event A(x: int?, v: float?, s: string?, f: bool?, n: int)\nevent B(x: int, n: int)\n"
SCHEMAS = {"A": EventType.of("A", x="int?", v="float?", s="string?", f="bool?", n="int")}


def problem(text: str) -> str:
    with pytest.raises(RuleErrors) as refused:
        rules.load(TYPES + text)
    (found,) = refused.value.problems
    return f"{found.message} ({found.hint})"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "define Out(y: int) from A() where y = A.x",
            "y is declared int, and its value may be null "
            "(declare it int?, or let the rule ask: ... is not null)",
        ),
        (
            "define Out() from A(n is null)",
            "this is never null (an optional attribute is declared with ? behind its type: "
            "value: int?)",
        ),
        (
            "define Out() from A(x = $x) and $x is null",
            "this is never null (ask it of the attribute: a parameter is equal to none that is "
            "null)",
        ),
        (
            "define Out() from A(x = null)",
            "A has no attribute null (null is asked for by: is null, is not null)",
        ),
        (
            "define Out() from A((x > 1) = (v > 1))",
            "a comparison of a truth value that may be null (say it by and, or and not: "
            "(a > 1 and b > 2 or not a > 1 and not b > 2))",
        ),
        (
            "event A(x: int, v: float?, s: string?, f: bool?, n: int) define Out() from A()",
            "another schema for A (line 1 has event A(x: int?, v: float?, s: string?, f: bool?, "
            "n: int))",
        ),
        (
            "define Out(y) from A() or B() as e where y = e.x",
            "x is an int that may be null in A and an int in B "
            "(an event of either type is known by attributes of one type)",
        ),
    ],
)
def test_what_is_refused(text: str, told: str):
    assert problem(text) == told


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ("from A() where y = A.x", "int?"),
        ("from A() where y = A.x + 1", "int?"),
        ("from A() where y = A.n", "int"),
        ("from A(x > 1) where y = A.x", "int"),
        ("from A(x is not null) where y = A.x", "int"),
        ("from A(x = $x) where y = $x", "int"),
        ("from A($x) where y = A.x", "int"),
        ("from A() and A.x > 1 where y = A.x + A.n", "int"),
        ("from A((x > 1 or n > 1)) where y = A.x", "int?"),
        ("from A() and not B(x > A.x) within 1 s from A where y = A.x", "int?"),
        ("from A() and each B(x = A.x) within 1 s from A where y = A.x", "int"),
        ("from A() and $s = A.x + 1 where y = $s", "int"),
        ("from A() where y = Sum(A().x within 1 s from A)", "int"),
        ("from A() where y = A.x > 1", "bool?"),
        ("from A() where y = A.x is null", "bool"),
    ],
)
def test_a_type_that_is_left_out_is_optional_where_its_value_may_be_null(rule: str, kind: str):
    checked = rules.load(f"{TYPES} define Out(y) {rule}")
    assert str(checked.schemas["Out"]) == f"Out(y: {kind})"


def test_rules_are_told_in_the_words_they_were_written_in():
    checked = rules.load(
        TYPES + "define Out(y: float?) from A(x is null, v > 1)"
        " and not B(x > A.v) within 1 s from A"
        " where y = A.x * A.v"
    )
    (rule,) = checked.rules
    words = Rewording(rule)
    assert words.terminator() == "A(x is null, v is not null, v > 1)"
    assert words.clause(rule.clauses[0]) == "not B(x > A.v) within 1 s from A"
    assert words.value(0) == "y = A.x * A.v"


def condition(random: Random, depth: int = 0) -> str:
    if depth < 2 and random.random() < 0.4:
        parts = [condition(random, depth + 1) for _ in range(2)]
        text = f"({random.choice((' and ', ' or ')).join(parts)})"
        return f"not {text}" if random.random() < 0.3 else text
    left, right = random.choice(
        (
            ("x", random.choice(("0", "1", "v", "n", "x * 2"))),
            ("v", random.choice(("0.0", "0.5", "x", "x / v"))),
            ("s", random.choice(('""', '"a"', "s"))),
            ("f", random.choice(("true", "false"))),
        )
    )
    if random.random() < 0.25:
        return f"{left} {random.choice(('is null', 'is not null'))}"
    if left == "f" and random.random() < 0.5:
        return random.choice(("f", "not f"))
    ordered = ("=", "!=") if left == "f" else ("=", "!=", "<", ">=")
    return f"{left} {random.choice(ordered)} {right}"


def expected(text: str, row: dict[str, object]) -> object:
    """The condition in three-valued logic, read off the syntax tree: True, False or None."""
    from rules.syntax import ast
    from rules.syntax.parser import parse_filter

    def value(node: ast.Expression) -> object:
        match node:
            case ast.Literal():
                return node.value
            case ast.Attribute():
                return row[node.name.text]
            case ast.IsNull():
                return value(node.operand) is None
            case ast.Not():
                inner = value(node.operand)
                return None if inner is None else not inner
            case ast.And() | ast.Or():
                deciding = isinstance(node, ast.Or)
                values = [value(one) for one in node.operands]
                if deciding in [one for one in values if one is not None]:
                    return deciding
                return None if None in values else not deciding
            case ast.Arithmetic():
                left, right = value(node.left), value(node.right)
                if left is None or right is None or (node.operator.value == "/" and right == 0):
                    return None
                return left * right if node.operator.value == "*" else left / right  # type: ignore[operator]
            case ast.Compared():
                left, right = map(value, node.operands)
                if left is None or right is None:
                    return None
                compare = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", ">=": "__ge__"}
                found = getattr(left, compare[node.operators[0].value])(right)
                return found if found is not NotImplemented else _turned(left, node, right)
        raise AssertionError(node)

    def _turned(left: object, node: ast.Compared, right: object) -> object:
        turned = {"=": "__eq__", "!=": "__ne__", "<": "__gt__", ">=": "__le__"}
        return getattr(right, turned[node.operators[0].value])(left)

    return all(value(one) is True for one in parse_filter(text).conditions)


ROWS = [
    {"time": 0, "x": x, "v": v, "s": s, "f": f, "n": 1}
    for x in (None, 0, 1)
    for v in (None, 0.0, 0.5)
    for s in (None, "", "a")
    for f in (None, False, True)
]


@pytest.mark.parametrize("part", range(5))
def test_filters_find_what_three_valued_logic_says(part: int):
    """In columns, row by row, alone, and many together in a matcher."""
    batch = batch_of(SCHEMAS["A"], ROWS, source="s")
    found_some = 0
    together: Selection[str] = Selection()
    masks = []
    for seed in range(part * 60, part * 60 + 60):
        random = Random(seed)
        items = " and ".join(condition(random) for _ in range(random.randint(1, 3)))
        text = f"A({items})"
        wanted = [expected(text, row) for row in ROWS]
        subscription = parse_subscription(text, SCHEMAS)
        assert subscription.mask(batch).tolist() == wanted, text
        few = batch.take(slice(0, 10))
        assert subscription.mask(few).tolist() == wanted[:10], text
        assert [subscription.takes(one) for one in singles(batch)] == wanted, text
        together.add("k", len(masks), subscription)
        masks.append(wanted)
        found_some += any(wanted)
    assert found_some > 25
    matched = np.zeros((len(masks), len(ROWS)), np.bool_)
    for _, patterns in together.match(batch):
        for numbers, rows in patterns:
            for number in numbers:
                matched[number, slice(None) if rows is None else rows] = True
    assert matched.tolist() == masks


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("define Out() from A(x is 5)", "write is null, or is not null"),
        ("define Out() from A(x ? 5)", "unexpected character ?"),
        ("event C(x: int??)", "unexpected character ?"),
        ("define Out() from A(x is null = true)", "expected"),
    ],
)
def test_what_is_no_question_is_told(text: str, told: str):
    with pytest.raises(RuleErrors) as refused:
        rules.load(TYPES + text)
    assert told in str(refused.value)


def test_the_words_are_names_elsewhere():
    checked = rules.load(
        "event is(null: int?, is: int) define Out(is) from is(is = 1) as null "
        "where is = null.is + null.null"
    )
    assert str(checked.schemas["Out"]) == "Out(is: int?)"

"""Who may have which rule: each use of a type says the filter under which it may be read."""

import itertools

import pytest

from matcher.model import EventType
from matcher.single import Row, Single
from routing.errors import Refusal
from routing.messages import Act, Code, Permit, Rights
from routing.permission import check_owner, narrowed
from rules.language import load
from rules.subscription import parse_subscription

TYPES = "event A(k: string, v: float)\nevent B(k: string, v: float)\n"
READS_A = Rights(
    "alice",
    (
        Permit(Act.DEFINE, "C", 1),
        Permit(Act.SUBSCRIBE, "A", 2, 'A(k = "x")'),
        Permit(Act.SUBSCRIBE, "B", 3),
    ),
    "access.toml",
)


def rule(text):
    (found,) = load(f"{TYPES}{text}").rules
    return found


@pytest.mark.parametrize(
    "text",
    [
        'define C(v: float) from A(k = "x") as a where v = a.v',
        'define C(v: float) from A(k = "x" and v > 3) as a where v = a.v',
        'define C(v: float) from B() as b and last A(v > 3 and k = "x") as a within 1 s from b '
        "where v = a.v",
        'define C(v: float) from B() as b and not A(k = "x") within 1 s from b where v = b.v',
        'define C(v: float) from A(k = "x") or B() as e where v = e.v',
        'define C(v: float) from all A(k = "x") as a, B() as b within 1 s where v = a.v',
        'define C(v: float) from B() as b where v = Max(A(k = "x").v within 1 s from b)',
        "define C(v: int) from Timer(S = 0) as t where v = t.M",
    ],
)
def test_a_rule_that_says_the_filter(text):
    check_owner(READS_A, rule(text))


@pytest.mark.parametrize(
    "text",
    [
        "define C(v: float) from A() as a where v = a.v",
        'define C(v: float) from A(k = "y") as a where v = a.v',
        'define C(v: float) from A((k = "x" or v > 3)) as a where v = a.v',
        "define C(v: float) from B() as b and last A(k = b.k) as a within 1 s from b where v = a.v",
        'define C(v: float) from B(k = "x") as b and last A() as a within 1 s from b where v = a.v',
        "define C(v: float) from B() as b and not A() within 1 s from b where v = b.v",
        "define C(v: float) from A() or B() as e where v = e.v",
        "define C(v: float) from B() or A(v > 3) as e where v = e.v",
        "define C(v: float) from all A() as a, B() as b within 1 s where v = a.v",
        'define C(v: float) from all B(k = "x") as b, A() as a within 1 s where v = a.v',
        "define C(v: float) from B() as b where v = Max(A().v within 1 s from b)",
        'define C(v: float) from A(k = "x") as a where v = Max(A().v within 1 s from a)',
        'define C(v: float) from A(k = "x") as a and each A() as c within 1 s from a where v = c.v',
    ],
)
def test_a_rule_that_does_not(text):
    with pytest.raises(Refusal, match="each A of the rule has to say so") as raised:
        check_owner(READS_A, rule(text))
    assert raised.value.code is Code.NOT_ALLOWED


def test_another_type_may_not_be_defined():
    with pytest.raises(Refusal, match=r"may not define 'D': line 1 \(define\) of access.toml"):
        check_owner(READS_A, rule("define D(v: float) from B() as b where v = b.v"))


@pytest.mark.parametrize(
    ("filters", "asked", "gives"),
    [
        (["T(a = 1)"], "T", "T(a = 1)"),
        (["T(a = 1)"], "T()", "T(a = 1)"),
        (["T(a = 1)"], "T(b > 2)", "T(b > 2, a = 1)"),
        (["T(a = 1)"], "T(a = 1)", "T(a = 1)"),
        (["T(a = 1 and b = 2)"], "T((c = 1 or c = 2))", "T((c = 1 or c = 2), a = 1, b = 2)"),
        (["T(a = 1)", "T(b = 2)"], "T(c = 3)", "T(c = 3, (a = 1 or b = 2))"),
        (
            ["T(a = 1 and c = 1)", "T((b = 2 or b = 3))"],
            "T()",
            "T((a = 1 and c = 1 or b = 2 or b = 3))",
        ),
        (["T(a = 1)", ""], "T(b > 2)", "T(b > 2)"),
    ],
)
def test_what_is_asked_for_is_narrowed(filters, asked, gives):
    permits = tuple(Permit(Act.SUBSCRIBE, "T", 1, one) for one in filters)
    assert narrowed(Rights("k", permits), asked) == gives


def test_one_of_several_filters_is_to_hold():
    """The text that is made means what the rights say: every event is tried."""
    schema = EventType.of("T", a="int", b="int", c="int")
    texts = "T(a = 1 and c = 1)", "T((b = 2 or b = 3))"
    permits = tuple(Permit(Act.SUBSCRIBE, "T", 1, text) for text in texts)
    found = parse_subscription(narrowed(Rights("k", permits), "T(c < 2)"), {"T": schema})
    for a, b, c in itertools.product(range(4), repeat=3):
        event = Single(schema, Row(0, "s", 1, None, (a, b, c)))
        assert found.takes(event) == (c < 2 and ((a == 1 and c == 1) or b in (2, 3)))


def test_what_may_not_be_read_or_is_no_filter_is_refused():
    rights = Rights("k", (Permit(Act.SUBSCRIBE, "T", 1, "T(a = 1)"),), "access.toml")
    for text, code in (("U()", Code.NOT_ALLOWED), ("T(", Code.BAD_FILTER)):
        with pytest.raises(Refusal) as raised:
            narrowed(rights, text)
        assert raised.value.code is code
    with pytest.raises(Refusal):
        narrowed(Rights("k", ()), "*")

"""Words by their neighbours, values, and places (tesla.md section 2)."""

import re

import pytest

import rules
from matcher.identity import RULE_SOURCE
from matcher.model import ATTRIBUTES_MAX, Kind
from rules.errors import RuleErrors, Span
from rules.syntax.tokens import duration, tokenize
from rules.syntax.words import NAME_MAX, comments


def types_of(text: str) -> list[str]:
    return [token.type for token in tokenize(text)[0]]


@pytest.mark.parametrize(
    ("text", "word", "kind"),
    [
        ("from A() and each B()", "each", "EACH"),
        ("from A() and each > 3", "each", "NAME"),
        ("from A() and each B within", "each", "EACH"),
        ("from A() and each prefix 'b'", "each", "NAME"),
        ("from all B as b", "all", "ALL"),
        ("from A(x and each (3", "each", "NAME"),  # no select inside parentheses
        ("within 5 min from", "min", "DURATION"),
        ("min = 5", "min", "NAME"),
        ("x > Min(B()", "Min", "FUNCTION"),
        ("from Min(x", "Min", "NAME"),
        ("and each Min(x", "Min", "NAME"),
        ("not Min(x = 1) within", "Min", "NAME"),
        ("not Min(x) and", "Min", "FUNCTION"),
        ("(not Min(x)) within", "Min", "FUNCTION"),
        ("not Min(B(x = 1)", "Min", "FUNCTION"),
        ("not Min(Max(B(x = 1))) within", "Min", "NAME"),
        ("x prefix y", "prefix", "COMPARISON"),
        ("(prefix = y", "prefix", "NAME"),
        ("event E(", "event", "EVENT"),
        ("where event = 3", "event", "NAME"),
        ("event a.b(", "event", "EVENT"),  # a statement begins here, whatever is wrong with it
        ("where x = 1 event", "event", "EVENT"),
        ("where x = 1 event = 2", "event", "NAME"),
        ("within 5 event from", "event", "DURATION"),
        ("rule r:", "rule", "RULE"),
        ("where rule = 3", "rule", "NAME"),
        ("rule r define", "rule", "RULE"),
        ("consuming A rule my-r:", "rule", "RULE"),
        ("E() as x", "as", "_AS"),
        ("as = 3", "as", "NAME"),
    ],
)
def test_words_are_recognised_by_their_neighbours(text: str, word: str, kind: str) -> None:
    found = [token.type for token in tokenize(text)[0] if token.text == word]
    assert found == [kind]


def test_reserved_words_are_keywords_everywhere_in_any_case() -> None:
    assert types_of("Define FROM where consuming AND or nOt within between true FALSE") == [
        *("DEFINE", "_FROM", "_WHERE", "_CONSUMING", "_AND", "_OR", "NOT", "WITHIN", "BETWEEN"),
        *("TRUE", "FALSE"),
    ]


def test_places_are_counted_over_lines_and_comments() -> None:
    tokens, problems = tokenize("a // b\n\n  # c\n\tdé $f")
    assert problems == []
    assert [(token.text, token.span) for token in tokens] == [
        ("a", Span(0, 1, 1, 1)),
        ("dé", Span(15, 17, 4, 2)),
        ("$f", Span(18, 20, 4, 5)),
    ]


def test_kinds_of_attributes_have_values() -> None:
    tokens = tokenize("event E(a: Double, b: STRING)")[0]
    kinds = [token.value for token in tokens if token.type == "KIND"]
    assert kinds == [(Kind.FLOAT, False), (Kind.STRING, False)]


def test_an_unknown_kind_is_a_problem_and_a_token() -> None:
    tokens, [problem] = tokenize("event E(a: strng)")
    assert problem.message == "unknown type strng of an attribute"
    assert problem.hint == "did you mean string?"
    assert [token.type for token in tokens][-2:] == ["KIND", "RPAR"]


@pytest.mark.parametrize(
    ("number", "unit", "outcome"),
    [
        ("1", "us", 1),
        ("0.001", "ms", 1),
        ("1.000001", "s", 1_000_001),
        ("53375995", "days", 53375995 * 86_400_000_000),
        ("53375996", "days", "a duration that is too long"),
        ("0", "h", "a duration must be positive"),
        ("0e99", "h", "a duration must be positive"),
        ("1e-30", "h", "a duration of less than a microsecond"),
        ("0.9", "us", "a duration of less than a microsecond"),
        ("1.1", "us", "a duration that is no whole number of microseconds"),
        ("1e400000000", "h", "a duration that is too long"),
        ("1e1000000000000000000", "h", "a duration that is too long"),
        ("1.5e-9999999999999999999", "h", "a duration of less than a microsecond"),
        ("0.0e1000000000000000000", "h", "a duration must be positive"),
    ],
)
def test_durations_are_exact_or_refused(number: str, unit: str, outcome: int | str) -> None:
    assert duration(number, unit) == outcome


def test_a_duration_stands_wherever_a_value_may() -> None:
    tokens, problems = tokenize("define A(x) from B() where x = 0 min. - 2.5 s * min")
    assert not problems
    assert [token.value for token in tokens if token.type == "DURATION"] == [0, 2_500_000]
    assert tokens[-1].type == "NAME"


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        ("3 minuts", "unknown unit of time minuts", "did you mean mins?"),
        ("3e300 h", "a duration that is too long", None),
        ("0.5 us", "a duration of less than a microsecond", None),
    ],
)
def test_a_wrong_duration_in_a_value_is_a_problem(
    value: str, message: str, hint: str | None
) -> None:
    _, [problem] = tokenize(f"define A(x) from B() where x = {value}")
    assert (problem.message, problem.hint) == (message, hint)


def test_comments_are_found_but_not_in_strings() -> None:
    assert comments("# a\nx = '# no' // b \n\"// no\"\n#") == [
        (Span(0, 3, 1, 1), "# a"),
        (Span(15, 20, 2, 12), "// b"),
        (Span(29, 30, 4, 1), "#"),
    ]


@pytest.mark.parametrize("word", [r"""'it\'s "\n"'""", r'''"it\'s \"\n\""'''])
def test_either_quote_may_be_escaped_between_either(word: str) -> None:
    [token], problems = tokenize(word)
    assert problems == []
    assert token.value == 'it\'s "\n"'


def test_a_string_that_does_not_end_takes_its_line_with_it() -> None:
    tokens, problems = tokenize('a "b\\\nc" d\n  e')
    assert [(one.message, one.span) for one in problems] == [
        ("a string that does not end on its line", Span(2, 3, 1, 3)),
        ("a string that does not end on its line", Span(7, 8, 2, 2)),
    ]
    assert [(token.text, token.span.line, token.span.column) for token in tokens] == [
        ("a", 1, 1),
        ('"b\\', 1, 3),
        ("c", 2, 1),
        ('" d', 2, 2),
        ("e", 3, 3),
    ]


def test_a_name_fits_where_links_carry_it_with_what_is_added() -> None:
    fits, longer = "n" * NAME_MAX, "n" * (NAME_MAX + 1)
    text = f"event A({fits}: int)\nrule {{}}: define B() from A({fits} = 1)"
    assert rules.load(text.format(fits)).rules[0].name == fits
    with pytest.raises(RuleErrors, match=f"2:6: a name of more than {NAME_MAX} characters"):
        rules.load(text.format(longer))
    assert len(f"{RULE_SOURCE}{fits}#{10**9}") <= 255


def test_a_type_is_declared_with_as_many_attributes_as_links_carry() -> None:
    for count, kept in ((ATTRIBUTES_MAX, True), (ATTRIBUTES_MAX + 1, False)):
        names = [f"a{number}" for number in range(count)]
        event = f"event A({', '.join(f'{name}: int' for name in names)})"
        define = f"define B({', '.join(names)}) from A() where " + ", ".join(
            f"{name} = A.{name}" for name in names
        )
        if kept:
            assert len(rules.load(f"{event}\n{define}").rules[0].defines.attributes) == count
            continue
        with pytest.raises(RuleErrors, match=f"1:7: A has more than {ATTRIBUTES_MAX} attributes"):
            rules.load(event)
        with pytest.raises(RuleErrors, match=f"2:8: B has more than {ATTRIBUTES_MAX} attributes"):
            rules.load("event A(a0: int)\n" + re.sub(r"A\.a\d+", "A.a0", define))

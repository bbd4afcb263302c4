"""parse(print(x)) == x, on random trees and on texts."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as some

from matcher import spelling
from matcher.model import Kind
from rules.pattern import Policy
from rules.syntax import ast
from rules.syntax.parser import parse
from rules.syntax.printer import (
    print_duration,
    print_event,
    print_expression,
    print_file,
    print_rule,
    print_statement,
)
from rules.syntax.tokens import CALLS, DURATION_MAX
from rules.syntax.words import RESERVED
from rules.terms import Comparison, Function, Operator

# Words of the language that are no reserved words are names like others (tesla.md section 2).
WORDS = (
    *("all", "each", "first", "last", "event", "rule", "as", "prefix", "suffix", "contains", "int"),
    *("in", "matches", "lower", "avg", "Count", "MIN", "us", "s", "min", "day", "string", "double"),
    *("is", "null"),
    *("A", "B", "Temp", "area", "x1", "_", "Straße"),
)
QUOTED = (
    "Sea Temp (C)",
    "from",
    "NOT",
    "a`b",
    "Station-Id",
    "1st",
    "a.b",
    "#",
    "$x",
    '"',
    "é\u00a0",
)
"""Names that are written in backquotes."""


def named(words: Any = (*WORDS, *QUOTED)) -> some.SearchStrategy[ast.Name]:
    return some.builds(ast.Name, some.sampled_from(words))


def literal_of(text: str) -> ast.Literal:
    return ast.Literal(text, Kind.STRING)


def literals() -> some.SearchStrategy[ast.Literal]:
    integers = some.integers(-(2**63), 2**63 - 1)
    floats = some.floats(allow_nan=False, allow_infinity=False)
    return some.one_of(
        some.builds(ast.Literal, integers, some.just(Kind.INT)),
        some.builds(ast.Literal, floats, some.just(Kind.FLOAT)),
        some.builds(ast.Literal, some.booleans(), some.just(Kind.BOOL)),
        some.builds(
            ast.Literal,
            some.text(some.characters(exclude_categories=["Cs"]), max_size=5),
            some.just(Kind.STRING),
        ),
    )


def no_negative_literal(operand: ast.Expression) -> bool:
    """The negative of a literal that is not negative is read as a literal."""
    if not isinstance(operand, ast.Literal) or isinstance(operand.value, bool | str):
        return True
    return math.copysign(1, operand.value) < 0


def compared(draw: Any, operands: Any) -> ast.Compared:
    count = draw(some.integers(2, 3))
    return ast.Compared(
        tuple(draw(operands) for _ in range(count)),
        tuple(draw(some.sampled_from(Comparison)) for _ in range(count - 1)),
    )


def several(kind: type, operands: Any) -> some.SearchStrategy[Any]:
    others = operands.filter(lambda operand: not isinstance(operand, kind))
    return some.builds(kind, some.lists(others, min_size=2, max_size=3).map(tuple))


def larger(operands: Any) -> some.SearchStrategy[Any]:
    return some.one_of(
        some.builds(ast.Arithmetic, some.sampled_from(Operator), operands, operands),
        some.builds(ast.Negative, operands.filter(no_negative_literal)),
        some.composite(compared)(operands),
        some.builds(ast.Not, operands),
        some.builds(ast.IsNull, operands),
        several(ast.And, operands),
        several(ast.Or, operands),
        some.builds(
            ast.Membership, operands, some.lists(operands, min_size=1, max_size=3).map(tuple)
        ),
        some.builds(ast.Matching, operands, some.text('a^$"\\', max_size=3).map(literal_of)),
        some.builds(
            ast.Called,
            some.sampled_from(sorted(CALLS)),
            some.lists(operands, min_size=1, max_size=3).map(tuple),
        ),
        some.builds(
            ast.Aggregate,
            some.sampled_from(Function),
            events(operands) | ranging(operands),
            windows(),
        ),
        some.builds(ast.Aggregate, some.sampled_from(Function), of_run(), some.none()),
    )


def of_run() -> some.SearchStrategy[Any]:
    """What is aggregated over a run: its name, or an expression of its attributes."""
    attributes = some.builds(ast.Attribute, named(), named())
    sums = some.builds(ast.Arithmetic, some.sampled_from(Operator), attributes, LEAVES)
    return some.builds(ast.Attribute, some.none(), named()) | attributes | sums


@some.composite
def ranging(draw: Any, operands: Any) -> Any:
    """What is aggregated: an expression in which one event stands."""
    found = ast.OfEvent(draw(events(operands)), draw(named()))
    for _ in range(draw(some.integers(0, 2))):
        operator, other = draw(some.sampled_from(Operator)), draw(LEAVES)
        found = draw(
            some.sampled_from(
                [
                    ast.Arithmetic(operator, found, other),
                    ast.Arithmetic(operator, other, found),
                    ast.Negative(found),
                    ast.Called("abs", (found,)),
                ]
            )
        )
    return found


def conditions(operands: Any) -> some.SearchStrategy[Any]:
    return some.lists(operands, max_size=2).map(tuple)


def events(operands: Any) -> some.SearchStrategy[ast.Event]:
    return some.builds(ast.Event, named(), conditions(operands), some.none() | named())


def choices(operands: Any) -> some.SearchStrategy[ast.Event | ast.Either]:
    nameless = some.builds(ast.Event, named(), conditions(operands))
    several = some.lists(nameless, min_size=2, max_size=3).map(tuple)
    return events(operands) | some.builds(ast.Either, several, some.none() | named())


def within() -> some.SearchStrategy[ast.Within]:
    units = some.sampled_from([1, 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000])
    counts = some.integers(1, 1_000)
    durations = some.builds(lambda unit, count: unit * count, units, counts)
    return some.builds(ast.Within, durations | some.integers(1, DURATION_MAX), named())


def windows() -> some.SearchStrategy[ast.Window]:
    return within() | some.builds(ast.Between, named(), named())


LEAVES = some.one_of(
    literals(),
    some.builds(ast.Duration, some.integers(0, 10**7) | some.integers(0, DURATION_MAX)),
    some.builds(ast.Parameter, some.sampled_from(WORDS)),
    some.builds(ast.Attribute, some.none() | named(), named()),
)
EXPRESSIONS = some.recursive(LEAVES, larger, max_leaves=8)


@some.composite
def selected(draw: Any) -> ast.Selected:
    policy = draw(some.sampled_from(Policy))
    rank = 0 if policy is Policy.EACH else draw(some.integers(1, 5))
    count = some.integers(0, 10)
    times = draw(some.none() | some.builds(ast.Times, count, some.none() | count))
    return ast.Selected(policy, rank, draw(choices(EXPRESSIONS)), draw(within()), times)


CLAUSES = some.one_of(
    selected(),
    some.builds(ast.Negated, events(EXPRESSIONS), windows()),
    some.builds(ast.Timed, named(), within()),
    some.builds(ast.Constraint, EXPRESSIONS),
)
DECLARED = some.builds(ast.Declared, named(), some.sampled_from(Kind), some.booleans())
TOGETHER = some.builds(
    ast.Together,
    some.lists(events(EXPRESSIONS), min_size=2, max_size=3).map(tuple),
    some.integers(1, DURATION_MAX),
)
RULES = some.builds(
    ast.Rule,
    some.none() | named(),
    named(),
    some.lists(DECLARED | some.builds(ast.Declared, named(), some.none()), max_size=2).map(tuple),
    choices(EXPRESSIONS) | TOGETHER,
    some.lists(CLAUSES, max_size=3).map(tuple),
    some.lists(some.builds(ast.Assignment, named(), EXPRESSIONS), max_size=2).map(tuple),
    some.lists(named(), max_size=2).map(tuple),
)
SCHEMAS = some.builds(ast.Schema, named(), some.lists(DECLARED, max_size=3).map(tuple))
FILES = some.lists(RULES | SCHEMAS, max_size=3).map(lambda found: ast.File(tuple(found)))


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(FILES)
def test_what_is_printed_is_read_again(file: ast.File) -> None:
    text = print_file(file)
    assume(ast.depth(file) < 60)
    again = parse(text)
    assert again == file
    assert print_file(again) == text


@pytest.mark.parametrize("word", ["each", "first", "last"])
@pytest.mark.parametrize("test", ["is null", "is not null", 'matches "x"'])
def test_a_name_that_selects_elsewhere_is_one_before_a_test(word: str, test: str) -> None:
    text = print_file(parse(f"define X() from A() and {word} {test}"))
    assert f"{word} {test}" in text
    assert print_file(parse(text)) == text


@pytest.mark.parametrize("argument", ["run", "run.ok", "run.x + 1"])
def test_not_before_an_aggregate_of_a_run_is_read_again(argument: str) -> None:
    for place in ("B(not (First({})))", "B() and not (First({}))", "B() where x = not (First({}))"):
        file = parse(f"define X(x: bool) from {place.format(argument)} rule r: define Y() from B()")
        text = print_file(file)
        assert f"not First({argument})" in text
        assert parse(text) == file


def test_not_before_an_event_of_a_function_s_name_negates_it() -> None:
    for text in ("not First() within 1 s from B", "not Count(x = 1) between A and B"):
        [rule] = parse(f"define X() from B() and each A() within 1 s from B and {text}").statements
        assert isinstance(rule, ast.Rule)
        assert isinstance(rule.clauses[1], ast.Negated)


def test_a_negated_event_of_a_function_s_name_is_quoted_if_it_has_conditions() -> None:
    text = "define X() from B() and not `first`(Avg(all) is null) within 1 us from B"
    file = parse(text)
    assert "not `first`(Avg(all) is null) within" in print_file(file)
    assert parse(print_file(file)) == file


def test_operands_get_the_parentheses_that_they_need() -> None:
    for text in (
        "(a + b) * c - d * e - (f - g)",
        "-(a + b) % -c",
        "a < b = (c < d)",
        "not not a = b",
        "(not a) = b",
        "a and not (b or c) and (d or e)",
        "a - -1",
        "-(-a)",
    ):
        item = f"({text})"
        file = parse(f"define A() from B({item})")
        [rule] = file.statements
        assert isinstance(rule, ast.Rule)
        [condition] = rule.terminator.conditions
        assert parse(f"define A() from B(({print_expression(condition)}))") == file


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (1, "1 us"),
        (1_500, "1500 us"),
        (90_000_000, "90 s"),
        (3_600_000_000, "1 h"),
        (86_400_000_000, "1 day"),
        (172_800_000_000, "2 days"),
    ],
)
def test_durations_are_printed_in_the_largest_unit_that_fits(microseconds: int, text: str) -> None:
    assert print_duration(microseconds) == text


def test_the_canonical_form() -> None:
    text = """event Temp( area :string,value: double );event Smoke(area: string)
    RULE fire : DEFINE Fire(area, measuredTemp : double) From Smoke(area==$a) and
    3 - LAST Temp(area=$a and(value>=45.50)and area<>'it''s') within 5min. from Smoke AND not
    Rain() between Temp and Smoke where area=$a AND measuredTemp=Temp.value Consuming Temp"""
    text = text.replace("'it''s'", "'it\\'s'")
    assert print_file(parse(text)) == (
        "event Temp(area: string, value: float)\n"
        "event Smoke(area: string)\n"
        "\n"
        "rule fire:\n"
        "define Fire(area, measuredTemp: float)\n"
        "from Smoke(area = $a) and\n"
        '     3-last Temp(area = $a, (value >= 45.5 and area != "it\'s")) '
        "within 5 min from Smoke and\n"
        "     not Rain() between Temp and Smoke\n"
        "where area = $a, measuredTemp = Temp.value\n"
        "consuming Temp\n"
    ).replace('(value >= 45.5 and area != "it\'s")', 'value >= 45.5, area != "it\'s"')


def test_parts_print_by_themselves() -> None:
    file = parse("event A(x: int) define B() from A(x > 3)")
    schema, rule = file.statements
    assert print_statement(schema) == "event A(x: int)"
    assert isinstance(rule, ast.Rule)
    assert print_rule(rule) == print_statement(rule) == "define B()\nfrom A(x > 3)"
    assert print_event(rule.terminator) == "A(x > 3)"


def test_reserved_words_are_the_only_words_that_cannot_be_names() -> None:
    assert not RESERVED.keys() & {word.lower() for word in WORDS}
    assert RESERVED.keys() == spelling.RESERVED

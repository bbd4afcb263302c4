"""Every form of the grammar (tesla.md section 2), and texts that are extreme or no TESLA at all."""

from random import Random

import pytest
from hypothesis import given, settings, strategies as some

import rules
from matcher.model import Kind
from rules.pattern import Policy
from rules.syntax import ast
from rules.syntax.parser import decode, parse, parse_filter, read
from rules.terms import Comparison, Function, Operator

VALID = """
event Temp(area: string, value: float)
event Smoke(area: string) # a comment
rule fire:
define Fire(area: string, measuredTemp: double, n)
from Smoke(area = $a) and
     45 < $t = Avg(Temp(area = $a).value within 5 min. from Smoke) and
     3-last Temp(value > -3.5e1, not (area prefix "x" or area = 'y')) as b within 5min from Smoke
     and not Temp($a, value % 2 <> 1) between b and Smoke and b within 3 s from Smoke
where area = Smoke.area and measuredTemp = $t, n = Count(Temp()) within 1 h from Smoke
consuming b;
"""


def rule_of(text: str) -> ast.Rule:
    [rule] = parse(text).statements
    assert isinstance(rule, ast.Rule)
    return rule


def clause_of(text: str) -> ast.Clause:
    [clause] = rule_of(f"define A() from E() and {text}").clauses
    return clause


def item_of(text: str) -> ast.Expression:
    [item] = rule_of(f"define A() from E({text})").terminator.conditions
    return item


def name(text: str) -> ast.Name:
    return ast.Name(text)


def bare(text: str) -> ast.Attribute:
    return ast.Attribute(None, name(text))


def integer(value: int) -> ast.Literal:
    return ast.Literal(value, Kind.INT)


# --- forms -----------------------------------------------------------------------------------


def test_keywords_in_any_case_and_optional_semicolons() -> None:
    plain = parse("define A(x) from E() and not F() within 1 s from E where x = true consuming E")
    loud = parse("DEFINE A(x) From E() AND NOT F() Within 1 s FROM E WHERE x = TRUE Consuming E;")
    assert plain == loud


def test_names_are_case_sensitive() -> None:
    assert parse("event a()") != parse("event A()")


def test_schemas() -> None:
    [schema] = parse("event T(a: int, b: float, c: double, d: bool, e: string)").statements
    kinds = [declared.kind for declared in schema.attributes]
    assert kinds == [Kind.INT, Kind.FLOAT, Kind.FLOAT, Kind.BOOL, Kind.STRING]
    assert parse("event T()").statements == (ast.Schema(name("T"), ()),)


@pytest.mark.parametrize(
    ("text", "policy", "rank"),
    [
        ("each F()", Policy.EACH, 0),
        ("first F()", Policy.FIRST, 1),
        ("LAST F()", Policy.LAST, 1),
        ("3-first F()", Policy.FIRST, 3),
        ("12 -  last F()", Policy.LAST, 12),
    ],
)
def test_selections(text: str, policy: Policy, rank: int) -> None:
    window = ast.Within(1_000_000, name("E"))
    expected = ast.Selected(policy, rank, ast.Event(name("F")), window)
    assert clause_of(f"{text} within 1 s from E") == expected


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("5min", 300_000_000),
        ("5 min", 300_000_000),
        ("5 min.", 300_000_000),
        ("5mins.", 300_000_000),
        ("1us", 1),
        ("2 MS", 2_000),
        ("3 s", 3_000_000),
        ("3 sec", 3_000_000),
        ("1.5 s", 1_500_000),
        ("1e-3 ms", 1),
        ("1 h", 3_600_000_000),
        ("2 hours", 7_200_000_000),
        ("1day", 86_400_000_000),
        ("2 days", 172_800_000_000),
    ],
)
def test_durations(text: str, microseconds: int) -> None:
    clause = clause_of(f"F within {text} from E")
    assert clause == ast.Timed(name("F"), ast.Within(microseconds, name("E")))


def test_durations_are_values() -> None:
    clause = clause_of("E.time - F.time < 1.5 min")
    apart = ast.Arithmetic(
        Operator.SUBTRACT,
        ast.Attribute(name("E"), name("time")),
        ast.Attribute(name("F"), name("time")),
    )
    compared = ast.Compared((apart, ast.Duration(90_000_000)), (Comparison.LESS,))
    assert clause == ast.Constraint(compared)


def test_both_windows_of_a_negation() -> None:
    event = ast.Event(name("F"), (), None)
    assert clause_of("not F() within 1 us from E") == ast.Negated(event, ast.Within(1, name("E")))
    between = ast.Between(name("E"), name("G"))
    assert clause_of("not F() between E and G") == ast.Negated(event, between)


def test_conditions_take_commas_and_ands() -> None:
    with_commas, with_ands = (
        rule_of("define A() from E($p, a = 1, b = 2)"),
        rule_of("define A() from E($p and a = 1 and b = 2)"),
    )
    assert with_commas == with_ands
    assert with_commas.terminator.conditions[0] == ast.Parameter("p")


@pytest.mark.parametrize(
    "text", ["Avg(F(x = 1).y within 1 us from E)", "AVG(F(x = 1).y) within 1 us from E"]
)
def test_both_forms_of_aggregates(text: str) -> None:
    equal = ast.Compared((bare("x"), integer(1)), (Comparison.EQUAL,))
    assert item_of(f"z > {text}") == ast.Compared(
        (
            bare("z"),
            ast.Aggregate(
                Function.AVG,
                ast.OfEvent(ast.Event(name("F"), (equal,)), name("y")),
                ast.Within(1, name("E")),
            ),
        ),
        (Comparison.GREATER,),
    )


def test_comparisons_chain() -> None:
    assert item_of("1 < $t = x != 3") == ast.Compared(
        (integer(1), ast.Parameter("t"), bare("x"), integer(3)),
        (Comparison.LESS, Comparison.EQUAL, Comparison.UNEQUAL),
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [("==", "="), ("<>", "!="), ("≠", "!="), ("≤", "<="), ("≥", ">="), ("PREFIX", "prefix")],
)
def test_operators_have_several_spellings(written: str, meant: str) -> None:
    assert item_of(f"a {written} b") == item_of(f"a {meant} b")


def test_precedence_from_tightest_to_loosest() -> None:
    times = ast.Arithmetic(Operator.MULTIPLY, integer(2), ast.Negative(bare("c")))
    total = ast.Arithmetic(
        Operator.SUBTRACT, ast.Arithmetic(Operator.ADD, bare("a"), times), bare("d")
    )
    left = ast.Not(ast.Compared((total, integer(3)), (Comparison.GREATER,)))
    right = ast.And((bare("e"), bare("f")))
    assert item_of("(not a + 2 * -c - d > 3 or e and f)") == ast.Or((left, right))


def test_nested_conjunctions_are_one() -> None:
    assert item_of("(a and (b and c) and d)") == item_of("(a and b and c and d)")
    assert item_of("(a or (b or c))") == item_of("(a or b or c)")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-5", -5),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1.5", 1.5),
        ("2e3", 2000.0),
        ("1E-2", 0.01),
        ("true", True),
        ('"a\\u00e9\\n\\"\\\\"', 'aé\n"\\'),
        ("'it\\'s \"so\" \\/'", 'it\'s "so" /'),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\u0000"', "\0"),
        ('"# no // comment"', "# no // comment"),
        ("''", ""),
    ],
)
def test_literals(text: str, value: object) -> None:
    literal = item_of(f"x = {text}").operands[1]
    assert literal.value == value
    assert type(literal.value) is type(value)


def test_words_of_the_language_are_names_elsewhere() -> None:
    text = """
    event each(first: int, last: int, event: string, rule: bool, as: float, min: int)
    event Count(prefix: string, s: int)
    rule rule:
    define define_(event)
    from each(first = $first, event prefix "x", event = rule) as as and
      last Count(prefix contains prefix, s = 3) as event within 5 s from as and
      as within 3 min from event and each within 2 h from last and
      not Count(s > 1) within 3 s from as and
      not Count(Count() within 1 s from as) > 2 and
      not avg(Avg(Count().s within 1 s from as) > 1) within 2 s from as
    where event = Count(Count() within 1 day from as)
    consuming event, as
    event event(event: int)
    """
    statements = parse(text).statements
    assert [type(statement).__name__ for statement in statements] == [
        "Schema",
        "Schema",
        "Rule",
        "Schema",
    ]
    kinds = [type(clause).__name__ for clause in statements[2].clauses]
    assert kinds == ["Selected", "Timed", "Timed", "Negated", "Constraint", "Negated"]


def test_spans_are_places_in_the_text() -> None:
    text = "event A(x: int)\ndefine B(y: int)\n  from A(x > 3) as a\n  where y = a.x + 1"
    rule = parse(text).statements[1]
    assert isinstance(rule, ast.Rule)

    def at(span: rules.Span) -> str:
        lines = text.split("\n")
        assert lines[span.line - 1][span.column - 1 :].startswith(
            text[span.start : span.end].split("\n")[0]
        )
        return text[span.start : span.end]

    assert at(rule.span) == text.partition("\n")[2]
    assert at(rule.terminator.span) == "A(x > 3) as a"
    assert at(rule.terminator.conditions[0].span) == "x > 3"
    assert at(rule.where[0].value.span) == "a.x + 1"
    assert at(rule.attributes[0].span) == "y: int"


def test_a_filter_is_a_type_or_an_event() -> None:
    assert parse_filter("Temp") == parse_filter("Temp()") == ast.Event(name("Temp"))
    for text in ("", "Temp(", "Temp() as t", "Temp() Temp()", "define", "Temp(x = @)"):
        with pytest.raises(rules.RuleErrors):
            parse_filter(text)


# --- errors and extremes ---------------------------------------------------------------------


def test_a_broken_statement_leaves_the_others_readable() -> None:
    reading = read("event A(x: int) event B(x int) define C() form A() event D()")
    assert [statement.type.text for statement in reading.file.statements] == ["A", "D"]
    assert len(reading.problems) == 2
    assert reading.lost == {"B", "C"}
    assert read("nonsense").lost == {None}


def test_unclosed_parentheses_do_not_swallow_the_next_rule() -> None:
    reading = read("define A() from E(x = (1 \n define B() from E() \n rule c: define C() from E()")
    assert [statement.type.text for statement in reading.file.statements] == ["B", "C"]


def test_bytes_that_are_not_utf8_are_refused_with_their_place() -> None:
    with pytest.raises(rules.RuleErrors, match=r"f\.tesla:2:7: not UTF-8: byte 0xff"):
        decode("event A()\n# ééé ".encode() + b"\xff\n", "f.tesla")
    assert decode("événement".encode()) == "événement"


def test_a_byte_order_mark_is_no_text() -> None:
    assert parse(decode(b"\xef\xbb\xbfevent A()")) == parse("event A()")


def test_a_long_chain_that_is_grouped_is_taken() -> None:
    """150 terms in a row are within the bound, and groups of so many are one level each."""
    chain = "(" + " + ".join(["1"] * 150) + ")"
    rules.load(f"event E(x: int)\ndefine A() from E(x = {' + '.join([chain] * 20)})")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 10_000 + "x" + ")" * 10_000, "nested deeper than 100 levels"),
        ("(" * 10_000, "nested deeper than 100 levels"),
        (")" * 10_000, "expected"),
        (")" * 20_000, "a statement of more than 20,000 words"),
        ("not " * 10_000 + "x", "more than 200 operators one upon another"),
        ("-" * 10_000 + "x", "more than 200 operators one upon another"),
        ("x" + " + 1" * 9_000, "may be grouped: (1 + 1) + (1 + 1)"),
        ("x = 1" + " = 1" * 9_000 + " =", "expected an expression"),
        ("x = 1" + " = 1" * 3_000, "more than 100 comparisons in one chain"),
        ("x = " + "9" * 100_000, "an integer beyond 64 bits"),
        ("x = " + "9" * 100_000 + ".0", "beyond the range of a float"),
        ("x = 1e" + "9" * 100_000, "beyond the range of a float"),
        ('x = "' + "a" * 1_000_000, "a string that does not end on its line"),
        ("x = \0", "unexpected character U+0000"),
        ('x = "\0"', "control character U+0000 in a string"),
        ("x = \ud800", "unexpected character U+D800"),
        ("x" * 1_000_000 + " x", 'found "x"'),
        ("x " * 10_000, "expected"),
        ("x " * 100_000, "a statement of more than 20,000 words"),
        ("a > 1 and " * 5_000 + "a > 1", "a statement of more than 20,000 words"),
        ("x = 1) and F within 1e999999999 s from E and (1 = 1", "too long"),
        ("x = 1) and F within 1e-999999999 s from E and (1 = 1", "less than a microsecond"),
    ],
)
def test_extreme_texts_are_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(rules.RuleErrors) as caught:
        rules.load(f"event E(x: int)\ndefine A() from E({text})")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 100_000  # a long line is shown in part


def test_a_string_of_a_megabyte_is_a_string() -> None:
    long = "é\\n" * 300_000
    checked = rules.load(f"event E(x: string) define A() from E(x = '{long}')")
    assert checked.rules[0].conditions[0].right.value == "é\n" * 300_000


def test_a_hundred_levels_are_allowed() -> None:
    inner = "x = 1"
    for _ in range(98):
        inner = f"not ({inner})"
    assert rules.load(f"event E(x: int) define A() from E({inner})").rules


def test_wide_expressions_are_not_deep() -> None:
    alternatives = " or ".join(f"x = {number}" for number in range(2_000))
    assert rules.load(f"event E(x: int) define A() from E(({alternatives}))").rules


@settings(max_examples=300, deadline=None, derandomize=True)
@given(some.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    refused_or_read(text)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(some.integers(0, 2**32), some.integers(1, 6))
def test_mutated_rules_are_read_or_refused(seed: int, changes: int) -> None:
    random = Random(seed)
    pieces = list(VALID)
    others = [
        *"()$.,;:=<>'\"-/#\n\0é5",
        " and ",
        " not ",
        "each ",
        " Avg(",
        " within 1 s ",
        "define ",
    ]
    for _ in range(changes):
        place = random.randrange(len(pieces))
        change = random.randrange(3)
        if change == 0:
            del pieces[place : place + random.randrange(1, 8)]
        elif change == 1:
            pieces.insert(place, random.choice(others))
        else:
            end = place + random.randrange(30)
            pieces[place:place] = pieces[place:end]
        if not pieces:
            break
    refused_or_read("".join(pieces))


def refused_or_read(text: str) -> None:
    for problem in problems_of(text):
        assert problem.span is not None
        assert 0 <= problem.span.start <= problem.span.end <= len(text)


def problems_of(text: str) -> tuple[rules.Problem, ...]:
    try:
        rules.load(text)
    except rules.RuleErrors as errors:
        return errors.problems
    return ()


def test_the_text_that_is_mutated_is_valid() -> None:
    assert len(rules.load(VALID).rules) == 1


@pytest.mark.parametrize("following", ["event B()", "rule next: define X() from B()"])
def test_an_event_called_all_may_be_the_last_word_of_a_statement(following: str) -> None:
    first = "define X() from all() and not B() within 1 s from all"
    assert len(parse(f"{first}\n{following}").statements) == 2


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("each 2..5", 2, 5),
        ("last 1..", 1, None),
        ("3-first 2 .. 4", 2, 4),
        ("first 12..12", 12, 12),
    ],
)
def test_iterations_have_bounds_whatever_the_type_is_called(
    text: str, least: int, most: int | None
) -> None:
    for type_name in ("Temp", "s", "Min", "Count", "lower", "each"):
        [rule] = parse(
            f"define A() from B() and {text} {type_name}(x = 1) within 2 s from B"
        ).statements
        assert isinstance(rule, ast.Rule)
        [clause] = rule.clauses
        assert isinstance(clause, ast.Selected)
        assert clause.times == ast.Times(least, most)
        assert isinstance(clause.event, ast.Event)
        assert clause.event.type == name(type_name)


@pytest.mark.parametrize("negated", ["Count(run) > 3", "First(run.x) = 3", "Min(run.x) in (3, 4)"])
def test_aggregates_of_runs_are_negated_as_values(negated: str) -> None:
    [rule] = parse(f"define A() from B() and not {negated}").statements
    assert isinstance(rule, ast.Rule)
    [clause] = rule.clauses
    assert isinstance(clause, ast.Constraint)
    assert isinstance(clause.item, ast.Not)


def test_bounds_that_are_no_bounds_are_explained() -> None:
    with pytest.raises(rules.RuleErrors, match=r"an iteration has bounds: 2..2, or 2.. without"):
        parse("define A() from B() and last 2 C() within 2 s from B")


@pytest.mark.parametrize(
    "text",
    [
        "from Timer(M = 00) as t and last T(v = 00) within 1 s from t",
        "from T(v = 01) as t",
        "from T(v = 1) as t and last T((v > 2 and v < 08)) within 1 s from t",
    ],
)
def test_numbers_have_no_leading_zero(text: str) -> None:
    with pytest.raises(rules.RuleErrors, match="leading zero"):
        rules.load(f"event T(v: int) define X() {text}")


def test_times_of_clocks_may_have_one() -> None:
    timer = "Timer(H = 09, M = 00, D = Friday) as t"
    (rule,) = rules.load(f"event T() define X() from {timer} and last T() within 1 s from t").rules
    assert "Timer(H = 9, M = 0, D = Friday)" in str(rule)

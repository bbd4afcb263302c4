"""Texts that are made to be long in reading: each is refused, or accepted, in a time in proportion
to its length, and what is short does not mean more than a rule may.
"""

import time
from collections.abc import Callable

import pytest

import rules
from rules.checking.expressions import REPEATED_MAX
from rules.errors import RuleErrors
from rules.language import load, load_ahead
from rules.subscription import parse_subscription
from rules.syntax.parser import WORDS_MAX, parse_filter

SIZE = 2**23
"""Characters of a long text; messages may bear twice as many."""
T = "event T(a: int, b: int?, s: string) "
PATTERN = "(a|b){2}" * 20
SECONDS_MAX = 20.0
"""For each of them: some two on a slow machine, and a minute where a word looks at all others."""


def filtered(text: str) -> None:
    parse_subscription(text, load(T).schemas)


HOSTILE: dict[str, tuple[Callable[[str], object], str]] = {
    "functions that do not close": (load, "define X() from T(" + "not Count(" * 15_000),
    "functions, each in another": (load, "define X() from T(" + "Count(lower(" * 10_000),
    "functions behind define": (load, "define X() from not lower(" * 10_000),
    "functions behind rule": (load, "define X() from T(a rule not lower(" * 8_000),
    "quotes behind backslashes": (load, 'define X() from T(a = "' + '\\"' * 100_000),
    "quotes behind escaped ends of lines": (load, 'define X() from T(a = "' + '\\\n\\"' * 100_000),
    "types that none of many is like": (
        load,
        " ".join(f"event Temperature{n}()" for n in range(5_000))
        + " ".join(f"define X{n}() from Tempersture{n}()" for n in range(5_000)),
    ),
    "rules that define what they wait for": (
        load,
        " ".join(f"define X{n}() from X{n}()" for n in range(15_000)),
    ),
    "rules in many ways": (
        load,
        " ".join(f"event A{n}(a: int) event B{n}(a: int)" for n in range(6))
        + " define X() from A0() or B0() as e0 and "
        + " and ".join(f"each A{n}() or B{n}() as e{n} within 1 s from e0" for n in range(1, 6))
        + " and e0.a > 1" * 4_500,
    ),
    "patterns": (
        filtered,
        "T(" + " and ".join(f's matches "{n}{PATTERN}"' for n in range(4_900)) + ")",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_long_to_be_refused(name: str) -> None:
    read, text = HOSTILE[name]
    before = time.process_time()
    with pytest.raises(rules.RuleErrors):
        read(text)
    assert time.process_time() - before < SECONDS_MAX


@pytest.mark.parametrize("joined", [" and ", " < ", ", "])
def test_a_long_filter_is_refused_by_its_length_at_the_word_that_is_one_too_many(
    joined: str,
) -> None:
    text = f"T({joined.join(['a'] * WORDS_MAX)})"
    with pytest.raises(rules.RuleErrors) as caught:
        parse_filter(text)
    [problem] = caught.value.problems
    assert problem.message == "a statement of more than 20,000 words"
    assert problem.span is not None
    assert len(text[: problem.span.start].replace("(", " ( ").replace(",", " , ").split()) == (
        WORDS_MAX
    )


def test_a_statement_may_be_as_long_as_that() -> None:
    wide = " and ".join(["a > 1"] * (WORDS_MAX // 4 - 2))
    filtered(f"T({wide})")
    assert len(load(f"{T} define X() from T({wide})").rules) == 1


@pytest.mark.parametrize(
    ("first", "around"),
    [
        ("b > 1", "({}) is null"),
        ("a in (1, 2)", "({}) in (true, false)"),
        ("a > 1", "true = ({}) = true"),
    ],
)
def test_what_doubles_with_each_level_is_refused_before_it_is_written_out(
    first: str, around: str
) -> None:
    """40 levels are 500 characters, and a million million terms."""
    condition = first
    for _ in range(40):
        condition = around.format(condition)
    before = time.process_time()
    for read, text in (
        (filtered, f"T({condition})"),
        (load, f"{T} define X() from T({condition})"),
    ):
        with pytest.raises(rules.RuleErrors, match="more than 20,000 terms, written out"):
            read(text)
    assert time.process_time() - before < SECONDS_MAX


def test_lists_of_many_values_are_within_the_bound() -> None:
    """Four lists of a thousand values, and the operand stands before each value."""
    assert REPEATED_MAX > 4 * 1_000 * 3
    values = ", ".join(map(str, range(1_000)))
    filtered(f"T({', '.join(f'a + {n} in ({values})' for n in range(4))})")


BOMBS = {
    "a string": ('define M() from A(x = "' + "a" * SIZE + '")', "a word of more than"),
    "a string that does not end": ('define M() from A(x = "' + "\\" * SIZE, "a word of more than"),
    "quotes in a string": ("define M() from A(x = '" + '"' * SIZE + "')", "a word of more than"),
    "a name in backquotes": ("rule `" + "m" * SIZE + "`: define M() from A()", "a word of more"),
    "backquotes": ("`" * (SIZE + 1), "does not end on its line"),
    "digits": ("define M() from A(x = " + "9" * SIZE + ")", "a word of more than"),
    "a zone": ("2024-06-01T09:30[" + "x" * SIZE + "]", "a word of more than"),
    "semicolons": (";" * SIZE, "a statement of more than 20,000 words"),
    "parentheses": ("define M() from A(" + "(" * SIZE, "nested deeper than 100 levels"),
    "beginnings of statements": ("event;" * (SIZE // 6), "expected the type of the event"),
    "characters that begin no word": ("!" * SIZE, "unexpected character !"),
    "lines": ("a\n" * (SIZE // 2), "a statement of more than 20,000 words"),
    "rules": ("define A() from B()\n" * (SIZE // 20), "unknown event type B"),
    "words": ("define A() from B()\n" + "x " * (SIZE // 2), "the text is read up to here"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_text_as_long_as_messages_may_be_is_read_in_short_steps(name: str) -> None:
    """Each took seconds in one step, or minutes in all; who deploys would have held up others.
    Steps are counted, not timed: words are read at most STEP_WORDS in a step.
    """
    text, message = BOMBS[name]
    steps = sum(1 for _ in load_ahead(text, file="f", known={}))
    assert steps < 60_000
    with pytest.raises(RuleErrors, match=message):
        rules.load(text)


def test_whatever_string_is_read_can_be_written_and_read_once_more() -> None:
    """A double quote between single ones takes two characters when it is written."""
    text = "event A(x: string) define M() from A(x = '{}')"
    with pytest.raises(RuleErrors, match="characters, escaped"):
        rules.load(text.format('"' * 1_048_576))
    checked = rules.load(text.format('"' * 1_048_575))
    again = rules.load("event A(x: string)\n" + checked.rules[0].text)
    assert again.rules[0].conditions[0].right == checked.rules[0].conditions[0].right


def test_a_long_statement_does_not_hide_the_next_one() -> None:
    text = "x " * 30_000 + "define A() from B() where y = 1 event C(z: int) event D(z: nothing)"
    with pytest.raises(RuleErrors) as refused:
        rules.load(text)
    said = str(refused.value)
    assert "a statement of more than 20,000 words" in said
    assert "unknown type nothing" in said

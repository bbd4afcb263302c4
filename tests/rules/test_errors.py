"""How problems are shown: place, text, carets, hint."""

import pickle

import pytest

import rules
from rules.checking.dependencies import TerminatorCycles
from rules.errors import (
    LINE_WIDTH_MAX,
    SHOWN_MAX,
    FilesErrors,
    Problem,
    RuleErrors,
    Span,
    did_you_mean,
)


def test_the_offending_text_is_underlined() -> None:
    error = RuleErrors([Problem("no such thing", Span(6, 9, 1, 7), "a hint")], "event foo()", "f")
    assert str(error) == "f:1:7: no such thing\n  event foo()\n        ^^^\n  hint: a hint"


def test_tabs_stay_tabs_so_that_carets_stand_under_their_text() -> None:
    error = RuleErrors([Problem("x", Span(2, 3, 1, 3))], "\t\tb")
    assert str(error).split("\n")[1:] == ["  \t\tb", "  \t\t^"]


def test_what_does_not_print_is_shown_as_a_blank() -> None:
    error = RuleErrors([Problem("x", Span(2, 3, 1, 3))], "\x1b\0b")
    assert str(error).split("\n")[1:] == ["    b", "    ^"]


def test_only_a_line_feed_ends_a_line() -> None:
    with pytest.raises(RuleErrors) as caught:
        rules.load("# \x0b \x0c \u2028 \r # here\r\ndefine A() from B()\r\n")
    assert [problem.span.line for problem in caught.value.problems if problem.span] == [2]
    assert "  define A() from B()\n                  ^" in str(caught.value)


def test_of_a_long_line_what_is_near_is_shown() -> None:
    line = "a" * 5_000 + "HERE" + "b" * 5_000
    shown = str(RuleErrors([Problem("x", Span(5_000, 5_004, 1, 5_001))], line)).split("\n")
    assert shown[0] == "<rules>:1:5001: x"
    assert len(shown[1]) == LINE_WIDTH_MAX + 2
    assert shown[1].index("HERE") == shown[2].index("^^^^")


def test_a_span_over_several_lines_is_underlined_on_its_first() -> None:
    text = "event A(x: int)\ndefine B(y: string) from A() where y = 1 +\n\n A.x"
    with pytest.raises(RuleErrors) as caught:
        rules.load(text)
    assert str(caught.value).endswith("where y = 1 +\n" + " " * 41 + "^^^")


def test_a_problem_of_the_whole_has_no_place() -> None:
    assert str(RuleErrors([Problem("all wrong")], "", "f.tesla")) == "f.tesla: all wrong"


def test_ten_thousand_problems_print_as_a_hundred() -> None:
    text = "define A() from Unknown()\n" * 10_000
    with pytest.raises(RuleErrors) as caught:
        rules.load(text)
    assert len(caught.value.problems) == 10_000
    assert str(caught.value).count("unknown event type") == SHOWN_MAX
    assert str(caught.value).endswith("and 9900 more problems")


def test_errors_of_several_files_come_one_after_the_other() -> None:
    first, second = RuleErrors([Problem("a")], "", "f"), RuleErrors([Problem("b")], "", "g")
    both = FilesErrors([first, second])
    assert str(both) == "f: a\ng: b"
    assert [problem.message for problem in both.problems] == ["a", "b"]


def test_errors_survive_pickling() -> None:
    one = RuleErrors([Problem("a", Span(0, 1, 1, 1))], "x", "f")
    for error in (one, FilesErrors([one, one]), TerminatorCycles([("A", "B")])):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.problems == error.problems


def test_the_nearest_word_is_suggested() -> None:
    assert did_you_mean("Tmep", ["Temp", "Smoke"]) == "did you mean Temp?"
    assert did_you_mean("temp", ["Temp", "tamp"]) == "did you mean Temp?"
    assert did_you_mean("Wind", ["Temp", "Smoke"]) is None

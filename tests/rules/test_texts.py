"""Functions of texts, and the bounds of patterns (rules.texts)."""

import pytest

from rules.terms import TextFunction
from rules.texts import PATTERN_MAX, TEXT_MAX, problem_of, result_of, results_of


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^a.*b$",
        "(?i)warn|error|fatal: .*",
        r"^\d{1,3}(?:\.\d{1,3}){3}$",
        r"[[:alpha:]_]\w*",
        r"\p{Lu}\p{Ll}+",
        r"\Q{[(\E",
        "a{,5}",
        "x" * PATTERN_MAX,
    ],
)
def test_patterns_that_people_write_are_allowed(pattern: str) -> None:
    assert problem_of(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("x" * (PATTERN_MAX + 1), "more than 200 characters"),
        (".{1000}", "more than 2000 steps"),
        ("a.{500}c", "more than 2000 steps"),
        ("((x{30}){30}){30}", "more than 2000 steps"),
        (r"\pL" * 50, "more than 2000 steps"),
        (r"[\pL\pN]{9}", "more than 2000 steps"),
        ("(?:(?:a|b){40}c){40}", "more than 2000 steps"),
        ("a(", "missing )"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)b", "invalid perl operator"),
        ("[z-a]", "invalid character class range"),
    ],
)
def test_patterns_that_may_take_long_or_are_none_are_refused(pattern: str, problem: str) -> None:
    assert problem in str(problem_of(pattern))


def test_a_pattern_is_found_anywhere_and_nothing_is_said_of_a_text_that_is_too_long() -> None:
    texts = ["", "ab", "xaby", "A\nab", "é", "b" * TEXT_MAX, "a" * (TEXT_MAX + 1)]
    found = TextFunction("ab|^é$|b$")
    expected = [False, True, True, True, True, True, None]
    assert results_of(found, texts) == expected
    assert [result_of(found)(text) for text in texts] == expected
    assert results_of(TextFunction(), ["ÀB", "straße", "ΑΣ"]) == ["àb", "straße", "ας"]
    assert results_of(found, []) == []

"""What the parser expected, said in words (tesla.md section 5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rules.errors import did_you_mean
from rules.tokens import RESERVED, Token

_AFTER: Mapping[str, str] = {
    "WITHIN": "a duration, like 5 min",
    "_FROM": "the name of an event",
    "BETWEEN": "the name of an event",
    "EACH": "an event, like Temp(value > 45)",
    "FIRST": "an event, like Temp(value > 45)",
    "LAST": "an event, like Temp(value > 45)",
    "FUNCTION": "( and an event",
    "DEFINE": "the type of the composite event",
    "EVENT": "the type of the event",
    "RULE": "the name of the rule",
    "_AS": "a name for the event",
    "_CONSUMING": "the name of an event",
    "_WHERE": "an attribute of the composite event",
    "_COLON": "a type: int, float, bool or string",
    "_DOT": "the name of an attribute",
}
"""What a name is, by what stands before it."""

_OPERANDS = frozenset({"NUMBER", "STRING", "PARAMETER", "FUNCTION", "TRUE", "FALSE"})
_OPERATORS = frozenset({"COMPARISON", "PLUS", "STAR", "SLASH", "PERCENT"})
_WORDS: Sequence[tuple[str, str]] = (
    ("DURATION", "a duration, like 5 min"),
    ("KIND", "a type: int, float, bool or string"),
    ("_LPAR", "("),
    ("RPAR", ")"),
    ("_COMMA", ","),
    ("_COLON", ":"),
    ("_AND", "and"),
    ("_OR", "or"),
    ("_AS", "as"),
    ("_FROM", "from"),
    ("WITHIN", "within"),
    ("BETWEEN", "between"),
    ("_WHERE", "where"),
    ("_CONSUMING", "consuming"),
    ("DEFINE", "define"),
    ("EVENT", "event"),
    ("RULE", "rule"),
    ("$END", "the end of the statement"),
)
_KEYWORDS = frozenset(RESERVED)


def describe(found: Token, before: Sequence[Token], expected: Collection[str]) -> str:
    """``expected X, Y or Z, found W``."""
    wanted = _wanted(before, frozenset(expected))
    said = wanted[0] if len(wanted) == 1 else f"{', '.join(wanted[:-1])} or {wanted[-1]}"
    return f"expected {said}, found {_shown(found)}"


def hint(found: Token, expected: Collection[str]) -> str | None:
    """A word that was meant, or one that may not be a name."""
    if found.text.lower() in _KEYWORDS and "NAME" in expected:
        return f"{found.text} is a reserved word"
    if found.type == "NAME":
        words = [word for kind, word in _WORDS if kind in expected and word.isalpha()]
        return did_you_mean(found.text, words)
    return None


def _wanted(before: Sequence[Token], expected: frozenset[str]) -> list[str]:
    wanted = []
    last = before[-1].type if before else ""
    if expected & {"EACH", "RANK"}:
        wanted.append("each, first or last with an event, not, the name of an event")
    if expected & _OPERANDS:
        wanted.append("an expression")
    elif "NAME" in expected:
        wanted.append(_AFTER.get(last, "a name"))
    if expected & _OPERATORS:
        wanted.append("an operator")
    elif "EQUAL" in expected:
        wanted.append("=")
    wanted.extend(word for kind, word in _WORDS if kind in expected)
    return wanted or ["nothing more"]


def _shown(found: Token) -> str:
    if found.type == "$END":
        return "the end of the statement"
    return found.text if len(found.text) <= 40 else f"{found.text[:40]}..."

"""The look of TESLA in editors: patterns for words of each kind, made from the parser's own tables.

Where a word is one of the language only beside certain others, the pattern looks at these, as
:mod:`rules.syntax.tokens` does, but no further than a regular expression can. ``rexmq.lexer`` makes
a lexer of Pygments of it, ``tools/textmate.py`` a grammar of TextMate, for VS Code and GitHub.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from rules.syntax.tokens import CALLS, FUNCTIONS, KINDS, UNITS, WORDS
from rules.syntax.words import RESERVED


class Highlight(NamedTuple):
    """Words of a kind: a pattern, the name of their scope in TextMate, and of their token in
    Pygments.
    """

    pattern: str
    scope: str
    token: str


def _any(words: Iterable[str]) -> str:
    """A pattern of words, in any case, the longest first."""
    return f"(?i:{'|'.join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))})"


_NAME = r"(?:[^\W\d]\w*|`[^`\n]*(?:``[^`\n]*)*`)"
_SELECTS = frozenset({"all", "each", "first", "last"})
_CONSTANTS = frozenset({"true", "false"})
_PLACED = frozenset({*_SELECTS, "event", "rule", "while", "as", "is", "null"})
"""Words that have patterns of their own."""
_FUNCTIONS = FUNCTIONS | CALLS
_BETWEEN = frozenset(WORDS) - _FUNCTIONS - _PLACED
"""Words between operands."""
_TIMES = r"(?:\d+\s*(?:\.\.)?\s*\d*\s+)?"
_DEFINED = r"(?<!define )"
_BEHIND_COLON = r"(?:(?<=:)|(?<=: ))"
_RESERVED_FOLLOWS = rf"\s+{_any(RESERVED)}\b"

HIGHLIGHTS: tuple[Highlight, ...] = (
    Highlight(r"#[^\n]*|//[^\n]*", "comment.line", "Comment.Single"),
    Highlight(
        r"\"(?:[^\"\\\n]|\\[^\n])*\"|'(?:[^'\\\n]|\\[^\n])*'", "string.quoted", "Literal.String"
    ),
    Highlight(r"\$[^\W\d]\w*", "variable.parameter", "Name.Variable"),
    Highlight(rf"\b{_any(RESERVED.keys() - _CONSTANTS)}\b", "keyword.control", "Keyword"),
    Highlight(rf"\b{_any(_CONSTANTS)}\b", "constant.language", "Keyword.Constant"),
    Highlight(rf"\b(?i:event)(?=\s+{_NAME}\s*\()", "keyword.other", "Keyword.Declaration"),
    Highlight(rf"\b(?i:rule)(?=\s+{_NAME}\s*:)", "keyword.other", "Keyword.Declaration"),
    Highlight(rf"\b{_any(_SELECTS)}(?=\s+{_TIMES}{_NAME}\s*\()", "keyword.control", "Keyword"),
    Highlight(r"\b(?i:while)(?=\s+[^\s=<>!,.)])", "keyword.control", "Keyword"),
    Highlight(rf"\b(?i:as)(?!{_RESERVED_FOLLOWS})(?=\s+{_NAME})", "keyword.control", "Keyword"),
    Highlight(r"\b(?i:is)(?=\s+(?:(?i:not)\s+)?(?i:null)\b)", "keyword.operator", "Operator.Word"),
    Highlight(r"(?:(?<=is )|(?<=not ))(?i:null)\b", "constant.language", "Keyword.Constant"),
    Highlight(
        rf"\b{_any(_BETWEEN - {'in'})}\b(?=\s*[\"'$\w`])|\b(?i:in)(?=\s*\()",
        "keyword.operator",
        "Operator.Word",
    ),
    Highlight(rf"{_DEFINED}\b{_any(_FUNCTIONS)}(?=\s*\()", "support.function", "Name.Builtin"),
    Highlight(rf"{_BEHIND_COLON}{_any(KINDS)}\b\??", "storage.type", "Keyword.Type"),
    Highlight(
        r"\d{4}-\d{2}-\d{2}(?:[Tt][0-9:.]+(?:[Zz]|[+-][0-9:]+)?)?(?:\[[^\]\n]*\])?",
        "constant.other.instant",
        "Literal.Date",
    ),
    Highlight(
        rf"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:\s*{_any(UNITS)}\b)?",
        "constant.numeric",
        "Literal.Number",
    ),
    Highlight(rf"{_NAME}(?=\s*\()", "entity.name.type", "Name.Class"),
    Highlight(_NAME, "variable.other", "Name"),
    Highlight(r"<=|>=|<>|==|!=|[-+*/%=<>≠≤≥?]", "keyword.operator", "Operator"),
    Highlight(r"[(),:;.]", "punctuation", "Punctuation"),
)
"""The first pattern that matches at a place says what stands there."""

"""From characters to words: where each stands, of what kind it is, and what it is worth.

A word bears its value: numbers, strings with their escapes resolved. What is wrong with a value is
a :class:`Problem`, and the word stands all the same, so that the rest of the text is checked too. A
character that begins no word becomes one of type ``BAD``, which no statement accepts. Which words
are words of the language is decided by their neighbours, in :mod:`rules.syntax.tokens`; here only
the reserved ones are told from names.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from matcher.spelling import PLAIN
from rules.errors import Problem, Span
from rules.instants import instant_of
from rules.stepwise import STEP_WORDS, Stepwise, finished


class Token(NamedTuple):
    """A word of the text: its ``type`` in the grammar, its ``text``, its ``value``."""

    type: str
    text: str
    value: Any
    span: Span


TIMER, TIMER_WORDS_MAX = "Timer", 40
"""The type of ticks, and how many words of its parentheses are looked at."""
_PADDED = re.compile("0[0-9]")
NAME_MAX = 200
"""Characters in a name. What is made of it, ``rexmq/rule/NAME#2`` say, must fit where links between
brokers have 255."""
WORDS_MAX = 20_000
"""Words of a statement, which is read and checked in one go: a second is long for a broker."""
TEXT_WORDS_MAX = 600_000
"""Words of a text: some ten thousand rules, which take a broker some seconds, in slices."""
PROBLEMS_MAX = 10_000
"""Problems of words after which a text is read no further."""
WORD_MAX = 2**21
"""Characters of a word. A string must be no longer when it is written with all escapes: so whatever
is read can be written, and read once more."""
STATEMENT_STARTS = frozenset({"event", "rule", "define"})
RESERVED: Mapping[str, str] = {
    "define": "DEFINE",
    "from": "_FROM",
    "where": "_WHERE",
    "consuming": "_CONSUMING",
    "and": "_AND",
    "or": "_OR",
    "not": "NOT",
    "within": "WITHIN",
    "between": "BETWEEN",
    "true": "TRUE",
    "false": "FALSE",
}
_SYMBOLS: Mapping[str, str] = {
    "(": "_LPAR",
    ")": "RPAR",
    ",": "_COMMA",
    ":": "_COLON",
    ";": "_SEMICOLON",
    ".": "_DOT",
    "+": "PLUS",
    "-": "MINUS",
    "*": "STAR",
    "/": "SLASH",
    "%": "PERCENT",
    "=": "EQUAL",
    "==": "EQUAL",
    "!=": "COMPARISON",
    "<>": "COMPARISON",
    "≠": "COMPARISON",
    "<": "COMPARISON",
    "<=": "COMPARISON",
    "≤": "COMPARISON",
    ">": "COMPARISON",
    ">=": "COMPARISON",
    "≥": "COMPARISON",
    "?": "QUESTION",
}
SPELLINGS: Mapping[str, str] = {"==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
"""Operators that are written in more than one way, and the canonical one."""

_BLANK = r"[ \t\r\n\f\ufeff]+ | \#[^\n]* | //[^\n]*"
_PATTERNS: Mapping[str, str] = {
    "name": PLAIN,
    "quoted": r"`[^`\n]*+(?:``[^`\n]*+)*+`",
    "symbol": "<= | >= | <> | == | != | [-(),:;.+*/%=<>≠≤≥?]",
    "instant": r"""[0-9]{4}-[0-9]{2}-[0-9]{2}
        (?:[Tt][0-9:.]+ (?:[Zz]|[+-][0-9:]+)?)? (?:\[[^]\n]*\])?""",
    "number": r"[0-9]+ (?:\.[0-9]+)? (?:[eE][+-]?[0-9]+)?",
    "parameter": r"\$[^\W\d]\w*",
    # Nothing is given back (*+), or one that does not end would be looked through twice.
    "string": r""" "[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+" | '[^'\\\n]*+(?:\\[^\n][^'\\\n]*+)*+' """,
    # One that does not end is looked for once: all of its line is bad.
    "bad": r"""["'][^\n]* | .""",
}
_ANY = " | ".join(f"(?: {pattern} )" for pattern in _PATTERNS.values())
_NAMED = " | ".join(f"(?P<{name}> {pattern} )" for name, pattern in _PATTERNS.items())
_WORDS_IN_TEXT = re.compile(rf"((?: {_BLANK} )*) ( {_ANY} | \Z )", re.VERBOSE | re.DOTALL)
_BLANKS_IN_TEXT = re.compile(rf"(?P<blank> {_BLANK} ) | {_NAMED}", re.VERBOSE | re.DOTALL)
_WORD = re.compile(_NAMED, re.VERBOSE | re.DOTALL)


def is_longer(text: str, most: int) -> bool:
    """Whether a text has more than so many words; they are counted, not read."""
    words = _WORDS_IN_TEXT.finditer(text.rstrip())  # and the end
    return next(itertools.islice(words, most + 1, None), None) is not None


def scan(text: str) -> tuple[list[Token], list[Problem]]:
    """The words of a text, comments left out, and what is wrong with them.

    Every word that is not reserved counts as a name.
    """
    return finished(scanning(text))


def scanning(text: str) -> Stepwise[tuple[list[Token], list[Problem]]]:
    """The same, some words at a time."""
    tokens: list[Token] = []
    problems: list[Problem] = []
    read: dict[str, tuple[str, str, Any]] = {}  # words of which nothing is wrong, but their places
    start, line, line_start = 0, 1, 0
    count, long_from, is_long = 0, WORDS_MAX + 1, False
    new = tuple.__new__  # what a NamedTuple calls in the end, without the detour: there are many
    for match in _WORDS_IN_TEXT.finditer(text):
        blank, word = match[1], match[2]
        if blank:
            start += len(blank)
            if blank != " " and "\n" in blank:
                line += blank.count("\n")
                line_start = text.rfind("\n", 0, start) + 1
        if not word:
            break  # the end of the text
        count += 1
        if count % STEP_WORDS == 0:
            yield
        end = start + len(word)
        span = new(Span, (start, end, line, start - line_start + 1))
        if count > TEXT_WORDS_MAX or len(problems) >= PROBLEMS_MAX:
            bound = f"more than {TEXT_WORDS_MAX:,} words, or {PROBLEMS_MAX:,} problems"
            problems.append(Problem(f"the text is read up to here: {bound}", span))
            break
        if len(tokens) >= long_from:
            if word.lower() in STATEMENT_STARTS:
                long_from = len(tokens) + WORDS_MAX + 1
            elif not is_long:
                long_from = _long_from(tokens)
            if is_long := len(tokens) >= long_from:  # it is refused, whatever follows in it
                start = end
                continue
        known = read.get(word)
        if known is None:
            found = len(problems)
            reader = _too_long if len(word) > WORD_MAX else _READERS[_group(word)]
            type_, value = reader(word, span, problems)
            known = type_, word, value
            is_padded = type_ == "NUMBER" and _PADDED.match(word) is not None
            if is_padded and not _is_of_timer(tokens):
                hint = f"a date: {_INSTANTS}"
                problems.append(Problem("a number with a leading zero", span, hint))
            if found == len(problems) and not is_padded:
                read[word] = known
        tokens.append(new(Token, (*known, span)))
        start = end
    return tokens, problems


def _long_from(tokens: Sequence[Token]) -> int:
    """How many words there may be until the last statement is too long to be read."""
    begun = len(tokens) - 1
    while begun >= 0 and tokens[begun].text.lower() not in STATEMENT_STARTS:
        begun -= 1
    return max(begun, 0) + WORDS_MAX + 1


def _is_of_timer(tokens: Sequence[Token]) -> bool:
    """Whether what follows stands in the parentheses of a Timer: clocks show M = 00."""
    behind = [token.text for token in tokens[-TIMER_WORDS_MAX:]]
    opens = max((place for place, text in enumerate(behind) if text == "("), default=0)
    return opens > 0 and behind[opens - 1] == TIMER and ")" not in behind[opens:]


def _group(word: str) -> str:
    """The name of the pattern that a word matches."""
    match = _WORD.match(word)
    assert match is not None, "any character is a word"
    assert match.lastgroup is not None, "all patterns have names"
    return match.lastgroup


def comments(text: str) -> list[tuple[Span, str]]:
    """The comments of a text, with their marks, and their places."""
    found = []
    line, counted = 1, 0
    for match in _BLANKS_IN_TEXT.finditer(text):
        word, (start, end) = match[0], match.span()
        if match.lastgroup == "blank" and word.startswith(("#", "//")):
            line, counted = line + text.count("\n", counted, start), start
            column = start - text.rfind("\n", 0, start)
            found.append((Span(start, end, line, column), word.rstrip()))
    return found


# --- values ----------------------------------------------------------------------------------


def _too_long(word: str, span: Span, problems: list[Problem]) -> tuple[str, Any]:
    problems.append(Problem(f"a word of more than {WORD_MAX:,} characters", span))
    return "BAD", word


def _name(word: str, span: Span, problems: list[Problem]) -> tuple[str, Any]:
    if len(word) > NAME_MAX:
        problems.append(Problem(f"a name of more than {NAME_MAX} characters", span))
    return RESERVED.get(word.lower(), "NAME"), word


def _quoted(word: str, span: Span, problems: list[Problem]) -> tuple[str, Any]:
    """A name in backquotes: its text keeps them, so that it is no word of the language."""
    name = word[1:-1].replace("``", "`")
    if not name:
        problems.append(Problem("a name of no characters", span))
    if len(name) > NAME_MAX:
        problems.append(Problem(f"a name of more than {NAME_MAX} characters", span))
        return "NAME", name
    wrong = next((one for one in name if unicodedata.category(one) in ("Cc", "Cs")), None)
    if wrong is not None:
        problems.append(Problem(f"character U+{ord(wrong):04X} in a name", span))
    return "NAME", name


def _symbol(word: str, span: Span, problems: list[Problem]) -> tuple[str, Any]:
    return _SYMBOLS[word], SPELLINGS.get(word, word)


def _number(word: str, span: Span, problems: list[Problem]) -> tuple[str, Any]:
    if word.isdecimal():
        digits = word.lstrip("0")
        # One more than the greatest is the least one's magnitude: the checker, which knows the
        # sign, draws the line there.
        if len(digits) < 20 and int(digits or "0") <= 2**63:
            return "NUMBER", int(digits or "0")
        problems.append(Problem("an integer beyond 64 bits", span))
        return "NUMBER", 0
    value = float(word)
    if not math.isfinite(value):
        problems.append(Problem("a number beyond the range of a float", span))
        return "NUMBER", 0.0
    return "NUMBER", value


def _instant(word: str, span: Span, problems: list[Problem]) -> tuple[str, Any]:
    """A date or an instant, UTC unless it names an offset or a zone."""
    try:
        return "INSTANT", instant_of(word)
    except ValueError as error:
        problems.append(Problem(str(error), span, _INSTANTS))
        return "INSTANT", 0


_INSTANTS = "write 2024-06-01, 2024-06-01T09:30:00Z or 2024-06-01T09:30[Europe/Rome]"


def _parameter(word: str, span: Span, problems: list[Problem]) -> tuple[str, Any]:
    if len(word) > NAME_MAX:
        problems.append(Problem(f"a name of more than {NAME_MAX} characters", span))
    if word[1:].lower() in RESERVED:
        problems.append(Problem(f"{word[1:]} is a reserved word and names no parameter", span))
    return "PARAMETER", word[1:]


def _string(word: str, span: Span, problems: list[Problem]) -> tuple[str, Any]:
    body = word[1:-1]
    if word[0] == "'" or "\\'" in body:
        # JSON knows one quote: what stands between ours is written again between its own.
        body = re.sub(r'\\.|"', lambda found: _REQUOTED.get(found[0], found[0]), body, flags=re.S)
    try:
        value = json.loads(f'"{body}"')
        value.encode()
    except UnicodeEncodeError:
        problems.append(Problem("half of a surrogate pair in a string", span))
        value = ""
    except ValueError:
        problems.append(_string_problem(word, span))
        value = ""
    if 2 * len(value) > WORD_MAX - 2 and len(json.dumps(value, ensure_ascii=False)) > WORD_MAX:
        problems.append(Problem(f"a string of more than {WORD_MAX:,} characters, escaped", span))
    return "STRING", value


_REQUOTED: Mapping[str, str] = {'"': '\\"', "\\'": "'"}
_ESCAPE = re.compile(r'\\(?:["\'\\/bfnrt]|u[0-9a-fA-F]{4})|(?P<wrong>\\.|[\x00-\x1f])', re.DOTALL)


def _string_problem(word: str, span: Span) -> Problem:
    """The problem of a string that JSON would not have, and its place."""
    found = next(found for found in _ESCAPE.finditer(word) if found["wrong"])
    wrong, start = found["wrong"], span.start + found.start()
    place = Span(start, start + len(wrong), span.line, span.column + found.start())
    if len(wrong) == 1:
        message = f"control character U+{ord(wrong):04X} in a string"
        return Problem(message, place, f"write it as \\u{ord(wrong):04x}")
    escapes = "\\\" \\' \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"
    return Problem("no escape of a string", place, f"escapes are those of JSON: {escapes}")


def _bad(word: str, span: Span, problems: list[Problem]) -> tuple[str, Any]:
    if word[0] in "\"'":
        place = Span(span.start, span.start + 1, span.line, span.column)
        problems.append(Problem("a string that does not end on its line", place))
    elif word == "`":
        problems.append(Problem("a name in backquotes that does not end on its line", span))
    elif word == "$":
        problems.append(Problem("expected the name of a parameter after $, like $area", span))
    elif word.isprintable():
        problems.append(Problem(f"unexpected character {word}", span, _MEANT.get(word)))
    else:
        problems.append(Problem(f"unexpected character U+{ord(word):04X}", span))
    return "BAD", word


_MEANT: Mapping[str, str] = {
    "!": "write != or not",
    "&": "write and",
    "|": "write or",
    **dict.fromkeys("[{", "write ("),
    **dict.fromkeys("]}", "write )"),
}
_READERS: Mapping[str, Callable[[str, Span, list[Problem]], tuple[str, Any]]] = {
    "name": _name,
    "quoted": _quoted,
    "symbol": _symbol,
    "instant": _instant,
    "number": _number,
    "parameter": _parameter,
    "string": _string,
    "bad": _bad,
}
"""The type and the value of a word, by the group of the pattern that it matches."""

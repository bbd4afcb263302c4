"""Words for what the parser expected (tesla.md section 5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

from rules.errors import did_you_mean
from rules.syntax.words import RESERVED, Token
from rules.terms import TEXT_FUNCTIONS, Function, NumberFunction

_AN_EVENT = "an event, like Temp(value > 45)"
_A_KIND = "a type: int, float, bool or string"
_AFTER: Mapping[tuple[str, ...], str] = {
    (): "the type of an event",
    ("DURATION", "_FROM"): "the name of an event",
    ("FUNCTION", "_LPAR"): _AN_EVENT,
    ("_FROM",): _AN_EVENT,
    ("EACH",): _AN_EVENT,
    ("FIRST",): _AN_EVENT,
    ("LAST",): _AN_EVENT,
    ("TIMES",): _AN_EVENT,
    ("RPAR", "_OR"): _AN_EVENT,
    ("BETWEEN",): "the name of an event",
    ("DEFINE",): "the type of the composite event",
    ("EVENT",): "the type of the event",
    ("RULE",): "the name of the rule",
    ("_AS",): "a name for the event",
    ("_CONSUMING",): "the name of an event",
    ("_WHERE",): "an attribute of the composite event",
    ("_DOT",): "the name of an attribute",
}
"""The role of a name, by the one or two tokens before it, or by none."""

_OPERANDS = frozenset({"NUMBER", "STRING", "PARAMETER", "FUNCTION", "TRUE", "FALSE"})
_OPERATORS = frozenset({"COMPARISON", "PLUS", "STAR", "SLASH", "PERCENT"})
_DESCRIBED: Mapping[str, str] = {"DURATION": "a duration, like 5 min", "KIND": _A_KIND}
_LITERALLY: Mapping[str, str] = {
    "_LPAR": "(",
    "RPAR": ")",
    "_COMMA": ",",
    "_COLON": ":",
    "_AND": "and",
    "_OR": "or",
    "_AS": "as",
    "_FROM": "from",
    "WITHIN": "within",
    "BETWEEN": "between",
    "_WHERE": "where",
    "_CONSUMING": "consuming",
    "DEFINE": "define",
    "EVENT": "event",
    "RULE": "rule",
}
FUNCTION_NAMES = (
    *(function.value for function in Function),
    *(function.value for function in NumberFunction),
    *TEXT_FUNCTIONS,
)
_END = "the end of the statement"
_ENDS = frozenset({"$END", "_SEMICOLON"})
_STARTS = ("EVENT", "RULE", "DEFINE")
_NEXT = {
    "statement": "a statement begins with event, rule NAME: or define",
    "subscription": "a subscription is one event: TYPE, or TYPE(conditions)",
}
"""The words that may stand behind the end, by what is read."""


def describe(found: Token, before: Sequence[Token], expected: Collection[str]) -> str:
    """``expected X, Y or Z, found W``."""
    wanted = _wanted(tuple(token.type for token in before[-2:]), frozenset(expected))
    said = wanted[0] if len(wanted) == 1 else f"{', '.join(wanted[:-1])} or {wanted[-1]}"
    return f"expected {said}, found {_shown(found)}"


def hint(found: Token, before: Sequence[Token], expected: Set[str], start: str) -> str | None:
    """A hint at what may have been meant, where a ``start`` (of the grammar) is read."""
    word = found.text.lower()
    habit = _habit(found, before, expected)
    if habit is not None:
        return habit
    if found.type == "_OR":
        if len(before) > 1 and before[-2].type == "_AS":
            return "events with or between them have one name, behind the last"
        if "WITHIN" in expected:
            return "only the terminator and selected events may be of either type"
        return "alternatives stand in parentheses: (a = 1 or b = 2)"
    if found.type == "NUMBER" and "TIMES" in expected:
        return f"an iteration has bounds: {word}..{word}, or {word}.. without an upper one"
    if word == "is" and expected & _OPERATORS:
        return "write is null, or is not null"
    if word in RESERVED and "NAME" in expected:
        return f"{found.text} is a reserved word"
    if found.type == "_LPAR" and before and before[-1].type == "NAME":
        if len(before) > 1 and before[-2].type == "_DOT":
            return "the type of an event is one name, without dots"
        habit = _FUNCTIONS_ELSEWHERE.get(before[-1].text.lower())
        near = habit or did_you_mean(before[-1].text, FUNCTION_NAMES)
        if near is None and "WITHIN" in expected:
            return "an event behind the first is selected: each, first or last stands before it"
        return near or f"functions are {', '.join(FUNCTION_NAMES)}"
    if word in ("each", "first", "last") and "_AND" in expected:
        return 'clauses are joined by "and"'
    words = _words(expected)
    if "$END" in expected and (word in words or expected <= _ENDS):
        near = None if word in words else did_you_mean(found.text, words)
        return near or _NEXT[start]
    return did_you_mean(found.text, words) if found.type == "NAME" else None


def _habit(found: Token, before: Sequence[Token], expected: Set[str]) -> str | None:
    """A hint for who writes another language, SQL say."""
    word, last = found.text.lower(), before[-1].type if before else ""
    if word == "between" and "COMPARISON" in expected:
        return "write 1 <= value <= 5; between NAME and NAME is a window of time"
    if found.type == "MINUS" and expected >= {"_AND", "_WHERE"}:
        return "events look back from the last one: from B() as b and each A() within 5 min from b"
    if expected == {"EQUAL"} and found.type in ("COMPARISON", "_DOT"):
        return (
            "where gives an attribute its value, name = ...; conditions stand in the parentheses "
            "of an event, or behind and"
        )
    if last == "NAME" and expected == {"_LPAR"} and found.type in ("_WHERE", "_AND", "$END"):
        return f"an event has parentheses: {before[-1].text}()"
    if last == "DURATION" and expected == {"_FROM"}:
        return "a window ends at an event: within 5 min from NAME"
    if last == "NAME" and before[-1].text.lower() == "distinct":
        return _FUNCTIONS_ELSEWHERE["count_distinct"]
    is_name = found.type == "NAME" and "NAME" not in expected
    return _HABITS.get(word) if is_name else None


_HABITS: Mapping[str, str] = {
    "like": 'write prefix, suffix, contains or matches: name prefix "a"',
    "group": "a parameter makes groups: key = $k in each event",
    "partition": "a parameter makes groups: key = $k in each event",
    "having": "a condition on an aggregate is a clause: and Count(...) > 5",
    "order": "composite events come in the order of time; first and last choose by it",
    "limit": "first, last and 3-last choose events",
    "select": "a rule is: define TYPE(name) from EVENT(conditions) where name = value",
    "join": "events are joined by clauses: and each B(key = $k) within 5 min from a",
}
"""Words of SQL, and what stands for them here."""


_NO_TEXTS = "no function makes new texts (S10): define an attribute for each part"
_NO_WAVES = "machines round it otherwise (S10): let the source give the value, or x and y in metres"
_NO_RANKS = "the page on coming from other languages has medians and percentiles as patterns"
_FUNCTIONS_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        ("concat", "format", "substring", "substr", "replace", "text", "str"), _NO_TEXTS
    ),
    **dict.fromkeys(("sin", "cos", "tan", "atan2", "exp", "log", "ln", "distance"), _NO_WAVES),
    **dict.fromkeys(("median", "percentile", "quantile", "percentile_cont"), _NO_RANKS),
    **dict.fromkeys(("pow", "power"), "multiply: x * x; or write sqrt(x)"),
    **dict.fromkeys(("mean", "average"), "write Avg(T().value within 5 min from a)"),
    **dict.fromkeys(("now", "current_timestamp"), "NAME.time is when an event occurred"),
    **dict.fromkeys(("lag", "prev"), "write previous.value in an iteration: last 2.. T() as run"),
    **dict.fromkeys(("coalesce", "ifnull"), "write a rule for each case: value is null"),
    **dict.fromkeys(
        ("countdistinct", "count_distinct"), "define first uses by a rule, and count these"
    ),
}
"""Functions of other languages, and what stands for them here."""


def _words(expected: Collection[str]) -> list[str]:
    """The words that could stand here, those of a next statement where this one may end."""
    kinds = {*expected, *(_STARTS if "$END" in expected else ())}
    return [word for kind, word in _LITERALLY.items() if kind in kinds and word.isalpha()]


def _wanted(before: tuple[str, ...], expected: frozenset[str]) -> list[str]:
    wanted = []
    if "EACH" in expected:
        wanted.append('an event with "each", "first", "last" or "not"')
    if expected & _OPERANDS == {"STRING"}:
        wanted.append('a pattern, a string like "^a.*"')
    elif expected & _OPERANDS:
        wanted.append("an expression")
    elif "NAME" in expected:
        wanted.append(_AFTER.get(before) or _AFTER.get(before[-1:], "a name"))
    if expected & _OPERATORS:
        wanted.append("an operator")
    elif "EQUAL" in expected:
        wanted.append('"="')
    elif "IN" in expected:
        wanted.extend(['"in"', '"matches"'])
    if not expected & _OPERANDS:  # a duration, or a parenthesis, is an expression like any other
        wanted.extend(text for kind, text in _DESCRIBED.items() if kind in expected)
        wanted.extend(['"("'] if "_LPAR" in expected else ())
    wanted.extend(
        f'"{text}"' for kind, text in _LITERALLY.items() if kind in expected and kind != "_LPAR"
    )
    if "$END" in expected:
        wanted.append(_END)
    return wanted or ["nothing more"]


def _shown(found: Token) -> str:
    if found.type == "$END":
        return _END
    shown = found.text if len(found.text) <= 40 else f"{found.text[:40]}..."
    return f"the string {shown}" if found.type == "STRING" else f'"{shown}"'

"""From text to tokens; which words are words of the language is decided here (tesla.md section 2).

Rule 1: the reserved words are keywords everywhere, in any case. Every other word of the language is
recognised by its neighbours and is a name elsewhere: ``each`` only between ``and`` and ``TYPE (``,
``all`` only between ``from`` and ``TYPE (``, a function only before ``(`` where no event type can
stand, ``prefix`` and ``in`` only after an operand, ``event`` only before ``NAME (`` outside
parentheses, ``rule`` only before ``NAME :``, ``as`` only after ``)``, a unit only after a number, a
type of an attribute only after ``NAME :``, ``is`` only before ``null`` or ``not null``, and these
only there. So the grammar proper is LALR(1) and has no words to
disentangle. A mistake right behind such a word must be told where it is, not at the word: so where
no name could stand anyway, a word of the language is one whatever follows. In ``event a.b(x: int)``
at the beginning of a text ``event`` is the word, and the dot is what is wrong.

Rule 2: a token bears its value, as :mod:`rules.syntax.words` read it; a number and a unit become
one, a duration in microseconds. What is wrong with one is a :class:`Problem`, and the token stands
all the same.

Rule 3: nesting has a limit, because what is nested is later walked by recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from matcher.model import Kind
from rules.errors import Problem, Span, did_you_mean
from rules.stepwise import STEP_WORDS, Stepwise, finished
from rules.syntax.words import Token, scanning
from rules.terms import TEXT_FUNCTIONS, NumberFunction

NESTING_MAX = 100
"""Levels of parentheses, and of operators within operators, that a statement may have."""
DURATION_MAX = 2**62
"""Microseconds of the longest window; sums of two still fit in 64 bits."""
KINDS: Mapping[str, Kind] = {
    "int": Kind.INT,
    "float": Kind.FLOAT,
    "double": Kind.FLOAT,
    "bool": Kind.BOOL,
    "string": Kind.STRING,
}
UNITS: Mapping[str, int] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "sec": 1_000_000,
    "secs": 1_000_000,
    "min": 60_000_000,
    "mins": 60_000_000,
    "h": 3_600_000_000,
    "hour": 3_600_000_000,
    "hours": 3_600_000_000,
    "day": 86_400_000_000,
    "days": 86_400_000_000,
}
"""Microseconds in each unit of time."""
_MEANT_UNITS: Mapping[str, str] = {
    **dict.fromkeys(("m", "mi"), "min (minutes) or ms (milliseconds)"),
    **dict.fromkeys(("minute", "minutes"), "min"),
    **dict.fromkeys(("second", "seconds"), "s"),
    **dict.fromkeys(("hr", "hrs"), "h"),
    **dict.fromkeys(("d", "dy", "dys"), "day"),
    **dict.fromkeys(("msec", "msecs", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "usecs", "micros", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("\u00b5s", "\u03bcs"), "us"),  # the sign for micro, and the Greek letter
}
"""Names of units elsewhere, and what they are here."""
_ALL_UNITS = "units are us, ms, s, min, h and day"
FUNCTIONS = frozenset({"avg", "sum", "count", "min", "max", "stddev", "first"})
CALLS = frozenset({*TEXT_FUNCTIONS, *(one.value for one in NumberFunction)})
"""Functions of texts and numbers, which range over no events."""
_TEXTUAL = frozenset({"prefix", "suffix", "contains"})
_TESTS: Mapping[str, str] = {"in": "IN", "matches": "MATCHES"}
"""Words behind an operand, or behind ``not`` behind one, and their types."""
_BEHIND_OPERANDS = frozenset({*_TEXTUAL, *_TESTS, "is", "rule", "event"})
"""Words that, where they stand behind an operand, are no names, nor what was to be ``within``."""

_OPERAND_ENDS = frozenset(
    {"NAME", "NUMBER", "DURATION", "INSTANT", "STRING", "PARAMETER", "TRUE", "FALSE", "RPAR"}
)
_OPERAND_BEGINS = frozenset({*_OPERAND_ENDS, "_LPAR"} - {"RPAR"})
_CONDITION_FOLLOWS = frozenset({"_LPAR", "_COMMA", "_AND"})
_TYPE_FOLLOWS = frozenset({"_FROM", "ALL", "EACH", "FIRST", "LAST", "TIMES", "DEFINE", "EVENT"})
_SELECTS = ("EACH", "FIRST", "LAST")
_EVENT_FOLLOWS = frozenset({"_COMMA", "_OR"})
"""Tokens that an event follows outside parentheses (X1, X2)."""
_NAME_FOLLOWS = frozenset(
    {"_LPAR", "RPAR", "_DOT", "_COMMA", "EQUAL", "COMPARISON", "PLUS", "MINUS", "STAR", "SLASH"}
    | {"PERCENT"}
)
"""Tokens that stand behind a name: a word that has lost its place is more likely one there."""
_END = Token("", "", None, Span(0, 0, 1, 1))


def tokenize(text: str) -> tuple[list[Token], list[Problem]]:
    """The tokens of ``text``, comments left out, and what is wrong with them."""
    return finished(tokenizing(text))


def tokenizing(text: str) -> Stepwise[tuple[list[Token], list[Problem]]]:
    """The same, some at a time."""
    words, problems = yield from scanning(text)
    tokens = yield from _Recognition(words, problems).run()
    return tokens, problems


def duration(number: str, unit: str, *, may_be_zero: bool = False) -> int | str:
    """A duration in microseconds, or what is wrong with it."""
    amount = _amount(number)
    if not amount and may_be_zero:
        return 0
    if amount and amount.adjusted() > 20:
        return "a duration that is too long"
    if amount and amount.adjusted() < -20:
        return "a duration of less than a microsecond"
    microseconds = amount * UNITS[unit]
    if not microseconds:
        return "a duration must be positive"
    if microseconds > DURATION_MAX:
        return "a duration that is too long"
    if microseconds < 1:
        return "a duration of less than a microsecond"
    if microseconds != int(microseconds):
        return "a duration that is no whole number of microseconds"
    return int(microseconds)


def _amount(number: str) -> Decimal:
    """A number as it is written; one beyond all that Decimal has, as one that is far too large, or
    too small.
    """
    try:
        return Decimal(number)
    except InvalidOperation:
        digits, _, exponent = number.lower().partition("e")
        if not digits.strip("0."):
            return Decimal(0)
        return Decimal("1e-99" if exponent.startswith("-") else "1e99")


def _unit_meant(word: str) -> str:
    """A hint for what is no unit of time: the unit that may be meant, or all of them."""
    meant = _MEANT_UNITS.get(word)
    if meant is not None:
        return f"did you mean {meant}?"
    if len(word) < 3:  # "ns" is as near to "s" as "w" is to nothing
        return _ALL_UNITS
    return did_you_mean(word, UNITS) or _ALL_UNITS


# --- words -----------------------------------------------------------------------------------


class _Recognition:
    """One pass over scanned tokens that gives the words of the language their types (Rule 1)."""

    def __init__(self, tokens: Sequence[Token], problems: list[Problem]) -> None:
        self.tokens = tokens
        self.problems = problems
        self.result: list[Token] = []
        self.depth = 0
        self.closing: dict[int, int] = {}
        """By place of a parenthesis that opens, that of the one that closes it."""
        self.holding: set[int] = set()
        """Places of parentheses that hold an event, in no other function."""

    def run(self) -> Stepwise[list[Token]]:
        yield from self._look_ahead()
        tokens, result, words = self.tokens, self.result, WORDS
        for place, token in enumerate(tokens):
            if place % STEP_WORDS == STEP_WORDS - 1:
                yield
            kind = token.type
            if kind == "NAME":
                recognise = words.get(token.text.lower())
                if recognise is not None:
                    kind = recognise(self, place, token.text.lower())
                previous = result[-1].type if result else ""
                if kind == "NAME" and previous == "NUMBER" and self._is_unit(token):
                    self._duration(token)
                    continue
                if previous == "_COLON" and len(result) > 2 and result[-3].type != "RULE":
                    self._kind(token)
                    continue
                if kind != "NAME":
                    token = token._replace(type=kind)
            elif kind == "_LPAR":
                self.depth += 1
                if self.depth == NESTING_MAX + 1:
                    self.problems.append(
                        Problem(f"nested deeper than {NESTING_MAX} levels", token.span)
                    )
                    token = token._replace(type="BAD")
            elif kind == "RPAR":
                self.depth = max(0, self.depth - 1)
            elif kind == "DEFINE":
                self.depth = 0
            elif kind in ("_DOT", "NUMBER") and (self._dot_of_unit(token) or self._times(token)):
                continue
            elif kind == "QUESTION":
                self._optional(token)
                continue
            result.append(token)
        return result

    def _ahead(self, place: int) -> Token:
        return self.tokens[place] if place < len(self.tokens) else _END

    def _opens_event(self, place: int) -> bool:
        """Whether ``NAME (`` stands at ``place``."""
        return self._ahead(place).type == "NAME" and self._ahead(place + 1).type == "_LPAR"

    def _begins(self, place: int) -> bool:
        """Whether the word at ``place`` can only begin a statement: the one before may have ended,
        and a name could not stand here.
        """
        previous = self.result[-1].type if self.result else "_SEMICOLON"
        if self.depth or previous == "_SEMICOLON":
            return not self.depth
        after = self._ahead(place + 1).type
        return previous in _OPERAND_ENDS and not self._is_window() and after not in _NAME_FOLLOWS

    def _selects(self, place: int) -> bool:
        """Whether an event is to follow, be it written as it should or not."""
        after = self._ahead(place + 1)
        if after.type != "NAME":
            return after.type in ("STRING", "NUMBER")
        if after.text.lower() in (*_TEXTUAL, *_TESTS, "is"):
            return self._opens_event(place + 1)
        return not self._is_statement(place + 1)

    def _is_statement(self, place: int) -> bool:
        """Whether ``event NAME (`` or ``rule NAME :`` stands at ``place``."""
        word = self._ahead(place).text.lower()
        if word == "rule":
            named = self._ahead(place + 1).type == "NAME"
            return named and self._ahead(place + 2).type == "_COLON"
        return word == "event" and self._opens_event(place + 1)

    def _is_window(self) -> bool:
        """Whether the number that was read last is the length of a window."""
        return len(self.result) > 1 and self.result[-2].type == "WITHIN"

    def _is_unit(self, token: Token) -> bool:
        """Whether a name after a number is a unit: in a window always, elsewhere if it is one."""
        unit = token.text.lower()
        return unit in UNITS or self._is_window() or _unit_meant(unit) != _ALL_UNITS

    def _duration(self, token: Token) -> None:
        """A number and a unit become one token, a duration; that of no window may be 0."""
        may_be_zero = not self._is_window()
        number = self.result.pop()
        span = number.span.to(token.span)
        unit = token.text.lower()
        microseconds: int | str = 1
        if unit not in UNITS:
            self.problems.append(
                Problem(f"unknown unit of time {token.text}", token.span, _unit_meant(unit))
            )
        else:
            microseconds = duration(number.text, unit, may_be_zero=may_be_zero)
            if isinstance(microseconds, str):
                self.problems.append(Problem(microseconds, span))
                microseconds = 1
        self.result.append(Token("DURATION", unit, microseconds, span))

    def _dot_of_unit(self, token: Token) -> bool:
        """Whether a dot ends the abbreviation ``min.``, as the thesis writes it."""
        last = self.result[-1] if self.result else _END
        is_minutes = last.type == "DURATION" and last.text in ("min", "mins")
        return is_minutes and token.type == "_DOT"

    def _times(self, token: Token) -> bool:
        """Whether a token ends ``each 2..`` or ``each 2..5``: the bounds are one token then."""
        result = self.result
        kinds = [one.type for one in result[-3:]]
        if token.type == "_DOT" and kinds[1:] == ["NUMBER", "_DOT"] and kinds[0] in _SELECTS:
            times, text = result[-2], f"{result[-2].text}.."
            value: tuple[int, int | None] = self._bound(times), None
            del result[-2:]
        elif token.type == "NUMBER" and kinds[-1:] == ["TIMES"] and result[-1].value[1] is None:
            times = result.pop()
            value, text = (times.value[0], self._bound(token)), times.text + token.text
        else:
            return False
        result.append(Token("TIMES", text, value, times.span.to(token.span)))
        return True

    def _bound(self, number: Token) -> int:
        """A bound of an iteration: a whole number."""
        if isinstance(number.value, int):
            return number.value
        self.problems.append(Problem("an iteration's bounds are whole numbers", number.span))
        return 1

    def _kind(self, token: Token) -> None:
        kind = KINDS.get(token.text.lower())
        if kind is None:
            self.problems.append(
                Problem(
                    f"unknown type {token.text} of an attribute",
                    token.span,
                    did_you_mean(token.text, KINDS) or "types are int, float, bool and string",
                )
            )
        self.result.append(Token("KIND", token.text, (kind or Kind.INT, False), token.span))

    def _optional(self, token: Token) -> None:
        """The sign behind the type of an optional attribute becomes one with it."""
        last = self.result[-1] if self.result else _END
        if last.type == "KIND" and not last.value[1]:
            kind = last.value[0], True
            self.result[-1] = Token("KIND", f"{last.text}?", kind, last.span.to(token.span))
            return
        self.problems.append(Problem(f"unexpected character {token.text}", token.span))
        self.result.append(token._replace(type="BAD"))

    def _select(self, place: int, word: str) -> str:
        if word == "first" and self._ahead(place + 1).type == "_LPAR":
            return self._function(place, word)
        if self.depth or not self._selects(place):
            return "NAME"
        result = self.result
        if result and result[-1].type == "_AND":
            return word.upper()
        ranked = [token.type for token in result[-3:]] == ["_AND", "NUMBER", "MINUS"]
        if word == "each" or not ranked:
            return "NAME"
        rank = result[-2]
        if not isinstance(rank.value, int):
            self.problems.append(Problem(f"k of {word} must be a whole number", rank.span))
            rank = rank._replace(value=1)
        result[-2] = rank._replace(type="RANK")
        return word.upper()

    def _all(self, place: int, word: str) -> str:
        after_from = bool(self.result) and self.result[-1].type == "_FROM"
        return "ALL" if after_from and self._selects(place) else "NAME"

    def _function(self, place: int, word: str) -> str:
        if self._ahead(place + 1).type != "_LPAR":
            return "NAME"
        result = self.result
        previous = result[-1].type if result else ""
        if previous in _TYPE_FOLLOWS or (previous in _EVENT_FOLLOWS and not self.depth):
            return "NAME"
        if previous == "_LPAR" and len(result) > 1 and result[-2].type == "FUNCTION":
            return "NAME"
        if previous == "NOT" and not self._holds_event(place + 1):
            # No event is negated in parentheses, or without a window: not First(run.ok).
            behind = self._behind(place + 1)
            may_be_window = behind.type in ("WITHIN", "BETWEEN", "NAME")
            if self.depth or not may_be_window or behind.text.lower() in _BEHIND_OPERANDS:
                return "FUNCTION"
            return "NAME" if self._opened_events(place) % 2 else "FUNCTION"
        return "FUNCTION"

    def _opened_events(self, place: int) -> int:
        """How many ``NAME (`` follow each other from ``place`` on.

        ``not Count(`` may negate an aggregate, or an event of type Count. Where functions and
        events open one within the other, the last is an event, for it needs nothing after its
        parenthesis; the one around it is a function, and so on outwards.
        """
        count = 0
        while self._opens_event(place + 2 * count):
            if count and self._ahead(place + 2 * count).text.lower() in CALLS:
                break  # a function that opens no event
            count += 1
        return count

    def _operator(self, place: int, word: str) -> str:
        previous = self.result[-1].type if self.result else ""
        return "COMPARISON" if previous in _OPERAND_ENDS else "NAME"

    def _is(self, place: int, word: str) -> str:
        negated = self._ahead(place + 1).type == "NOT"
        asked = self._ahead(place + 1 + negated)
        is_null = asked.type == "NAME" and asked.text.lower() == "null"
        previous = self.result[-1].type if self.result else ""
        return "IS" if is_null and previous in _OPERAND_ENDS else "NAME"

    def _null(self, place: int, word: str) -> str:
        before = [token.type for token in self.result[-2:]]
        return "NULL" if before[-1:] == ["IS"] or before == ["IS", "NOT"] else "NAME"

    def _test(self, place: int, word: str) -> str:
        last = [token.type for token in self.result[-2:]]
        if last[-1:] == ["NOT"]:
            last.pop()
        return _TESTS[word] if last and last[-1] in _OPERAND_ENDS else "NAME"

    def _call(self, place: int, word: str) -> str:
        """``lower (`` is the function where no type of that name can stand."""
        if self._ahead(place + 1).type != "_LPAR":
            return "NAME"
        last = [token.type for token in self.result[-2:]]
        previous = last[-1] if last else ""
        if previous in _TYPE_FOLLOWS or (previous in _EVENT_FOLLOWS and not self.depth):
            return "NAME"
        if last == ["FUNCTION", "_LPAR"]:  # Min(lower(A().name) ...), Count(lower(x = 1) ...)
            return "CALL" if self._holds_event(place + 1) else "NAME"
        if previous == "NOT" and self._behind(place + 1).type in ("WITHIN", "BETWEEN"):
            return "NAME"
        return "CALL"

    def _while(self, place: int, word: str) -> str:
        """``while`` begins a condition of an event; what stands behind an attribute does not."""
        last = [token.type for token in self.result[-2:]]
        if not self.depth or last[-1] not in _CONDITION_FOLLOWS or last == ["FUNCTION", "_LPAR"]:
            return "NAME"
        after = self._ahead(place + 1)
        if after.type == "NOT":
            after = self._ahead(place + 2)
        if after.type == "NAME":
            return "NAME" if after.text.lower() in _BEHIND_OPERANDS else "WHILE"
        return "WHILE" if after.type in _OPERAND_BEGINS else "NAME"

    def _holds_event(self, place: int) -> bool:
        """Whether an event stands in the parenthesis that opens at ``place``, in no other function
        there: then what is before it is a function of that event.
        """
        return place in self.holding

    def _behind(self, place: int) -> Token:
        """The token behind the parenthesis that closes the one at ``place``."""
        closes = self.closing.get(place)
        return _END if closes is None else self._ahead(closes + 1)

    def _look_ahead(self) -> Iterator[None]:
        """Find where parentheses close and which hold an event, once for all that will ask."""
        opened: list[int] = []
        for place, token in enumerate(self.tokens):
            if place % STEP_WORDS == STEP_WORDS - 1:
                yield
            if token.type == "_LPAR":
                opened.append(place)
            elif token.type == "RPAR" and opened:
                self.closing[opened[-1]] = place
                self._leave(opened)
            elif opened and self._opens_event(place) and not self._is_function(place):
                word = token.text.lower()
                is_behind = self.tokens[place - 1].type in _OPERAND_ENDS
                if word not in CALLS and not (is_behind and word in (*_TEXTUAL, *_TESTS)):
                    self.holding.add(opened[-1])  # else an operator, and what is in parentheses
        while opened:
            self._leave(opened)

    def _leave(self, opened: list[int]) -> None:
        """Leave a parenthesis: what it holds, that around it holds, too, but for a function's."""
        place = opened.pop()
        if opened and place in self.holding and not self._is_function(place - 1):
            self.holding.add(opened[-1])

    def _is_function(self, place: int) -> bool:
        """Whether a function's name stands at ``place``."""
        token = self._ahead(place)
        return token.type == "NAME" and token.text.lower() in FUNCTIONS

    def _event(self, place: int, word: str) -> str:
        declares = not self.depth and self._opens_event(place + 1)
        return "EVENT" if declares or self._begins(place) else "NAME"

    def _rule(self, place: int, word: str) -> str:
        named = self._ahead(place + 1).type == "NAME" and self._ahead(place + 2).type == "_COLON"
        if not named and not self._begins(place):
            return "NAME"
        self.depth = 0
        return "RULE"

    def _as(self, place: int, word: str) -> str:
        return "_AS" if self.result and self.result[-1].type == "RPAR" else "NAME"


WORDS: Mapping[str, Callable[[_Recognition, int, str], str]] = {
    **dict.fromkeys(FUNCTIONS, _Recognition._function),
    **dict.fromkeys(("each", "first", "last"), _Recognition._select),
    "all": _Recognition._all,
    **dict.fromkeys(_TEXTUAL, _Recognition._operator),
    "is": _Recognition._is,
    "null": _Recognition._null,
    **dict.fromkeys(_TESTS, _Recognition._test),
    **dict.fromkeys(CALLS, _Recognition._call),
    "while": _Recognition._while,
    "event": _Recognition._event,
    "rule": _Recognition._rule,
    "as": _Recognition._as,
}

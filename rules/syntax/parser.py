"""From text to syntax tree (tesla.md section 2).

The text is cut into tokens, the tokens into statements, and each statement is parsed by itself:
so a statement that is no TESLA costs one message, and the statements around it are read all the
same. A statement has ``WORDS_MAX`` words at most, nothing is nested deeper than ``NESTING_MAX``,
and no more than ``CHAIN_MAX`` operators apply one upon another; whatever else a text may hold, the
outcome is a tree or :class:`RuleErrors`.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rules.errors import Problem, RuleErrors, Span
from rules.stepwise import Stepwise, finished
from rules.syntax import ast
from rules.syntax.automaton import Automaton, Unexpected, automaton_of
from rules.syntax.expected import describe, hint
from rules.syntax.shape import Recorder, Shape, shape_of
from rules.syntax.tokens import NESTING_MAX, tokenize, tokenizing
from rules.syntax.words import PROBLEMS_MAX, WORDS_MAX, Token
from runtime.collector import collector_paused

CHAIN_MAX = 2 * NESTING_MAX
"""Operators of an expression that apply one upon another: 1 + 1 + 1 has two."""
STATEMENTS_MAX = 20_000
"""Statements of a text."""
READINGS_MAX = 2
"""Readings that are kept: who has a text read ahead has it checked soon."""
FILTERS_MAX = 8
"""Filters that are kept: one that comes is looked at several times."""
SHAPES_MAX, SHAPE_TOKENS_MAX = 1_024, 4_096
"""Shapes of statements that are kept, and the longest of those statements."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of a text: the statements, and the problems.

    ``lost`` holds the names of the types that unreadable statements declare or define; None
    among them stands for a statement whose type could not even be guessed.
    """

    file: ast.File
    problems: tuple[Problem, ...]
    lost: frozenset[str | None]


def decode(data: bytes, file: str = "<rules>") -> str:
    """The text of a rules file, which is UTF-8; RuleErrors, with the place, when it is not."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        line_start = before.rfind("\n") + 1
        span = Span(
            len(before), len(before) + 1, before.count("\n") + 1, len(before) - line_start + 1
        )
        problem = Problem(f"not UTF-8: byte 0x{data[error.start]:02x}", span)
        raise RuleErrors([problem], data.decode("utf-8", "replace"), file) from None


def parse(text: str, *, file: str = "<rules>") -> ast.File:
    """The syntax tree of a rules file; RuleErrors with every syntax error in it."""
    reading = read(text, file=file)
    if reading.problems:
        raise RuleErrors(reading.problems, text, file)
    return reading.file


@collector_paused()
def read(text: str, *, file: str = "<rules>") -> Reading:
    """All of a text that can be read, statement by statement."""
    return finished(reading(text, file=file))


def reading(text: str, *, file: str = "<rules>") -> Stepwise[Reading]:
    """The same, a statement at a time; at once where it has been read before."""
    found = _readings.pop((text, file), None)
    if found is None:
        found = yield from _reading(text, file)
    _readings[text, file] = found  # behind all others
    for one in tuple(_readings)[:-READINGS_MAX]:
        _readings.pop(one, None)
    return found


_readings: dict[tuple[str, str], Reading] = {}
"""By text and file, what was read last."""


def _reading(text: str, file: str) -> Stepwise[Reading]:
    tokens, problems = yield from tokenizing(text)
    statements: list[ast.Statement] = []
    lost: set[str | None] = set()
    for statement in _statements(tokens):
        outcome = _parse(statement, "statement")
        if isinstance(outcome, Problem):
            lost.add(_type_of(statement))
            if not any(token.type == "BAD" for token in statement):
                problems.append(outcome)  # else the bad token itself has been reported
        else:
            statements.append(outcome)
        if len(problems) >= PROBLEMS_MAX:
            break
        if len(statements) > STATEMENTS_MAX:
            bound = f"a text of more than {STATEMENTS_MAX:,} statements"
            problems.append(Problem(bound, statement[0].span, "let several texts say it"))
            break
        yield
    problems.sort(key=lambda problem: problem.span or ast.NOWHERE)
    return Reading(ast.File(tuple(statements), text, file), tuple(problems), frozenset(lost))


def parse_filter(text: str, *, file: str = "<subscription>") -> ast.Event:
    """Parse a subscription's filter, ``TYPE`` or ``TYPE(conditions)``; RuleErrors otherwise."""
    outcome = _filter(text)
    if isinstance(outcome, ast.Event):
        return outcome
    raise RuleErrors(outcome, text, file)


@functools.lru_cache(FILTERS_MAX)
def _filter(text: str) -> ast.Event | list[Problem]:
    """The event of a filter, or what is wrong with it."""
    tokens, problems = tokenize(text)
    # No statement begins in a filter: a type may be called event, or rule.
    tokens = [one._replace(type="NAME") if one.type in ("EVENT", "RULE") else one for one in tokens]
    outcome = _parse(tokens, "subscription")
    if isinstance(outcome, Problem) and not any(token.type == "BAD" for token in tokens):
        problems.append(outcome)
    event: ast.Event = outcome
    return problems or event


# --- statements ------------------------------------------------------------------------------


def _statements(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The tokens cut before each ``event``, ``rule`` and ``define`` that begins a statement."""
    start, named = 0, False
    for place, token in enumerate(tokens):
        if place > start and token.type in _STARTS:
            if token.type == "DEFINE" and named:
                named = False  # ``rule NAME : define`` is one beginning
                continue
            yield tokens[start:place]
            start = place
        if place == start:
            named = token.type == "RULE"
    if start < len(tokens):
        yield tokens[start:]


_STARTS = frozenset({"EVENT", "RULE", "DEFINE"})


def _type_of(statement: Sequence[Token]) -> str | None:
    """The type that a broken statement was to declare or define, as far as one can tell."""
    for before, token in itertools.pairwise(statement):
        if before.type in ("EVENT", "DEFINE") and token.type == "NAME":
            name: str = token.value
            return name
    return None


def _parse(tokens: Sequence[Token], start: str) -> Any:
    """One statement's node, or the problem that keeps it from being one."""
    if len(tokens) > WORDS_MAX:
        return Problem(
            f"a statement of more than {WORDS_MAX:,} words",
            tokens[WORDS_MAX].span,
            "let several rules, or several subscriptions, say it",
        )
    find = _shape if len(tokens) <= SHAPE_TOKENS_MAX else _shape.__wrapped__
    shape = find(start, tuple([token.type for token in tokens]))
    if isinstance(shape, Unexpected):
        return _problem(tokens, shape.place, start)
    node = shape.build(tokens)
    # Parentheses are counted as they are read; operators alone nest too: not not not x, 1+1+1.
    if len(tokens) > NESTING_MAX and ast.depth(node) > CHAIN_MAX:
        return Problem(
            f"more than {CHAIN_MAX} operators one upon another; "
            "a long chain such as 1 + 1 + 1 + 1 may be grouped: (1 + 1) + (1 + 1)",
            tokens[0].span,
        )
    return node


def _problem(tokens: Sequence[Token], place: int, start: str) -> Problem:
    """The problem where token number ``place`` stands: what was expected.

    The automaton that stumbled has already reduced what stood before, as if the token were a
    right one, and accepts less than it did; so the types before are read again.
    """
    before = tokens[:place]
    expected = _automaton(start).expected(token.type for token in before)
    found = tokens[place] if place < len(tokens) else _end(tokens)
    said = describe(found, before, expected)
    return Problem(said, found.span, hint(found, before, expected, start))


def _end(tokens: Sequence[Token]) -> Token:
    """The end of a statement, which stands right after its last token."""
    if not tokens:
        return Token("$END", "", None, ast.NOWHERE)
    last = tokens[-1].span
    column = last.column + last.end - last.start
    return Token("$END", "", None, Span(last.end, last.end, last.line, column))


@functools.lru_cache(SHAPES_MAX)
def _shape(start: str, types: tuple[str, ...]) -> Shape | Unexpected:
    return shape_of(_automaton(start), types)


@functools.cache
def _automaton(start: str) -> Automaton:
    """The automaton, whose callbacks are the recorder's: a statement is built from its shape."""
    return automaton_of(_tables(), start, Recorder())


@functools.cache
def _tables() -> Any:
    return json.loads(Path(__file__).with_name("tesla.json").read_bytes())

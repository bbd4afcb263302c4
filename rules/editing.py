"""Rules in an editor: what is wrong with a text, what a word means, and what may stand at a place.

Nothing here knows of a protocol: places are offsets into the text, and a text may be unfinished.
``broker.language_server`` tells editors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from matcher.model import EventType
from rules.errors import RuleErrors, Span
from rules.explaining.advice import advice
from rules.language import declared_in, load
from rules.pattern import TIMER
from rules.syntax.meanings import MEANINGS
from rules.syntax.parser import read
from rules.syntax.tokens import tokenize
from rules.syntax.words import Token

_START = Span(0, 0, 1, 1)
_UNKNOWN_TYPE = "unknown event type"
"""The beginning of a message about a type, which events may bring, too."""


_VALUES = frozenset({"DURATION", "NUMBER", "RANK", "STRING", "INSTANT", "TIMES"})
"""Tokens whose texts are no words of the language, though they may have such a one at the end."""


class Remark(NamedTuple):
    """A remark on a stretch of a text: an error, or a warning."""

    span: Span
    message: str
    is_error: bool


class Suggestion(NamedTuple):
    """A word that may stand at a place: its text, its kind, and what it means.

    ``kind``: ``type``, ``attribute``, ``name``, or ``word`` of the language.
    """

    text: str
    kind: str
    detail: str


def remarks(text: str) -> list[Remark]:
    """All that is wrong with a text, or else warnings of what it may mean.

    A type that the text does not declare is a warning: events may bring it.
    """
    try:
        checked = load(text)
    except RuleErrors as error:
        return [
            Remark(
                problem.span or _START,
                problem.message + (f"\n{problem.hint}" if problem.hint else ""),
                not problem.message.startswith(_UNKNOWN_TYPE),
            )
            for problem in error.problems
        ]
    return [Remark(_START, message, False) for message in advice(checked)]


def meaning(text: str, offset: int) -> str | None:
    """The meaning of the word at a place: the schema of a type, or of an event that is named; or
    what a word of the language does.
    """
    tokens, _ = tokenize(text)
    token = next((one for one in tokens if one.span.start <= offset <= one.span.end), None)
    if token is None:
        return None
    if token.type != "NAME":
        return None if token.type in _VALUES else MEANINGS.get(token.text.lower())
    schemas = schemas_of(text)
    type_name = _type_of(token.text, _statement(tokens, offset), schemas)
    return None if type_name is None else f"event {schemas[type_name]}"


def suggestions(text: str, offset: int) -> list[Suggestion]:
    """The words that may stand at a place; whoever asks leaves out those that do not fit what is
    there already.
    """
    tokens, _ = tokenize(text)
    before = [token for token in tokens if token.span.end <= offset]
    if before and before[-1].type == "NAME" and before[-1].span.end == offset:
        before.pop()  # what is being written
    schemas, statement = schemas_of(text), _statement(tokens, offset)
    if len(before) > 1 and before[-1].type == "_DOT":
        name = _type_of(before[-2].text, statement, schemas)
        return [] if name is None else [*_attributes(schemas[name])]
    around = _around(before, schemas)
    found = [] if around is None else [*_attributes(schemas[around])]
    found += [Suggestion(name, "type", str(one)) for name, one in schemas.items()]
    found += [Suggestion(name, "name", "an event of this rule") for name in _names(statement)]
    return found + [Suggestion(word, "word", said) for word, said in MEANINGS.items()]


def schemas_of(text: str) -> Mapping[str, EventType]:
    """The types of a text by name, as far as they are known while it is being written."""
    try:
        return load(text).schemas
    except RuleErrors:
        return declared_in(read(text).file)


def _attributes(event_type: EventType) -> Iterator[Suggestion]:
    for place, attribute in enumerate(event_type.declared):
        yield Suggestion(attribute.name, "attribute", event_type.kind_text(place))


def _statement(tokens: Sequence[Token], offset: int) -> list[Token]:
    """The tokens of the rule or schema around a place."""
    starts = [
        place for place, token in enumerate(tokens) if token.type in ("RULE", "DEFINE", "EVENT")
    ]
    bounds = [*starts, len(tokens)]
    for start, end in pairwise(bounds):
        if end == len(tokens) or tokens[end].span.start > offset:
            return list(tokens[start:end])
    return list(tokens)


def _names(statement: Sequence[Token]) -> list[str]:
    """The names that events of a rule have by ``as``."""
    return [token.text for mark, token in pairwise(statement) if mark.type == "_AS"]


def _type_of(name: str, statement: Sequence[Token], schemas: Mapping[str, EventType]) -> str | None:
    """The type of an event that a rule calls so; None for what is none."""
    for place, (mark, token) in enumerate(pairwise(statement)):
        if mark.type == "_AS" and token.text == name:
            depth = 0
            for before in range(place - 1, 0, -1):
                depth += (statement[before].type == "RPAR") - (statement[before].type == "_LPAR")
                if not depth:
                    type_name = statement[before - 1].text
                    return type_name if type_name in schemas else None
    return name if name in schemas else None


def _around(tokens: Sequence[Token], schemas: Mapping[str, EventType]) -> str | None:
    """The type of the event in whose parentheses the last of the tokens stands."""
    depth = 0
    for before in range(len(tokens) - 1, 0, -1):
        depth += (tokens[before].type == "RPAR") - (tokens[before].type == "_LPAR")
        if depth < 0:
            name = tokens[before - 1].text
            if name in schemas and name != TIMER.name:
                return name
            depth = 0
    return None

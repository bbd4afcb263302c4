"""Attributes as they are typed on a command line: ``area=a1 value=46.5 room:string=7``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from broker.cli.outcome import UsageError
from matcher.errors import BadEvent
from matcher.model import OPTIONAL, Attribute, EventType, Kind, with_presences
from matcher.rows import values_of
from matcher.spelling import QUOTED, spelled, unquoted
from rules.errors import RuleErrors
from rules.subscription import parse_subscription

_INT = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LOOKS_LIKE_INT = re.compile(r"-?(0|[1-9][0-9]*)")
_LOOKS_LIKE_FLOAT = re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_QUOTED = re.compile(rf"(?P<name>{QUOTED})(?::(?P<kind>\w*\??))?=")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_BOOLS: Mapping[str, bool] = {"true": True, "false": False}
_KINDS: Mapping[str, Kind] = {kind.value: kind for kind in Kind}
_DIGITS_MAX = 20
"""Characters of an int, beyond which it has more than 64 bits."""
_ANY: Mapping[Kind, str] = {
    Kind.INT: "0",
    Kind.FLOAT: "0.0",
    Kind.BOOL: "true",
    Kind.STRING: '""',
}
"""A value of each kind, as filters write it."""


class _Kind(NamedTuple):
    """The type of an attribute, and whether it may be null."""

    kind: Kind
    is_optional: bool


class _Word(NamedTuple):
    """One attribute as it was typed; ``kind``, and whether it is optional, where the word says it,
    else None.
    """

    name: str
    kind: _Kind | None
    text: str


def event_of(
    type_name: str, pairs: Sequence[str], known: EventType | None
) -> tuple[EventType, Mapping[str, Any]]:
    """The type and attributes that the words ``NAME=VALUE`` and ``NAME:TYPE=VALUE`` stand for.

    Attributes have the kinds that the words say, else those of the ``known`` type, else what their
    values look like. Raises UsageError for a word that is none or a name given twice, BadEvent for
    a value that does not fit, or may be meant in two ways, and for a name that no filter can say.

    A value is read by its attribute's kind where that is known, from the word itself
    (``room:string=7``) or from the broker; else by how it looks, and one that may be meant in two
    ways is refused, not guessed.
    """
    words = _words(pairs)
    kinds = _kinds_of(known) if known is not None else {}
    if known is None or any(one.kind not in (None, kinds.get(one.name)) for one in words):
        return _declared(type_name, words, kinds)
    try:
        data = {one.name: _read(one, _known_kind(one, kinds)) for one in words}
        values_of(known, data)
    except BadEvent as error:
        raise BadEvent(f"{error.reason}; the broker knows {known}") from None
    return known, data


def _kinds_of(known: EventType) -> dict[str, _Kind]:
    return {
        one.name: _Kind(one.kind, presence >= 0)
        for one, presence in zip(known.declared, known.presences, strict=True)
    }


def _words(pairs: Sequence[str]) -> list[_Word]:
    words: dict[str, _Word] = {}
    for pair in pairs:
        name, colon, kind, equals, text = _split(pair)
        if not equals or not name:
            raise UsageError(f"pub: expected ATTR=VALUE, found {pair!r}")
        optional = kind.endswith(OPTIONAL)
        if colon and kind.removesuffix(OPTIONAL) not in _KINDS:
            expected = ", ".join(_KINDS)
            raise UsageError(f"pub: {pair!r}: expected one of {expected} after ':', found {kind!r}")
        if name in words:
            raise UsageError(f"pub: attribute {name} is given twice")
        typed = _Kind(_KINDS[kind.removesuffix(OPTIONAL)], optional) if colon else None
        words[name] = _Word(name, typed, text)
    return list(words.values())


def _split(pair: str) -> tuple[str, str, str, str, str]:
    """``NAME:TYPE=VALUE`` cut at its signs; a name in backquotes may have them, too."""
    found = _QUOTED.match(pair)
    if found is not None:
        colon, kind = (":", found["kind"]) if found["kind"] is not None else ("", "")
        return unquoted(found["name"]), colon, kind, "=", pair[found.end() :]
    said, equals, text = pair.partition("=")
    name, colon, kind = said.rpartition(":") if ":" in said else (said, "", "")
    return name, colon, kind, equals, text


def _known_kind(word: _Word, kinds: Mapping[str, _Kind]) -> _Kind:
    """The kind of an attribute; BadEvent for one that its type lacks."""
    if word.name not in kinds:
        raise BadEvent(f"attribute {word.name}: the type has none of that name")
    return kinds[word.name]


def _declared(
    type_name: str, words: Sequence[_Word], kinds: Mapping[str, _Kind]
) -> tuple[EventType, Mapping[str, Any]]:
    """A type that the words make, with the attributes of known ``kinds`` in their order first."""
    order = {name: place for place, name in enumerate(kinds)}
    attributes, optional, data = [], [], {}
    for one in sorted(words, key=lambda one: order.get(one.name, len(order))):
        kind = one.kind or kinds.get(one.name) or _Kind(_guessed(one), is_optional=False)
        attributes.append(Attribute(one.name, kind.kind))
        optional += [one.name] if kind.is_optional else []
        data[one.name] = _read(one, kind)
    event_type = EventType(type_name, with_presences(attributes, optional))
    _check_names(event_type)
    values_of(event_type, data)
    return event_type, data


def _check_names(event_type: EventType) -> None:
    """BadEvent for a name by which no filter could ask for the event, or for the attribute."""
    type_name, schemas = spelled(event_type.name), {event_type.name: event_type}
    filters = [("event type", event_type.name, type_name)] + [
        ("attribute", one.name, f"{type_name}({spelled(one.name)} = {_ANY[one.kind]})")
        for one in event_type.declared
    ]
    for what, name, text in filters:
        try:
            parse_subscription(text, schemas)
        except RuleErrors as errors:
            reason = errors.problems[0].message
            raise BadEvent(f"{what} {name!r}: no filter could name it: {reason}") from None


def _guessed(word: _Word) -> Kind:
    """The kind that a value looks like; BadEvent where it may be meant in two ways."""
    text, name = word.text, word.name
    if text.startswith('"'):
        return Kind.STRING
    if text.casefold() in _BOOLS:
        return Kind.BOOL
    if _is_not_finite(text):
        raise BadEvent(f"{_not_finite(word)}; {_as_text(word)}")
    if text.casefold() == "null":
        reason = f"has no null unless it is optional: {name}:float?=null (or int?, ...);"
        raise BadEvent(f"attribute {name}: {reason} {_as_text(word)}")
    if _DECIMAL_COMMA.fullmatch(text):
        point = text.replace(",", ".")
        raise BadEvent(f"attribute {name}: {text} as a number is {point}; {_as_text(word)}")
    if _LOOKS_LIKE_INT.fullmatch(text):
        return Kind.INT
    return Kind.FLOAT if _LOOKS_LIKE_FLOAT.fullmatch(text) else Kind.STRING


def _read(word: _Word, kind: _Kind) -> Any:
    """The value, or the text itself where it is none of that kind."""
    text = word.text
    if text.startswith('"'):
        return _quoted(word)
    if kind.is_optional and text.casefold() == "null":
        return None
    match kind.kind:
        case Kind.STRING:
            return text
        case Kind.BOOL:
            return _BOOLS.get(text.casefold(), text)
        case Kind.INT if _INT.fullmatch(text):
            if len(text) > _DIGITS_MAX:
                raise BadEvent(f"attribute {word.name}: an int beyond 64 bits")
            return int(text)
        case Kind.FLOAT if _is_not_finite(text):
            raise BadEvent(_not_finite(word))
        case Kind.FLOAT if _NUMBER.fullmatch(text):
            return float(text)
    return text


def _quoted(word: _Word) -> str:
    """The text within double quotes, as JSON writes it."""
    try:
        text = json.loads(word.text)
    except ValueError:
        text = None
    if not isinstance(text, str):
        raise BadEvent(
            f"attribute {word.name}: expected a text in double quotes as JSON writes it, found"
            f' {word.text}; quotes that belong to the text are written \\" in quotes'
        )
    return text


def _is_not_finite(text: str) -> bool:
    is_number = _NUMBER.fullmatch(text) is not None
    named = text.casefold().removeprefix("-").removeprefix("+") in _NOT_FINITE
    return named or (is_number and not math.isfinite(float(text)))


def _not_finite(word: _Word) -> str:
    return f"attribute {word.name}: {word.text} is not finite (tesla.md E1)"


def _as_text(word: _Word) -> str:
    return f"as a text say {word.name}:string={word.text}"

"""Attributes as they are typed on a command line: ``area=a1 value=46.5``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from broker.cli.outcome import UsageError
from matcher.errors import BadEvent
from matcher.model import Attribute, EventType, Kind
from matcher.rows import inferred_type, values_of

# Names of attributes may hold commas, blanks and parentheses, so a kind is what ends one.
_ATTRIBUTE = re.compile(rf"(.+?): ({'|'.join(kind.value for kind in Kind)})(?:, |\)$)")


def event_of(
    type_name: str, pairs: Sequence[str], known: EventType | None
) -> tuple[EventType, Mapping[str, Any]]:
    """The type and attributes that the words ``NAME=VALUE`` stand for.

    With a known type a value is read as its attribute's kind. Otherwise it is an int, a float or
    a bool where it looks like one, and else a string. Raises UsageError for a word without ``=``
    or a name given twice, BadEvent for a value that does not fit.
    """
    texts: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"pub: expected ATTR=VALUE, found {pair!r}")
        if name in texts:
            raise UsageError(f"pub: attribute {name} is given twice")
        texts[name] = text
    if known is None:
        data = {name: _guessed(text) for name, text in texts.items()}
        return inferred_type(type_name, data), data
    kinds = {attribute.name: attribute.kind for attribute in known.attributes}
    data = {name: _read(text, kinds.get(name, Kind.STRING)) for name, text in texts.items()}
    try:
        values_of(known, data)
    except BadEvent as error:
        raise BadEvent(f"{error.reason}; the broker knows {known}") from None
    return known, data


def type_of(schema: str) -> EventType:
    """The event type whose text, as ``str`` gives it and status shows it, this is."""
    name, _, rest = schema.partition("(")
    attributes = _ATTRIBUTE.findall(rest)
    return EventType(name, tuple(Attribute(key, Kind(kind)) for key, kind in attributes))


def _guessed(text: str) -> Any:
    for kind in (Kind.INT, Kind.FLOAT, Kind.BOOL):
        value = _read(text, kind)
        if not isinstance(value, str):
            return value
    return text


def _read(text: str, kind: Kind) -> Any:
    """The value, or the text itself where it is none of that kind."""
    if kind is Kind.STRING:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    expected = {Kind.INT: int, Kind.FLOAT: int | float, Kind.BOOL: bool}[kind]
    fits = isinstance(value, expected) and isinstance(value, bool) == (kind is Kind.BOOL)
    return value if fits else text

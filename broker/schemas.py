"""Schemas of event types as brokers show them."""

from __future__ import annotations

import re

from broker.errors import RefusedError
from matcher.errors import EventError
from matcher.model import OPTIONAL, Attribute, EventType, Kind, with_presences
from matcher.spelling import PLAIN, QUOTED, unquoted

_NAME = re.compile(rf"{QUOTED}|{PLAIN}")
_ATTRIBUTE = re.compile(
    rf"({_NAME.pattern}): ({'|'.join(kind.value for kind in Kind)})(\??)(?:, |\)$)"
)


_KNOWN_AS = re.compile(r".* is refused: it is already known as (.*) \(tesla\.md E5\)")
"""The words of a broker that knows a type by another schema (routing.serving.advertisements)."""


def known_in(refusal: RefusedError) -> EventType | None:
    """The type as a broker knows it that has refused another schema of it; None for another
    refusal.
    """
    found = _KNOWN_AS.fullmatch(refusal.reason)
    return None if found is None else type_of(found[1])


def type_of(schema: str) -> EventType:
    """The event type whose text, as ``str`` gives it and status shows it, this is. EventError for a
    text that begins with no name.
    """
    name = _NAME.match(schema)
    if name is None:
        raise EventError(f"expected an event type, found {schema[:100]!r}")
    attributes = _ATTRIBUTE.findall(schema, name.end() + 1)
    declared = [Attribute(unquoted(key), Kind(kind)) for key, kind, _ in attributes]
    optional = [unquoted(key) for key, _, sign in attributes if sign == OPTIONAL]
    return EventType(unquoted(name[0]), with_presences(declared, optional))

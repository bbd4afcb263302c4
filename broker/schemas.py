"""Schemas of event types as brokers show them."""

from __future__ import annotations

import re

from matcher.model import OPTIONAL, Attribute, EventType, Kind, with_presences
from matcher.spelling import PLAIN, QUOTED, unquoted

_NAME = re.compile(rf"{QUOTED}|{PLAIN}")
_ATTRIBUTE = re.compile(
    rf"({_NAME.pattern}): ({'|'.join(kind.value for kind in Kind)})(\??)(?:, |\)$)"
)


def type_of(schema: str) -> EventType:
    """The event type whose text, as ``str`` gives it and status shows it, this is."""
    name = _NAME.match(schema)
    assert name is not None, schema
    attributes = _ATTRIBUTE.findall(schema, name.end() + 1)
    declared = [Attribute(unquoted(key), Kind(kind)) for key, kind, _ in attributes]
    optional = [unquoted(key) for key, _, sign in attributes if sign == OPTIONAL]
    return EventType(unquoted(name[0]), with_presences(declared, optional))

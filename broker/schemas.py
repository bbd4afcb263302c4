"""Schemas of event types as brokers show them."""

from __future__ import annotations

import re

from matcher.model import OPTIONAL, Attribute, EventType, Kind, with_presences

# Names of attributes may hold commas, blanks and parentheses, so a kind is what ends one.
_ATTRIBUTE = re.compile(rf"(.+?): ({'|'.join(kind.value for kind in Kind)})(\??)(?:, |\)$)")


def type_of(schema: str) -> EventType:
    """The event type whose text, as ``str`` gives it and status shows it, this is."""
    name, _, rest = schema.partition("(")
    attributes = _ATTRIBUTE.findall(rest)
    declared = [Attribute(key, Kind(kind)) for key, kind, _ in attributes]
    optional = [key for key, _, sign in attributes if sign == OPTIONAL]
    return EventType(name, with_presences(declared, optional))

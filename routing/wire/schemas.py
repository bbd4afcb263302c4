"""Event types as bytes, and how events of each lie in a body.

A schema crosses a link in every batch's header, so both ways are remembered, for at most
``_CACHED_SCHEMAS_MAX`` types each: encoding and decoding one more batch of a type asks for no
more than a look-up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import numpy as np

from matcher.errors import SchemaError
from matcher.model import ATTRIBUTES_MAX, Attribute, EventType, Kind
from routing.errors import WireError
from routing.messages.values import NAME_MAX
from routing.names import is_printable
from routing.wire.singles import SingleForm

_CACHED_SCHEMAS_MAX = 4_096

Strings: TypeAlias = tuple[str, ...]
_KINDS = {kind.value: kind for kind in Kind}
_DTYPES: dict[Kind, np.dtype[Any]] = {
    Kind.INT: np.dtype("<i8"),
    Kind.FLOAT: np.dtype("<f8"),
    Kind.BOOL: np.dtype("?"),
    Kind.STRING: np.dtype("<i4"),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where in a body (columns) a type's attributes lie: the places of those of each width.

    ``words`` have eight bytes, with whether they are floats. ``single`` is the form of one event,
    and ``composite`` has those of composite events that have come alone.
    """

    type: EventType
    words: tuple[tuple[int, bool], ...]
    strings: tuple[int, ...]
    bools: tuple[int, ...]
    single: SingleForm
    composite: dict[Any, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, event_type: EventType) -> Layout:
        """The layout of a type."""
        kinds = list(enumerate(attribute.kind for attribute in event_type.attributes))
        return cls(
            event_type,
            tuple((place, kind is Kind.FLOAT) for place, kind in kinds if kind.is_number),
            tuple(place for place, kind in kinds if kind is Kind.STRING),
            tuple(place for place, kind in kinds if kind is Kind.BOOL),
            SingleForm.of(event_type),
        )


Encoding: TypeAlias = tuple[EventType, msgspec.Raw, Layout, tuple[np.dtype[Any], ...]]
"""A type, its bytes, and how its attributes, and the column of each, lie in a body."""

_encode = msgspec.msgpack.Encoder().encode
_decode_strings = msgspec.msgpack.Decoder(tuple[str, ...]).decode
_types: dict[bytes, EventType] = {}
_layouts: dict[bytes, Layout] = {}
# By identity, for speed: hashing a schema costs as much as encoding an event. The type is kept
# beside its bytes so that its identity stays its own.
_schemas: dict[int, Encoding] = {}


def flat_schema(event_type: EventType) -> list[str]:
    """The type's name, then each attribute's name and kind."""
    flat = [event_type.name]
    for attribute in event_type.attributes:
        flat += (attribute.name, attribute.kind.value)
    return flat


def event_type_of(flat: Strings) -> EventType:
    """The inverse of flat_schema; WireError when ``flat`` is not a schema.

    Equal schemas give one and the same object, so that comparing them costs nothing.
    """
    return _type_of(_encode(flat))


def _checked_type(flat: Strings) -> EventType:
    if len(flat) % 2 == 0:
        raise WireError(f"a schema of {len(flat)} strings; expected 1 + 2 per attribute")
    if len(flat) > 2 * ATTRIBUTES_MAX + 1:
        raise WireError(
            f"an event type of {len(flat) // 2} attributes, optional ones counted twice; links "
            f"carry at most {ATTRIBUTES_MAX}"
        )
    for name in (flat[0], *flat[1::2]):
        if not 0 < len(name) <= NAME_MAX:
            raise WireError(f"a name of {len(name)} characters; expected 1 to {NAME_MAX}")
        if not is_printable(name):
            raise WireError(f"the name {name!r} has characters that cannot be printed")
    try:
        kinds = [_KINDS[kind] for kind in flat[2::2]]
        return EventType(flat[0], tuple(map(Attribute, flat[1::2], kinds)))
    except KeyError as error:
        raise WireError(f"{error} is no kind of an attribute") from None
    except SchemaError as error:
        raise WireError(str(error)) from None


def known_schema(event_type: EventType) -> Encoding:
    """A type with what is needed to encode its events."""
    found = _schemas.get(id(event_type))
    if found is None:
        if len(_schemas) >= _CACHED_SCHEMAS_MAX:
            _schemas.clear()
        raw = msgspec.Raw(_encode(flat_schema(event_type)))
        dtypes = tuple(_DTYPES[attribute.kind] for attribute in event_type.attributes)
        found = _schemas[id(event_type)] = event_type, raw, Layout.of(event_type), dtypes
    return found


def layout_of(schema: msgspec.Raw | bytes) -> Layout:
    """The layout of a type, from its bytes; WireError when they are not a schema."""
    data = bytes(schema)
    found = _layouts.get(data)
    if found is None:
        if len(_layouts) >= _CACHED_SCHEMAS_MAX:
            _layouts.clear()
        found = _layouts[data] = Layout.of(_type_of(data))
    return found


def _type_of(data: bytes) -> EventType:
    found = _types.get(data)
    if found is None:
        if len(_types) >= _CACHED_SCHEMAS_MAX:
            _types.clear()
        found = _types[data] = _checked_type(_decode_strings(data))
    return found

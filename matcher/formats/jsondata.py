"""The attributes of JSON events: read together, by a decoder made for their type's schema.

Law: many are read in one call or not at all. Where one event of a type does not fit its schema,
whoever reads takes them one by one, which tells the bad ones and why
(:mod:`matcher.formats.jsonlines`).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw

from matcher.errors import BadEvent
from matcher.model import EventType, Kind
from matcher.times import spoken

REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoders raise of text that is no JSON, or not that of a schema."""


def rows_of(event_type: EventType, envelopes: Sequence[Any]) -> tuple[list[Any], int] | None:
    """The events' attributes as structures, and how many values were surplus; None if one is bad.

    A decoder passes over surplus names without a word, so the first that is tried refuses them,
    and only where it does are they counted.
    """
    decoders = _decoders(event_type)
    if decoders is None:
        return None
    exact, lenient, counting = decoders
    text = b"[" + b",".join(map(attrgetter("data"), envelopes)) + b"]"
    with contextlib.suppress(*REFUSED):
        return exact.decode(text), 0
    with contextlib.suppress(*REFUSED):
        rows = lenient.decode(text)
        names = frozenset(one.name for one in event_type.declared)
        return rows, sum(len(data.keys() - names) for data in counting.decode(text))
    return None


@functools.lru_cache(maxsize=1024)
def _decoders(event_type: EventType) -> tuple[Any, Any, Any] | None:
    """Decoders of lists of a type's data: exact, lenient about surplus names, counting names. What
    is optional may be null or lack, and is None then.

    None when an attribute has a name that such a decoder cannot have.
    """
    kinds: dict[Kind, Any] = {
        Kind.INT: int,
        Kind.FLOAT: float,
        Kind.BOOL: bool,
        Kind.STRING: str,
    }
    fields: list[Any] = []
    for place, attribute in enumerate(event_type.declared):
        field, kind = f"value_{place}", kinds[attribute.kind]
        optional = event_type.presences[place] >= 0
        fields.append((field, kind | None, None) if optional else (field, kind))
    names = (attribute.name for attribute in event_type.declared)
    rename = {field[0]: name for field, name in zip(fields, names, strict=True)}
    try:
        exact, lenient = (
            msgspec.defstruct(
                "Data",
                fields,
                rename=rename,
                gc=False,
                kw_only=True,
                forbid_unknown_fields=strict,
            )
            for strict in (True, False)
        )
    except ValueError:
        return None
    return (
        msgspec.json.Decoder(list[exact]),  # type: ignore[valid-type]
        msgspec.json.Decoder(list[lenient]),  # type: ignore[valid-type]
        msgspec.json.Decoder(list[dict[str, Raw]]),
    )


def data_of(envelope: Any) -> dict[str, object]:
    """One event's attributes as they stand there; BadEvent when they are no object."""
    try:
        data = msgspec.json.decode(envelope.data)
    except REFUSED as error:
        raise BadEvent(_refused_in(envelope.data) or f"data: {error}") from None
    if not isinstance(data, dict):
        raise BadEvent(f"data: expected an object, found {spoken(data)}")
    return data


def _refused_in(data: Raw) -> str | None:
    """The first attribute that cannot be read, a number that no float holds say; None where it is
    the object itself.
    """
    with contextlib.suppress(*REFUSED):
        for name, value in msgspec.json.decode(data, type=dict[str, Raw]).items():
            try:
                msgspec.json.decode(value)
            except REFUSED as error:
                return f"attribute {name}: {error}"
    return None

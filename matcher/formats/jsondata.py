"""The attributes of JSON events: read together, by a decoder made for their type's schema."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from matcher.errors import BadEvent
from matcher.formats.layout import CAUSE, Layout
from matcher.model import EventType, Kind
from matcher.times import spoken

REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors that decoders raise of text that is no JSON, or not that of a schema."""


def rows_of(
    event_type: EventType, envelopes: Sequence[Any], members: Members
) -> tuple[list[Any], int] | None:
    """The events' attributes as structures, and how many values were surplus; None if one is bad.

    A decoder passes over surplus names without a word, so the first that is tried refuses them, and
    only where it does are they counted. Whoever reads then takes the events one by one, which tells
    the bad ones and why (:mod:`matcher.formats.jsonlines`).
    """
    decoders = _decoders(event_type, members)
    if decoders is None:
        return None
    exact, lenient, counting = decoders
    text = b"[" + b",".join(map(attrgetter("data"), envelopes)) + b"]"
    with contextlib.suppress(*REFUSED):
        return exact.decode(text), 0
    with contextlib.suppress(*REFUSED):
        rows = lenient.decode(text)
        named = set(members.named(event_type))
        return rows, sum(len(names.keys() - named) for names in counting.decode(text))
    return None


@functools.lru_cache(maxsize=1024)
def _decoders(event_type: EventType, members: Members) -> tuple[Any, Any, Any] | None:
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
    wanted = [members.holding(attribute.name) for attribute in event_type.declared]
    if None in wanted or len(set(wanted)) < len(wanted):
        return None
    fields: list[Any] = []
    for place, attribute in enumerate(event_type.declared):
        field, kind = f"value_{place}", kinds[attribute.kind]
        optional = event_type.presences[place] >= 0
        fields.append((field, kind | None, None) if optional else (field, kind))
    rename: dict[str, Any] = {f"value_{place}": name for place, name in enumerate(wanted)}
    for place, name in enumerate(sorted(members.beside - set(wanted))):
        fields.append((f"beside_{place}", Raw | UnsetType, UNSET))
        rename[f"beside_{place}"] = name
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


@dataclass(frozen=True, slots=True)
class Members:
    """The members of an object that hold attributes: those of other names, and those ``beside``
    them that say when, who and of which type the event is, ``own`` being no attributes at all.
    Those that a path leads through are none, either.
    """

    renamed: tuple[tuple[str, str], ...] = ()
    beside: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()

    @classmethod
    def of(cls, layout: Layout, type_name: str | None) -> Members:
        """The members that a layout means."""
        paths = layout.paths
        renamed = tuple((name, name if name in paths else held) for name, held in layout.columns)
        if not layout.flat:
            inner = (steps[1] for steps in paths.values() if steps[0] == "data" and steps[1:])
            return cls(renamed, own=frozenset(inner))
        beside = frozenset(layout.role_columns(type_name).values())
        inner = (steps[0] for steps in paths.values())
        return cls(renamed, beside, layout.unsaid(type_name).union(inner))

    def holding(self, name: str) -> str | None:
        """The member that holds an attribute; None where there can be none."""
        renamed = dict(self.renamed)
        if name in renamed:
            return renamed[name]
        return None if name in self.own or name in renamed.values() else name

    def named(self, event_type: EventType) -> list[str | None]:
        """The members that are no surplus."""
        names = (one.name for one in event_type.declared)
        return [*map(self.holding, names), *self.beside]

    def attributes(self, members: Mapping[str, object]) -> dict[str, object]:
        """The attributes in an object, also of members that say something else as well."""
        renamed = dict(self.renamed)
        hidden = {*self.own, *renamed.values()}
        data = {name: value for name, value in members.items() if name not in hidden}
        return data | {name: members[key] for name, key in renamed.items() if key in members}

    def guessed(self, data: Mapping[str, object]) -> dict[str, object]:
        """The attributes of an event whose type is not declared."""
        renamed = dict(self.renamed)
        return {
            name: value
            for name, value in data.items()
            if name in renamed or not (name in self.beside or (self.beside and name == CAUSE))
        }


def data_of(envelope: Any, members: Members) -> dict[str, object]:
    """One event's attributes as they stand there; BadEvent when they are no object."""
    try:
        data = msgspec.json.decode(envelope.data)
    except REFUSED as error:
        raise BadEvent(_refused_in(envelope.data) or f"data: {error}") from None
    if not isinstance(data, dict):
        raise BadEvent(f"data: expected an object, found {spoken(data)}")
    return members.attributes(data)


def unquoted(event_type: EventType, data: dict[str, object]) -> dict[str, object]:
    """The attributes, with numbers in quotes as numbers where the type has numbers."""
    for attribute in event_type.declared:
        text = data.get(attribute.name)
        form = _QUOTED.get(attribute.kind)
        if form is not None and isinstance(text, str) and form.fullmatch(text):
            data[attribute.name] = int(text) if attribute.kind is Kind.INT else float(text)
    return data


_QUOTED = {
    Kind.INT: re.compile(r"-?[0-9]{1,20}"),
    Kind.FLOAT: re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?"),
}
"""Numbers as texts, by kind."""


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

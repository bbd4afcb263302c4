"""Logs of processes around many objects, OCEL 2.0 in JSON: a row for each event and object of it.

The columns are ``time``, ``activity``, ``event`` (its id), ``object``, ``object_type`` and
``qualifier``, then the event's attributes under their names; one that is called as such a column
has ``event:`` before its name. An event of three objects has three rows, one of none has one row
without an object. Attributes of objects are passed over. A log is held whole while it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

import msgspec
import pyarrow as pa
from msgspec import Struct

from matcher.errors import BadEvent
from matcher.formats import pieces
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.jsondata import REFUSED
from matcher.formats.xesfiles import KINDS
from matcher.model import Datum

_NO_OBJECT: Mapping[str, Datum] = {"object": None, "object_type": None, "qualifier": None}
_OWN = ("time", "type", "source", "sequence", "id", "cause", "activity", "event", *_NO_OBJECT)
"""Columns that no attribute of an event has."""


class _Value(Struct):
    name: str
    value: str | int | float | bool | None = None


class _Relation(Struct):
    objectId: str  # noqa: N815 - the standard's word
    qualifier: str | None = None


class _Event(Struct):
    id: str
    type: str
    time: str
    attributes: list[_Value] = []
    relationships: list[_Relation] = []


class _Object(Struct):
    id: str
    type: str


class _Declared(Struct):
    name: str
    type: str = "string"


class _EventType(Struct):
    name: str
    attributes: list[_Declared] = []


class _Log(Struct):
    events: list[_Event]
    objects: list[_Object] = []
    eventTypes: list[_EventType] = []  # noqa: N815


_DECODER = msgspec.json.Decoder(_Log)


_KINDS: Mapping[str, Callable[[str], Datum]] = {
    "integer": KINDS["int"],
    "float": KINDS["float"],
    "boolean": KINDS["boolean"],
}
"""Kinds that event types declare for their attributes; all others are texts."""


def read(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Chunk]:
    """The events of each piece of the log."""
    return pieces.read(_pieces(stream, place.file), place, intake, type_name)


def scan(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Glance]:
    """The times of each piece; ``intake`` learns the schema."""
    learning = pieces.learning(_pieces(stream, place.file), place, intake, type_name)
    return pieces.glances(learning, place, intake)


def _pieces(stream: BinaryIO, file: str) -> Iterator[pa.RecordBatch]:
    try:
        log = _DECODER.decode(stream.read().removeprefix(b"\xef\xbb\xbf"))
    except REFUSED as error:
        raise BadEvent(f"not OCEL 2.0 in JSON: {error}", file) from None
    # One piece: so what is null in some event of the log is known to be optional.
    if rows := list(_rows(log, file)):
        yield pieces.of_rows(rows, file)


def _rows(log: _Log, file: str) -> Iterator[Mapping[str, Datum]]:
    types = {one.id: one.type for one in log.objects}
    declared = {
        (event_type.name, one.name): _KINDS.get(one.type, str)
        for event_type in log.eventTypes
        for one in event_type.attributes
    }
    for event in log.events:
        row: dict[str, Datum] = {"time": event.time, "activity": event.type, "event": event.id}
        row |= _NO_OBJECT
        for one in event.attributes:
            name = f"event:{one.name}" if one.name in _OWN else one.name
            row[name] = _value(one, declared.get((event.type, one.name), str), event, file)
        for relation in event.relationships:
            if relation.objectId not in types:
                raise BadEvent(f"event {event.id}: no object {relation.objectId}", file)
            yield row | {
                "object": relation.objectId,
                "object_type": types[relation.objectId],
                "qualifier": relation.qualifier,
            }
        if not event.relationships:
            yield row


def _value(given: _Value, kind: Callable[[str], Datum], event: _Event, file: str) -> Datum:
    try:
        return None if given.value is None else kind(str(given.value))
    except ValueError as error:
        raise BadEvent(f"event {event.id}: attribute {given.name}: {error}", file) from None

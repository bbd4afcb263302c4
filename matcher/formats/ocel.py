"""Logs of processes around many objects, OCEL 2.0, in any of its forms: a row for each event and
object of it.

The columns are ``time``, ``activity``, ``event`` (its id), ``object``, ``object_type`` and
``qualifier``, then the event's attributes under their names; one that is called as such a column
has ``event:`` before its name. An event of three objects has three rows, one of none has one row
without an object. Attributes of objects are passed over. A log is held whole while it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from msgspec import Struct

from matcher.errors import BadEvent
from matcher.formats import pieces
from matcher.formats.xesfiles import KINDS
from matcher.model import Datum

_NO_OBJECT: Mapping[str, Datum] = {"object": None, "object_type": None, "qualifier": None}
_OWN = ("time", "type", "source", "sequence", "id", "cause", "activity", "event", *_NO_OBJECT)
"""Columns that no attribute of an event has."""
_KINDS: Mapping[str, Callable[[str], Datum]] = {
    "integer": KINDS["int"],
    "float": KINDS["float"],
    "boolean": KINDS["boolean"],
}
"""Kinds that event types declare for their attributes; all others are texts."""


class Value(Struct):
    """An attribute of an event."""

    name: str
    value: str | int | float | bool | None = None


class Relation(Struct):
    """An object of an event."""

    objectId: str  # noqa: N815 - the standard's word
    qualifier: str | None = None


class Event(Struct):
    """An event of a log."""

    id: str
    type: str
    time: str
    attributes: list[Value] = []
    relationships: list[Relation] = []


@dataclass(frozen=True, slots=True)
class Log:
    """A log: its events, the types of its objects by their ids, and the kinds of attributes, as
    the standard calls them, by event type and name.
    """

    events: Iterable[Event]
    objects: Mapping[str, str]
    kinds: Mapping[tuple[str, str], str]


def pieces_of(log: Log, file: str) -> Iterator[pa.RecordBatch]:
    """The rows of a log; BadEvent for an event that is none."""
    # One piece: so what is null in some event of the log is known to be optional.
    if rows := list(_rows(log, file)):
        yield pieces.of_rows(rows, file)


def _rows(log: Log, file: str) -> Iterator[Mapping[str, Datum]]:
    for event in log.events:
        row: dict[str, Datum] = {"time": event.time, "activity": event.type, "event": event.id}
        row |= _NO_OBJECT
        for one in event.attributes:
            name = f"event:{one.name}" if one.name in _OWN else one.name
            kind = _KINDS.get(log.kinds.get((event.type, one.name), ""), str)
            row[name] = _value(one, kind, event, file)
        for relation in event.relationships:
            if relation.objectId not in log.objects:
                raise BadEvent(f"event {event.id}: no object {relation.objectId}", file)
            yield row | {
                "object": relation.objectId,
                "object_type": log.objects[relation.objectId],
                "qualifier": relation.qualifier,
            }
        if not event.relationships:
            yield row


def _value(given: Value, kind: Callable[[str], Datum], event: Event, file: str) -> Datum:
    try:
        return None if given.value is None else kind(str(given.value))
    except ValueError as error:
        raise BadEvent(f"event {event.id}: attribute {given.name}: {error}", file) from None

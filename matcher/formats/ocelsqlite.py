"""OCEL 2.0 in SQLite (:mod:`matcher.formats.ocel`): a table for the events of each type.

The columns of such a table are the attributes of its events, of the kinds that it declares.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import BinaryIO

import pyarrow as pa

from matcher.errors import BadEvent
from matcher.formats import ocel, pieces

_KINDS = {"INT": "integer", "REAL": "float", "FLOA": "float", "DOUB": "float", "BOOL": "boolean"}
"""The standard's kinds, by what the types of columns contain."""
_TRUTHS = {0: "false", 1: "true"}
_LIBRARY_COLUMN = "ocel:activity"
"""The type of an event once more, as pm4py writes it."""


def _pieces(stream: BinaryIO, file: str) -> Iterator[pa.RecordBatch]:
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(stream.read())
            yield from ocel.pieces_of(_log(database), file)
        except (sqlite3.Error, MemoryError) as error:
            reason = str(error) or "no bytes"
            raise BadEvent(f"not OCEL 2.0 in SQLite: {reason}", file) from None


def _log(database: sqlite3.Connection) -> ocel.Log:
    relations: dict[str, list[ocel.Relation]] = defaultdict(list)
    select = "SELECT ocel_event_id, ocel_object_id, ocel_qualifier FROM event_object"
    for event, object_, qualifier in database.execute(select):
        relations[str(event)].append(ocel.Relation(str(object_), qualifier))
    kinds: dict[tuple[str, str], str] = {}
    events: dict[str, ocel.Event] = {}
    for event_type, ending in database.execute(
        "SELECT ocel_type, ocel_type_map FROM event_map_type"
    ):
        table = f"event_{ending}"
        own = dict(_attributes(database, table))
        kinds |= {(event_type, name): kind for name, kind in own.items()}
        columns = ", ".join(map(_quoted, ("ocel_id", "ocel_time", *own)))
        for event, time, *values in database.execute(f"SELECT {columns} FROM {_quoted(table)}"):
            attributes = [
                ocel.Value(name, _TRUTHS.get(value, value) if own[name] == "boolean" else value)
                for name, value in zip(own, values, strict=True)
            ]
            text = str(event)
            events[text] = ocel.Event(text, event_type, str(time), attributes, relations[text])
    in_order = database.execute("SELECT ocel_id FROM event ORDER BY rowid")
    objects = database.execute("SELECT ocel_id, ocel_type FROM object")
    return ocel.Log(
        [events[str(event)] for (event,) in in_order if str(event) in events],
        {str(object_): object_type for object_, object_type in objects},
        kinds,
    )


def _attributes(database: sqlite3.Connection, table: str) -> Iterator[tuple[str, str]]:
    """The attributes of a table's events, each with its kind."""
    for name, declared in database.execute("SELECT name, type FROM pragma_table_info(?)", [table]):
        if name not in ("ocel_id", "ocel_time", _LIBRARY_COLUMN):
            kinds = (kind for part, kind in _KINDS.items() if part in declared.upper())
            yield name, next(kinds, "string")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


read, scan = pieces.readers(_pieces)

"""OCEL 2.0 in JSON (:mod:`matcher.formats.ocel`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec
import pyarrow as pa
from msgspec import Struct

from matcher.errors import BadEvent
from matcher.formats import ocel, pieces
from matcher.formats.jsondata import REFUSED


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
    events: list[ocel.Event]
    objects: list[_Object] = []
    eventTypes: list[_EventType] = []  # noqa: N815 - the standard's word


_DECODER = msgspec.json.Decoder(_Log)


def _pieces(stream: BinaryIO, file: str) -> Iterator[pa.RecordBatch]:
    try:
        log = _DECODER.decode(stream.read().removeprefix(b"\xef\xbb\xbf"))
    except REFUSED as error:
        raise BadEvent(f"not OCEL 2.0 in JSON: {error}", file) from None
    objects = {one.id: one.type for one in log.objects}
    kinds = {
        (event_type.name, one.name): one.type
        for event_type in log.eventTypes
        for one in event_type.attributes
    }
    return ocel.pieces_of(ocel.Log(log.events, objects, kinds), file)


read, scan = pieces.readers(_pieces)

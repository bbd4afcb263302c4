"""OCEL 2.0 in XML (:mod:`matcher.formats.ocel`).

A log with a document type is refused, for its entities could be of any length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pyarrow as pa

from matcher.errors import BadEvent
from matcher.formats import ocel, pieces


class _Tree(ElementTree.TreeBuilder):
    def doctype(self, *declared: object) -> None:
        raise BadEvent("a document type, which no log of OCEL has")


def _pieces(stream: BinaryIO, file: str) -> Iterator[pa.RecordBatch]:
    parser = ElementTree.XMLParser(target=_Tree())
    try:
        log = ElementTree.parse(stream, parser).getroot()
    except ElementTree.ParseError as error:
        raise BadEvent(f"not XML: {error}", file) from None
    except BadEvent as error:
        raise BadEvent(error.reason, file) from None
    if log.tag != "log" or log.find("events") is None:
        raise BadEvent(f"not OCEL 2.0 in XML: a {log.tag} without events", file)
    objects = {
        _of(one, "id", file): _of(one, "type", file) for one in log.iterfind("objects/object")
    }
    kinds = {
        (_of(event_type, "name", file), _of(one, "name", file)): one.get("type", "string")
        for event_type in log.iterfind("event-types/event-type")
        for one in event_type.iterfind("attributes/attribute")
    }
    events = (_event(one, file) for one in log.iterfind("events/event"))
    return ocel.pieces_of(ocel.Log(events, objects, kinds), file)


def _event(event: Element, file: str) -> ocel.Event:
    return ocel.Event(
        _of(event, "id", file),
        _of(event, "type", file),
        _of(event, "time", file),
        [
            ocel.Value(_of(one, "name", file), one.text or "")
            for one in event.iterfind("attributes/attribute")
        ],
        [
            ocel.Relation(_of(one, "object-id", file), one.get("qualifier"))
            for one in event.iterfind("objects/*")
        ],
    )


def _of(element: Element, name: str, file: str) -> str:
    value = element.get(name)
    if value is None:
        raise BadEvent(f"not OCEL 2.0 in XML: {element.tag} without {name}", file)
    return value


read, scan = pieces.readers(_pieces)

"""Files that are one JSON array of events, or hold one (docs/files.md), read as lines are.

An array is held whole while it is read: where it ends is known when all of it is there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import BinaryIO

import msgspec
from msgspec import Raw

from matcher.errors import BadEvent
from matcher.formats import jsonlines
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.jsondata import REFUSED
from matcher.formats.layout import COLUMNS_SHOWN

ROWS = 4_096
"""Events of a chunk."""

_ARRAY = msgspec.json.Decoder(list[Raw])
_OBJECT = msgspec.json.Decoder(dict[str, Raw])


def read(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Chunk]:
    """The events of each chunk; see jsonlines."""
    return jsonlines.read_chunks(
        chunks(stream, place.file, place.layout.records), place, intake, type_name, "row "
    )


def scan(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Glance]:
    """The times of each chunk; see jsonlines."""
    return jsonlines.scan_chunks(
        chunks(stream, place.file, place.layout.records), place, intake, type_name
    )


def chunks(stream: BinaryIO, file: str, records: str | None = None) -> Iterator[jsonlines.Lines]:
    """The array's values, each in a line, in chunks numbered from 1; BadEvent where it is none.

    ``records``: the path to the array, in a document that is no array itself.
    """
    text = stream.read().removeprefix(b"\xef\xbb\xbf")
    try:
        values = iter(_ARRAY.decode(text if records is None else _records(text, records, file)))
    except REFUSED as error:
        raise BadEvent(f"not an array of events: {error}", file) from None
    first = 1
    while some := list(itertools.islice(values, ROWS)):
        lines = (msgspec.json.format(one, indent=-1) for one in some)
        yield first, first + len(some) - 1, b"\n".join(lines) + b"\n"
        first += len(some)


def _records(text: bytes, path: str, file: str) -> bytes:
    """The value at a path of a document; BadEvent that names the members where it ends."""
    for step in path.removeprefix(".").split("."):
        members = _OBJECT.decode(text)
        if step not in members:
            shown = ", ".join(map(repr, [*members][:COLUMNS_SHOWN])) or "none"
            raise BadEvent(f"no member {step!r} of --records {path}; the members are {shown}", file)
        text = bytes(members[step])
    return text

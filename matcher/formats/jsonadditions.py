"""Attributes of JSON events that do not stand in their data: by path, or in names of folders.

An addition is a member that is written into the event's data before this is decoded, behind
all others, of which the last one of a name counts; so everything else is read as if it had stood
there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Raw

from matcher.formats.folders import datum_of
from matcher.formats.inputs import FolderColumn
from matcher.formats.jsondata import REFUSED
from matcher.formats.layout import Layout
from matcher.model import EventType

_OBJECT = msgspec.json.Decoder(dict[str, Raw])


@dataclass(frozen=True, slots=True)
class Additions:
    """The columns that names of folders say, and the attributes that are found by paths."""

    columns: tuple[FolderColumn, ...]
    paths: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, layout: Layout, columns: tuple[FolderColumn, ...]) -> Additions:
        """The additions that a layout and the names of folders say."""
        return cls(columns, tuple(layout.paths.items()))

    def __bool__(self) -> bool:
        return bool(self.columns or self.paths)

    def added(self, data: bytes, line: bytes, event_type: EventType | None) -> Raw:
        """The data of an event that stands on a line, with the additions in it; ``event_type`` is
        its type, if that is known. What is no object stays as it is.
        """
        text = data.strip()
        members = [
            msgspec.json.encode(name) + b":" + value
            for name, value in self.members(line, event_type)
        ]
        if not members or not text.endswith(b"}"):
            return Raw(data)
        sign = b"" if text[1:-1].isspace() or text == b"{}" else b","
        return Raw(text[:-1] + sign + b",".join(members) + b"}")

    def members(self, line: bytes, event_type: EventType | None) -> Iterator[tuple[str, bytes]]:
        """The additions to an event that stands on a line, each with its value as JSON."""
        declared = () if event_type is None else event_type.declared
        kinds = {attribute.name: attribute.kind for attribute in declared}
        for name, text in self.columns:
            yield name, msgspec.json.encode(datum_of(text, kinds.get(name)))
        for name, steps in self.paths:
            value = _at(line, steps)
            if value is not None:
                yield name, value


def _at(text: bytes, steps: tuple[str, ...]) -> bytes | None:
    """The value at the end of a path of members, as it is written; None where there is none."""
    for step in steps:
        members: Mapping[str, Raw] = {}
        with contextlib.suppress(*REFUSED):
            members = _OBJECT.decode(text)
        if step not in members:
            return None
        text = bytes(members[step])
    return text

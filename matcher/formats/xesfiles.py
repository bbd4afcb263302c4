"""Logs of process mining, XES (IEEE 1849): a row for each event, with the attributes of its trace.

The columns are those of pm4py under plain names: ``case`` (``case:concept:name``), ``activity``
(``concept:name``) and ``time`` (``time:timestamp``); all others are called as they are, those of
the trace after ``case:``. Lists, containers and attributes of attributes are passed over. A log
with a document type is refused, for its entities could be of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO
from xml.parsers import expat

import pyarrow as pa

from matcher.errors import BadEvent
from matcher.formats import pieces
from matcher.model import Datum
from matcher.rows import INT_MAX, INT_MIN

_NAMES = {"concept:name": "activity", "time:timestamp": "time", "case:concept:name": "case"}
_BYTES = 2**16


def _int(text: str) -> int:
    number = int(text)
    if not INT_MIN <= number <= INT_MAX:
        raise ValueError("an int beyond 64 bits")
    return number


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"expected true or false, found {text[:40]!r}")
    return text.lower() == "true"


KINDS: Mapping[str, Callable[[str], Datum]] = {
    "string": str,
    "date": str,
    "id": str,
    "int": _int,
    "float": float,
    "boolean": _boolean,
}
"""Kinds of attributes, and how their values are read."""


def _pieces(stream: BinaryIO, file: str) -> Iterator[pa.RecordBatch]:
    log, has_more = _Log(file), True
    while has_more:
        has_more = log.feed(stream.read(_BYTES))
        if len(log.rows) >= pieces.ROWS or not has_more:
            for first in range(0, len(log.rows), pieces.ROWS):
                yield pieces.of_rows(log.rows[first : first + pieces.ROWS], file)
            log.rows.clear()


class _Log:
    """A log as it is read: the rows of the events that have ended."""

    def __init__(self, file: str) -> None:
        self.rows: list[dict[str, Datum]] = []
        self._file = file
        self._path: list[str] = []
        self._trace: dict[str, Datum] = {}
        self._event: dict[str, Datum] = {}
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._doctype

    def feed(self, text: bytes) -> bool:
        """Read on; whether there is more to come. BadEvent for what is no XES."""
        try:
            self._parser.Parse(text, not text)
        except expat.ExpatError as error:
            raise BadEvent(f"not XES: {error}", self._file) from None
        return bool(text)

    def _doctype(self, *declared: object) -> None:
        raise BadEvent("a document type, which no log of XES has", self._file)

    def _start(self, element: str, given: dict[str, str]) -> None:
        tag = element.rpartition(" ")[2]
        around = self._path[-1] if self._path else ""
        self._path.append(tag)
        if around == "" and tag != "log":
            raise BadEvent(f"not XES: the document is a {tag}, not a log", self._file)
        if tag == "trace":
            self._trace = {}
        elif tag == "event":
            self._event = {} if around == "log" else dict(self._trace)
        elif tag in KINDS and around in ("trace", "event") and "key" in given:
            self._take(tag, around, given["key"], given.get("value", ""))

    def _take(self, tag: str, around: str, key: str, text: str) -> None:
        name = f"case:{key}" if around == "trace" else key
        try:
            value = KINDS[tag](text)
        except ValueError as error:
            line = self._parser.CurrentLineNumber
            raise BadEvent(f"attribute {key}: {error}", f"{self._file}:{line}") from None
        row = self._trace if around == "trace" else self._event
        row[_NAMES.get(name, name)] = value

    def _end(self, element: str) -> None:
        self._path.pop()
        if element.rpartition(" ")[2] == "event":
            self.rows.append(self._event)


read, scan = pieces.readers(_pieces)

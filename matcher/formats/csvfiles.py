"""CSV files of one event type (docs/files.md): RFC 4180, with a line of names first.

The columns are those of any table of events. Everything is text here, so a type's schema, where
none is declared, is read from the texts of its first event: ``true`` and ``false`` are bools,
``46`` an int, ``46.5`` and ``4e1`` floats, anything else a string. An empty text is a value of a
string attribute and nothing at all for the others; of an optional attribute it is null.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matcher.errors import BadEvent
from matcher.formats import pieces
from matcher.formats.arrowcolumns import BadRows, times_of_column, without
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.tabular import (
    RESERVED,
    SEQUENCE,
    TIME,
    TYPE,
    arrow_schema,
    check_distinct,
    check_time,
    from_arrow,
    named_type,
    to_arrow,
)
from matcher.model import BLANKS, Attribute, Datum, EventBatch, EventType, Kind, with_presences
from matcher.rows import INT_MAX, INT_MIN
from matcher.times import rfc3339

ROWS = 16_384
"""Rows of a piece."""
FIELD_MAX = 2**26
"""Characters of one field; beyond this a file is refused."""

_INT = re.compile(r"[+-]?\d+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BOOLS: Mapping[str, bool] = {"true": True, "True": True, "false": False, "False": False}
_ARROW_TYPES = {Kind.INT: pa.int64(), Kind.FLOAT: pa.float64(), Kind.BOOL: pa.bool_()}
# What Arrow's own conversion is asked to do: it would take hexadecimal numbers too.
_PLAIN = {
    Kind.INT: r"^-?\d+$",
    Kind.FLOAT: r"^-?\d+(\.\d*)?([eE][+-]?\d+)?$",
    Kind.BOOL: "^(true|false)$",
}


def read(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Chunk]:
    """The events of each piece of the file."""
    batches = (
        (len(rows), _batch(names, rows, first_row, place, intake, type_name))
        for names, first_row, rows in _pieces(stream, place.file)
    )
    return pieces.chunks(batches, place.file)


def scan(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Glance]:
    """The times of each piece; ``intake`` learns the schema, and counts nothing."""
    aside = Intake(intake.schemas, skip_bad=True)
    for names, first_row, rows in _pieces(stream, place.file):
        if first_row == 1:
            learnt = _batch(names, rows, first_row, place, aside, type_name).type
            if learnt.name not in intake.schemas:
                intake.learn(learnt)
        bad: BadRows = []
        columns = _columns(names, rows, bad)
        times = times_of_column(columns.get(TIME), len(rows), bad, place.time_unit)
        yield Glance(first_row + len(rows) - 1, without(times, bad))


class Writer:
    """Writes events of one type; causes stand in one column, with blanks between them."""

    def __init__(
        self, sink: BinaryIO, event_type: EventType, *, composite: bool, full_cause: bool
    ) -> None:
        self._text = io.TextIOWrapper(sink, "utf-8", newline="", write_through=True)
        self._full_cause = full_cause
        self._names = arrow_schema(event_type, composite=composite).names
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._rows.writerow(self._names)

    def write(self, batch: EventBatch) -> None:
        """Add a batch."""
        table = to_arrow(batch, full_cause=self._full_cause)
        columns = [
            rfc3339(batch.time) if name == TIME else _written(column)
            for name, column in zip(self._names, table.columns, strict=True)
        ]
        self._rows.writerows(zip(*columns, strict=True))

    def close(self) -> None:
        """Let go of the sink, which stays open."""
        self._text.detach()


def _written(column: pa.Array) -> list[object]:
    values: list[object] = column.to_pylist()
    if pa.types.is_boolean(column.type):
        return ["" if value is None else "true" if value else "false" for value in values]
    if pa.types.is_list(column.type):
        return [" ".join(causes) for causes in column.to_pylist()]
    return values


def _pieces(stream: BinaryIO, file: str) -> Iterator[tuple[list[str], int, list[list[str]]]]:
    """The names, the number of the first row, from 1, and some rows; empty lines are no rows."""
    csv.field_size_limit(FIELD_MAX)
    text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
    reader = csv.reader(text, strict=True)
    row = 1
    try:
        names = next(reader, [TIME])
        check_time(names, file)
        check_distinct(names, file)
        filled = filter(None, reader)
        while rows := list(itertools.islice(filled, ROWS)):
            yield names, row, rows
            row += len(rows)
    except csv.Error as error:
        raise BadEvent(f"not CSV: {error}", f"{file}:{reader.line_num}") from None


def _batch(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    first_row: int,
    place: Place,
    intake: Intake,
    type_name: str | None,
) -> EventBatch:
    bad: BadRows = []
    columns = _columns(names, rows, bad)
    name = type_name or named_type(columns.get(TYPE), place.file)
    reserved = RESERVED if type_name is None else [key for key in RESERVED if key != TYPE]
    event_type = intake.schemas.get(name)
    if event_type is None:
        first = {key: column[0].as_py() for key, column in columns.items() if key not in reserved}
        attributes = [Attribute(key, _kind_of_text(text)) for key, text in first.items()]
        event_type = intake.learn(EventType(name, with_presences(attributes)))
    for attribute, presence in zip(event_type.declared, event_type.presences, strict=True):
        if presence >= 0 and attribute.name in columns:
            columns[attribute.name] = _emptied(columns[attribute.name])
    for attribute in (*event_type.declared, Attribute(SEQUENCE, Kind.INT)):
        if attribute.name in columns and attribute.kind is not Kind.STRING:
            columns[attribute.name] = _typed(attribute, columns[attribute.name], bad)
    return from_arrow(pa.table(columns), place, intake, type_name, first_row=first_row, bad=bad)


def _columns(
    names: Sequence[str], rows: Sequence[Sequence[str]], bad: BadRows
) -> dict[str, pa.Array]:
    """The columns as texts; rows of another length are bad, and of empty texts."""
    if set(map(len, rows)) != {len(names)}:
        blank = [""] * len(names)
        bad.extend(
            (np.array([row]), f"{len(texts)} fields, expected {len(names)}")
            for row, texts in enumerate(rows)
            if len(texts) != len(names)
        )
        rows = [texts if len(texts) == len(names) else blank for texts in rows]
    columns = zip(*rows, strict=True)
    return {name: _text_array(name, texts, bad) for name, texts in zip(names, columns, strict=True)}


def _text_array(name: str, texts: Sequence[str], bad: BadRows) -> pa.Array:
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:  # bytes that are not UTF-8 come as lone surrogates
        legible = [text.encode(errors="replace").decode() for text in texts]
        broken = [row for row, text in enumerate(texts) if text != legible[row]]
        bad.append((np.array(broken), f"{name}: text that is not UTF-8"))
        return pa.array(legible, pa.string())


def _emptied(texts: pa.Array) -> pa.Array:
    """The texts of an optional attribute: those that are empty are null."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _typed(attribute: Attribute, texts: pa.Array, bad: BadRows) -> pa.Array:
    """The column as its attribute's kind; rows that do not fit are bad, and hold a zero."""
    kind = attribute.kind
    if pc.all(pc.match_substring_regex(texts, _PLAIN[kind])).as_py():
        try:
            return texts.cast(_ARROW_TYPES[kind])
        except pa.ArrowInvalid:
            pass  # beyond 64 bits, somewhere
    values: list[Datum] = []
    for row, text in enumerate(texts.to_pylist()):
        value: Datum = None if text is None else _value(kind, text)
        if value is None and text is not None:
            reason = f"attribute {attribute.name}: expected {kind.value}, found {text[:40]!r}"
            bad.append((np.array([row]), reason))
            value = BLANKS[kind]
        values.append(value)
    return pa.array(values, _ARROW_TYPES[kind])


def _value(kind: Kind, text: str) -> int | float | bool | None:
    if kind is Kind.BOOL:
        return _BOOLS.get(text)
    if kind is Kind.FLOAT:
        return float(text) if _FLOAT.fullmatch(text) else None
    number = int(text) if len(text) <= 20 and _INT.fullmatch(text) else None
    return number if number is not None and INT_MIN <= number <= INT_MAX else None


def _kind_of_text(text: str) -> Kind:
    for kind in (Kind.BOOL, Kind.INT, Kind.FLOAT):
        if _value(kind, text) is not None:
            return kind
    return Kind.STRING

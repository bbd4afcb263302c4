"""CSV files (docs/files.md): RFC 4180, with a line of names first.

The columns are those of any table of events. Everything is text here, so a type's schema, where
none is declared, is guessed from the texts of the first piece in which it comes: a column of
``true`` and ``false`` holds bools, of ``46`` ints, of ``46.5`` and ``4e1`` (and ints beside them)
floats, any other one strings. An empty text is a value of a string attribute and nothing at all for
the others; of an optional attribute it is null, as texts are for all that the layout says so of.
Attributes that have nothing in some rows of that piece are guessed to be optional, and columns that
are null in all of it to be none, for nothing says of which kind.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matcher.errors import BadEvent
from matcher.formats import pieces
from matcher.formats.arrowcolumns import BadRows, times_of_column, without
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.layout import SEQUENCE, TIME, TYPE, Layout, Roles
from matcher.formats.tabular import (
    NO_TYPE,
    Rows,
    arrow_schema,
    check_distinct,
    parts_of,
    settled,
    to_arrow,
)
from matcher.model import BLANKS, Attribute, Datum, EventBatch, EventType, Kind, with_presences
from matcher.rows import INT_MAX, INT_MIN
from matcher.times import rfc3339

ROWS = 16_384
"""Rows of a piece; schemas are guessed from the first one."""
COMMA = ","
_DELIMITERS = (";", "\t", "|")
_SEPARATOR = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
FIELD_MAX = 2**26
"""Characters of one field; beyond this a file is refused."""

_INT = re.compile(r"[+-]?\d+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BOOLS: Mapping[str, bool] = {"true": True, "True": True, "false": False, "False": False}
_ARROW_TYPES = {Kind.INT: pa.int64(), Kind.FLOAT: pa.float64(), Kind.BOOL: pa.bool_()}
_SHORT_INT = r"^-?\d{1,18}$"
_NUMBER_OR_BOOL = r"^([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|true|True|false|False)$"
_NULL_WORDS = ("NA", "N/A", "NULL", "null", "NaN", "nan", "None", "-")
"""Words that stand for no value in many files, unless it is text; an option says which is null."""
_NO_VALUES = pa.array(["", None, *_NULL_WORDS], pa.string())
# What Arrow's own conversion is asked to do: it would take hexadecimal numbers too.
_PLAIN = {
    Kind.INT: r"^-?\d+$",
    Kind.FLOAT: r"^-?\d+(\.\d*)?([eE][+-]?\d+)?$",
    Kind.BOOL: "^(true|false)$",
}


def read(
    stream: BinaryIO,
    place: Place,
    intake: Intake,
    type_name: str | None = None,
    *,
    delimiter: str = COMMA,
) -> Iterator[Chunk]:
    """The events of each piece of the file."""
    for piece in _pieces(stream, place, type_name, delimiter):
        batches = _batches(piece, place, intake, type_name)
        yield Chunk(piece.end, [batch for batch in batches if len(batch)])


def scan(
    stream: BinaryIO,
    place: Place,
    intake: Intake,
    type_name: str | None = None,
    *,
    delimiter: str = COMMA,
) -> Iterator[Glance]:
    """The times of each piece; ``intake`` learns the schemas, and counts nothing."""
    for piece in _pieces(stream, place, type_name, delimiter):
        bad: BadRows = []
        columns = _columns(piece, place.layout, bad)
        names = columns.get(piece.roles.roles.get(TYPE, ""))
        if piece.first_row == 1 or pieces.names_unknown(names, intake.schemas):
            for batch in _batches(piece, place, intake.aside(), type_name):
                if batch.type.name not in intake.schemas:
                    intake.learn(batch.type)
        time = columns[piece.roles.roles[TIME]]
        read = times_of_column(time, len(piece.rows), bad, place.layout.times)
        yield Glance(piece.end, without(intake.note(place, read), bad))


class Writer:
    """Writes events of one type; causes stand in one column, with blanks between them."""

    delimiter = COMMA

    def __init__(
        self, sink: BinaryIO, event_type: EventType, *, composite: bool, full_cause: bool
    ) -> None:
        self._text = io.TextIOWrapper(sink, "utf-8", newline="", write_through=True)
        self._full_cause = full_cause
        self._names = arrow_schema(event_type, composite=composite).names
        self._rows = csv.writer(self._text, delimiter=self.delimiter, lineterminator="\n")
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


class _Piece(NamedTuple):
    """Some rows of a file, the first one's number, and what the columns are."""

    names: Sequence[str]
    roles: Roles
    first_row: int
    rows: Sequence[Sequence[str]]

    @property
    def end(self) -> int:
        return self.first_row + len(self.rows) - 1


def _pieces(
    stream: BinaryIO, place: Place, type_name: str | None, delimiter: str
) -> Iterator[_Piece]:
    """Rows in pieces, numbered from 1; empty lines are no rows."""
    csv.field_size_limit(FIELD_MAX)
    text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
    heading = text.readline()
    if said := _SEPARATOR.fullmatch(heading):  # as Excel writes it
        heading, delimiter = text.readline(), said[1]
    elif delimiter == COMMA:
        delimiter = _delimiter_of(heading)
    lines = itertools.chain([heading] if heading else [], text)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    row = 1
    try:
        names = next(reader, None)
        if names is None:
            return
        roles = place.layout.roles(names, place.file, type_name)
        check_distinct(names, place.file)
        filled = filter(None, reader)
        while rows := list(itertools.islice(filled, ROWS)):
            yield _Piece(names, roles, row, rows)
            row += len(rows)
    except csv.Error as error:
        raise BadEvent(f"not CSV: {error}", f"{place.file}:{reader.line_num}") from None


def _delimiter_of(heading: str) -> str:
    """The sign between columns: one of others that spreadsheets write, if no comma stands there."""
    if COMMA in heading:
        return COMMA
    return max(_DELIMITERS, key=heading.count) if any(map(heading.count, _DELIMITERS)) else COMMA


def _batches(
    piece: _Piece, place: Place, intake: Intake, type_name: str | None
) -> list[EventBatch]:
    bad: BadRows = []
    columns, roles = _columns(piece, place.layout, bad), piece.roles
    parts = parts_of(columns, roles, place, type_name, piece.first_row, bad)
    typed = [_typed_rows(rows, roles, intake) for rows in parts]
    return settled(typed, roles, place, intake, type_name)


def _typed_rows(rows: Rows, roles: Roles, intake: Intake) -> Rows:
    """The rows with the values of their attributes in place of texts; a schema is learnt from
    those of a type that is not known.
    """
    if rows.type_name == NO_TYPE:
        return rows
    event_type = intake.schemas.get(rows.type_name)
    if event_type is None:
        event_type = intake.learn(_guessed(rows, roles))
    columns, values = {**rows.columns}, {**rows.values}
    for attribute, presence in zip(event_type.declared, event_type.presences, strict=True):
        if presence >= 0 and attribute.name in values:
            values[attribute.name] = _emptied(values[attribute.name])
    for attribute in event_type.declared:
        if attribute.name in values and attribute.kind is not Kind.STRING:
            values[attribute.name] = _typed(attribute, values[attribute.name], rows.bad)
    if SEQUENCE in roles.roles:
        column = roles.roles[SEQUENCE]
        columns[column] = _typed(Attribute(SEQUENCE, Kind.INT), columns[column], rows.bad)
    return replace(rows, columns=columns, values=values)


def _guessed(rows: Rows, roles: Roles) -> EventType:
    """The schema that the texts of the good rows mean (E5)."""
    good = np.ones(len(rows.numbers), np.bool_)
    for some, _ in rows.bad:
        good[some] = False
    attributes, nullable = [], []
    for name in roles.guessed:
        texts = rows.values[name].filter(pa.array(good)) if rows.bad else rows.values[name]
        if name in rows.others or (len(texts) and texts.null_count == len(texts)):
            continue
        kind = _kind_of_texts(texts)
        attributes.append(Attribute(name, kind))
        if kind is not Kind.STRING:
            texts = _emptied(texts)
        if texts.null_count:
            nullable.append(name)
    return EventType(rows.type_name, with_presences(attributes, nullable))


def _columns(piece: _Piece, layout: Layout, bad: BadRows) -> dict[str, pa.Array]:
    """The columns as texts, null where the layout says so; rows of another length are bad, and of
    empty texts.
    """
    names, rows = piece.names, piece.rows
    if set(map(len, rows)) != {len(names)}:
        blank = [""] * len(names)
        bad.extend(
            (np.array([row]), f"{len(texts)} fields, where the heading has {len(names)}")
            for row, texts in enumerate(rows)
            if len(texts) != len(names)
        )
        rows = [texts if len(texts) == len(names) else blank for texts in rows]
    columns = zip(*rows, strict=True)
    arrays = {
        name: _text_array(name, texts, bad) for name, texts in zip(names, columns, strict=True)
    }
    if not layout.nulls:
        return arrays
    nulls = pa.array(layout.nulls, pa.string())
    return {
        name: pc.if_else(pc.is_in(texts, value_set=nulls), None, texts)
        for name, texts in arrays.items()
    }


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
    """The column as its attribute's kind, nulls as they are; rows that do not fit are bad, and hold
    a zero.
    """
    kind = attribute.kind
    if pc.all(pc.match_substring_regex(texts, _PLAIN[kind])).as_py() is not False:
        try:
            return texts.cast(_ARROW_TYPES[kind])
        except pa.ArrowInvalid:
            pass  # beyond 64 bits, somewhere
    values: list[Datum] = []
    for row, text in enumerate(texts.to_pylist()):
        value: Datum = None if text is None else _value(kind, text)
        if value is None and text is not None:
            hint = f" (--null {text} makes it null)" if text in _NULL_WORDS else ""
            reason = f"attribute {attribute.name}: expected {kind.value}, found {text[:40]!r}{hint}"
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


def _kind_of_texts(texts: pa.Array) -> Kind:
    """The first kind that all texts are of, but for those that are empty or words for null."""
    some = texts.filter(pc.invert(pc.is_in(texts, value_set=_NO_VALUES)))
    if not len(some):
        return Kind.STRING
    if pc.all(pc.match_substring_regex(some, _SHORT_INT)).as_py():
        return Kind.INT
    if not pc.all(pc.match_substring_regex(some, _NUMBER_OR_BOOL)).as_py():
        return Kind.STRING
    values = some.to_pylist()
    for kind in (Kind.BOOL, Kind.INT, Kind.FLOAT):
        if all(_value(kind, text) is not None for text in values):
            return kind
    return Kind.STRING

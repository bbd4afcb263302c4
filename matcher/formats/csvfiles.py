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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matcher.errors import BadEvent
from matcher.formats import pieces
from matcher.formats.arrowcolumns import BadRows, good_rows, times_of_column
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.layout import SEQUENCE, TIME, TYPE, Layout, Roles
from matcher.formats.tabular import (
    NO_TYPE,
    Rows,
    arrow_schema,
    check_distinct,
    folder_columns,
    moments_of,
    parts_of,
    settled,
    times_of_rows,
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
        columns = _columns(piece, place, bad)
        names = columns.get(piece.roles.roles.get(TYPE, ""))
        if piece.first_row == 1 or pieces.names_unknown(names, intake.schemas):
            for batch in _batches(piece, place, intake.aside(), type_name):
                if batch.type.name not in intake.schemas:
                    intake.learn(batch.type)
        time = moments_of(columns, piece.roles.roles)
        read = times_of_column(time, len(piece.rows), bad, place.layout.times)
        yield intake.glance(place, piece.end, read.take(good_rows(len(piece.rows), bad)))


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
    lines = _Lines(stream, place.layout, delimiter)
    reader = csv.reader(lines, delimiter=lines.delimiter, strict=True)
    row = 1
    try:
        names = next(reader, None)
        if names is None:
            return
        everything = [*names, *(name for name, _ in place.columns)]
        roles = place.layout.roles(everything, place.file, type_name)
        check_distinct(everything, place.file)
        filled = filter(None, reader)
        while rows := list(itertools.islice(filled, ROWS)):
            yield _Piece(names, roles, row, rows)
            row += len(rows)
    except csv.Error as error:
        raise BadEvent(
            f"not CSV: {error}", f"{place.file}:{lines.passed + reader.line_num}"
        ) from None


class _Lines:
    """The lines of a file from its heading on, without comments; ``passed`` counts those that are
    left out.

    ``delimiter``: the sign between columns, as the layout says, or a first line ``sep=;``, or as it
    is guessed.
    """

    def __init__(self, stream: BinaryIO, layout: Layout, delimiter: str) -> None:
        self.passed = 0
        text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
        for _ in range(layout.skip_lines):
            text.readline()
        self._lines = self._without_comments(text, layout.comment) if layout.comment else iter(text)
        heading = next(self._lines, "")
        self.passed += layout.skip_lines
        self.delimiter = layout.delimiter or delimiter
        if said := _SEPARATOR.fullmatch(heading):  # as Excel writes it
            heading = next(self._lines, "")
            self.passed += 1
            self.delimiter = layout.delimiter or said[1]
        elif layout.delimiter is None and delimiter == COMMA:
            self.delimiter = _delimiter_of(heading)
        self._heading = [heading] if heading else []

    def __iter__(self) -> Iterator[str]:
        return itertools.chain(self._heading, self._lines)

    def _without_comments(self, lines: Iterable[str], comment: str) -> Iterator[str]:
        for line in lines:
            if line.startswith(comment):
                self.passed += 1
            else:
                yield line


def heading(stream: BinaryIO, layout: Layout, form: str) -> tuple[str, list[str]]:
    """The sign between the columns of a file, and the names in its heading."""
    lines = _Lines(stream, layout, "\t" if form == ".tsv" else COMMA)
    return lines.delimiter, next(csv.reader(lines, delimiter=lines.delimiter), [])


def _delimiter_of(heading: str) -> str:
    """The sign between columns: one of others that spreadsheets write, if no comma stands there."""
    if COMMA in heading:
        return COMMA
    return max(_DELIMITERS, key=heading.count) if any(map(heading.count, _DELIMITERS)) else COMMA


def _batches(
    piece: _Piece, place: Place, intake: Intake, type_name: str | None
) -> list[EventBatch]:
    bad: BadRows = []
    columns, roles = _columns(piece, place, bad), piece.roles
    times = times_of_rows(columns, roles, place, intake, bad)
    parts = parts_of(columns, roles, place, type_name, piece.first_row, times, bad)
    typed = [_typed_rows(rows, roles, intake, place.layout.decimal) for rows in parts]
    return settled(typed, roles, place, intake, type_name)


def _typed_rows(rows: Rows, roles: Roles, intake: Intake, decimal: str) -> Rows:
    """The rows with the values of their attributes in place of texts; a schema is learnt from
    those of a type that is not known.
    """
    if rows.type_name == NO_TYPE:
        return rows
    event_type = intake.schemas.get(rows.type_name)
    if event_type is None:
        event_type = intake.learn(_guessed(rows, roles, decimal))
    columns, values = {**rows.columns}, {**rows.values}
    for attribute, presence in zip(event_type.declared, event_type.presences, strict=True):
        if presence >= 0 and attribute.name in values:
            values[attribute.name] = _emptied(values[attribute.name])
    for attribute in event_type.declared:
        if attribute.name in values and attribute.kind is not Kind.STRING:
            texts = values[attribute.name]
            values[attribute.name] = _typed(attribute, texts, rows.bad, decimal)
    if SEQUENCE in roles.roles:
        column = roles.roles[SEQUENCE]
        columns[column] = _typed(Attribute(SEQUENCE, Kind.INT), columns[column], rows.bad)
    return replace(rows, columns=columns, values=values)


def _guessed(rows: Rows, roles: Roles, decimal: str) -> EventType:
    """The schema that the texts of the good rows mean (E5); of all rows if none is good, so that
    what is wrong with them is said, and not what rules would make of columns without a value.
    """
    good = good_rows(len(rows.numbers), rows.bad)
    good |= not good.any()
    attributes, nullable = [], []
    for name in roles.guessed:
        texts = rows.values[name].filter(pa.array(good)) if rows.bad else rows.values[name]
        if name in rows.others or (len(texts) and texts.null_count == len(texts)):
            continue
        kind = _kind_of_texts(_pointed(texts, decimal))
        attributes.append(Attribute(name, kind))
        if kind is not Kind.STRING:
            texts = _emptied(texts)
        if texts.null_count:
            nullable.append(name)
    return EventType(rows.type_name, with_presences(attributes, nullable))


def _columns(piece: _Piece, place: Place, bad: BadRows) -> dict[str, pa.Array]:
    """The columns as texts, null where the layout says so; rows of another length are bad, and of
    empty texts.
    """
    names, rows, layout = piece.names, piece.rows, place.layout
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
    if layout.nulls:
        nulls = pa.array(layout.nulls, pa.string())
        arrays = {
            name: pc.if_else(pc.is_in(texts, value_set=nulls), None, texts)
            for name, texts in arrays.items()
        }
    return arrays | folder_columns(place, len(rows))


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


def _pointed(texts: pa.Array, decimal: str) -> pa.Array:
    """The texts with points in place of decimal commas; those with points of their own are no
    numbers then.
    """
    if decimal == ".":
        return texts
    return pc.replace_substring(pc.replace_substring(texts, ".", "\0"), ",", ".")


def _typed(attribute: Attribute, given: pa.Array, bad: BadRows, decimal: str = ".") -> pa.Array:
    """The column as its attribute's kind, nulls as they are; rows that do not fit are bad, and hold
    a zero.
    """
    kind, texts = attribute.kind, _pointed(given, decimal)
    if pc.all(pc.match_substring_regex(texts, _PLAIN[kind])).as_py() is not False:
        try:
            return texts.cast(_ARROW_TYPES[kind])
        except pa.ArrowInvalid:
            pass  # beyond 64 bits, somewhere
    values: list[Datum] = []
    for row, text in enumerate(texts.to_pylist()):
        value: Datum = None if text is None else _value(kind, text)
        if value is None and text is not None:
            found = given[row].as_py()
            reason = f"attribute {attribute.name}: expected {kind.value}, found {found[:40]!r}"
            reason += _hint(kind, found)
            bad.append((np.array([row]), reason))
            value = BLANKS[kind]
        values.append(value)
    return pa.array(values, _ARROW_TYPES[kind])


def _hint(kind: Kind, text: str) -> str:
    """The option by which a text would be a value, if one does it."""
    if text in _NULL_WORDS:
        return f" (--null {text} makes it null)"
    is_decimal = kind is Kind.FLOAT and _value(kind, text.replace(",", ".", 1)) is not None
    return " (--decimal , reads it)" if is_decimal else ""


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

"""The common part of the forms of files that Arrow reads: events in record batches.

Rows are numbered through the file, whose every piece is a record batch of at most ROWS rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from matcher.errors import SchemaError
from matcher.formats.arrowcolumns import BadRows, good_rows, times_of_column
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.layout import TYPE, Layout
from matcher.formats.tabular import batches_of, moments_of, whole_columns
from matcher.model import Datum

ROWS = 65_536
"""Rows of a piece, at most."""


def read(
    pieces: Iterable[pa.RecordBatch], place: Place, intake: Intake, type_name: str | None
) -> Iterator[Chunk]:
    """The events of each piece; BadEvent or SchemaError as ``batches_of`` raises them."""
    first_row = place.rows_before + 1
    for piece in pieces:
        batches = batches_of(piece, place, intake, type_name, first_row=first_row)
        first_row += piece.num_rows
        yield Chunk(first_row - 1, [batch for batch in batches if len(batch)])


class Reader(Protocol):
    """Gives the events of an opened file, or a first look at their times."""

    def __call__(
        self, stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
    ) -> Iterator[Any]:
        """Read from a stream; ``type_name``: the type of events that name none."""
        ...


def readers(
    pieces_of: Callable[[BinaryIO, str], Iterator[pa.RecordBatch]],
) -> tuple[Reader, Reader]:
    """``read`` and ``scan`` of a form, by the pieces of a stream, which messages call by a name."""

    def reading(
        stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
    ) -> Iterator[Chunk]:
        return read(pieces_of(stream, place.file), place, intake, type_name)

    def scanning(
        stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
    ) -> Iterator[Glance]:
        learnt = learning(pieces_of(stream, place.file), place, intake, type_name)
        return glances(learnt, place, intake)

    return reading, scanning


def of_rows(rows: Sequence[Mapping[str, Datum]], file: str) -> pa.RecordBatch:
    """A piece of rows, each with the columns that it has; SchemaError for one of several kinds."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values: list[Any] = [row.get(name) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        if kinds == {int, float}:
            values = [None if value is None else float(value) for value in values]
        elif len(kinds) > 1:
            shown = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise SchemaError(f"{file}: attribute {name} is of several kinds: {shown}")
        columns[name] = pa.array(values)
    return pa.record_batch(columns)


def learn(piece: pa.RecordBatch, place: Place, intake: Intake, type_name: str | None) -> None:
    """Learn the schemas of the types of a piece that are not known."""
    for batch in batches_of(piece, place, intake.aside(), type_name):
        if batch.type.name not in intake.schemas:
            intake.learn(batch.type)


def learning(
    pieces: Iterable[pa.RecordBatch], place: Place, intake: Intake, type_name: str | None
) -> Iterator[pa.RecordBatch]:
    """The pieces, the types of each being learnt on the way."""
    named = place.layout.role_columns(type_name).get(TYPE)
    for number, piece in enumerate(pieces):
        column = piece.column(named) if named in piece.schema.names else None
        if number == 0 or names_unknown(column, intake.schemas):
            learn(piece, place, intake, type_name)
        yield piece


def names_unknown(column: pa.Array | None, known: Collection[str]) -> bool:
    """Whether a column of names of types has one that is not known."""
    return column is not None and any(
        name not in known for name in pc.unique(column).to_pylist() if name
    )


def glances(pieces: Iterable[pa.RecordBatch], place: Place, intake: Intake) -> Iterator[Glance]:
    """The times of each piece; none of one that lacks their column, as in a damaged file."""
    end, layout = place.rows_before, place.layout
    for piece in pieces:
        end += piece.num_rows
        bad: BadRows = []
        columns = whole_columns(piece.select(_looked_at(layout, piece)), place)
        column = moments_of(columns, layout.moment_columns)
        read = times_of_column(column, piece.num_rows, bad, layout.times)
        yield intake.glance(place, end, read.take(good_rows(piece.num_rows, bad)))


def _looked_at(layout: Layout, piece: pa.RecordBatch) -> list[str]:
    """The columns of a piece that say its times."""
    names = set(piece.schema.names)
    return [name for name in layout.moment_columns.values() if name in names]

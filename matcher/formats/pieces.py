"""What the forms of files that Arrow reads have in common: events in record batches.

Rows are numbered through the file, whose every piece is a record batch of at most ROWS rows, and
all of them are of one type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from matcher.errors import SchemaError
from matcher.formats.arrowcolumns import BadRows, times_of_column, without
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.tabular import TIME, from_arrow
from matcher.model import EventBatch

ROWS = 65_536
"""Rows of a piece, at most."""


def read(
    pieces: Iterable[pa.RecordBatch], place: Place, intake: Intake, type_name: str | None
) -> Iterator[Chunk]:
    """The events of each piece; BadEvent or SchemaError as ``from_arrow`` raises them."""

    def batches() -> Iterator[tuple[int, EventBatch]]:
        first_row = 1
        for piece in pieces:
            batch = from_arrow(piece, place, intake, type_name, first_row=first_row)
            first_row += piece.num_rows
            yield piece.num_rows, batch

    return chunks(batches(), place.file)


def chunks(batches: Iterable[tuple[int, EventBatch]], file: str) -> Iterator[Chunk]:
    """Chunks of batches, given with the rows they were read from; SchemaError for two types."""
    end, name = 0, None
    for rows, batch in batches:
        name = name or batch.type.name
        if batch.type.name != name:
            raise SchemaError(
                f"{file}: column 'type' holds {name} and, after row {end}, {batch.type.name}; "
                f"expected one event type in the whole file"
            )
        end += rows
        yield Chunk(end, [batch] if len(batch) else [])


def learn(piece: pa.RecordBatch, place: Place, intake: Intake, type_name: str | None) -> None:
    """Learn the schema of the type from a first piece, if it is not known."""
    aside = Intake(intake.schemas, skip_bad=True)
    learnt = from_arrow(piece, place, aside, type_name).type
    if learnt.name not in intake.schemas:
        intake.learn(learnt)


def glances(pieces: Iterable[pa.RecordBatch], place: Place) -> Iterator[Glance]:
    """The times of each piece."""
    end = 0
    for piece in pieces:
        end += piece.num_rows
        bad: BadRows = []
        column = piece.column(TIME) if TIME in piece.schema.names else None
        times = times_of_column(column, piece.num_rows, bad, place.time_unit)
        yield Glance(end, without(times, bad))

"""Parquet files (docs/files.md), a piece at a time.

Strings stay dictionary-encoded all the way. A first look reads the column of times alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from matcher.formats import pieces
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.layout import ID, TYPE
from matcher.formats.tabular import arrow_schema, check_distinct, to_arrow
from matcher.model import EventBatch, EventType


def read(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Chunk]:
    """The events of each piece of the file, which must allow seeking."""
    return pieces.read(_pieces(stream, place), place, intake, type_name)


def scan(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Glance]:
    """The times of each piece; ``intake`` learns the schemas."""
    for piece in itertools.islice(_pieces(stream, place), 1):
        pieces.learn(piece, place, intake, type_name)
    named, lacks = place.layout.role_columns(type_name).get(TYPE), False
    looked_at = [*place.layout.moment_columns.values(), *([] if named is None else [named])]

    def look() -> Iterator[pa.RecordBatch]:
        nonlocal lacks
        for piece in _pieces(stream, place, looked_at):
            if named in piece.schema.names:
                lacks |= pieces.names_unknown(piece.column(named), intake.schemas)
            yield piece

    yield from pieces.glances(look(), place, intake)
    if lacks:  # a type that comes after the first piece
        for piece in _pieces(stream, place):
            if pieces.names_unknown(piece.column(named), intake.schemas):
                pieces.learn(piece, place, intake, type_name)


class Writer:
    """Writes events of one type."""

    def __init__(
        self, sink: BinaryIO, event_type: EventType, *, composite: bool, full_cause: bool
    ) -> None:
        self._full_cause = full_cause
        schema = arrow_schema(event_type, composite=composite)
        self._writer = pq.ParquetWriter(sink, schema, compression="zstd")

    def write(self, batch: EventBatch) -> None:
        """Add a batch."""
        self._writer.write_batch(to_arrow(batch, full_cause=self._full_cause))

    def close(self) -> None:
        """Write the index; the sink stays open."""
        self._writer.close()


def _pieces(
    stream: BinaryIO, place: Place, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    stream.seek(0)
    schema, layout = pq.read_schema(stream), place.layout
    check_distinct(schema.names, place.file)
    stream.seek(0)
    names = [name for name in schema.names if columns is None or name in columns]
    # Ids differ from row to row, and texts of times nearly so: no dictionary helps there.
    differing = (layout.id or ID, layout.time_column)
    texts = [
        name
        for name in names
        if name not in differing and pa.types.is_string(schema.field(name).type)
    ]
    with pq.ParquetFile(stream, read_dictionary=texts) as table:
        yield from table.iter_batches(pieces.ROWS, columns=names, use_threads=False)

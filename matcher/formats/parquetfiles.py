"""Parquet files of one event type (docs/files.md), a piece at a time.

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
from matcher.formats.tabular import ID, TIME, arrow_schema, check_distinct, to_arrow
from matcher.model import EventBatch, EventType


def read(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Chunk]:
    """The events of each piece of the file, which must allow seeking."""
    return pieces.read(_pieces(stream, place.file), place, intake, type_name)


def scan(
    stream: BinaryIO, place: Place, intake: Intake, type_name: str | None = None
) -> Iterator[Glance]:
    """The times of each piece; ``intake`` learns the schema."""
    for piece in itertools.islice(_pieces(stream, place.file), 1):
        pieces.learn(piece, place, intake, type_name)
    stream.seek(0)
    yield from pieces.glances(_pieces(stream, place.file, [TIME]), place)


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
    stream: BinaryIO, file: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    schema = pq.read_schema(stream)
    check_distinct(schema.names, file)
    stream.seek(0)
    names = [name for name in schema.names if columns is None or name in columns]
    # Ids differ from row to row, and texts of times nearly so: no dictionary helps there.
    texts = [
        name
        for name in names
        if name not in (ID, TIME) and pa.types.is_string(schema.field(name).type)
    ]
    with pq.ParquetFile(stream, read_dictionary=texts) as table:
        yield from table.iter_batches(pieces.ROWS, columns=names, use_threads=False)

"""Arrow IPC files (docs/files.md), a piece at a time.

A file is read as the stream that it contains, which needs no seeking, so that it may come
compressed; the stream form is read too. Strings are written in full: a file of this form has
room for one dictionary a column, and what streams through has many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from matcher.formats import pieces
from matcher.formats.tabular import arrow_schema, check_distinct, to_arrow
from matcher.model import EventBatch, EventType

_MAGIC = b"ARROW1\0\0"


class Writer:
    """Writes events of one type."""

    def __init__(
        self, sink: BinaryIO, event_type: EventType, *, composite: bool, full_cause: bool
    ) -> None:
        self._full_cause = full_cause
        schema = arrow_schema(event_type, composite=composite, dictionaries=False)
        self._writer = pa.ipc.new_file(sink, schema)

    def write(self, batch: EventBatch) -> None:
        """Add a batch."""
        table = to_arrow(batch, full_cause=self._full_cause, dictionaries=False)
        self._writer.write_batch(table)

    def close(self) -> None:
        """Write the index; the sink stays open."""
        self._writer.close()


def _pieces(stream: BinaryIO, file: str) -> Iterator[pa.RecordBatch]:
    start = stream.read(len(_MAGIC))
    source = stream if start == _MAGIC else _Resumed(start, stream)
    with pa.ipc.open_stream(source) as reader:
        check_distinct(reader.schema.names, file)
        for piece in reader:
            piece.validate(full=True)  # offsets beyond the bytes would end the process
            for first in range(0, piece.num_rows, pieces.ROWS):
                yield piece.slice(first, pieces.ROWS)


class _Resumed:
    """A stream of which the first bytes have been read already."""

    closed = False

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        self._start = start
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes, all that are left if it is negative."""
        start, self._start = self._start, b""
        if size < 0:
            return start + self._rest.read()
        self._start = start[size:]
        return start[:size] if self._start else start + self._rest.read(size - len(start))


read, scan = pieces.readers(_pieces)

"""Columns of Arrow as columns of events, in order, and as bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.spark.frames import ID
from matcher.model import AnyArray, Column, Kind, StringColumn

ROWS_ORDERED = 65_536
"""Rows that were put in order come so many at once."""
_NAMED = "(has an id)"
# Threads of their own cost more than so few bytes are worth.
_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_PLAIN = pa.ipc.IpcWriteOptions(use_threads=False)
_READ = pa.ipc.IpcReadOptions(use_threads=False)


def column_of(array: pa.Array, kind: Kind, places: AnyArray | None) -> Column:
    """An Arrow column without nulls, at ``places`` or whole, as a column of events."""
    if places is not None:
        array = array.take(pa.array(places))
    if kind is Kind.STRING:
        return strings_of(array)
    values: Column = array.to_numpy(zero_copy_only=kind is not Kind.BOOL)
    return values


def strings_of(array: pa.Array) -> StringColumn:
    """An Arrow column of text, nulls being empty."""
    if pa.types.is_dictionary(array.type) and array.null_count == 0:
        encoded = array
    else:
        encoded = pc.fill_null(array.cast(pa.string()), "").dictionary_encode()
    return StringColumn(
        encoded.indices.to_numpy().astype(np.int32, copy=False),
        tuple(encoded.dictionary.to_pylist()),
    )


def in_order(tables: Sequence[pa.Table], order: Sequence[str]) -> list[pa.RecordBatch]:
    """The rows of tables in one order, nulls first, ROWS_ORDERED at once. What columns a table
    lacks are null in it.
    """
    if not sum(table.num_rows for table in tables):
        return []
    table = pa.concat_tables(tables, promote_options="default")
    names = table.schema.names
    keys = [(name, "ascending") for name in order if name in names]
    if (ID, "ascending") in keys:  # nothing but ids can be null beside others
        table = table.append_column(_NAMED, pc.is_valid(table.column(ID)))
        keys.insert(keys.index((ID, "ascending")), (_NAMED, "ascending"))
    places = pc.sort_indices(table, sort_keys=keys)
    rows = table.select(names).take(places).combine_chunks()
    ordered: list[pa.RecordBatch] = rows.to_batches(ROWS_ORDERED)
    return ordered


def to_bytes(rows: pa.RecordBatch, *, compresses: bool = True) -> bytes:
    """A record batch as a stream of Arrow's."""
    sink = pa.BufferOutputStream()
    options = _LZ4 if compresses else _PLAIN
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.RecordBatch:
    """The inverse of to_bytes."""
    with pa.ipc.open_stream(data, options=_READ) as reader:
        return reader.read_next_batch()

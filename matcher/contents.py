"""Digests of what events hold, by which a repeat is told from another event of the same id.

Contents are the type, the time and the values in the schema's order: neither the source nor the
id, which are alike where contents are compared, nor the place that an event was read from. Values
are taken as the schema holds them, so that an int which stands for a float is that float, and
-0.0 is 0.0.

Law 1: equal contents have equal digests, alone or in columns; others differ but for one pair in
2**64. No digest is NOT_KEPT.

Law 2: a digest is good within a process, and in those that hash texts alike (``SEED``): texts come
with the hash that Python has made of them already.
"""

from __future__ import annotations

import struct

import numpy as np

from matcher.checksum import GOLDEN, mix
from matcher.model import Column, EventBatch, EventType, StringColumn, UInt64s, Value
from matcher.single import Single

NOT_KEPT = 0
"""In place of a digest: what the event held is not known any more, or never was."""
SEED = hash("the seed of this process")
"""Equal in processes whose digests can be compared."""
_MASK = 2**64 - 1


def contents_of(batch: EventBatch) -> UInt64s:
    """The digests of a batch's events: uint64[n]."""
    if isinstance(batch, Single):
        row = batch.row
        return np.array([_of_values(batch.type, row.time, row.values)], np.uint64)
    hashes = np.full(len(batch), hash(batch.type.name) & _MASK, np.uint64)
    for column in (batch.time, *batch.columns):
        hashes *= np.uint64(GOLDEN)
        hashes += _numbers(column)
        hashes = mix(hashes)
    return np.maximum(hashes, np.uint64(1))


def _of_values(event_type: EventType, time: int, values: tuple[Value, ...]) -> int:
    """The digest of one event."""
    digest = hash(event_type.name)
    for value in (time, *values):
        number = digest * GOLDEN + _number(value) & _MASK
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        number = (number ^ number >> 27) * 0x94D049BB133111EB & _MASK
        digest = number ^ number >> 31
    return max(digest, 1)


def _numbers(column: Column) -> UInt64s:
    if isinstance(column, StringColumn):
        if 2 * len(column.values) > len(column) + 16:
            column = column.compact()  # a slice may carry a dictionary much larger than it
        hashes = np.fromiter(map(hash, column.values), np.int64, len(column.values))
        return hashes.view(np.uint64)[column.codes]
    if column.dtype == np.bool_:
        return column.astype(np.uint64)
    if column.dtype == np.float64:
        column = column + 0.0  # which is 0.0 for -0.0
    return np.ascontiguousarray(column).view(np.uint64)


def _number(value: Value) -> int:
    if isinstance(value, str):
        return hash(value)
    if isinstance(value, float):
        number: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
        return number
    return int(value)

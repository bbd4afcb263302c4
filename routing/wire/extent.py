"""How long events are in a message, by and large, before they are encoded.

Law: a character counts as a byte, and may take four. So what is put into a message up to
EXTENT_MAX fits into a frame (FRAME_MAX), whatever its texts are made of; nobody who joins batches
goes beyond it, but for a single event that is longer by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from matcher.model import EventBatch, EventIds, StringColumn
from matcher.single import Single
from routing.wire.frames import FRAME_MAX
from routing.wire.headers import EVENTS_MAX

EXTENT_MAX = FRAME_MAX // 4
ROW = 64
"""Bytes of an event that comes alone, but for its texts."""


def extent(batch: EventBatch) -> int:
    """Bytes of a batch, a character counted as one."""
    if isinstance(batch, Single):
        texts = (len(value) for value in batch.row.values if isinstance(value, str))
        return ROW + 9 * len(batch.row.values) + sum(texts)
    size = batch.time.nbytes + _ids(batch.ids)
    for column in batch.columns:
        size += _texts(column) if isinstance(column, StringColumn) else column.nbytes
    if batch.causes is not None:
        size += batch.causes.offsets.nbytes + _ids(batch.causes.ids)
    return size


def extent_of(batches: Iterable[EventBatch]) -> int:
    """Bytes of several batches."""
    return sum(map(extent, batches))


def fitting(batch: EventBatch) -> Iterator[EventBatch]:
    """The batch, or pieces of it where it is too long for a message, in their order."""
    if len(batch) == 1 or (len(batch) <= EVENTS_MAX and extent(batch) <= EXTENT_MAX):
        yield batch
        return
    half = len(batch) // 2
    yield from fitting(batch.take(slice(0, half)))
    yield from fitting(batch.take(slice(half, None)))


def _ids(ids: EventIds) -> int:
    size = ids.sequence.nbytes + _texts(ids.source)
    if ids.text is not None:
        size += _texts(ids.text)
    return size if ids.digest is None else size + ids.digest.nbytes


def _texts(column: StringColumn) -> int:
    values = column.values
    if len(values) > len(column):  # a slice keeps the dictionary of the whole
        used: list[int] = np.unique(column.codes).tolist()
        return column.codes.nbytes + sum(len(values[code]) for code in used)
    return column.codes.nbytes + sum(map(len, values))

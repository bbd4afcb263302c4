"""How long events are in a message, by and large, before they are encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol, Self, TypeVar

import numpy as np

from matcher.model import EventBatch, EventIds, StringColumn
from matcher.single import Single
from routing.wire.composites import Encoded
from routing.wire.frames import SAID_MAX
from routing.wire.headers import EVENTS_MAX
from routing.wire.received import Received

EXTENT_MAX = SAID_MAX // 4
BATCHES_AT_ONCE, EVENTS_AT_ONCE = 1_000, 65_536
"""Batches, and events beyond which no more batches are added, in one message; EXTENT_MAX, too."""
ROW = 64
"""Bytes of a batch, an event that comes alone say, beside its columns and texts."""


def extent(batch: EventBatch) -> int:
    """Bytes of a batch, a character counted as one. A character may take four bytes. So what is put
    into a message up to EXTENT_MAX fits into a frame (SAID_MAX), whatever its texts are made of;
    nobody who joins batches goes beyond it, but for a single event that is longer by itself.
    """
    if isinstance(batch, Single):
        size = ROW + 9 * len(batch.row.values)
        for value in batch.row.values:
            if isinstance(value, str):
                size += len(value)
        return size
    if isinstance(batch, (Encoded, Received)):
        header, causes = batch.header, batch.header.causes
        size = ROW + len(batch.body) + sum(map(len, chain(header.sources, *header.strings)))
        size += sum(map(len, header.texts or ()))
        if causes is not None:
            size += sum(map(len, chain(causes.sources, causes.texts or ())))
        return size
    size = batch.time.nbytes + _ids(batch.ids)
    for column in batch.columns:
        size += _texts(column) if isinstance(column, StringColumn) else column.nbytes
    if batch.causes is not None:
        size += batch.causes.offsets.nbytes + _ids(batch.causes.ids)
    return size


def extent_of(batches: Iterable[EventBatch]) -> int:
    """Bytes of several batches."""
    return sum(map(extent, batches))


def fitting(batches: Iterable[EventBatch]) -> Sequence[EventBatch]:
    """The batches, with pieces in the place of those that are too long for a message."""
    pieces: list[EventBatch] = []
    for batch in batches:
        pieces += (batch,) if len(batch) == 1 else _pieces(batch)
    return pieces


def _pieces(batch: EventBatch) -> Iterator[EventBatch]:
    if len(batch) == 1 or (len(batch) <= EVENTS_MAX and extent(batch) <= EXTENT_MAX):
        yield batch
        return
    half = len(batch) // 2
    yield from _pieces(batch.take(slice(0, half)))
    yield from _pieces(batch.take(slice(half, None)))


class Cuttable(Protocol):
    """Events that can be cut after any of them, into the first so many and the rest."""

    @property
    def events(self) -> int:
        """How many there are."""

    def cut(self, events: int) -> tuple[Self, Self]:
        """Cut behind so many."""


_Cuttable = TypeVar("_Cuttable", bound=Cuttable)


def halved(whole: _Cuttable, fits: Callable[[_Cuttable], bool]) -> Sequence[_Cuttable]:
    """The whole, or the halves of what does not fit, again and again, in their order."""
    if whole.events <= 1 or fits(whole):
        return (whole,)
    return [part for half in whole.cut(whole.events // 2) for part in halved(half, fits)]


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

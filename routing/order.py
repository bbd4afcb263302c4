"""The order of events in their batches, by time and by sequence number.

Single events are common on a live link, and an array's reduction costs more than the rest of what
is done with one; so each question here is answered for a batch of one without any.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import lt

import numpy as np
from msgspec import Struct

from matcher.extremes import greatest, holds_of_all, least
from matcher.model import EventBatch, Int64s
from matcher.single import Single
from routing.wire.composites import Encoded
from routing.wire.received import Received

_FEW = 16
"""So few numbers are compared one by one."""


class Extent(Struct, frozen=True, gc=False):
    """A batch's event times, and its first and last sequence number."""

    least: int
    greatest: int
    first: int
    last: int


def least_time(batch: EventBatch) -> int:
    """The least event time of a batch that is not empty."""
    if isinstance(batch, Single):
        return batch.row.time
    if isinstance(batch, Encoded):
        return batch.at
    if isinstance(batch, Received):
        return batch.times[0]
    return least(batch.time)


def greatest_time(batch: EventBatch) -> int:
    """The greatest event time of a batch that is not empty."""
    if isinstance(batch, Single):
        return batch.row.time
    if isinstance(batch, Encoded):
        return batch.at
    if isinstance(batch, Received):
        return batch.times[1]
    return greatest(batch.time)


def first_time(batch: EventBatch) -> int:
    """The event time of the first event of a batch."""
    return batch.row.time if isinstance(batch, Single) else int(batch.time[0])


def bounds_of(batch: EventBatch) -> Extent:
    """The extent of a batch that is not empty."""
    if isinstance(batch, Single):
        row = batch.row
        return Extent(row.time, row.time, row.sequence, row.sequence)
    return Extent(least_time(batch), greatest_time(batch), *ends(batch))


def ends(batch: EventBatch) -> tuple[int, int]:
    """The sequence numbers of the first and the last event of a batch."""
    if isinstance(batch, Single):
        return batch.row.sequence, batch.row.sequence
    numbers = batch.ids.sequence
    return int(numbers[0]), int(numbers[-1])


def strictly_rises(numbers: Int64s) -> bool:
    """Whether each number is greater than the one before it."""
    if len(numbers) <= _FEW:
        plain = numbers.tolist()
        return all(map(lt, plain, plain[1:]))
    return holds_of_all(numbers[1:] > numbers[:-1])


def one_after_another(columns: Sequence[Int64s]) -> Int64s:
    """Columns, at least one, as a single one."""
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def in_sequence(batches: Sequence[EventBatch]) -> Int64s | None:
    """The order of the batches' events by sequence number, as in Delivery; None: as they are."""
    if len(batches) < 2:
        return None
    return np.argsort(np.concatenate([batch.ids.sequence for batch in batches]), kind="stable")


def at_times(batch: EventBatch, times: Int64s) -> EventBatch:
    """The events of a batch as if they had these times, int64[n]."""
    return EventBatch(batch.type, times, batch.ids, batch.columns, batch.causes)

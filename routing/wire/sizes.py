"""How many bytes what brokers send one another takes, by and large.

A size is that of the encoding (routing.wire) where that is known beforehand, and a mean of
it otherwise. Every packet bears its sequence number and an acknowledgement; some packets more go
back for nothing but that.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from matcher.model import DTYPES, Column, EventBatch, EventIds, EventType, Kind, StringColumn
from routing import wire
from routing.messages import Forward, Packet
from routing.wire.codec import pack

MESSAGE = 29 + 7
"""Bytes of a packet that says nothing, and of the acknowledgements, which several share."""
PART = 11
"""Bytes that one tree's part of a message for several takes (shared_batches), but for its marks."""
ASKING_BYTES = 150
"""Bytes of what is asked and answered over one link for the sake of one master."""
BATCH = 45
"""Bytes of a batch, but for its events."""
_WORD, _CODE = 8, 4
_VALUES = {Kind.INT: 0, Kind.FLOAT: 0.0, Kind.BOOL: False, Kind.STRING: "a string"}


def mark_bytes(name: str, time: int) -> int:
    """Bytes of a mark of a type or rule at that time in microseconds."""
    return len(pack((name, time)))


def answer_bytes(name: str, time: int) -> int:
    """Bytes of an answer of a rule with a mark at that time in microseconds."""
    return len(pack((name, 1, time)))


@lru_cache(maxsize=4_096)
def event_bytes(schema: EventType) -> int:
    """Bytes that an event of a type which comes alone adds to a message."""
    ids = EventIds(StringColumn.constant("a source", 1), np.ones(1, np.int64))
    columns = tuple(_column(one.kind) for one in schema.attributes)
    one = EventBatch(schema, np.ones(1, np.int64), ids, columns)
    return _packed(Forward((one,))) - _packed(Forward())


def batch_bytes(batch: EventBatch) -> int:
    """Bytes that a batch of composite events adds to a message."""
    count, causes = len(batch), batch.causes
    size = BATCH + count * (_row_bytes(batch.type) + _id_bytes(batch.ids))
    if causes is not None:
        size += _WORD * (count + 1) + len(causes.ids) * _id_bytes(causes.ids)
    return size


def _packed(message: Forward) -> int:
    return sum(map(len, wire.encode(Packet(0, 1, 1, message))))


def _column(kind: Kind) -> Column:
    value = _VALUES[kind]
    return StringColumn.constant(value, 1) if isinstance(value, str) else np.array([value])


@lru_cache(maxsize=4_096)
def _row_bytes(schema: EventType) -> int:
    """Bytes of an event's time and values in their columns."""
    return _WORD + sum(np.dtype(DTYPES[one.kind]).itemsize for one in schema.attributes)


def _id_bytes(ids: EventIds) -> int:
    """Bytes of one of these ids: its number, its source's code, its digest."""
    return _WORD + _CODE + (0 if ids.digest is None else 2 * _WORD)

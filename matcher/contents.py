"""Digests of what events hold, by which a repeat is told from another event of the same id.

Contents are the type, the time and the values in the schema's order: neither the source nor the
id, which are alike where contents are compared, nor the place that an event was read from. Values
are taken as the schema holds them, so that an int which stands for a float is that float, and
-0.0 is 0.0.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from matcher.checksum import GOLDEN
from matcher.model import EventBatch, EventType, Int64s, StringColumn, UInt64s, Value
from matcher.single import Single
from runtime.compiling.cache import stamp_of
from runtime.compiling.compiled import compiled

NOT_KEPT = 0
"""In place of a digest: what the event held is not known any more, or never was."""
SEED = hash("the seed of this process")
"""Equal in processes whose digests can be compared."""
_MASK = 2**64 - 1


def contents_of(batch: EventBatch) -> UInt64s:
    """The digests of a batch's events: uint64[n]. Equal contents have equal digests, alone or in
    columns; others differ but for one pair in 2**64, and no digest is NOT_KEPT. A digest is good
    within a process, and in those that hash texts alike (``SEED``).
    """
    if isinstance(batch, Single):
        row = batch.row
        return np.array([_of_values(batch.type, row.time, row.values)], np.uint64)
    words = np.empty((1 + len(batch.columns), len(batch)), np.int64)
    words[0] = batch.time
    for place, column in enumerate(batch.columns, start=1):
        if isinstance(column, StringColumn):
            if 2 * len(column.values) > len(column) + 16:
                column = column.compact()  # a slice may carry a dictionary much larger than it
            words[place] = text_hashes(column.values)[column.codes]
        elif column.dtype == np.float64:
            np.add(column, 0.0, out=words[place].view(np.float64))  # which is 0.0 for -0.0
        else:
            words[place] = column
    digests = np.empty(len(batch), np.uint64)
    digest_all(start_of(batch.type), words, digests)
    return digests


def marks_of(batch: EventBatch) -> list[bytes]:
    """The events' times and digests in one: equal where contents are (see :func:`marked_time`)."""
    words = np.empty((len(batch), 2), np.int64)
    words[:, 0], words[:, 1] = batch.time, contents_of(batch).view(np.int64)
    marks: list[bytes] = words.view("V16").ravel().tolist()
    return marks


def marked_time(mark: bytes) -> int:
    """The time of an event, in microseconds, by what ``marks_of`` gives."""
    return int.from_bytes(mark[:8], sys.byteorder, signed=True)


def _of_values(event_type: EventType, time: int, values: tuple[Value, ...]) -> int:
    """The digest of one event."""
    digest = start_of(event_type)
    for value in (time, *values):
        number = digest * GOLDEN + _number(value) & _MASK
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        number = (number ^ number >> 27) * 0x94D049BB133111EB & _MASK
        digest = number ^ number >> 31
    return max(digest, 1)


def text_hashes(texts: Sequence[str]) -> Int64s:
    """The words by which texts are taken in: int64[n]."""
    return np.fromiter(map(hash, texts), np.int64, len(texts))


def start_of(event_type: EventType) -> int:
    """The word that the digests of a type start from."""
    return hash(event_type.name)


@partial(compiled, stamp=stamp_of([Path(__file__)]), inline=True)
def absorb(digest, word):  # type: ignore[no-untyped-def]
    """The digest, uint64, after another word of the event, int64: the finishing step of SplitMix64
    (public domain, S. Vigna). What takes words in by kernels of its own ends with ``finished``.
    """
    number = digest * np.uint64(GOLDEN) + np.uint64(word)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@partial(compiled, stamp=stamp_of([Path(__file__)]), inline=True)
def finished(digest):  # type: ignore[no-untyped-def]
    """The digest of an event, of which all words were taken in: never NOT_KEPT."""
    return max(digest, np.uint64(1))


@partial(compiled, stamp=stamp_of([Path(__file__)]), counting=False)
def digest_all(start, words, digests) -> None:  # type: ignore[no-untyped-def]
    """Write the digests, uint64[n], of the columns of words, int64[columns, n]."""
    for place in range(len(digests)):
        number = np.uint64(start)
        for column in range(len(words)):
            number = absorb(number, words[column, place])  # type: ignore[no-untyped-call]
        digests[place] = finished(number)  # type: ignore[no-untyped-call]


def _number(value: Value) -> int:
    if isinstance(value, str):
        return hash(value)
    if isinstance(value, float):
        number: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
        return number
    return int(value)

"""Checksums of events that do not depend on their order (docs/files.md).

Every event has a hash of 64 bits over its type, time, source, id and values; a set of events
has the sum of them, modulo 2**64. Two runs that detect the same events, in whatever order and
batches, have the same sum. It guards against mistakes, not against an adversary.

The hash starts from the type's name and takes in one number after another: ``mix(hash * GOLDEN +
number)``. The numbers are: the time, the source's text, the id (two halves of a digest, or a
text) and the values in the schema's order. An int or a time stands for itself modulo 2**64, a
bool for 0 or 1, a float for the bits of its 64-bit form, a text for the first eight bytes, high
byte first, of the BLAKE2b-128 digest of its UTF-8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from matcher.model import Column, EventBatch, StringColumn, UInt64s

GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


def checksum(batch: EventBatch) -> int:
    """The sum of the hashes of the batch's events, modulo 2**64."""
    return int(np.add.reduce(event_hashes(batch), dtype=np.uint64))


def event_hashes(batch: EventBatch) -> UInt64s:
    """The hash of each event: uint64[n]."""
    hashes = np.full(len(batch), text_number(batch.type.name), np.uint64)
    for numbers in _numbers(batch):
        hashes = mix(hashes * np.uint64(GOLDEN) + numbers)
    return hashes


def text_number(text: str) -> int:
    """The number that stands for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest()[:8], "big")


def _numbers(batch: EventBatch) -> Iterator[UInt64s]:
    yield numbers_of(batch.time)
    yield numbers_of(batch.ids.source)
    if batch.ids.digest is not None:
        yield batch.ids.digest[:, 0]
        yield batch.ids.digest[:, 1]
    else:
        yield numbers_of(StringColumn.from_strings(batch.ids.printed()))
    yield from map(numbers_of, batch.columns)


def numbers_of(column: Column) -> UInt64s:
    """The numbers that stand for the values of a column."""
    if isinstance(column, StringColumn):
        numbers = np.array([text_number(text) for text in column.values], np.uint64)
        return numbers[column.codes]
    if column.dtype == np.bool_:
        return column.astype(np.uint64)
    return column.view(np.uint64)


def mix(numbers: UInt64s) -> UInt64s:
    """The finishing step of SplitMix64 (public domain, S. Vigna): every bit stirs every other."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))

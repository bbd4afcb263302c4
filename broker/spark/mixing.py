"""Numbers of rows that follow from what they hold, with their bits well spread."""

from __future__ import annotations

import zlib
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from matcher.model import Int64s

Words: TypeAlias = npt.NDArray[np.uint64]


def spread(words: Words) -> Words:
    """Each bit spread over its word: the finaliser of SplitMix64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def buckets(keys: pa.Array, count: int) -> Int64s:
    """For each key, of a kind that keys can be of (``rules.cutting.keys.KINDS``), a number below
    ``count``; equal keys have equal numbers, in every process. Nulls have some number.
    """
    if pa.types.is_dictionary(keys.type):
        found: Int64s = _of_texts(keys.dictionary, count)[keys.indices.fill_null(0).to_numpy()]
        return found
    numbers = keys.cast(pa.int64()).fill_null(0).to_numpy()
    return (spread(numbers.view(np.uint64)) % np.uint64(count)).astype(np.int64)


def _of_texts(texts: pa.Array, count: int) -> Int64s:
    sums = [zlib.crc32(text.encode()) for text in texts.to_pylist()] or [0]
    return (spread(np.array(sums, np.uint64)) % np.uint64(count)).astype(np.int64)

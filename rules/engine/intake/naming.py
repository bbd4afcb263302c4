"""The keys of events whose ids are texts, a batch at a time: the host's side of ``kernels.naming``.

What is common to all events of a source is made once, and all texts are brought to bytes at once.
One by one, with the hash that Python has, a key takes 1.4 microseconds; so it takes 0.3.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matcher.identity import RULE_SOURCE, event_key, source_hash
from matcher.model import Int64s, StringColumn, UInt64s
from rules.engine.kernels.naming import BLOCK_BYTES, write_keys

FEW = 16
"""Fewer events than this are sooner done one by one."""


def keys_of(source: StringColumn, texts: StringColumn) -> UInt64s:
    """The keys of n events (``event_key``) by their sources and the texts of their ids,
    uint64[n, 2].
    """
    if len(texts) < FEW or any(name.startswith(RULE_SOURCE) for name in source.values):
        pairs = zip(source.tolist(), texts.tolist(), strict=True)
        return np.array([event_key(*pair) for pair in pairs], np.uint64).reshape(-1, 2)
    heads, head_ends = _joined([_head(name) for name in source.values])
    ids, id_ends = _encoded(texts.values)
    hashes = np.array(list(map(source_hash, source.values)), np.uint64)
    longest = int(np.diff(head_ends).max(initial=0)) + 8 + int(np.diff(id_ends).max(initial=0))
    message = np.empty(-(-longest // BLOCK_BYTES) * BLOCK_BYTES, np.uint8)
    keys = np.empty((len(texts), 2), np.uint64)
    write_keys(heads, head_ends, hashes, source.codes, ids, id_ends, texts.codes, message, keys)
    return keys


def _head(source: str) -> bytes:
    """The bytes that are hashed of an event before its id (``matcher.identity.hash_128``)."""
    parts = [part.encode() for part in ("event", source)]
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def _encoded(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint8], Int64s]:
    whole = "".join(texts)
    if not whole.isascii():
        return _joined([text.encode() for text in texts])
    return _bytes(whole.encode()), _ends(map(len, texts), len(texts))


def _joined(parts: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Texts one behind the other; and where each ends, after a nought."""
    return _bytes(b"".join(parts)), _ends(map(len, parts), len(parts))


def _bytes(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(bytearray(data), np.uint8)


def _ends(lengths: itertools.chain[int] | map[int], count: int) -> Int64s:
    ends = np.zeros(count + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, count), out=ends[1:])
    return ends

"""The keys of events whose ids are texts: the compiled twin of ``matcher.identity.event_key``.

BLAKE2b as in RFC 7693, without a key, for digests of 16 bytes. A message is what is hashed of one
event: its *head*, which is the same for all events of a source, and its id, each part preceded by
its length. It stands at the beginning of ``message``, zeros behind it up to the end of a block.

Law: every key is the one that ``event_key`` gives, of an id that is a decimal number too. The ids
of composite events, which are their keys, are not for here.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.emission import rotate

BLOCK_BYTES = 128
DIGITS_MAX = 19
"""No number of 64 bits has more."""
_BLOCK_WORDS = BLOCK_BYTES // 8
_ROUNDS = 12
_MINUS, _ZERO, _NINE = 45, 48, 57
_START = np.array(
    [
        0x6A09E667F3BCC908,
        0xBB67AE8584CAA73B,
        0x3C6EF372FE94F82B,
        0xA54FF53A5F1D36F1,
        0x510E527FADE682D1,
        0x9B05688C2B3E6C1F,
        0x1F83D9ABFB41BD6B,
        0x5BE0CD19137E2179,
    ],
    np.uint64,
)
_PARAMETERS = 0x01010000 ^ 16
"""No key, no tree, digests of 16 bytes."""
_ORDERS = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ],
    np.uint8,
)
"""In which order a round takes the words of a block."""


@kernel
def write_keys(  # type: ignore[no-untyped-def]
    heads, head_ends, hashes, sources, ids, id_ends, codes, message, keys
) -> None:
    """Write the keys of n events, uint64[n, 2].

    ``heads`` and ``ids`` are bytes, one text behind the other; that of number ``i`` goes from
    ``ends[i]`` to ``ends[i + 1]``. ``hashes`` uint64 are those of the sources; ``sources`` and
    ``codes``, int32[n], are each event's source and id. ``message`` has room for the longest.
    """
    for event in range(len(codes)):
        source, code = sources[event], codes[event]
        first, last = id_ends[code], id_ends[code + 1]
        if is_number(ids, first, last):
            keys[event, 0], keys[event, 1] = hashes[source], number_in(ids, first, last)
            continue
        length = put(message, 0, heads, head_ends[source], head_ends[source + 1])
        for byte in range(8):
            message[length + byte] = (last - first) >> (8 * byte) & 255
        length = put(message, length + 8, ids, first, last)
        for place in range(length, -(-length // BLOCK_BYTES) * BLOCK_BYTES):
            message[place] = 0
        keys[event, 0], keys[event, 1] = hashed(message, length)


# --- numbers -------------------------------------------------------------------------------------


@part
def is_number(ids, first: int, last: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether an id is the canonical decimal form of a number of 64 bits."""
    is_negative = last > first and ids[first] == _MINUS
    start = first + is_negative
    if last == start or last - start > DIGITS_MAX:
        return False
    for place in range(start, last):
        if ids[place] < _ZERO or ids[place] > _NINE:
            return False
    if ids[start] == _ZERO:
        return last - first == 1
    size = magnitude(ids, start, last)
    return bool(size <= np.uint64(0x7FFFFFFFFFFFFFFF) + np.uint64(is_negative))


@part
def number_in(ids, first: int, last: int) -> np.uint64:  # type: ignore[no-untyped-def]
    """The number that an id is."""
    if ids[first] == _MINUS:
        return np.uint64(0) - magnitude(ids, first + 1, last)
    return magnitude(ids, first, last)


@part
def magnitude(ids, first: int, last: int) -> np.uint64:  # type: ignore[no-untyped-def]
    """The number that some digits make: 10^19 - 1 at most, which are fewer than 2^64."""
    found = np.uint64(0)
    for place in range(first, last):
        found = found * np.uint64(10) + np.uint64(ids[place] - _ZERO)
    return found


# --- BLAKE2b -------------------------------------------------------------------------------------


@part
def put(message, length: int, texts, first: int, last: int) -> int:  # type: ignore[no-untyped-def]
    """Write a text behind what a message has so far; gives its length then."""
    for place in range(last - first):
        message[length + place] = texts[first + place]
    return length + last - first


@part
def stir(a, b, c, d, first: np.uint64, second: np.uint64):  # type: ignore[no-untyped-def]
    """Mix two words of a block into four of the state (G of the RFC)."""
    a = a + b + first
    d = rotate(d ^ a, 32)
    c = c + d
    b = rotate(b ^ c, 40)
    a = a + b + second
    d = rotate(d ^ a, 48)
    c = c + d
    b = rotate(b ^ c, 1)
    return a, b, c, d


@kernel
def hashed(message, length: int):  # type: ignore[no-untyped-def]
    """The digest of the first bytes of a message, of which there are some: high and low."""
    words = message.view(np.uint64)
    h0, h1, h2, h3 = _START[0] ^ np.uint64(_PARAMETERS), _START[1], _START[2], _START[3]
    h4, h5, h6, h7 = _START[4], _START[5], _START[6], _START[7]
    for start in range(0, -(-length // BLOCK_BYTES) * _BLOCK_WORDS, _BLOCK_WORDS):
        done = min(length, 8 * start + BLOCK_BYTES)
        a0, a1, a2, a3, b0, b1, b2, b3 = h0, h1, h2, h3, h4, h5, h6, h7
        c0, c1, c2, c3 = _START[0], _START[1], _START[2], _START[3]
        d0, d1, d2, d3 = _START[4] ^ np.uint64(done), _START[5], _START[6], _START[7]
        if done == length:
            d2 = ~d2
        for number in range(_ROUNDS):
            order = _ORDERS[number % len(_ORDERS)]
            a0, b0, c0, d0 = stir(a0, b0, c0, d0, words[start + order[0]], words[start + order[1]])
            a1, b1, c1, d1 = stir(a1, b1, c1, d1, words[start + order[2]], words[start + order[3]])
            a2, b2, c2, d2 = stir(a2, b2, c2, d2, words[start + order[4]], words[start + order[5]])
            a3, b3, c3, d3 = stir(a3, b3, c3, d3, words[start + order[6]], words[start + order[7]])
            a0, b1, c2, d3 = stir(a0, b1, c2, d3, words[start + order[8]], words[start + order[9]])
            a1, b2, c3, d0 = stir(
                a1, b2, c3, d0, words[start + order[10]], words[start + order[11]]
            )
            a2, b3, c0, d1 = stir(
                a2, b3, c0, d1, words[start + order[12]], words[start + order[13]]
            )
            a3, b0, c1, d2 = stir(
                a3, b0, c1, d2, words[start + order[14]], words[start + order[15]]
            )
        h0, h1, h2, h3 = h0 ^ a0 ^ c0, h1 ^ a1 ^ c1, h2 ^ a2 ^ c2, h3 ^ a3 ^ c3
        h4, h5, h6, h7 = h4 ^ b0 ^ d0, h5 ^ b1 ^ d1, h6 ^ b2 ^ d2, h7 ^ b3 ^ d3
    return turned(h0), turned(h1)


@part
def turned(word: np.uint64) -> np.uint64:
    """The word with its bytes the other way round."""
    found = np.uint64(0)
    for _ in range(8):
        found = (found << np.uint64(8)) | (word & np.uint64(255))
        word >>= np.uint64(8)
    return found

"""Names of events as numbers: deterministic, the same in every process (tesla.md section 4).

Every event has a *key* of 128 bits, a pair of unsigned 64-bit numbers ``(high, low)``:

- a primitive event whose id is the decimal form of a number of 64 bits has the hash of its
  source's name and that number itself;
- one with any other id has the hash of source and id together;
- a composite event has its digest, which is at once its id.

The digest of a composite event is MurmurHash3 (x64, 128 bits; public domain, A. Appleby) over the
keys of its causes, terminator first, seeded with the key of the rule and its version: a function
of the tuple, so that the same events in other roles make another event. Keys name events; the
engine never takes them for equality of attribute values.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Key: TypeAlias = tuple[int, int]

RULE_SOURCE = "rexmq/rule/"
"""Prefix of the source of composite events; the rule's name follows."""

VERSION = "@"
"""Stands in a rule's id between its name and its version; no name has it."""

_DIGEST = re.compile("[0-9a-f]{32}")
_MASK = 2**64 - 1
_TENS = 10 ** np.arange(1, 19)
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def hash_128(*parts: str) -> Key:
    """A 128-bit hash of a tuple of strings (BLAKE2b, each part preceded by its length)."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    number = digest.digest()
    return int.from_bytes(number[:8], "big"), int.from_bytes(number[8:], "big")


def source_hash(source: str) -> int:
    """The 64-bit hash of a source's name: the high half of its numbered events' keys."""
    return hash_128("source", source)[0]


def number_of_id(text: str) -> int | None:
    """The number that ``text`` is the canonical decimal form of, if it fits in int64."""
    if len(text) > 20 or not text.removeprefix("-").isdecimal() or not text.isascii():
        return None
    number = int(text)
    return number if str(number) == text and -(2**63) <= number < 2**63 else None


def numbers_of_ids(texts: Sequence[str]) -> npt.NDArray[np.int64] | None:
    """The numbers that texts are the canonical decimal forms of, none of them negative; None where
    not all are.
    """
    if not texts or not texts[0].isdecimal():  # mostly the first tells already
        return None
    together = "".join(texts)
    if not (together.isdecimal() and together.isascii()):
        return None
    try:
        numbers = np.fromiter(map(int, texts), np.int64, len(texts))
    except (ValueError, OverflowError):
        return None
    # Leading zeros would make them longer than their numbers.
    digits = np.searchsorted(_TENS, numbers, side="right") + 1
    return numbers if len(together) == int(digits.sum()) else None


def event_key(source: str, printed_id: str) -> Key:
    """The key of an event by its source's name and its printed id."""
    if source.startswith(RULE_SOURCE) and _DIGEST.fullmatch(printed_id):
        return int(printed_id[:16], 16), int(printed_id[16:], 16)
    number = number_of_id(printed_id)
    if number is not None:
        return source_hash(source), number & _MASK
    return hash_128("event", source, printed_id)


def rule_id(name: str, version: int) -> str:
    """The id of one version of a rule: ``fire`` for the first, then ``fire@1``, ``fire@2``."""
    return name if version == 0 else f"{name}{VERSION}{version}"


def plain_name(rule: str) -> str:
    """The name of a rule, or of a rule's source, from its id."""
    return rule.partition(VERSION)[0]


def rule_key(rule: str, version: int) -> Key:
    """The seed of the composite events of a rule's version (tesla.md section 4, S15)."""
    return hash_128("rule", plain_name(rule), str(version))


def composite_key(rule: Key, causes: Iterable[Key]) -> Key:
    """The digest of a composite event: plain integers, the definition.

    ``rules.engine`` holds the compiled twin that the kernels use; a test keeps them equal.
    """
    high, low = rule
    length = 0
    for first, second in causes:
        length += 16
        high ^= _rotate(first * _C1 & _MASK, 31) * _C2 & _MASK
        high = (_rotate(high, 27) + low) * 5 + 0x52DCE729 & _MASK
        low ^= _rotate(second * _C2 & _MASK, 33) * _C1 & _MASK
        low = (_rotate(low, 31) + high) * 5 + 0x38495AB5 & _MASK
    high, low = high ^ length, low ^ length
    high = high + low & _MASK
    low = low + high & _MASK
    high, low = _finish(high), _finish(low)
    high = high + low & _MASK
    return high, low + high & _MASK


def printed(key: Key) -> str:
    """A composite event's id as text: 32 hexadecimal digits."""
    return f"{key[0]:016x}{key[1]:016x}"


def _rotate(number: int, bits: int) -> int:
    return (number << bits | number >> (64 - bits)) & _MASK


def _finish(number: int) -> int:
    number = (number ^ number >> 33) * 0xFF51AFD7ED558CCD & _MASK
    number = (number ^ number >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return number ^ number >> 33

"""From rows and matches to batches of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from matcher.identity import RULE_SOURCE, Key, composite_key
from matcher.model import (
    Causes,
    Column,
    EventBatch,
    EventIds,
    EventType,
    Int64s,
    Kind,
    StringColumn,
    UInt64s,
)
from rules.engine.kernels.layout import (
    HEADER,
    ID_IS_DIGEST,
    ROW_ID,
    ROW_KEY_HIGH,
    ROW_KEY_LOW,
    ROW_SEQUENCE,
    ROW_SOURCE,
    ROW_TIME,
)
from rules.engine.linking.interner import Interner

FEW = 16
"""So few matches, or codes, are sooner looked at one by one."""
_FIRST, _SECOND = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)


def rows_as_batch(type_: EventType, rows: Int64s, strings: Interner) -> EventBatch:
    """Rows int64[n, width] of a type as a batch of times and attributes; its ids mean nothing."""
    count = len(rows)
    ids = EventIds(StringColumn.constant("", count), np.zeros(count, np.int64))
    columns = columns_of(type_, rows[:, HEADER:], strings.texts)
    return EventBatch(type_, rows[:, ROW_TIME], ids, columns)


def columns_of(
    type_: EventType, words: Int64s, strings: Sequence[str | None]
) -> tuple[Column, ...]:
    """The attributes of n events by their words, int64[n, attributes]."""
    return tuple(
        _column(attribute.kind, np.ascontiguousarray(words[:, place]), strings)
        for place, attribute in enumerate(type_.attributes)
    )


def _column(kind: Kind, words: Int64s, strings: Sequence[str | None]) -> Column:
    if kind is Kind.STRING:
        return texts_of(words, strings)
    if kind is Kind.FLOAT:
        return words.view(np.float64)
    return words.astype(np.bool_) if kind is Kind.BOOL else words


def texts_of(codes: Int64s, texts: Sequence[str | None]) -> StringColumn:
    """The texts that codes stand for; several codes may stand for equal ones."""
    if len(codes) <= FEW:
        return StringColumn.from_strings([texts[code] or "" for code in codes.tolist()])
    used, places = np.unique(codes, return_inverse=True)
    distinct = StringColumn.from_strings([texts[code] or "" for code in used.tolist()])
    return StringColumn(distinct.codes[places].astype(np.int32), distinct.values)


class Names(NamedTuple):
    """The texts that codes stand for at present: attributes, ids, sources. Lists of them only grow:
    an interner that forgets some begins another.
    """

    strings: Sequence[str | None]
    texts: Sequence[str | None]
    sources: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class RuleMatches:
    """The matches of a rule, in their order.

    ``causes`` are the rows of the events of each match, int64[n, width] for each event of the
    rule, terminator first; ``words`` int64[n, attributes]; ``key`` see ``rule_key``.
    """

    type: EventType
    rule: str
    key: Key
    causes: Sequence[Int64s]
    words: Int64s
    names: Names

    def __len__(self) -> int:
        return len(self.words)

    @property
    def times(self) -> Int64s:
        """The times of their composite events, int64[n]."""
        return self.causes[0][:, ROW_TIME]

    def first(self, count: int) -> RuleMatches:
        """So many of them."""
        causes = [rows[:count] for rows in self.causes]
        return replace(self, causes=causes, words=self.words[:count])

    def batch(self) -> EventBatch:
        """Their composite events. They have the ids, the causes and the values that the processor's
        kernels would have written (:mod:`rules.engine.kernels.emission`).
        """
        ids = EventIds(
            StringColumn.constant(RULE_SOURCE + self.rule, len(self)),
            np.zeros(len(self), np.int64),
            None,
            digests(self.key, self.causes),
        )
        return EventBatch(
            self.type,
            self.times.copy(),
            ids,
            columns_of(self.type, self.words, self.names.strings),
            _causes(self.causes, self.names),
        )


def _causes(causes: Sequence[Int64s], names: Names) -> Causes:
    """The causes of matches: their events, match by match."""
    header = np.stack([rows[:, :HEADER] for rows in causes], 1).reshape(-1, HEADER)
    forms = header[:, ROW_ID]
    is_digest, has_text = forms == ID_IS_DIGEST, forms >= 0
    text = digest = None
    if has_text.any():
        texts = [names.texts[code] or "" if code >= 0 else "" for code in forms.tolist()]
        text = StringColumn.from_strings(texts)
    sequence = header[:, ROW_SEQUENCE]
    if is_digest.any():
        keys = header[:, ROW_KEY_HIGH : ROW_KEY_LOW + 1].copy()
        keys[~is_digest] = 0
        digest = keys.view(np.uint64)
        sequence = np.where(is_digest, 0, sequence)
    ids = EventIds(texts_of(header[:, ROW_SOURCE], names.sources), sequence, text, digest)
    offsets = np.arange(len(causes[0]) + 1) * len(causes)
    return Causes(offsets, ids, is_digest, has_text)


def digests(key: Key, causes: Sequence[Int64s]) -> UInt64s:
    """The ids of composite events, uint64[n, 2], by the rows of their causes. The twin of
    :func:`matcher.identity.composite_key` for many at once.
    """
    count = len(causes[0])
    if count <= FEW:
        places = slice(ROW_KEY_HIGH, ROW_KEY_LOW + 1)
        keys = zip(*(rows[:, places].view(np.uint64).tolist() for rows in causes), strict=True)
        return np.array([composite_key(key, one) for one in keys], np.uint64).reshape(-1, 2)
    high, low = (np.full(count, word, np.uint64) for word in key)
    with np.errstate(over="ignore"):
        for rows in causes:
            first = rows[:, ROW_KEY_HIGH].astype(np.uint64)
            second = rows[:, ROW_KEY_LOW].astype(np.uint64)
            high ^= _rotated(first * _FIRST, 31) * _SECOND
            high = (_rotated(high, 27) + low) * np.uint64(5) + np.uint64(0x52DCE729)
            low ^= _rotated(second * _SECOND, 33) * _FIRST
            low = (_rotated(low, 31) + high) * np.uint64(5) + np.uint64(0x38495AB5)
        length = np.uint64(16 * len(causes))
        high, low = high ^ length, low ^ length
        high = high + low
        low = low + high
        high, low = _finished(high), _finished(low)
        high = high + low
        low = low + high
    return np.stack([high, low], 1)


def _rotated(words: UInt64s, bits: int) -> UInt64s:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _finished(words: UInt64s) -> UInt64s:
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ (words >> np.uint64(33))

"""Events as the host keeps them beside the rows that go to the device: identities, in order.

Which event comes first (tesla.md E4) is decided here, once, when events enter columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matcher.identity import source_hash
from matcher.model import AnyArray, EventBatch, Int64s, StringColumn, UInt64s
from rules.engine.intake.naming import keys_of
from rules.engine.linking.interner import Interner
from studies.cdp_on_cuda import layout
from studies.cdp_on_cuda.compiling import ColumnForm

IS_SEQUENCE, IS_TEXT, IS_DIGEST = 0, 1, 2
"""The form of an event's id, beside which stands its source (matcher.model, Rule 3)."""
IDENTITY = np.dtype(
    [
        ("time", np.int64),
        ("serial", np.int64),
        ("source", np.int64),
        ("sequence", np.int64),
        ("high", np.uint64),  # of its key
        ("low", np.uint64),
        ("form", np.int64),
        ("text", np.object_),
    ]
)
"""An event's time, its number in this engine, and its id; ``source`` is a number of Sources."""


class Sources:
    """Numbers for the names of sources."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def numbers(self, column: StringColumn) -> Int64s:
        """The numbers of the sources of n events."""
        return np.array(list(map(self.number, column.values)), np.int64)[column.codes]

    def number(self, name: str) -> int:
        """The number of one source."""
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """n events: IDENTITY[n], and the rows of a column's events, int64[n, words]."""

    identity: AnyArray
    rows: AnyArray

    def __len__(self) -> int:
        return len(self.identity)

    def take(self, places: AnyArray | slice) -> Block:
        """The events at ``places`` (indices, mask or slice)."""
        return Block(self.identity[places], self.rows[places])

    @staticmethod
    def together(blocks: Sequence[Block], row: int) -> Block:
        """One block after another; ``row`` says how many words a row has."""
        if len(blocks) == 1:
            return blocks[0]
        identity = [np.empty(0, IDENTITY), *(block.identity for block in blocks)]
        rows = [np.empty((0, row), np.int64), *(block.rows for block in blocks)]
        return Block(np.concatenate(identity), np.concatenate(rows))

    def in_order(self, sources: Sources) -> Block:
        """The same events by time and E4."""
        times = self.identity["time"]
        if len(times) < 2 or (np.diff(times) > 0).all():
            return self
        order = np.argsort(times, kind="stable")
        sorted_times = times[order]
        if (sorted_times[1:] == sorted_times[:-1]).any():
            moments = [moment_of(one, sources) for one in self.identity]
            order = np.array(sorted(range(len(moments)), key=moments.__getitem__), np.int64)
        return self.take(order)


def moment_of(identity: Any, sources: Sources) -> tuple[Any, ...]:
    """The order of an event among others: its time, then E4."""
    time, sequence = int(identity["time"]), int(identity["sequence"])
    if identity["form"] == IS_DIGEST:
        return time, 2, b"", sequence, ""
    text = identity["text"] if identity["form"] == IS_TEXT else str(sequence)
    return time, 1, sources.names[identity["source"]].encode(), sequence, text


def identities(batch: EventBatch, first: int, sources: Sources) -> AnyArray:
    """IDENTITY[n] of a batch's events, numbered from ``first`` on."""
    ids, found = batch.ids, np.empty(len(batch), IDENTITY)
    found["time"] = batch.time
    found["serial"] = np.arange(first, first + len(batch))
    found["source"] = sources.numbers(ids.source)
    found["sequence"] = ids.sequence
    found["text"] = None
    if ids.digest is not None:
        found["form"] = IS_DIGEST
        keys: UInt64s = ids.digest
    elif ids.text is not None:
        found["form"] = IS_TEXT
        found["text"] = np.array(ids.text.values, np.object_)[ids.text.codes]
        keys = keys_of(ids.source, ids.text.compact())
    else:
        found["form"] = IS_SEQUENCE
        hashes = np.array(list(map(source_hash, ids.source.values)), np.uint64)
        keys = np.stack([hashes[ids.source.codes], ids.sequence.view(np.uint64)], axis=1)
    found["high"], found["low"] = keys[:, 0], keys[:, 1]
    return found


class Encoder:
    """The words of a batch's attributes, each worked out once."""

    def __init__(self, batch: EventBatch, identity: AnyArray, strings: Interner) -> None:
        self._batch = batch
        self._identity = identity
        self._strings = strings
        self._words: dict[int, Int64s] = {}

    def rows(self, form: ColumnForm) -> AnyArray:
        """The rows of a column's events, int64[n, words]."""
        rows = np.empty((len(self._batch), form.row), np.int64)
        rows[:, layout.SERIAL] = self._identity["serial"]
        rows[:, layout.TIME] = self._identity["time"]
        for place, attribute in enumerate(form.attributes, layout.ATTRIBUTES):
            rows[:, place] = self._of(attribute)
        return rows

    def _of(self, attribute: int) -> Int64s:
        words = self._words.get(attribute)
        if words is None:
            column = self._batch.columns[attribute]
            if isinstance(column, StringColumn):
                column = column.compact()
                words = self._strings.codes(column.values)[column.codes]
            elif column.dtype == np.float64:
                words = np.ascontiguousarray(column).view(np.int64)
            else:
                words = column.astype(np.int64)
            self._words[attribute] = words
        return words


def composite_keys(seed: tuple[int, int], causes: Sequence[AnyArray]) -> UInt64s:
    """The ids of n composite events, uint64[n, 2]: ``matcher.identity.composite_key`` on columns.
    ``causes`` are IDENTITY[n] of the events of the matches, terminator first.
    """
    count, length = len(causes[0]), np.uint64(16 * len(causes))
    high, low = (np.full(count, word, np.uint64) for word in seed)
    with np.errstate(over="ignore"):
        for identity in causes:
            first, second = identity["high"], identity["low"]
            high = high ^ _rotated(first * _C1, 31) * _C2
            high = (_rotated(high, 27) + low) * np.uint64(5) + np.uint64(0x52DCE729)
            low = low ^ _rotated(second * _C2, 33) * _C1
            low = (_rotated(low, 31) + high) * np.uint64(5) + np.uint64(0x38495AB5)
        high, low = high ^ length, low ^ length
        high = high + low
        low = low + high
        high, low = _finished(high), _finished(low)
        high = high + low
        return np.stack([high, low + high], axis=1)


_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)


def _rotated(words: UInt64s, bits: int) -> UInt64s:
    return words << np.uint64(bits) | words >> np.uint64(64 - bits)


def _finished(words: UInt64s) -> UInt64s:
    words = (words ^ words >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ words >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ words >> np.uint64(33)

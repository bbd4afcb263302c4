"""Repeats of events: a (source, id) is taken once (tesla.md E1).

Law 1: exact. An event is dropped exactly when one with the same source and the same printed id
was accepted before and is still remembered; nothing is decided by a hash alone.

Law 2: a number costs one bit where a source's numbers follow one another: they are kept in blocks
of 64, found by a hash table. Their order does not matter; a source whose types arrive in batches
of their own gives its numbers out of order all the time.

Law 3: bounded by the caller. An engine says with :meth:`DuplicateFilter.forget` what none of its
rules can see any more; at most about twice what is younger is remembered, in at most 64 bytes for
a numbered event. Names of sources are kept for good. A repeat bears the time of its original, so
once that is forgotten here the repeat too is older than anything the engine still looks at.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matcher.identity import number_of_id
from matcher.model import AnyArray, Bools, EventBatch, EventIds, Int64s, StringColumn
from rules.engine.kernels.layout import BLOCK
from rules.engine.kernels.seen import accept, move

BLOCKS_MIN = 64
"""The least length of the table of blocks."""
SWEEP_MIN = 4_096
"""Fewer remembered blocks and names than this are not worth a sweep."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a filter remembers, as plain data: sources by number, blocks, named ids with their
    sources and times.
    """

    dropped: int
    sources: tuple[str, ...]
    blocks: AnyArray
    names: tuple[tuple[int, str, int], ...]


class DuplicateFilter:
    """Remembers which events were accepted; ``dropped`` counts those that were not.

    Whoever takes numbered events in by kernels of its own enters them into ``table`` there (see
    ``kernels.seen``), under the numbers of their sources here; ``grow`` when it lacks room.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._source_numbers: dict[str, int] = {}
        self.table: AnyArray = _table(BLOCKS_MIN)
        self._names: dict[int, dict[str, int]] = {}  # ids that are no numbers, with their times,
        self._named = 0  # by source; and how many they are
        self._sweep_above = SWEEP_MIN
        self._dictionary: tuple[str, ...] = ()
        self._dictionary_sources: Int64s = np.empty(0, np.int64)

    def __len__(self) -> int:
        """Blocks of numbers, and ids that are no numbers, that are remembered."""
        return int(self.table[-1]["source"]) + self._named

    def kept(self) -> Remembered:
        """All that it remembers; shares no memory with it."""
        blocks = self._blocks()
        names = tuple(
            (source, text, time)
            for source, own in self._names.items()
            for text, time in own.items()
        )
        return Remembered(self.dropped, tuple(self._source_numbers), blocks, names)

    def resume(self, kept: Remembered) -> None:
        """Remember this, and nothing else."""
        self.dropped = kept.dropped
        self._source_numbers = {name: number for number, name in enumerate(kept.sources)}
        self._dictionary = ()
        self._fill(kept.blocks)
        self._names = {}
        for source, text, time in kept.names:
            self._names.setdefault(source, {})[text] = time
        self._named = len(kept.names)
        self._sweep_above = max(SWEEP_MIN, 2 * len(self))

    def accept(self, batch: EventBatch) -> EventBatch:
        """The batch without repeats, each of them counted in ``dropped``.

        Of repeats within the batch, the first is kept. The batch itself is returned when nothing
        is dropped.
        """
        if len(batch) == 0:
            return batch
        sources = self.numbers(batch.ids.source)[batch.ids.source.codes]
        if batch.ids.text is None and batch.ids.digest is None:
            fresh = self._accept_numbers(sources, batch.ids.sequence, batch.time)
        else:
            fresh = self._accept_printed(sources, batch.ids, batch.time)
        taken = int(np.count_nonzero(fresh))
        if taken == len(batch):
            return batch
        self.dropped += len(batch) - taken
        return batch.take(fresh)

    def number(self, source: str) -> int:
        """The number of a source in the table."""
        return self._source_numbers.setdefault(source, len(self._source_numbers))

    def numbers(self, column: StringColumn) -> Int64s:
        """The numbers of the sources of a column's dictionary."""
        if column.values is not self._dictionary:
            self._dictionary = column.values
            numbers = list(map(self.number, column.values))
            self._dictionary_sources = np.array(numbers, np.int64)
        return self._dictionary_sources

    def grow(self) -> None:
        """Give the table room for more."""
        self._fill(self._blocks())

    def forget(self, before: int) -> None:
        """Forget events earlier than ``before``; the caller no longer takes any of them.

        Cheap enough to be called at every advance: nothing happens until the count of what is
        remembered has doubled.
        """
        if len(self) <= self._sweep_above:
            return
        blocks = self._blocks()
        self._fill(blocks[blocks["newest"] >= before])
        self._names = {
            source: {text: time for text, time in own.items() if time >= before}
            for source, own in self._names.items()
        }
        self._named = sum(map(len, self._names.values()))
        self._sweep_above = max(SWEEP_MIN, 2 * len(self))

    def _accept_numbers(self, sources: Int64s, numbers: Int64s, times: Int64s) -> Bools:
        """Which numbered events are new."""
        fresh = np.empty(len(numbers), np.bool_)
        done = 0
        while True:
            done = accept(self.table, sources, numbers, times, fresh, done)
            if done == len(numbers):
                return fresh
            self.grow()

    def _blocks(self) -> AnyArray:
        """The blocks in use."""
        blocks = self.table[:-1]
        found: AnyArray = blocks[blocks["bits"] != 0]
        return found

    def _fill(self, blocks: AnyArray) -> None:
        """Take a table that has room, with just these blocks in it."""
        self.table = _table(max(BLOCKS_MIN, 1 << (4 * len(blocks)).bit_length()))
        move(blocks, self.table)

    def _accept_printed(self, sources: Int64s, ids: EventIds, times: Int64s) -> Bools:
        """Which events are new, by printed ids; a decimal text is a number."""
        texts = ids.printed()
        found = {
            place: number
            for place in _perhaps_numbers(texts)
            if (number := number_of_id(texts[place])) is not None
        }
        if not found:
            return self._accept_names(sources, texts, times)
        fresh, is_number = np.empty(len(texts), np.bool_), np.zeros(len(texts), np.bool_)
        is_number[list(found)] = True
        numbers = np.array(list(found.values()), np.int64)
        fresh[is_number] = self._accept_numbers(sources[is_number], numbers, times[is_number])
        others = list(itertools.compress(texts, (~is_number).tolist()))
        fresh[~is_number] = self._accept_names(sources[~is_number], others, times[~is_number])
        return fresh

    def _accept_names(self, sources: Int64s, texts: Sequence[str], times: Int64s) -> Bools:
        """Which events are new by ids that are no numbers."""
        if self._are_all_new(sources, texts, times):
            self._named += len(texts)
            return np.ones(len(texts), np.bool_)
        fresh = np.zeros(len(texts), np.bool_)
        rows = zip(sources.tolist(), texts, times.tolist(), strict=True)
        for place, (source, text, time) in enumerate(rows):
            known = self._names.setdefault(source, {})
            if text not in known:
                known[text] = time
                fresh[place] = True
        self._named += int(np.count_nonzero(fresh))
        return fresh

    def _are_all_new(self, sources: Int64s, texts: Sequence[str], times: Int64s) -> bool:
        """Whether events are all of one source and all new, as nearly always; then they are
        remembered, without a look at each.
        """
        if not len(sources) or (sources != sources[0]).any():
            return False
        known = self._names.setdefault(int(sources[0]), {})
        coming = dict(zip(texts, times.tolist(), strict=True))
        if len(coming) < len(texts) or not known.keys().isdisjoint(coming):
            return False
        known |= coming
        return True


def _perhaps_numbers(texts: Sequence[str]) -> list[int]:
    """Where texts are that may be decimal numbers."""
    digits = map(str.isdecimal, texts)
    below = map(str.startswith, texts, itertools.repeat("-"))
    return [place for place, one in enumerate(map(operator.or_, digits, below)) if one]


def _table(length: int) -> AnyArray:
    """An empty table of so many blocks, a power of two."""
    return np.zeros(length + 1, BLOCK)

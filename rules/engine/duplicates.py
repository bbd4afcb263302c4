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

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from matcher.identity import number_of_id
from matcher.model import AnyArray, Bools, EventBatch, EventIds, Int64s, StringColumn
from rules.engine.kernels.seen import BLOCK, accept, accept_one, move

BLOCKS_MIN = 64
"""The least length of the table of blocks."""
SWEEP_MIN = 4_096
"""Fewer remembered blocks and names than this are not worth a sweep."""

_Name: TypeAlias = tuple[int, str]


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
    """Remembers which events were accepted; ``dropped`` counts those that were not."""

    def __init__(self) -> None:
        self.dropped = 0
        self._source_numbers: dict[str, int] = {}
        self._blocks: AnyArray = np.zeros(BLOCKS_MIN, BLOCK)
        self._used = 0  # blocks
        self._names: dict[_Name, int] = {}  # ids that are no numbers, with their times
        self._sweep_above = SWEEP_MIN
        self._dictionary: tuple[str, ...] = ()
        self._dictionary_sources: Int64s = np.empty(0, np.int64)

    def __len__(self) -> int:
        """Blocks of numbers, and ids that are no numbers, that are remembered."""
        return self._used + len(self._names)

    def kept(self) -> Remembered:
        """All that it remembers; shares no memory with it."""
        blocks = self._blocks[self._blocks["bits"] != 0]
        names = tuple((source, text, time) for (source, text), time in self._names.items())
        return Remembered(self.dropped, tuple(self._source_numbers), blocks, names)

    def resume(self, kept: Remembered) -> None:
        """Remember this, and nothing else."""
        self.dropped = kept.dropped
        self._source_numbers = {name: number for number, name in enumerate(kept.sources)}
        self._dictionary = ()
        self._fill(kept.blocks)
        self._names = {(source, text): time for source, text, time in kept.names}
        self._sweep_above = max(SWEEP_MIN, 2 * len(self))

    def accept(self, batch: EventBatch) -> EventBatch:
        """The batch without repeats, each of them counted in ``dropped``.

        Of repeats within the batch, the first is kept. The batch itself is returned when nothing
        is dropped.
        """
        if len(batch) == 0:
            return batch
        sources = self._sources_of(batch.ids.source)
        if batch.ids.text is None and batch.ids.digest is None:
            fresh = self._accept_numbers(sources, batch.ids.sequence, batch.time)
        else:
            fresh = self._accept_printed(sources, batch.ids, batch.time)
        taken = int(np.count_nonzero(fresh))
        if taken == len(batch):
            return batch
        self.dropped += len(batch) - taken
        return batch.take(fresh)

    def accepts(self, source: str, number: int, time: int) -> bool:
        """Whether one numbered event is new; as ``accept``, for an event that comes alone."""
        known = self._source_numbers
        place = known.setdefault(source, len(known))
        while True:
            fresh, self._used = accept_one(self._blocks, self._used, place, number, time)
            if fresh >= 0:
                self.dropped += 1 - fresh
                return fresh > 0
            self._fill(self._blocks[self._blocks["bits"] != 0])

    def forget(self, before: int) -> None:
        """Forget events earlier than ``before``; the caller no longer takes any of them.

        Cheap enough to be called at every advance: nothing happens until the count of what is
        remembered has doubled.
        """
        if len(self) <= self._sweep_above:
            return
        young = self._blocks[(self._blocks["bits"] != 0) & (self._blocks["newest"] >= before)]
        self._fill(young)
        self._names = {name: time for name, time in self._names.items() if time >= before}
        self._sweep_above = max(SWEEP_MIN, 2 * len(self))

    def _sources_of(self, column: StringColumn) -> Int64s:
        """The local numbers of the sources of n events."""
        if column.values is not self._dictionary:
            known = self._source_numbers
            self._dictionary = column.values
            self._dictionary_sources = np.fromiter(
                (known.setdefault(name, len(known)) for name in column.values),
                np.int64,
                len(column.values),
            )
        return self._dictionary_sources[column.codes]

    def _accept_numbers(self, sources: Int64s, numbers: Int64s, times: Int64s) -> Bools:
        """Which numbered events are new."""
        fresh = np.empty(len(numbers), np.bool_)
        done = 0
        while True:
            done, self._used = accept(
                self._blocks, self._used, sources, numbers, times, fresh, done
            )
            if done == len(numbers):
                return fresh
            self._fill(self._blocks[self._blocks["bits"] != 0])

    def _fill(self, blocks: AnyArray) -> None:
        """Take a table that has room, with just these blocks in it."""
        length = max(BLOCKS_MIN, 1 << (4 * len(blocks)).bit_length())
        self._blocks = np.zeros(length, BLOCK)
        self._used = len(blocks)
        move(blocks, self._blocks)

    def _accept_printed(self, sources: Int64s, ids: EventIds, times: Int64s) -> Bools:
        """Which events are new, by printed ids, one by one; a decimal text is a number."""
        fresh = np.ones(len(ids), np.bool_)
        rows = zip(sources.tolist(), ids.printed(), times.tolist(), strict=True)
        for place, (source, text, time) in enumerate(rows):
            number = number_of_id(text)
            if number is not None:
                one, at = np.array([number]), np.array([time])
                fresh[place] = self._accept_numbers(np.array([source]), one, at)[0]
            elif (source, text) in self._names:
                fresh[place] = False
            else:
                self._names[source, text] = time
        return fresh


class Trusted(DuplicateFilter):
    """Takes every event to be the first of its id."""

    def accept(self, batch: EventBatch) -> EventBatch:
        """The batch."""
        return batch

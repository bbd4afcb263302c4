"""Matching by hashing: few filters are looked at, and each of these is verified whole.

A filter stands in one bucket of one table, under one of two kinds of keys:

- its *signature*, the set of its terms. An event's terms contain those of every filter that it
  matches, so the subsets of its terms are looked up. They are walked depth first, rarest term
  first, and a Bloom filter over the prefixes of all signatures ends the walk where no filter
  goes on.
- its *access predicate*, one of its equalities or tests of texts, chosen where the fewest filters
  are so far. An event looks up its values and, for texts, the tests that they pass. A filter that
  has no such constraint stands under its signature.

``signature`` uses the first kind alone, ``index`` the second wherever it can. Within a bucket a
mask of the filter's terms, folded to 64 bits, dismisses most of what cannot match.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matcher.growing import Growing, with_room
from matcher.kernels.index import (
    index_insert_all,
    index_match,
    index_remove,
    learn_all,
    rehash,
)
from matcher.kernels.layout import BLOOM_BITS, FREE, KEYS, LEARNT, SIGNED, STATE
from matcher.model import Int64s
from matcher.table import FilterTable
from matcher.tabled import TableMatcher
from matcher.vocabulary import EncodedEvents

TABLE_MIN = 64
COUNTS = ("subsets visited", "keys probed", "filters verified")


class Index:
    """The buckets of a table's filters, by signature alone or, if ``by_access``, by both."""

    def __init__(self, table: FilterTable, *, by_access: bool) -> None:
        self.by_access = by_access
        self._filters = table
        self._buckets: Int64s = np.zeros((TABLE_MIN, 4), np.int64)
        self._masks: Int64s = np.zeros(TABLE_MIN, np.int64)
        self._arena: Int64s = np.zeros((TABLE_MIN, 3), np.int64)
        self._bloom: Int64s = np.zeros(1, np.int64)
        self._keys = Growing(np.int64)
        self._state = np.zeros(STATE, np.int64)
        self._state[FREE:] = -1
        self._scratch: list[Int64s] = []  # of -1, by term; one for each thread that matches

    @property
    def bytes(self) -> int:
        """The bytes of its arrays."""
        arrays = (self._buckets, self._masks, self._arena, self._bloom, self._keys.rows)
        return sum(array.nbytes for array in arrays)

    @property
    def by_signature(self) -> int:
        """How many filters were put under their signatures."""
        return int(self._state[SIGNED])

    def insert(self, slots: Int64s) -> None:
        """Put filters into their buckets."""
        filters, keys = self._filters, self._keys
        if filters.filters.size > keys.size:
            keys.reserve(filters.filters.size - keys.size)
        done = 0
        while True:
            done = index_insert_all(
                self._buckets,
                self._masks,
                self._arena,
                self._bloom,
                self._state,
                filters.rows.rows,
                filters.filters.rows,
                keys.rows,
                slots,
                filters.vocabulary.ranks,
                self.by_access,
                done,
            )
            if done == len(slots):
                return
            self._grow()

    def delete(self, slot: int) -> None:
        """Take a filter out of its bucket."""
        index_remove(self._buckets, self._masks, self._arena, self._keys.rows, slot)

    def run(
        self,
        events: EncodedEvents,
        begin: int,
        bits: Int64s,
        found: Int64s,
        wanted: bool,
        counts: Int64s,
    ) -> tuple[int, int]:
        """As ``TableMatcher._run``; ``counts`` int64[3] is added to, as COUNTS names it."""
        filters = self._filters
        try:
            at = self._scratch.pop()
        except IndexError:
            at = np.full(len(filters.vocabulary.ranks), -1, np.int64)
        if len(at) < len(filters.vocabulary.ranks):
            at = np.full(len(filters.vocabulary.ranks), -1, np.int64)
        reached: tuple[int, int] = index_match(
            events.offsets,
            events.cells,
            begin,
            self._buckets,
            self._masks,
            self._arena,
            self._bloom,
            self._state,
            filters.rows.rows,
            filters.vocabulary.sorts,
            at,
            events.texts,
            bits,
            found,
            wanted,
            filters.live_interfaces,
            counts,
        )
        self._scratch.append(at)
        return reached

    def _grow(self) -> None:
        """Make room in whatever is full."""
        if 2 * (self._state[KEYS] + 1) > len(self._buckets):
            live = int(np.count_nonzero(self._buckets[:, 2]))
            length = max(TABLE_MIN, 1 << (4 * live).bit_length())
            larger = np.zeros((length, 4), np.int64)
            rehash(self._buckets, larger, self._arena, self._state)
            self._buckets = larger
        elif self._state[LEARNT] * BLOOM_BITS >= 64 * len(self._bloom):
            self._bloom = np.zeros(4 * len(self._bloom), np.int64)
            rows, ranks = self._filters.rows.rows, self._filters.vocabulary.ranks
            learn_all(self._bloom, self._state, self._buckets, self._arena, rows, ranks)
        else:
            self._arena = with_room(self._arena, len(self._arena) + 1)
            self._masks = with_room(self._masks, len(self._arena))


class IndexedMatcher(TableMatcher):
    """``signature``, or with ``by_access`` ``index``."""

    def __init__(self, *, by_access: bool) -> None:
        super().__init__()
        self._index = Index(self.table, by_access=by_access)
        self._counts = np.zeros(len(COUNTS), np.int64)

    def _insert(self, slots: Int64s) -> None:
        self._index.insert(slots)

    def _delete(self, slot: int) -> None:
        self._index.delete(slot)

    def _run(
        self, events: EncodedEvents, begin: int, bits: Int64s, found: Int64s, wanted: bool
    ) -> tuple[int, int]:
        return self._index.run(events, begin, bits, found, wanted, self._counts)

    def _bytes(self) -> int:
        return self._index.bytes

    @property
    def figures(self) -> Mapping[str, int | str]:
        """As in ``TableMatcher``, and what matching has looked at."""
        figures = dict(super().figures)
        figures["filters by signature"] = self._index.by_signature
        return figures | dict(zip(COUNTS, self._counts.tolist(), strict=True))

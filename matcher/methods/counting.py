"""Sequential counting, by the idea of SFF, which the thesis compares with (4.1, 4.5).

Each distinct constraint stands once, whichever filters ask for it, and is found through an index:
equalities and tests of texts by a value, the others by the name. An event counts, for each
constraint that holds, the filters that ask for it; once a filter's interface is selected, its
other filters are no longer counted, and once all are, the event is done. The counting depends on
what came before it, which makes it sequential.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from matcher.filters.encoded import EncodedEvents
from matcher.filters.table import COUNT, INTERFACE
from matcher.kernels.counting import (
    LEFT,
    NUMBERS,
    PLACES,
    PLAIN,
    counting_insert,
    counting_match,
    counting_rehash,
    counting_remove,
)
from matcher.kernels.layout import FREE, STATE
from matcher.methods.tabled import Found, TableMatcher
from matcher.model import Int64s
from runtime.growing import Growing, with_room

ROOM_MIN = 64


class CountingMatcher(TableMatcher):
    """Counters of constraints satisfied, one for each filter.

    ``plain``: without the index and without pruning. What is left is PCM with each distinct
    constraint once, which the thesis holds against PCM as it is (4.5).
    """

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._known: Int64s = np.zeros((ROOM_MIN, 3), np.int64)
        self._words: Int64s = np.zeros((ROOM_MIN, 2), np.int64)
        self._lists: Int64s = np.zeros((ROOM_MIN, 4), np.int64)
        self._scans = Growing(np.int64, 4)
        self._arena: Int64s = np.zeros((ROOM_MIN, 1), np.int64)
        self._counts = Growing(np.int64, 3)
        self._state = np.zeros(STATE, np.int64)
        self._state[FREE:] = self._state[LEFT] = -1
        self._state[PLAIN] = plain
        self._epoch = np.zeros(1, np.int64)
        self._always: set[int] = set()
        self._lock = Lock()  # the counts are one call's at a time

    def _insert(self, slots: Int64s) -> None:
        table, counts = self.table, self._counts
        terms = len(table.vocabulary.terms) - self._scans.size
        if terms > 0:
            first = self._scans.reserve(terms)
            self._scans.rows[first:, 1] = -1
        if table.filters.size > counts.size:
            counts.reserve(table.filters.size - counts.size)
        filters = table.filters.rows[slots]
        counts.rows[slots, 0] = 0
        counts.rows[slots, 1] = filters[:, COUNT]
        counts.rows[slots, 2] = filters[:, INTERFACE]
        self._always.update(slots[filters[:, COUNT] == 0].tolist())
        done = np.zeros(2, np.int64)
        while not counting_insert(
            self._known,
            self._words,
            self._lists,
            self._scans.rows,
            self._arena,
            self._state,
            table.rows.rows,
            table.filters.rows,
            slots,
            done,
        ):
            self._grow()

    def _delete(self, slot: int) -> None:
        counting_remove(
            self._known,
            self._lists,
            self._scans.rows,
            self._arena,
            self._state,
            self.table.rows_of(slot),
            slot,
        )
        self._always.discard(slot)

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        with self._lock:
            return counting_match(  # type: ignore[no-any-return]
                events.offsets,
                events.cells,
                begin,
                self._known,
                self._words,
                self._lists,
                self._scans.rows,
                self._arena,
                self._state,
                self._counts.rows,
                np.array(sorted(self._always), np.int64),
                self._epoch,
                self.table.vocabulary.sorts,
                events.texts,
                *found,
                self.table.live_interfaces,
            )

    def _bytes(self) -> int:
        arrays = (self._known, self._words, self._lists, self._arena)
        growing = (self._scans.rows, self._counts.rows)
        return sum(array.nbytes for array in (*arrays, *growing))

    def _grow(self) -> None:
        """Make room in whatever is full."""
        state = self._state
        if state[NUMBERS] == len(self._lists):
            self._lists = with_room(self._lists, len(self._lists) + 1)
            self._words = with_room(self._words, len(self._lists))
        elif 2 * (state[PLACES] + 1) > len(self._known):
            live = int(np.count_nonzero(self._known[:, 2] > 0))
            larger = np.zeros((max(ROOM_MIN, 1 << (4 * live).bit_length()), 3), np.int64)
            counting_rehash(self._known, larger, state)
            self._known = larger
        else:
            self._arena = with_room(self._arena, len(self._arena) + 1)

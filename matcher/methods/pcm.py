"""Parallel Content Matching, the thesis's algorithm (4.4), kept as the baseline.

Two phases: *selection*, which takes the constraints on the names that an event has, and
*evaluation and counting*, which counts for each filter the constraints that hold; a filter whose
count reaches its size selects its interface. Constraints that several filters share stand there
several times, on purpose (4.4.1); counts are set to zero before each event.

With several threads each has a share of the filters and counts for them alone, so that none waits
for another. The thesis's OCM shares out the constraints and counts by atomic operations
(:mod:`matcher.methods.ocm`); the work is the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np

from matcher.filters.encoded import EncodedEvents
from matcher.filters.numbering import Numbering
from matcher.filters.table import COUNT, INTERFACE
from matcher.filters.vocabulary import TYPE_SORT
from matcher.kernels.layout import FREE, STATE
from matcher.kernels.pcm import pcm_insert_all, pcm_match, pcm_remove
from matcher.methods.tabled import Found, TableMatcher
from matcher.model import Int64s
from runtime.growing import Growing, with_room

ARENA_MIN = 64


class PcmMatcher(TableMatcher):
    """PCM on ``threads`` threads."""

    def __init__(self, threads: int = 1) -> None:
        super().__init__()
        self.shares = [Share() for _ in range(threads)]
        self._names: Numbering[tuple[str, bool]] = Numbering()
        self._list_of_term = np.zeros(16, np.int64)
        self._generation = -1
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def _insert(self, slots: Int64s) -> None:
        self._name_lists()
        for number, share in enumerate(self.shares):
            mine = slots[slots % len(self.shares) == number]
            if len(mine):
                share.insert(self, mine)

    def _delete(self, slot: int) -> None:
        self.shares[slot % len(self.shares)].delete(self, slot)

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        if self._pool is None:
            return self.shares[0].run(self, events, begin, found)
        room = len(found.slots)
        own = [self._apart(found, room) for _ in self.shares]
        while True:
            done = list(
                self._pool.map(
                    lambda share, mine: share.run(self, events, begin, mine), self.shares, own
                )
            )
            if all(end == len(events) for end, _ in done):
                break
            room = max(2 * room, 1)  # what did not fit is tried again with more room
            own = [self._apart(found, room) for _ in self.shares]
        for mine in own:
            found.bits[begin:] |= mine.bits[begin:]
        return self._together(begin, found, own) if found.wanted else (len(events), 0)

    @staticmethod
    def _apart(found: Found, room: int) -> Found:
        """Room for the results of one thread."""
        slots, ends = np.empty(room, np.int64), np.empty_like(found.ends)
        return Found(np.zeros_like(found.bits), slots, ends, found.wanted)

    @staticmethod
    def _together(begin: int, found: Found, own: list[Found]) -> tuple[int, int]:
        """Put together the results of all threads, as many as there is room for."""
        events, slots = [], []
        for mine in own:
            counts = np.diff(mine.ends[begin:], prepend=0)
            events.append(np.repeat(np.arange(begin, len(mine.ends)), counts))
            slots.append(mine.slots[: counts.sum()])
        return found.take(begin, np.concatenate(events), np.concatenate(slots))

    def _bytes(self) -> int:
        return sum(share.bytes for share in self.shares)

    @property
    def list_of_term(self) -> Int64s:
        """By term: the list of its name."""
        return self._list_of_term

    def _name_lists(self) -> None:
        """Give each term the list of its name; types have lists of their own."""
        if self._generation == self.table.vocabulary.generation:
            return
        self._generation = self.table.vocabulary.generation
        terms = self.table.vocabulary.terms.words
        self._list_of_term = with_room(self._list_of_term, len(terms))
        for term, word in enumerate(terms):
            if word is not None:
                name = (word[0], word[1] == TYPE_SORT)
                number = self._names.number(name)
                self._list_of_term[term] = self._names.use(name)[0] if number is None else number
        for share in self.shares:
            share.lists_for(len(self._names))


class Share:
    """The constraints of some of the filters, by name."""

    def __init__(self) -> None:
        self.lists = Growing(np.int64, 4)
        self._arena = Growing(np.int64, 3, room=ARENA_MIN)
        self._state = np.zeros(STATE, np.int64)
        self._state[FREE:] = -1
        self.filters = Growing(np.int64, 3)
        self.always: set[int] = set()
        self.lock = Lock()  # the counts are the share's own, and so one call's at a time

    @property
    def arena(self) -> Int64s:
        """The constraints of all lists."""
        return self._arena.rows

    @property
    def bytes(self) -> int:
        """The bytes of its arrays."""
        return self.lists.rows.nbytes + self.arena.nbytes + self.filters.rows.nbytes

    def lists_for(self, names: int) -> None:
        """Have a list for each name."""
        first = self.lists.size
        if names > first:
            self.lists.reserve(names - first)
            self.lists.rows[first:names, 1] = -1

    def insert(self, matcher: PcmMatcher, slots: Int64s) -> None:
        """Take filters in."""
        table = matcher.table
        if table.filters.size > self.filters.size:
            self.filters.reserve(table.filters.size - self.filters.size)
        filters = table.filters.rows[slots]
        self.filters.rows[slots, 1] = filters[:, COUNT]
        self.filters.rows[slots, 2] = filters[:, INTERFACE]
        self.always.update(slots[filters[:, COUNT] == 0].tolist())
        lengths = filters[:, COUNT]
        offsets = np.append(0, np.cumsum(lengths))
        places = np.repeat(filters[:, 0] - offsets[:-1], lengths) + np.arange(offsets[-1])
        rows, done = table.rows.rows[places], np.zeros(2, np.int64)
        arguments = (matcher.list_of_term, rows, offsets, slots, done)
        while not self._insert_some(*arguments):
            self._arena.make_room(len(self.arena) + 1)

    def delete(self, matcher: PcmMatcher, slot: int) -> None:
        """Take a filter out."""
        rows = matcher.table.rows_of(slot)
        pcm_remove(self.lists.rows, matcher.list_of_term, self.arena, rows, slot)
        self.always.discard(slot)
        self.filters.rows[slot, 1] = -1

    def run(
        self,
        matcher: PcmMatcher,
        events: EncodedEvents,
        begin: int,
        found: Found,
    ) -> tuple[int, int]:
        """As ``TableMatcher._run``."""
        with self.lock:
            return pcm_match(  # type: ignore[no-any-return]
                events.offsets,
                events.cells,
                begin,
                self.lists.rows,
                matcher.list_of_term,
                self.arena,
                self.filters.rows[: self.filters.size],
                np.array(sorted(self.always), np.int64),
                events.texts,
                *found,
            )

    def _insert_some(
        self,
        list_of_term: Int64s,
        rows: Int64s,
        offsets: Int64s,
        slots: Int64s,
        done: Int64s,
    ) -> bool:
        return bool(
            pcm_insert_all(
                self.lists.rows, list_of_term, self.arena, self._state, rows, offsets, slots, done
            )
        )

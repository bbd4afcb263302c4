"""Matching by hashing: few filters are looked at, and each of these is verified whole.

A filter stands in one bucket of one table, under one of these keys:

- its *signature*, the set of its terms. An event's terms contain those of every filter that it
  matches, so the subsets of its terms are looked up. They are walked depth first, rarest term
  first, and a Bloom filter over the prefixes of all signatures ends the walk where no filter
  goes on. Only so many of a filter's terms count as tell the filters apart.
- its *access predicate*, one of its equalities or tests of texts, chosen where the fewest filters
  are so far. An event looks up its values and, for texts, the tests that they pass.
- its type, if it has one and nothing in it can be an access predicate.

``signature`` uses the first kind, ``index`` the second wherever it can. Within a bucket a mask of
the filter's terms, folded to 64 bits, dismisses most of what cannot match. Where many filters with
one set of terms, or of one type, have gathered in a bucket, they become a *group*, which is
matched as a whole (:mod:`matcher.kernels.groups`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import numpy as np

from matcher.filters.encoded import EncodedEvents
from matcher.filters.table import INTERFACE, FilterTable
from matcher.kernels.buckets import place_of
from matcher.kernels.entering import (
    index_insert_all,
    index_remove,
    longest_signature,
    waiting_types,
)
from matcher.kernels.grouping import candidates_of, keep_entries, type_key
from matcher.kernels.index import WORK, index_match
from matcher.kernels.layout import (
    ALIVE,
    COUNTS,
    CROWDED,
    FREE,
    FULL,
    GROUP_KEY,
    GROUP_MIN,
    HAS_GROUPS,
    HASH,
    PROBING,
    SIGNED,
    SPAN,
    SPAN_COUNT,
    STATE,
    TOP,
    TYPE_SORT,
    WAITING,
)
from matcher.kernels.views import words_of
from matcher.methods.bucketed import Buckets
from matcher.methods.homes import Homes
from matcher.methods.prefixes import Prefixes
from matcher.methods.tabled import Found, TableMatcher
from matcher.model import Int64s
from matcher.sorting import stable_order
from runtime.growing import Growing

ARENA_MIN = 64
GATHERED_MIN = 4 * GROUP_MIN
"""Filters that come one by one become a group when so many have gathered."""
COUNT_NAMES = (
    "subsets visited",
    "keys probed",
    "filters verified",
    "groups evaluated",
    "terms evaluated",
    "filters combined",
    "flips applied",
    "toggles applied",
    "filters found in groups",
)


class Index:
    """The buckets of a table's filters, by signature alone or, if ``by_access``, by both.

    ``share``: of what all filters are these are a sample, so that groups and signatures are made
    as they would be for all.
    """

    def __init__(self, table: FilterTable, *, by_access: bool, share: float = 1.0) -> None:
        self.by_access = by_access
        self._share = share
        self._filters = table
        self._buckets = Buckets()
        self._masks = Growing(np.int64, room=ARENA_MIN)
        self._arena = Growing(np.int64, 4, room=ARENA_MIN)
        self._homes = Homes(table, share)
        self._longest, self._told_apart = 1, 0  # terms of a signature, and for how many filters
        self._keys = Growing(np.int64)
        self._state = np.zeros(STATE, np.int64)
        self._state[FREE:] = -1
        self._prefixes = Prefixes(table, self._keys, self._state)
        self._scratch: list[Int64s] = []
        self._words: tuple[Int64s, int] = (np.empty(0, np.int64), 0)  # and their address
        self._words_for = -1

    @property
    def bytes(self) -> int:
        """The bytes of its arrays."""
        arrays = (self._buckets.table, self._masks.rows, self._arena.rows, self._prefixes.bits)
        return sum(array.nbytes for array in (*arrays, self._keys.rows)) + self._homes.bytes

    @property
    def figures(self) -> Mapping[str, int]:
        """Where its filters are."""
        groups = self._homes.groups
        every = list(groups.every())
        return {
            "filters by signature": int(self._state[SIGNED]),
            "groups": len(every),
            "filters in groups": sum(int(groups.groups[group, ALIVE]) for group in every),
        }

    # --- filters come and go --------------------------------------------------------------------

    def insert(self, slots: Int64s) -> None:
        """Put filters into their buckets, or many of one sort into groups."""
        if len(slots) < GROUP_MIN:
            self._enter(slots)
            self._masks.make_ready(self._state.item(TOP))
            self._arena.make_ready(self._state.item(TOP))
            self._prefixes.follow(slots)
            self._gather_full()
        else:
            self._insert_many(slots)

    def _insert_many(self, slots: Int64s) -> None:
        entries, groups = (self._masks, self._arena), self._homes.groups
        for growing in (*entries, groups):
            growing.expect()
        self._enter(slots)
        self._prefixes.settle()
        self._buckets.pack()
        counts = self._buckets.table[:, SPAN] & SPAN_COUNT
        self._gather(np.flatnonzero(counts >= self._least).tolist())
        for growing in entries:
            growing.settle(self._state.item(TOP))
        groups.settle()

    def _enter_again(self, slots: Int64s) -> None:
        """Put filters of a group that is no more where they belong, looking at nothing else."""
        self._enter(slots)
        self._prefixes.follow(slots)
        table, parts = self._buckets.table, self._buckets.parts
        keys = np.unique(self._keys.rows[slots])
        places = [int(place_of(table, parts, key)) for key in keys.tolist() if key]
        self._gather([one for one in places if table[one, SPAN] & SPAN_COUNT >= self._least])

    def _enter(self, slots: Int64s) -> None:
        self._words_for = -1
        filters, keys = self._filters, self._keys
        if filters.filters.size > keys.size:
            keys.reserve(filters.filters.size - keys.size)
            self._homes.make_room(filters.filters.size)
        state = self._state
        if len(slots) >= GROUP_MIN:
            slots = self._by_type(slots)
        signed = max(state.item(SIGNED), len(slots) // (8 if self.by_access else 1))
        if not self._told_apart / 2 <= signed <= self._told_apart:
            terms = len(filters.vocabulary.terms)
            self._longest = int(longest_signature(int(signed / self._share), terms))
            self._told_apart = 2 * signed
        done = 0
        while True:
            done = index_insert_all(
                self._buckets.table,
                self._buckets.parts,
                self._masks.rows,
                self._arena.rows,
                self._prefixes.bits,
                state,
                filters.rows.rows,
                filters.filters.rows,
                keys.rows,
                slots,
                filters.vocabulary.ranks,
                self.by_access,
                self._longest,
                done,
            )
            if done == len(slots):
                break
            self._grow()

    def delete(self, slot: int) -> None:
        """Take a filter out."""
        self._words_for = -1
        if self._homes.rows[slot] < 0:
            buckets, keys = self._buckets, self._keys.rows
            index_remove(
                buckets.table, buckets.parts, self._masks.rows, self._arena.rows, keys, slot
            )
        elif (group := self._homes.leave(slot)) is not None:
            self._enter_again(self._dissolve(group) >> 32)

    def _grow(self) -> None:
        """Make room in whatever is full."""
        if self._state[CROWDED]:
            self._buckets.grow(int(self._state[CROWDED]) - 1, self._arena.rows, self._state)
        elif self._prefixes.is_full:
            self._prefixes.grow()
        else:
            self._arena.make_room(len(self._arena.rows) + 1)
            self._masks.make_room(len(self._arena.rows))

    # --- groups ---------------------------------------------------------------------------------

    def _gather(self, places: Iterable[int]) -> None:
        """Make groups of what has gathered in buckets."""
        for place in places:
            self._promote(place, self._least)

    def _gather_full(self) -> None:
        """The same for the bucket that the last filter has filled, if it has."""
        place = self._state.item(FULL) - 1
        if place >= 0 and self._buckets.table.item(place, SPAN) & SPAN_COUNT >= GATHERED_MIN:
            self._promote(place, self._least)

    @property
    def _least(self) -> int:
        return max(2, int(GROUP_MIN * self._share))

    def _by_type(self, slots: Int64s) -> Int64s:
        """Make groups of filters that would wait under their types, without their ever being in a
        bucket; those that are left.
        """
        table = self._filters
        if not (table.vocabulary.sorts == TYPE_SORT).any():
            return slots
        types = waiting_types(slots, table.rows.rows, table.filters.rows, self.by_access)
        order = stable_order(types)
        ordered = types[order]
        begins = np.flatnonzero(np.diff(ordered, prepend=-2))
        left = []
        for begin, end in itertools.pairwise([*begins.tolist(), len(order)]):
            part = slots[order[begin:end]]
            if ordered[begin] < 0 or end - begin < self._least:
                left.append(part)
                continue
            self._keys.rows[part] = 0
            self._state[PROBING] |= WAITING
            places = table.filters.rows[part, INTERFACE]
            self._homes.make(int(type_key(ordered[begin])), part << 32 | places)
        return np.concatenate(left) if left else slots[:0]

    def _promote(self, place: int, least: int) -> None:
        """Make groups of the filters of a bucket, where so many at least are of one class."""
        rows, table, masks = self._filters.rows.rows, self._buckets.table, self._masks.rows
        members, begins = candidates_of(table, masks, self._arena.rows, rows, place)
        key = int(table[place, HASH])
        made = False
        for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            if end - begin >= least:
                self._homes.make(key, members[begin:end])
                made = True
        if made:
            keep_entries(table, masks, self._arena.rows, place, self._homes.rows)
            table[place, SPAN] |= HAS_GROUPS

    def _dissolve(self, group: int) -> Int64s:
        """Forget a group; its members, which are nowhere then."""
        buckets, groups = self._buckets, self._homes.groups
        key = int(groups.groups[group, GROUP_KEY])
        members = self._homes.dissolve(group)
        if next(groups.chain(key), None) is None:
            buckets.table[place_of(buckets.table, buckets.parts, key), SPAN] &= ~HAS_GROUPS
        return members

    def close(self) -> None:
        """The index is used no more."""
        self._homes.close()

    # --- matching -------------------------------------------------------------------------------

    def run(
        self, events: EncodedEvents, begin: int, found: Found, counts: Int64s
    ) -> tuple[int, int]:
        """As ``TableMatcher._run``; ``counts`` int64[COUNTS] is added to, as COUNT_NAMES says."""
        if self._words_for != self._filters.changes:
            self._look()
        (_, address), scratch = self._words, self._take_scratch()
        reached: tuple[int, int] = index_match(
            address,
            self._filters.live_interfaces,
            events.offsets,
            events.cells,
            begin,
            *events.texts,
            scratch,
            *found,
            counts,
        )
        self._scratch.append(scratch)
        return reached

    def _look(self) -> None:
        """See where the arrays are now; they stay there until filters come or go."""
        filters, groups = self._filters, self._homes.groups
        words = words_of(
            {
                "table": self._buckets.table,
                "parts": self._buckets.parts,
                "masks": self._masks.rows,
                "arena": self._arena.rows,
                "bloom": self._prefixes.bits,
                "state": self._state,
                "rows": filters.rows.rows,
                "identifiers": filters.identifiers.rows,
                "sorts": filters.vocabulary.sorts,
                "blocks": groups.blocks,
                "groups": groups.groups,
                "heads": groups.heads,
            }
        )
        self._words, self._words_for = (words, words.ctypes.data), filters.changes

    def _take_scratch(self) -> Int64s:
        """Memory that a call of the kernel needs for itself, of which each thread has its own."""
        size = WORK + len(self._filters.vocabulary.ranks)
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = np.empty(0, np.int64)
        return scratch if len(scratch) >= size else np.full(size, -1, np.int64)


class IndexedMatcher(TableMatcher):
    """``signature``, or with ``by_access`` ``index``."""

    tells_identifiers = True

    def __init__(self, *, by_access: bool) -> None:
        super().__init__()
        self._index = Index(self.table, by_access=by_access)
        self._counts = np.zeros(COUNTS, np.int64)

    def _insert(self, slots: Int64s) -> None:
        self._index.insert(slots)

    def _delete(self, slot: int) -> None:
        self._index.delete(slot)

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        return self._index.run(events, begin, found, self._counts)

    def _bytes(self) -> int:
        return self._index.bytes

    @property
    def figures(self) -> Mapping[str, int | str]:
        """As in ``TableMatcher``, and what matching has looked at."""
        looked_at = dict(zip(COUNT_NAMES, self._counts.tolist(), strict=True))
        return {**super().figures, **self._index.figures, **looked_at}

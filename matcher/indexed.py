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

from collections.abc import Mapping

import numpy as np

from matcher.bucketed import Buckets
from matcher.grouped import Groups
from matcher.growing import Growing
from matcher.kernels.buckets import place_of
from matcher.kernels.entering import index_insert_all, index_remove, longest_signature
from matcher.kernels.grouping import build_group, candidates_of, keep_entries, type_hash
from matcher.kernels.index import WORK, index_match
from matcher.kernels.layout import (
    ALIVE,
    COUNTS,
    CROWDED,
    FREE,
    FULL,
    GROUP_KEY,
    GROUP_MAX,
    GROUP_MIN,
    HAS_GROUPS,
    HASH,
    MASK,
    SIGNED,
    SPAN,
    SPAN_COUNT,
    STATE,
)
from matcher.model import Int64s
from matcher.prefixes import Prefixes
from matcher.table import FilterTable
from matcher.tabled import Found, TableMatcher
from matcher.vocabulary import EncodedEvents

ARENA_MIN = 64
GATHERED_MIN = 2 * GROUP_MIN
"""Filters that come one by one become a group when so many have gathered."""
COUNT_NAMES = (
    "subsets visited",
    "keys probed",
    "filters verified",
    "groups evaluated",
    "terms evaluated",
    "filters combined",
    "flips applied",
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
        self._groups = Groups()
        self._longest, self._told_apart = 1, 0  # terms of a signature, and for how many filters
        self._held: dict[int, list[int]] = {}  # by group: its tests of order
        self._keys = Growing(np.int64)
        self._homes = Growing(np.int64)  # by slot: group << 16 | bit, or -1
        self._state = np.zeros(STATE, np.int64)
        self._state[FREE:] = -1
        self._prefixes = Prefixes(table, self._keys, self._state)
        self._scratch: list[tuple[Int64s, Int64s]] = []  # one for each thread that matches

    @property
    def bytes(self) -> int:
        """The bytes of its arrays."""
        arrays = (self._buckets.table, self._masks.rows, self._arena.rows, self._prefixes.bits)
        growing = (self._keys.rows, self._homes.rows)
        return sum(array.nbytes for array in (*arrays, *growing)) + self._groups.bytes

    @property
    def figures(self) -> Mapping[str, int]:
        """Where its filters are."""
        every = list(self._groups.every())
        return {
            "filters by signature": int(self._state[SIGNED]),
            "groups": len(every),
            "filters in groups": sum(int(self._groups.groups[group, ALIVE]) for group in every),
        }

    # --- filters come and go --------------------------------------------------------------------

    def insert(self, slots: Int64s) -> None:
        """Put filters into their buckets."""
        filters, keys = self._filters, self._keys
        if filters.filters.size > keys.size:
            more = filters.filters.size - keys.size
            keys.reserve(more)
            first = self._homes.reserve(more)
            self._homes.rows[first : first + more] = -1
        signed = max(int(self._state[SIGNED]), len(slots) // (8 if self.by_access else 1))
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
                self._state,
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
        if len(slots) < GROUP_MIN:
            self._prefixes.follow(slots)
        else:
            self._prefixes.settle()
            self._buckets.pack()
        self._gather(len(slots))

    def delete(self, slot: int) -> None:
        """Take a filter out."""
        home = int(self._homes.rows[slot])
        if home < 0:
            buckets, keys = self._buckets, self._keys.rows
            index_remove(
                buckets.table, buckets.parts, self._masks.rows, self._arena.rows, keys, slot
            )
            return
        self._homes.rows[slot] = -1
        if self._groups.bury(home >> 16, home & 0xFFFF):
            self.insert(self._dissolve(home >> 16) >> 32)

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

    def _gather(self, inserted: int) -> None:
        """Make groups of what has gathered in buckets, after so many filters have come."""
        least = max(2, int(GROUP_MIN * self._share))
        if inserted >= GROUP_MIN:
            counts = self._buckets.table[:, SPAN] & SPAN_COUNT
            for place in np.flatnonzero(counts >= least).tolist():
                self._promote(place, least)
        elif self._state[FULL]:
            place = int(self._state[FULL]) - 1
            if int(self._buckets.table[place, SPAN]) & SPAN_COUNT >= GATHERED_MIN:
                self._promote(place, least)

    def _promote(self, place: int, least: int) -> None:
        """Make groups of the filters of a bucket, where so many at least are of one class."""
        rows, table = self._filters.rows.rows, self._buckets.table
        members, begins = candidates_of(table, self._masks.rows, self._arena.rows, rows, place)
        key = int(table[place, HASH])
        made = False
        for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            if end - begin >= least:
                made |= self._make(key, members[begin:end])
        if made:
            keep_entries(table, self._masks.rows, self._arena.rows, place, self._homes.rows)
            table[place, SPAN] |= HAS_GROUPS

    def _make(self, key: int, members: Int64s) -> bool:
        """Make groups of filters, and of those of smaller groups of their class; whether it could.

        That the smaller ones are built anew makes a group's number of filters double each time.
        """
        table, groups, most = self._filters, self._groups, max(2, int(GROUP_MAX * self._share))
        first = table.rows_of(int(members[0]) >> 32)
        by_type = type_hash(first) == key
        mask = None if by_type else _mask_of(first)
        for group in groups.chain(key):
            alive, own = int(groups.groups[group, ALIVE]), int(groups.groups[group, MASK])
            together = alive + len(members)
            if (mask is None or own == mask) and alive <= len(members) and together <= most:
                members = np.concatenate((members, self._dissolve(group)))
        members = members[np.argsort(members & 0xFFFFFFFF, kind="stable")]
        made = False
        for start in range(0, len(members), most):
            part = members[start : start + most]
            scratch = self._take_scratch()
            block, own_mask, terms, runs = build_group(
                part,
                table.filters.rows,
                table.rows.rows,
                table.vocabulary.sorts,
                table.vocabulary.ranked(),
                scratch[0],
            )
            self._scratch.append(scratch)
            if terms:
                group = groups.add(key, len(part), block, own_mask, terms, runs)
                self._homes.rows[part >> 32] = group << 16 | np.arange(len(part))
                self._hold(group, part)
                made = True
        return made

    def _dissolve(self, group: int) -> Int64s:
        """Forget a group; its filters are nowhere then, as ``Groups.members`` gives them."""
        members = self._groups.members(group)
        self._homes.rows[members >> 32] = -1
        self._filters.vocabulary.release_tests(self._held.pop(group, ()))
        key = self._groups.groups[group, GROUP_KEY]
        if not self._groups.take(group):
            buckets = self._buckets
            place = place_of(buckets.table, buckets.parts, key)
            buckets.table[place, SPAN] &= ~HAS_GROUPS
        return members

    def _hold(self, group: int, members: Int64s) -> None:
        """Keep the tests of order that a block has: it is searched by their ranks, though those
        who asked for them may be gone.
        """
        tests = self._filters.ranked_tests(members >> 32)
        if tests:
            self._filters.vocabulary.hold_tests(tests)
            self._held[group] = tests

    def close(self) -> None:
        """The index is used no more."""
        for tests in self._held.values():
            self._filters.vocabulary.release_tests(tests)
        self._held.clear()

    # --- matching -------------------------------------------------------------------------------

    def run(
        self, events: EncodedEvents, begin: int, found: Found, counts: Int64s
    ) -> tuple[int, int]:
        """As ``TableMatcher._run``; ``counts`` int64[COUNTS] is added to, as COUNT_NAMES says."""
        filters, groups = self._filters, self._groups
        scratch = self._take_scratch()
        reached: tuple[int, int] = index_match(
            events.offsets,
            events.cells,
            begin,
            events.texts,
            self._buckets.table,
            self._buckets.parts,
            self._masks.rows,
            self._arena.rows,
            self._prefixes.bits,
            self._state,
            filters.rows.rows,
            filters.vocabulary.sorts,
            *scratch,
            groups.blocks,
            groups.groups,
            groups.heads,
            *found,
            filters.live_interfaces,
            counts,
        )
        self._scratch.append(scratch)
        return reached

    def _take_scratch(self) -> tuple[Int64s, Int64s]:
        """An array of -1 by term, and one of WORK."""
        terms = len(self._filters.vocabulary.ranks)
        try:
            at, work = self._scratch.pop()
        except IndexError:
            at, work = np.full(terms, -1, np.int64), np.empty(WORK, np.int64)
        return (at if len(at) >= terms else np.full(terms, -1, np.int64)), work


def _mask_of(rows: Int64s) -> int:
    """The terms of rows folded to 64 bits, as a signed number."""
    bits = np.int64(1) << (rows[:, 0] & 63)
    return int(np.bitwise_or.reduce(bits))


class IndexedMatcher(TableMatcher):
    """``signature``, or with ``by_access`` ``index``."""

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

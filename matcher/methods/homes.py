"""Filters in groups: owner of which of an index's filters is where in them, and why."""

from __future__ import annotations

from itertools import chain

import numpy as np

from matcher.filters.table import FilterTable
from matcher.kernels.building import build_group
from matcher.kernels.grouping import arranged, type_hash
from matcher.kernels.layout import ALIVE, GROUP_BITS_MAX, GROUP_MAX, LAYER_FILLED, MASK, TERM_MASK
from matcher.methods.grouped import Groups
from matcher.model import AnyArray, Int64s
from matcher.sorting import stable_order
from runtime.growing import Growing

WIDE_MAX = GROUP_BITS_MAX // LAYER_FILLED
"""Filters of a group, where they come at once for many interfaces."""
MANY_EACH = 32
"""So many filters an interface are dealt out."""


class Homes:
    """Members of groups are given as ``slot << 32 | place of the interface``.

    ``share``: of what all filters are these are a sample (:class:`matcher.methods.indexed.Index`).

    A filter has a home in one group, or none. Where an interface has many filters of one class,
    they are dealt out among several groups: the first of these then selects nearly all interfaces,
    and the others are not looked at. Else they stay together, up to WIDE_MAX, so that there is
    little to look up.
    """

    def __init__(self, table: FilterTable, share: float) -> None:
        self.groups = Groups()
        self._table = table
        self._share = share
        self._held: dict[int, list[int]] = {}  # by group: its tests of order
        self._homes = Growing(np.int64)  # by slot: group << 16 | bit, or -1
        self._scratch: Int64s = np.empty(0, np.int64)

    @property
    def rows(self) -> AnyArray:
        """By slot: where the filter is, or -1."""
        return self._homes.rows

    @property
    def bytes(self) -> int:
        """The bytes of its arrays."""
        return self._homes.rows.nbytes + self.groups.bytes

    def make_room(self, slots: int) -> None:
        """Have room for so many slots, new ones having no home."""
        first, more = self._homes.size, slots - self._homes.size
        if more > 0:
            self._homes.reserve(more)
            self._homes.rows[first:slots] = -1

    def make(self, key: int, members: Int64s) -> None:
        """Make groups of filters under a key, and of those of smaller groups of their class.

        That the smaller ones are built anew makes a group's number of filters double each time.
        """
        rows, groups = self._table.rows_of(int(members[0]) >> 32), self.groups
        mask = None if type_hash(rows) == key else _mask_of(rows)
        for group in groups.chain(key):
            alive, own = int(groups.groups[group, ALIVE]), int(groups.groups[group, MASK])
            together = alive + len(members)
            if (mask is None or own == mask) and alive <= len(members) and together <= self._most:
                members = np.concatenate((members, self.dissolve(group)))
        members = members[stable_order(members & TERM_MASK)]
        for part in self._parts(members):
            self._build(key, part)

    def leave(self, slot: int) -> int | None:
        """Take a filter from its home; the group, if so few are left that it should be dissolved.

        KeyError where it has none.
        """
        home = int(self._homes.rows[slot])
        if home < 0:
            raise KeyError(slot)
        self._homes.rows[slot] = -1
        return home >> 16 if self.groups.bury(home >> 16, home & 0xFFFF) else None

    def dissolve(self, group: int) -> Int64s:
        """Forget a group; its members, which are nowhere then."""
        members = self.groups.members(group)
        self._homes.rows[members >> 32] = -1
        self._table.vocabulary.release_tests(self._held.pop(group, ()))
        self.groups.take(group)
        return members

    def close(self) -> None:
        """The groups are used no more."""
        self._table.vocabulary.release_tests(chain.from_iterable(self._held.values()))
        self._held.clear()

    @property
    def _most(self) -> int:
        return max(2, int(GROUP_MAX * self._share))

    def _parts(self, members: Int64s) -> list[Int64s]:
        """Members, in the order of interfaces, as they are to stand in groups."""
        if len(members) <= self._most:
            return [members]
        interfaces = 1 + np.count_nonzero(np.diff(members & TERM_MASK))
        if len(members) > MANY_EACH * self._share * interfaces:
            hands = -(-len(members) // self._most)
            return [members[hand::hands] for hand in range(hands)]
        wide = max(2, int(WIDE_MAX * self._share))
        return [members[at : at + wide] for at in range(0, len(members), wide)]

    def _build(self, key: int, members: Int64s) -> None:
        """Make one group, or, where it would have too much in it, two of half the filters."""
        table = self._table
        bits, layers, width, base = arranged(members)
        if len(self._scratch) < len(table.vocabulary.ranks):
            self._scratch = np.full(len(table.vocabulary.ranks), -1, np.int64)
        block, mask, terms, *others = build_group(
            bits,
            64 * layers * width,
            table.filters.rows,
            table.identifiers.rows,
            table.rows.rows,
            table.vocabulary.sorts,
            table.vocabulary.ranked(),
            self._scratch,
        )
        if not terms:
            half = len(members) // 2
            self._build(key, members[:half])
            self._build(key, members[half:])
            return
        about = (len(bits), len(members), mask, terms, *others, layers, width, base)
        group = self.groups.add(key, block, about)
        there = np.flatnonzero(bits >= 0)
        self._homes.rows[bits[there] >> 32] = group << 16 | there
        self._hold(group, members)

    def _hold(self, group: int, members: Int64s) -> None:
        """Keep the tests of order that a block has: it is searched by their ranks, though those
        who asked for them may be gone.
        """
        tests = self._table.ranked_tests(members >> 32)
        if tests:
            self._table.vocabulary.hold_tests(tests)
            self._held[group] = tests


def _mask_of(rows: Int64s) -> int:
    """The terms of rows folded to 64 bits, as a signed number."""
    bits = np.int64(1) << (rows[:, 0] & 63)
    return int(np.bitwise_or.reduce(bits))

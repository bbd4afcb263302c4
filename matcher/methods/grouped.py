"""The groups of an index: owner of their blocks and of the chains that events find them by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from matcher.kernels.groups import bury
from matcher.kernels.index import head_of, move_heads
from matcher.kernels.layout import (
    ALIVE,
    BLOCK,
    GROUP_COLUMNS,
    GROUP_KEY,
    GROUP_MAX,
    LAYER_FILLED,
    NEXT,
    ROOM_OF,
    SIZE,
    TOLD_IN,
)
from matcher.model import Int64s
from runtime.growing import Growing

HEADS_MIN = 16
BLOCKS_MIN = 64
ROOM_BITS = 4
"""Room for a block has a size of so many leading bits, so that it can be used again by others."""


class Groups:
    """``groups`` int64[numbers, GROUP_COLUMNS] (layout.GROUP_KEY and following), ``blocks``
    int64[words] and ``heads`` int64[places, 2]: for each key the first group of its chain, plus
    one.

    A group is built once and is never added to; what leaves it is buried in it.
    """

    def __init__(self) -> None:
        self._blocks = Growing(np.int64, room=BLOCKS_MIN)
        self.heads: Int64s = np.zeros((HEADS_MIN, 2), np.int64)
        self._groups = Growing(np.int64, GROUP_COLUMNS)
        self._free = -1
        self._keys = 0
        self._rooms: dict[int, list[int]] = {}  # of groups that are no more, by size

    @property
    def blocks(self) -> Int64s:
        """The blocks, one after the other."""
        return self._blocks.rows

    @property
    def groups(self) -> Int64s:
        """The groups by number."""
        return self._groups.rows

    @property
    def bytes(self) -> int:
        """The bytes of the arrays."""
        return self.blocks.nbytes + self.heads.nbytes + self._groups.rows.nbytes

    def expect(self) -> None:
        """Groups come at once until ``settle``."""
        self._blocks.expect()

    def settle(self) -> None:
        """Groups come one by one from now on."""
        self._blocks.settle(self._blocks.size)

    def chain(self, key: int) -> Iterator[int]:
        """The groups of a key; what is taken meanwhile is the one given last at most."""
        group = int(self.heads[head_of(self.heads, key), 1]) - 1
        while group >= 0:
            following = int(self.groups[group, NEXT])
            yield group
            group = following

    def every(self) -> Iterator[int]:
        """All groups."""
        for key, head in self.heads.tolist():
            if head:
                yield from self.chain(key)

    def add(self, key: int, block: Int64s, about: tuple[int, ...]) -> int:
        """A new group under a key; its number. ``about``: the columns SIZE, ALIVE and MASK and
        those that follow it.
        """
        if self._free >= 0:
            group = self._free
            self._free = int(self.groups[group, NEXT])
        else:
            group = self._groups.reserve(1)
        start, room = self._take_room(len(block))
        self.blocks[start : start + len(block)] = block
        place = self._head(key)
        following = int(self.heads[place, 1]) - 1
        size, alive, *others = about
        self.groups[group] = (key, following, size, alive, start, room, *others)
        self.heads[place] = key, group + 1
        return group

    def take(self, group: int) -> bool:
        """Forget a group; whether its key has others."""
        key = int(self.groups[group, GROUP_KEY])
        place = head_of(self.heads, key)
        following, before = int(self.groups[group, NEXT]), int(self.heads[place, 1]) - 1
        if before == group:
            self.heads[place, 1] = following + 1
        else:
            while self.groups[before, NEXT] != group:
                before = int(self.groups[before, NEXT])
            self.groups[before, NEXT] = following
        start, room = int(self.groups[group, BLOCK]), int(self.groups[group, ROOM_OF])
        self._rooms.setdefault(room, []).append(start)
        self.groups[group, NEXT], self.groups[group, ALIVE] = self._free, 0
        self._free = group
        return bool(self.heads[place, 1])

    def members(self, group: int) -> Int64s:
        """``slot << 32 | place of the interface`` of each filter that is still there."""
        start, size = int(self.groups[group, BLOCK]), int(self.groups[group, SIZE])
        words = (size + 63) // 64
        alive = self.blocks[start : start + words].view(np.uint8)
        kept = np.unpackbits(alive, bitorder="little")[:size].astype(bool)
        half, wide = (size + 1) // 2, self.blocks.view(np.uint32)
        places = 2 * (start + words + int(self.groups[group, TOLD_IN]))
        slots = places + 2 * half
        members = wide[slots : slots + size].astype(np.int64) << 32 | wide[places : places + size]
        found: Int64s = members[kept]
        return found

    def bury(self, group: int, bit: int) -> bool:
        """Take a filter out; whether so few are left that the group should be built anew."""
        left, size = int(bury(self.blocks, self.groups, group, bit)), self.groups[group, SIZE]
        return left <= GROUP_MAX and 2 * LAYER_FILLED * left < int(size)

    def _take_room(self, words: int) -> tuple[int, int]:
        """Where in the blocks there is room for so many words, and how much."""
        unit = 1 << max(0, words.bit_length() - ROOM_BITS)
        room = -(-words // unit) * unit
        free = self._rooms.get(room)
        return (free.pop() if free else self._blocks.reserve(room)), room

    def _head(self, key: int) -> int:
        """Where a key's head is; it is there after."""
        place = int(head_of(self.heads, key))
        if self.heads[place, 0] == 0 and self.heads[place, 1] == 0:
            if 2 * (self._keys + 1) > len(self.heads):
                live = int(np.count_nonzero(self.heads[:, 1]))
                larger = np.zeros((max(HEADS_MIN, 1 << (4 * live).bit_length()), 2), np.int64)
                self._keys = move_heads(self.heads, larger)
                self.heads = larger
                place = int(head_of(self.heads, key))
            self._keys += 1
        return place

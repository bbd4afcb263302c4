"""Tables of numbers that came, in blocks (kernels.seen): the host's side.

A table is at most half full, and memory follows what is in use: forgetting gives back. 64 numbers
of a source that follow one another take 32 bytes, and at most eight times that in the table; eight
explicit ones 40 bytes, likewise, and 128 for what their events hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matcher.model import AnyArray
from rules.engine.kernels.layout import BLOCK, HELD, KNOWN
from rules.engine.kernels.seen import move
from runtime.memory import first_length, zeros

BLOCKS_MIN = 64
"""The least length of a table."""
HELD_NUMBERS = 8
"""Explicit numbers of a block."""


def used(table: AnyArray) -> AnyArray:
    """The blocks of a table that are in use, in no order."""
    blocks = table[:-1]
    found: AnyArray = blocks[blocks["bits"] != 0]
    return found


def filled(blocks: AnyArray) -> AnyArray:
    """A table that has room, with just these blocks in it."""
    length = max(2, first_length(BLOCKS_MIN), 1 << max(0, 4 * len(blocks) - 1).bit_length())
    table = zeros((length + 1,), blocks.dtype)
    if len(blocks):  # a kernel, which an engine that is made needs not have compiled yet
        move(blocks, table)
    return table


def is_full(table: AnyArray) -> bool:
    """Whether the table must grow before another block is entered (kernels.seen)."""
    return 2 * (int(table[-1]["source"]) + 1) > len(table) - 1


def empty(dtype: np.dtype[Any] = BLOCK) -> AnyArray:
    """A table without a block."""
    return filled(np.empty(0, dtype))


@dataclass(frozen=True, slots=True)
class Explicit:
    """Blocks of explicit numbers, ``held``, and beside them what is known of their events, eight
    records for each: it has room where ``held`` has.
    """

    held: AnyArray
    known: AnyArray

    @classmethod
    def of(cls, blocks: AnyArray, known: AnyArray) -> Explicit:
        """Just these blocks, with room for more; ``known`` is what those before them had."""
        places = blocks["place"][:, None] + np.arange(HELD_NUMBERS)
        blocks["place"] = np.arange(0, HELD_NUMBERS * len(blocks), HELD_NUMBERS)
        held = filled(blocks)
        room = zeros((HELD_NUMBERS * (len(held) // 2),), KNOWN)
        room[: places.size] = known[places.ravel()]
        return cls(held, room)

    @classmethod
    def none(cls) -> Explicit:
        """No number."""
        return cls.of(np.empty(0, HELD), np.empty(0, KNOWN))

    def __len__(self) -> int:
        """How many blocks there are."""
        return int(self.held[-1]["source"])

    def since(self, time: int) -> Explicit:
        """The blocks that have an event from ``time`` on, with room for more."""
        blocks = used(self.held)
        return Explicit.of(blocks[blocks["newest"] >= time], self.known)

"""The Bloom filter over the prefixes of all signatures of an index (matcher.kernels.signatures)."""

from __future__ import annotations

import numpy as np

from matcher.filters.table import FilterTable
from matcher.kernels.layout import BLOOM_BITS, LEARNT
from matcher.kernels.signatures import learn_some
from matcher.model import Int64s
from runtime.growing import Growing

LARGER = 4
"""How many times as large the next filter is."""
STEP = 8
"""Slots that are learnt with each filter that comes: 4 would just do from three quarters on."""


class Prefixes:
    """``bits`` int64[words], a power of two; ``state[LEARNT]`` counts the prefixes in it.

    ``keys``: the key of each slot in the index, 0 where it was never there.

    The filter never denies a prefix that a filter has. When it is half full, a younger and larger
    one is taught the filters that there are, a few with each that comes, and takes its place before
    it is full; so no filter that comes alone waits for all others to be learnt anew.
    """

    def __init__(self, table: FilterTable, keys: Growing, state: Int64s) -> None:
        self.bits: Int64s = np.zeros(1, np.int64)
        self._table = table
        self._keys = keys
        self._state = state
        self._younger: Int64s | None = None
        self._learnt = 0  # prefixes in the younger one
        self._slots = 0  # that it has been taught

    @property
    def is_full(self) -> bool:
        """Whether it takes no more filters until it has grown."""
        return int(self._state[LEARNT]) * BLOOM_BITS >= 64 * len(self.bits)

    def grow(self) -> None:
        """Begin a larger one and teach it everything at once."""
        self._begin()
        self._go_on(self._table.filters.size)

    def settle(self) -> None:
        """Many filters have come at once: grow unless there is time to do it in steps."""
        if 4 * int(self._state[LEARNT]) * BLOOM_BITS >= 3 * 64 * len(self.bits):
            self.grow()

    def follow(self, slots: Int64s) -> None:
        """A few filters have come, and are in ``bits``: go on with the younger one, if need be."""
        if self._younger is None:
            if 2 * self._state.item(LEARNT) * BLOOM_BITS < 64 * len(self.bits):
                return
            self._begin()
        for slot in slots.tolist():
            if slot < self._slots:
                self._teach(slot, slot + 1)
        self._go_on(self._slots + STEP * len(slots))

    def _begin(self) -> None:
        self._younger = np.zeros(LARGER * len(self.bits), np.int64)
        self._learnt = self._slots = 0

    def _go_on(self, end: int) -> None:
        size = self._table.filters.size
        self._teach(self._slots, min(end, size))
        self._slots = end
        if end >= size:
            assert self._younger is not None
            self.bits, self._younger = self._younger, None
            self._state[LEARNT] = self._learnt

    def _teach(self, begin: int, end: int) -> None:
        table = self._table
        self._learnt += int(
            learn_some(
                self._younger,
                self._keys.rows,
                table.filters.rows,
                table.rows.rows,
                table.vocabulary.ranks,
                begin,
                end,
            )
        )

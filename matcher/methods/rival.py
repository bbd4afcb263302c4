"""An index of the other kind, made beside the one in use, a few filters at a time."""

from __future__ import annotations

import numpy as np

from matcher.filters.table import COUNT, FilterTable
from matcher.methods.indexed import Index

STEP, STEP_SMALL = 256, 16
"""Slots that a call of ``match`` adds, at 4 us each; fewer where it has few events."""
SMALL = 64


class Rival:
    """``index`` is whole when ``is_whole``. The index has the filters in the slots before ``done``,
    however they come and go meanwhile; each call of ``match`` adds a few, so nobody waits for it.
    """

    def __init__(self, table: FilterTable, *, by_access: bool) -> None:
        self.index = Index(table, by_access=by_access)
        self._table = table
        self.done = 0

    @property
    def is_whole(self) -> bool:
        """Whether it has all filters."""
        return self.done >= self._table.filters.size

    def go_on(self, events: int) -> None:
        """Take in some more filters, in a call for so many events."""
        filters = self._table.filters
        step = STEP if events >= SMALL else STEP_SMALL
        end = min(self.done + step, filters.size)
        there = np.flatnonzero(filters.rows[self.done : end, COUNT] >= 0) + self.done
        for place in range(len(there)):  # one by one, so that groups are made as they fill
            self.index.insert(there[place : place + 1])
        self.done = end

    def insert(self, slot: int) -> None:
        """A filter has come; one in a slot that is not done yet waits there."""
        if slot < self.done:
            self.index.insert(np.array([slot], np.int64))

    def delete(self, slot: int) -> None:
        """A filter goes."""
        if slot < self.done:
            self.index.delete(slot)

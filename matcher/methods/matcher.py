"""The interface of every content-based matcher, and the form of its answers (thesis 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from msgspec import Struct

from matcher.filters.constraint import Filter
from matcher.filters.mixed import Events, FilterBatch
from matcher.model import Int64s, UInt64s


class Matches(Struct, frozen=True, eq=False):
    """The interfaces that want each of n events.

    ``bits`` uint64[n, words]: bit s of row i says that place s of ``interfaces`` int64[s] wants
    event i; ``interfaces`` may hold -1 at places that no interface has now. ``filters``, if they
    were asked for: ``offsets`` int64[n + 1] into ``filters`` int64[m], in no order within an event.
    """

    bits: UInt64s
    interfaces: Int64s
    offsets: Int64s | None = None
    filters: Int64s | None = None

    def __len__(self) -> int:
        return len(self.bits)

    def interface_lists(self) -> list[list[int]]:
        """The interfaces of each event, ascending: for the borders."""
        lists: list[list[int]] = [[] for _ in range(len(self))]
        events, words = np.nonzero(self.bits)
        for event, word in zip(events.tolist(), words.tolist(), strict=True):
            lists[event].extend(self._of_word(event, word))
        for one in lists:
            one.sort()
        return lists

    def filter_lists(self) -> list[list[int]]:
        """The filters of each event, ascending; ValueError when they were not asked for."""
        if self.offsets is None or self.filters is None:
            raise ValueError("the filters were not asked for")
        bounds, filters = self.offsets.tolist(), self.filters.tolist()
        return [sorted(filters[bounds[row] : bounds[row + 1]]) for row in range(len(self))]

    def _of_word(self, event: int, word: int) -> list[int]:
        bits = int(self.bits[event, word])
        places = [word * 64 + bit for bit in range(64) if bits >> bit & 1]
        return [int(self.interfaces[place]) for place in places]


class Matcher(Protocol):
    """Filters, and which of them, of which interfaces, match events.

    A matcher owns its filters: they come and go one at a time or in batches, at run time. What was
    added before a call of :meth:`match` counts in it, and what was removed does not. All matchers
    give the same answers; ``naive`` is their definition, and a randomised suite holds the others to
    it.
    """

    def add(self, identifier: int, interface: int, filter_: Filter) -> None:
        """Add one filter; ValueError for an identifier that is taken."""
        ...

    def add_all(self, filters: FilterBatch) -> None:
        """Add many; ValueError, and nothing is added, for an identifier that is taken."""
        ...

    def remove(self, identifier: int) -> None:
        """Remove one filter; KeyError when there is none of this identifier."""
        ...

    def match(self, events: Events, *, filters: bool = False) -> Matches:
        """Find the interfaces that want the events; with ``filters``, also because of which
        filters.
        """
        ...

    def __len__(self) -> int:
        """How many filters there are."""
        ...

    @property
    def figures(self) -> Mapping[str, int | str]:
        """Figures about its filters, for ``--stats``: sizes, bytes, methods."""
        ...

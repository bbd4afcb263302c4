"""What matchers on a :class:`~matcher.table.FilterTable` have in common: all but the matching.

A matcher of this kind says how slots enter and leave its own structure, and how encoded events
are run through it. Matching may go on in several threads at once; changing filters may not go on
beside anything else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from matcher.constraint import Filter
from matcher.matcher import Events, Matches
from matcher.mixed import FilterBatch
from matcher.model import Int64s
from matcher.table import FilterTable
from matcher.vocabulary import EncodedEvents

FOUND_ROOM = 4_096
"""Rows of (event, filter) that a call has room for at first."""


class TableMatcher(ABC):
    """Filters in a table; the structure over them is the subclass's."""

    def __init__(self) -> None:
        self.table = FilterTable()

    def __len__(self) -> int:
        return len(self.table)

    def add(self, identifier: int, interface: int, filter_: Filter) -> None:
        """Add one filter; ValueError for an identifier that is taken."""
        slot = self.table.add(identifier, interface, filter_)
        self._insert(np.array([slot], np.int64))

    def add_all(self, filters: FilterBatch) -> None:
        """Add many; ValueError, and nothing is added, for an identifier that is taken."""
        self._insert(self.table.add_all(filters))

    def remove(self, identifier: int) -> None:
        """Remove one filter; KeyError when there is none of this identifier."""
        self._delete(self.table.slot(identifier))
        self.table.remove(identifier)

    def encode(self, events: Events) -> EncodedEvents:
        """Events in the form that matching needs, for a matcher whose filters stay as they are."""
        return self.table.vocabulary.encode(events)

    def match(self, events: Events | EncodedEvents, *, filters: bool = False) -> Matches:
        """Who wants the events; with ``filters``, also because of which filters.

        Raises ValueError for encoded events that a change of filters has made stale.
        """
        encoded = events if isinstance(events, EncodedEvents) else self.encode(events)
        if encoded.generation != self.table.vocabulary.generation:
            raise ValueError("the filters use other words than when these events were encoded")
        words = self.table.interfaces.size // 64 + 1
        bits = np.zeros((len(encoded), words), np.int64)
        found = np.empty((FOUND_ROOM if filters else 0, 2), np.int64)
        parts = []
        event = 0
        while event < len(encoded):
            done, size = self._run(encoded, event, bits, found, filters)
            parts.append(found[:size].copy())
            if done == event:  # one event has more filters than there is room for
                found = np.empty((2 * len(found), 2), np.int64)
            event = done
        matches = Matches(bits.view(np.uint64), self.table.interfaces.rows)
        return self._with_filters(matches, parts) if filters else matches

    @property
    def figures(self) -> Mapping[str, int | str]:
        """Sizes of what there is, and the bytes of the arrays."""
        table = self.table
        arrays = (table.rows, table.filters, table.identifiers, table.interfaces)
        return {
            "filters": len(table),
            "interfaces": table.live_interfaces,
            "constraints": table.rows.size,
            "terms": len(table.vocabulary.terms),
            "tests of texts": len(table.vocabulary.tests),
            "bytes": sum(array.rows.nbytes for array in arrays) + self._bytes(),
        }

    def _with_filters(self, matches: Matches, parts: list[Int64s]) -> Matches:
        rows = np.concatenate(parts) if parts else np.empty((0, 2), np.int64)
        identifiers = self.table.identifiers.rows[rows[:, 1]]
        order = np.lexsort((identifiers, rows[:, 0]))
        counts = np.bincount(rows[:, 0], minlength=len(matches))
        offsets = np.zeros(len(matches) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        return Matches(matches.bits, matches.interfaces, offsets, identifiers[order])

    @abstractmethod
    def _insert(self, slots: Int64s) -> None:
        """Take new filters into the structure."""

    @abstractmethod
    def _delete(self, slot: int) -> None:
        """Take a filter out of it; the table still has it."""

    @abstractmethod
    def _run(
        self, events: EncodedEvents, begin: int, bits: Int64s, found: Int64s, wanted: bool
    ) -> tuple[int, int]:
        """Match from event ``begin`` on, setting ``bits``; with ``wanted``, fill ``found``.

        The event at which ``found`` had no more room, and how many rows of it are filled.
        """

    @abstractmethod
    def _bytes(self) -> int:
        """The bytes of the structure's arrays."""

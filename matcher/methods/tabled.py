"""The base of matchers on a :class:`~matcher.filters.table.FilterTable`: all but the matching.

A matcher of this kind says how slots enter and leave its own structure, and how encoded events
are run through it. Matching may go on in several threads at once; changing filters may not go on
beside anything else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from matcher.filters.constraint import Filter
from matcher.filters.encoded import EncodedEvents
from matcher.filters.mixed import Events, FilterBatch
from matcher.filters.table import FilterTable
from matcher.kernels.results import in_order, look_up
from matcher.methods.matcher import Matches
from matcher.model import Int64s

FOUND_ROOM = 4_096
"""Filters that a call has room for at first; later calls begin with what the last one found."""
FOUND_ROOM_MAX = 2**20
_NONE = np.empty(0, np.int64)


class Found(NamedTuple):
    """Where what is found goes.

    ``bits`` int64[n, words]: the interfaces of each event; with ``wanted``, ``slots`` int64[room]:
    the filters' slots, and ``ends`` int64[n]: up to where they are of each event.
    """

    bits: Int64s
    slots: Int64s
    ends: Int64s
    wanted: bool

    def take(self, begin: int, events: Int64s, slots: Int64s) -> tuple[int, int]:
        """Take in pairs of events from ``begin`` on and filters, while there is room for all of
        an event's; as ``TableMatcher._run`` gives it.
        """
        count = len(self.bits) - begin
        ends = np.cumsum(np.bincount(events - begin, minlength=count))
        fitting = int(np.searchsorted(ends, len(self.slots), side="right"))
        size = int(ends[fitting - 1]) if fitting else 0
        self.slots[:size] = slots[np.argsort(events, kind="stable")[:size]]
        self.ends[begin : begin + fitting] = ends[:fitting]
        return begin + fitting, size


class TableMatcher(ABC):
    """Filters in a table; the structure over them is the subclass's."""

    tells_identifiers = False
    """Whether ``_run`` fills ``Found.slots`` with identifiers of filters, not with their slots."""

    def __init__(self, table: FilterTable | None = None) -> None:
        self.table = FilterTable() if table is None else table
        self._room = FOUND_ROOM
        self._one = np.zeros(1, np.int64)  # slot, that is added alone

    def __len__(self) -> int:
        return len(self.table)

    def add(self, identifier: int, interface: int, filter_: Filter) -> None:
        """Add one filter; ValueError for an identifier that is taken."""
        self._one[0] = self.table.add(identifier, interface, filter_)
        self._insert(self._one)

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
        """Find the interfaces that want the events; with ``filters``, also because of which
        filters.

        Raises ValueError for encoded events that a change of filters has made stale.
        """
        encoded = events if isinstance(events, EncodedEvents) else self.encode(events)
        if encoded.generation != self.table.vocabulary.generation:
            raise ValueError("the filters use other words than when these events were encoded")
        words = self.table.interfaces.size // 64 + 1
        bits = np.zeros((len(encoded), words), np.int64)
        if filters:
            return self._with_filters(encoded, bits)
        self._run(encoded, 0, Found(bits, _NONE, _NONE, False))
        selected = encoded.in_order(bits).view(np.uint64)
        return Matches(selected, self.table.interfaces.rows)

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

    def _with_filters(self, encoded: EncodedEvents, bits: Int64s) -> Matches:
        """Match with the filters told, going on with more room where that is used up."""
        offsets = np.zeros(len(encoded) + 1, np.int64)
        slots = np.empty(self._room, np.int64)
        parts, done = [], 0
        while done < len(encoded):
            first = done
            done, size = self._run(encoded, first, Found(bits, slots, offsets[1:], True))
            offsets[first + 1 : done + 1] += offsets[first]
            parts.append(slots[:size])
            if done < len(encoded):
                # So many again for each event to come, or for one that has more than the room.
                wanted = size // max(done - first, 1) * (len(encoded) - done)
                more = 2 * len(slots) if done == first else FOUND_ROOM
                slots = np.empty(max(wanted, more), np.int64)
        self._room = max(FOUND_ROOM, min(int(offsets[-1]) * 5 // 4, FOUND_ROOM_MAX))
        found = parts[0] if len(parts) == 1 else np.concatenate((_NONE, *parts))
        selected = encoded.in_order(bits).view(np.uint64)
        if not self.tells_identifiers:
            look_up(found, self.table.identifiers.rows)
        if encoded.rows is not None:
            begins, ordered = np.zeros_like(offsets), np.empty_like(found)
            in_order(offsets, found, encoded.rows, begins, ordered)
            offsets, found = begins, ordered
        return Matches(selected, self.table.interfaces.rows, offsets, found)

    @abstractmethod
    def _insert(self, slots: Int64s) -> None:
        """Take new filters into the structure."""

    @abstractmethod
    def _delete(self, slot: int) -> None:
        """Take a filter out of it; the table still has it."""

    @abstractmethod
    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        """Match from event ``begin`` on, and fill what is found.

        The event at which ``found.slots`` had no more room, and how many of them are filled.
        """

    @abstractmethod
    def _bytes(self) -> int:
        """The bytes of the structure's arrays."""

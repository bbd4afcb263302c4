"""The oracle of matching: every filter against every event, as the definition reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matcher.filters.constraint import Filter
from matcher.filters.mixed import Events, FilterBatch, MixedEvents, offsets_of
from matcher.methods.matcher import Matches
from matcher.model import EventBatch


class NaiveMatcher:
    """A dictionary of filters, walked for each event."""

    def __init__(self) -> None:
        self._filters: dict[int, tuple[int, Filter]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def add(self, identifier: int, interface: int, filter_: Filter) -> None:
        """Add one filter; ValueError for an identifier that is taken."""
        if identifier in self._filters:
            raise ValueError(f"there is a filter {identifier} already")
        self._filters[identifier] = (interface, filter_)

    def add_all(self, filters: FilterBatch) -> None:
        """Add many; ValueError, and nothing is added, for an identifier that is taken."""
        added = dict(self._filters)
        for place, (identifier, interface) in enumerate(
            zip(filters.identifiers.tolist(), filters.interfaces.tolist(), strict=True)
        ):
            if identifier in added:
                raise ValueError(f"there is a filter {identifier} already")
            added[identifier] = (interface, filters.filter(place))
        self._filters = added

    def remove(self, identifier: int) -> None:
        """Remove one filter; KeyError when there is none of this identifier."""
        del self._filters[identifier]

    def match(self, events: Events, *, filters: bool = False) -> Matches:
        """Find the interfaces that want the events; with ``filters``, also because of which
        filters.
        """
        mixed = MixedEvents.of_batch(events) if isinstance(events, EventBatch) else events
        found = [self._found(mixed, place) for place in range(len(mixed))]
        interfaces = sorted({interface for interface, _ in self._filters.values()})
        places = {interface: place for place, interface in enumerate(interfaces)}
        bits = np.zeros((len(mixed), len(interfaces) // 64 + 1), np.uint64)
        for event, identifiers in enumerate(found):
            for identifier in identifiers:
                place = places[self._filters[identifier][0]]
                bits[event, place >> 6] |= np.uint64(1 << (place & 63))
        matches = Matches(bits, np.array(interfaces, np.int64))
        if not filters:
            return matches
        flat = np.array([identifier for row in found for identifier in row], np.int64)
        return Matches(bits, matches.interfaces, offsets_of(list(map(len, found))), flat)

    @property
    def figures(self) -> Mapping[str, int | str]:
        """The number of filters."""
        return {"filters": len(self)}

    def _found(self, events: MixedEvents, place: int) -> list[int]:
        data, event_type = events.data(place), events.type_of(place)
        return sorted(
            identifier
            for identifier, (_, filter_) in self._filters.items()
            if filter_.matches(data, event_type)
        )

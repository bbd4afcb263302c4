"""Many filters of one type, matched together: each finds what it finds alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from matcher.filters.constraint import Filter, Operator
from matcher.filters.numbering import Numbering
from matcher.matching import ON_PROCESSOR, Matching
from matcher.model import Bools, EventBatch, Int64s, Value
from matcher.single import Single
from rules.planning.sketch import sketch_of
from rules.subscription import Subscription

IN_TURN_MAX = 48
"""So many filters are asked about one event in turn, at some 1.5 us each. A matcher takes 100 us
for one event, and several times that when others have used the caches since the last one."""
_NONE = np.empty(0, np.int64)
_Key = TypeVar("_Key", bound=Hashable)
"""The name of a filter."""
Asked: TypeAlias = tuple[int, Value]
"""The place of an attribute, and the value that a filter asks it to have."""


class FilterIndex(Generic[_Key]):
    """Filters of one type by name, matched as ``matching`` says.

    Filters that constraints can say stand in one matcher, which looks at few of them for each event
    of a batch; the others are evaluated one by one. A single event is looked up by its values:
    ``Temp(room = "kitchen" and value > 20)`` is asked about events of the kitchen alone. If more
    than IN_TURN_MAX filters may take it, they are matched as those of a batch.
    """

    def __init__(self, matching: Matching = ON_PROCESSOR) -> None:
        self._matching = matching
        self._matcher = matching.make()
        self.names: Numbering[_Key] = Numbering()
        """The places of the filters, by name."""
        self._alone: dict[int, Subscription] = {}
        self._asked: dict[int, Asked | None] = {}
        self._by_value: dict[int, dict[Value, dict[int, Subscription]]] = {}
        """Filters by the place of an attribute and the value that they ask it to have."""
        self._others: dict[int, Subscription] = {}
        """Filters that ask for no value."""

    def add(self, name: _Key, filter_: Subscription) -> int:
        """Add a filter of which there is none of this name; its place."""
        place, new = self.names.use(name)
        assert new, f"{name} is there already"
        sketch = sketch_of(filter_.conditions, filter_.type)
        if sketch.is_whole:
            self._matcher.add(place, 0, Filter(sketch.filter.constraints))
        else:
            self._alone[place] = filter_
        self._asked[place] = asked = _asked_of(filter_, sketch.filter)
        if asked is None:
            self._others[place] = filter_
        else:
            values = self._by_value.setdefault(asked[0], {})
            values.setdefault(asked[1], {})[place] = filter_
        return place

    def remove(self, name: _Key) -> int:
        """Take a filter out; the place that it had. KeyError if it is not there."""
        place = self.names.number(name)
        if place is None:
            raise KeyError(name)
        if self._alone.pop(place, None) is None:
            self._matcher.remove(place)
        asked = self._asked.pop(place)
        if asked is None:
            del self._others[place]
        else:
            values = self._by_value[asked[0]]
            del values[asked[1]][place]
            if not values[asked[1]]:
                del values[asked[1]]
        self.names.release(place)
        return place

    @property
    def facts(self) -> dict[str, Any]:
        """How those that constraints can say are matched at present."""
        return self._matching.facts(self._matcher)

    def single(self, event: Single) -> list[int]:
        """The places of the filters that take an event, ascending."""
        candidates = self._candidates(event.row.values)
        if candidates is not None:
            return sorted([place for place, one in candidates if one.takes(event)])
        places = [place for place, one in self._alone.items() if one.takes(event)]
        matched = self._matcher.match(event, filters=True).filters
        assert matched is not None
        return sorted([*places, *matched.tolist()])

    def takes(self, event: Single) -> bool:
        """Whether any filter takes an event."""
        candidates = self._candidates(event.row.values)
        if candidates is None:
            return bool(self.mask(event)[0])
        for _, one in candidates:  # noqa: SIM110 (a generator has a step for each)
            if one.takes(event):
                return True
        return False

    def mask(self, batch: EventBatch) -> Bools:
        """bool[n]: which events of a batch any filter takes."""
        wanted: Bools = np.zeros(len(batch), np.bool_)
        if len(self._matcher):
            wanted |= self._matcher.match(batch).bits.any(axis=1)
        for one in self._alone.values():
            wanted |= one.mask(batch)
        return wanted

    def pairs(self, batch: EventBatch) -> tuple[Int64s, Int64s]:
        """int64[m] each: an event of a batch and the place of a filter that takes it."""
        events, places = [], []
        if len(self._matcher):
            found = self._matcher.match(batch, filters=True)
            assert found.offsets is not None
            assert found.filters is not None
            events.append(np.repeat(np.arange(len(batch)), found.offsets[1:] - found.offsets[:-1]))
            places.append(found.filters)
        for place, one in self._alone.items():
            rows = np.flatnonzero(one.mask(batch))
            events.append(rows)
            places.append(np.full(len(rows), place))
        if len(places) == 1:
            return events[0], places[0]
        return np.concatenate((_NONE, *events)), np.concatenate((_NONE, *places))

    def _candidates(self, values: tuple[Value, ...]) -> Iterable[tuple[int, Subscription]] | None:
        """The filters that may take an event of these values; None if they are too many."""
        parts = [self._others]
        for place, by_value in self._by_value.items():
            part = by_value.get(values[place])
            if part is not None:
                parts.append(part)
        if sum(map(len, parts)) > IN_TURN_MAX:
            return None
        return [pair for part in parts for pair in part.items()]


def _asked_of(filter_: Subscription, sketch: Filter) -> Asked | None:
    """A value that a filter asks an attribute to have, if it asks for one."""
    for one in sketch.constraints:
        if one.operator is Operator.EQUAL:
            place = filter_.type.index(one.name)
            assert place is not None
            return place, one.operand
    return None

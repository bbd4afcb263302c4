"""Demand for events of a type beyond a neighbour: those that any of its filters matches.

An event is wanted if and only if one of the filters matches it, however many there are. Few are
looked at in turn; many are matched together, as filters come and go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from matcher.matching import ON_PROCESSOR, Matching
from matcher.model import Bools, EventBatch, EventType
from matcher.single import Single
from routing.delivery.selection import Pattern
from routing.delivery.subscriber_index import MANY
from rules.filter_index import FilterIndex
from rules.subscription import Subscription


class Demand:
    """The filters of one type that lead to one neighbour, by text, matched as ``matching`` says."""

    def __init__(self, event_type: EventType, matching: Matching = ON_PROCESSOR) -> None:
        self._matching = matching
        self.type = event_type
        self._filters: Mapping[str, Subscription] = {}
        self._everything = False
        self._index: FilterIndex[str] | None = None  # None while there are few

    def set(self, filters: Mapping[str, Subscription]) -> None:
        """The filters are these now, all of ``type``."""
        before, self._filters = self._filters, filters
        self._everything = any(not one.conditions for one in filters.values())
        if len(filters) < MANY:
            self._index = None
            return
        if self._index is None:
            self._index, before = FilterIndex(self._matching), {}
        for text in before.keys() - filters.keys():
            self._index.remove(text)
        for text in sorted(filters.keys() - before.keys()):
            self._index.add(text, filters[text])

    @property
    def facts(self) -> dict[str, Any] | None:
        """How they are matched together; None while each is looked at."""
        return None if self._index is None else self._index.facts

    def patterns(self, batch: EventBatch) -> list[Pattern]:
        """The events of a batch of the type that are wanted, as one pattern of no numbers."""
        if self._everything:
            return [((), None)]
        if isinstance(batch, Single):
            return [((), None)] if self.takes(batch) else []
        wanted = self.wanted(batch)
        if wanted.all():
            return [((), None)]
        rows = np.flatnonzero(wanted)
        return [((), rows)] if len(rows) else []

    def takes(self, event: Single) -> bool:
        """Tell whether an event of the type is wanted."""
        if self._everything:
            return True
        if self._index is not None:
            return self._index.takes(event)
        for one in self._filters.values():  # noqa: SIM110 (a generator has a step for each)
            if one.takes(event):
                return True
        return False

    def wanted(self, batch: EventBatch) -> Bools:
        """Tell which events of a batch of the type are wanted."""
        if self._everything:
            return np.ones(len(batch), np.bool_)
        if self._index is not None:
            return self._index.mask(batch)
        wanted: Bools = np.zeros(len(batch), np.bool_)
        for one in self._filters.values():
            wanted |= one.mask(batch)
        return wanted

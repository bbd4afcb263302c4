"""Demand for events of a type beyond a neighbour: those that any of its filters matches.

An event is wanted if and only if one of the filters matches it, however many there are. Few are
looked at in turn; many stand in one matcher, in which they come and go (as subscriptions do in
:mod:`routing.delivery.selection`), and only those that constraints cannot say are looked at one by
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from matcher.filters.constraint import Filter
from matcher.matching import ON_PROCESSOR, Matching
from matcher.methods.matcher import Matcher
from matcher.model import Bools, EventBatch, EventType
from matcher.single import Single
from routing.delivery.selection import Pattern
from routing.delivery.subscriber_index import MANY
from rules.planning.sketch import sketch_of
from rules.subscription import Subscription


class Demand:
    """The filters of one type that lead to one neighbour, by text, matched as ``matching`` says."""

    def __init__(self, event_type: EventType, matching: Matching = ON_PROCESSOR) -> None:
        self._matching = matching
        self.type = event_type
        self._filters: Mapping[str, Subscription] = {}
        self._everything = False
        self._alone: dict[str, Subscription] = {}
        self._matcher: Matcher | None = None  # None while there are few
        self._numbers: dict[str, int] = {}  # of those in the matcher
        self._last = 0

    def set(self, filters: Mapping[str, Subscription]) -> None:
        """The filters are these now, all of ``type``."""
        before, self._filters = self._filters, filters
        self._everything = any(not one.conditions for one in filters.values())
        if len(filters) < MANY:
            self._matcher, self._alone = None, dict(filters)
            return
        if self._matcher is None:
            self._matcher, before = self._matching.make(), {}
            self._alone, self._numbers = {}, {}
        for text in before.keys() - filters.keys():
            self._remove(self._matcher, text)
        for text in sorted(filters.keys() - before.keys()):
            self._add(self._matcher, text, filters[text])

    @property
    def facts(self) -> dict[str, Any] | None:
        """How they are matched together; None while each is looked at."""
        return None if self._matcher is None else self._matching.facts(self._matcher)

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
        if self._matcher is not None:
            return bool(self.wanted(event).any())
        for one in self._alone.values():  # noqa: SIM110 (a generator has a step for each)
            if one.takes(event):
                return True
        return False

    def wanted(self, batch: EventBatch) -> Bools:
        """Tell which events of a batch of the type are wanted."""
        if self._everything:
            return np.ones(len(batch), np.bool_)
        wanted: Bools = np.zeros(len(batch), np.bool_)
        if self._matcher is not None and len(self._matcher):
            wanted |= self._matcher.match(batch).bits.any(axis=1)
        for one in self._alone.values():
            wanted |= one.mask(batch)
        return wanted

    def _add(self, matcher: Matcher, text: str, added: Subscription) -> None:
        sketch = sketch_of(added.conditions, added.type)
        if not sketch.is_whole:
            self._alone[text] = added
            return
        self._last += 1
        self._numbers[text] = self._last
        matcher.add(self._last, 0, Filter(sketch.filter.constraints))

    def _remove(self, matcher: Matcher, text: str) -> None:
        if self._alone.pop(text, None) is None:
            matcher.remove(self._numbers.pop(text))

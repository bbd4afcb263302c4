"""The subscriptions of many sinks to one type, matched together (thesis 4.2)."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from matcher.filters.numbering import Numbering
from matcher.matching import ON_PROCESSOR, Matching
from matcher.model import EventBatch, Int64s
from matcher.single import Single, single_at
from routing.delivery.delivery_batch import SubscriptionNumbers
from rules.filter_index import FilterIndex
from rules.subscription import Subscription
from runtime.growing import with_room

Pattern: TypeAlias = tuple[SubscriptionNumbers, Int64s | None]
"""Subscriptions of one sink, and the events that just these of them match (None: all)."""
_Sink = TypeVar("_Sink", bound=Hashable)
"""The key that stands for a sink."""

BITS_MAX = 62
"""So many subscriptions are the bits of one number."""


class Selection(Generic[_Sink]):
    """Filters of one type by sink and number, matched together (:mod:`rules.filter_index`).

    Those without conditions match whatever comes. Nothing is done for a sink that wants none of the
    events, unless it has a filter that is evaluated alone.
    """

    def __init__(self, matching: Matching = ON_PROCESSOR) -> None:
        self._filters: FilterIndex[tuple[_Sink, int]] = FilterIndex(matching)
        self._sinks: Numbering[_Sink] = Numbering()
        self._sink_of: Int64s = np.zeros(16, np.int64)
        self._number_of: Int64s = np.zeros(16, np.int64)
        self._every: dict[_Sink, set[int]] = {}

    def add(self, sink: _Sink, number: int, subscription: Subscription) -> None:
        """Add a filter; it has not been added."""
        if not subscription.conditions:
            self._every.setdefault(sink, set()).add(number)
            return
        place = self._filters.add((sink, number), subscription)
        self._sink_of = with_room(self._sink_of, place + 1)
        self._number_of = with_room(self._number_of, place + 1)
        self._sink_of[place], _ = self._sinks.use(sink)
        self._number_of[place] = number

    def remove(self, sink: _Sink, number: int) -> None:
        """Take a filter out; KeyError when it is not there."""
        every = self._every.get(sink, set())
        if number in every:
            every.remove(number)
            if not every:
                del self._every[sink]
        else:
            place = self._filters.remove((sink, number))
            self._sinks.release(int(self._sink_of[place]))

    @property
    def facts(self) -> dict[str, Any]:
        """How those that constraints can say are matched at present."""
        return self._filters.facts

    def match(self, batch: EventBatch) -> Iterable[tuple[_Sink, list[Pattern]]]:
        """The sinks that want events of a batch, and which of them because of what."""
        if len(batch) == 1:
            return self._of_one(batch)
        return self._of(batch, *self._filters.pairs(batch))

    def _of(
        self, batch: EventBatch, events: Int64s, places: Int64s
    ) -> Iterator[tuple[_Sink, list[Pattern]]]:
        """The same as ``match``, from pairs of an event and the place of a filter."""
        numbers, sinks = self._number_of[places], self._sink_of[places]
        order = np.lexsort((numbers, events, sinks))
        events, numbers, sinks = events[order], numbers[order], sinks[order]
        is_same = sinks[1:] == sinks[:-1]
        bounds = [0, *(np.flatnonzero(~is_same) + 1).tolist(), len(sinks)] if len(sinks) else [0]
        has_several = bool((is_same & (numbers[1:] != numbers[:-1])).any())
        every = dict(self._every)
        names = map(self._name, places[order[bounds[:-1]]].tolist())
        for (sink, number), (start, end) in zip(names, itertools.pairwise(bounds), strict=True):
            always = every.pop(sink, None)
            own = numbers[start:end]
            # Most sinks have one filter of a type.
            if always is None and not (has_several and (own != number).any()):
                rows = events[start:end]
                yield sink, [((number,), None if len(rows) == len(batch) else rows)]
            else:
                yield sink, patterns_of(events[start:end], own, sorted(always or ()), len(batch))
        for sink, only in every.items():
            yield sink, [(tuple(sorted(only)), None)]

    def _name(self, place: int) -> tuple[_Sink, int]:
        name = self._filters.names.words[place]
        assert name is not None
        return name

    def _of_one(self, batch: EventBatch) -> list[tuple[_Sink, list[Pattern]]]:
        """The same as ``match`` of a batch of one event, which is common."""
        event = batch if isinstance(batch, Single) else single_at(batch, 0)
        found = {sink: [*only] for sink, only in self._every.items()}
        for sink, number in map(self._name, self._filters.single(event)):
            found.setdefault(sink, []).append(number)
        return [(sink, [(tuple(sorted(numbers)), None)]) for sink, numbers in found.items()]


def patterns_of(
    events: Int64s, numbers: Int64s, always: Sequence[int], count: int
) -> list[Pattern]:
    """The patterns of one sink from pairs of an event and a number, in ascending order.

    ``always``: numbers that go with each of the ``count`` events of the batch.
    """
    begins = np.flatnonzero(np.diff(events, prepend=-1))
    rows = events[begins]
    patterns: list[Pattern] = []
    for own, chosen in _alike(numbers, begins):
        together = tuple(sorted([*own, *always])) if always else own
        matched = rows if chosen is None else rows[chosen]
        patterns.append((together, None if len(matched) == count else matched))
    if always and len(rows) < count:
        patterns.append((tuple(always), np.setdiff1d(np.arange(count), rows)))
    return patterns


def _alike(numbers: Int64s, begins: Int64s) -> Iterator[tuple[SubscriptionNumbers, Int64s | None]]:
    """The distinct runs of numbers, each with the places of those like it (None: all of them)."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    if len(distinct) == 1:
        yield (int(distinct[0]),), None
    elif len(distinct) <= BITS_MAX:
        bits = np.add.reduceat(np.int64(1) << codes, begins)
        for pattern in np.unique(bits).tolist():
            own = [one for code, one in enumerate(distinct.tolist()) if pattern >> code & 1]
            yield tuple(own), np.flatnonzero(bits == pattern)
    else:  # so many of one sink that hardly two events have the same
        runs: dict[SubscriptionNumbers, list[int]] = {}
        flat, ends = numbers.tolist(), [*begins[1:].tolist(), len(numbers)]
        for run, (begin, end) in enumerate(zip(begins.tolist(), ends, strict=True)):
            runs.setdefault(tuple(flat[begin:end]), []).append(run)
        for together, places in runs.items():
            yield together, np.array(places, np.int64)

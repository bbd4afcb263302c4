"""Choice of a matcher: by name, or ``auto``, which chooses by what matching costs on recent events.

The cost of an event under an index is estimated from what is counted while it is matched:
subsets of terms visited, keys probed, filters verified, groups and their terms evaluated, at so
many nanoseconds each. What misses of caches cost differs between machines and hours; so where the
estimates are near each other both kinds are tried for a moment.

``auto`` begins with access predicates, which no workload makes hopeless. Whenever its filters have
doubled or halved in number since it last chose, it matches recent events against an index of
either kind, and takes the one that costs less. Where most filters came at once, it makes both of a
sample of them, and what grows with the filters (what is verified, and what is combined in groups)
is scaled to all; filters that come one by one must not have to wait, so the other index is made of
all of them in steps (:mod:`matcher.methods.rival`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from time import thread_time_ns

import numpy as np

from matcher.filters.encoded import EncodedEvents
from matcher.filters.table import FilterTable
from matcher.kernels.layout import COUNTS
from matcher.methods.counting import CountingMatcher
from matcher.methods.indexed import COUNT_NAMES, Index, IndexedMatcher
from matcher.methods.loading import load_kernels
from matcher.methods.matcher import Matcher
from matcher.methods.naive import NaiveMatcher
from matcher.methods.pcm import PcmMatcher
from matcher.methods.rival import Rival
from matcher.methods.tabled import Found, TableMatcher
from matcher.model import Int64s

COSTS_NS = np.array([7.0, 26.0, 14.0, 10.0, 80.0, 0.0085, 0.6, 0.6, 4.0])
EVENT_NS = 35.0
"""Nanoseconds for each of indexed.COUNT_NAMES, and for an event, fitted to the times that both
kinds took on the workloads 0 to 89 of benchmarks/choice.py, by least squares of their relative
errors. A term of a group costs what its misses of caches do; what is done in cached memory, flips
above all, is nearly free."""
GROWS = np.array([False, False, True, False, False, True, False, True, True])
"""Marks of those that grow with the filters. Flips do not: the more there are, the more maps are
kept.
"""
CLEAR = 1.5
"""Where one kind costs so many times as much as the other, by the estimate, it is not tried."""
ROUND_NS, ROUNDS = 5e5, 3
"""A trial of a kind takes about so long at most, and so many are made of each, in turn."""
SAMPLE_MAX = 2**17
"""Filters of a sample."""
EVENTS_MAX, EVENTS_FEW = 256, 64
"""Recent events that are tried; fewer where nobody may have to wait."""
FILTERS_MIN = 256
"""With fewer filters there is nothing to choose."""
_NONE = np.empty(0, np.int64)


class AutoMatcher(TableMatcher):
    """An index of the kind that costs less on recent events."""

    tells_identifiers = True

    def __init__(self, table: FilterTable | None = None) -> None:
        super().__init__(table)
        load_kernels()
        self._index = Index(self.table, by_access=True)
        self._rival: Rival | None = None
        self._chosen_for = FILTERS_MIN // 2
        self._came_at_once = 0  # filters, since it last chose
        self._settled_for = -1  # changes of the table after which there was nothing to choose
        self._choosing = Lock()
        self._counts = np.zeros(COUNTS, np.int64)

    def _insert(self, slots: Int64s) -> None:
        self._index.insert(slots)
        if len(slots) > 1:
            self._came_at_once += len(slots)
        if self._rival is not None:
            for slot in slots.tolist():
                self._rival.insert(slot)

    def _delete(self, slot: int) -> None:
        self._index.delete(slot)
        if self._rival is not None:
            self._rival.delete(slot)

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        if self._settled_for != self.table.changes:
            self._settle(events)
        return self._index.run(events, begin, found, self._counts)

    def _bytes(self) -> int:
        return self._index.bytes + (0 if self._rival is None else self._rival.index.bytes)

    @property
    def figures(self) -> Mapping[str, int | str]:
        """As in ``TableMatcher``, and the kind of index chosen."""
        method = "index" if self._index.by_access else "signature"
        looked_at = dict(zip(COUNT_NAMES, self._counts.tolist(), strict=True))
        return {**super().figures, "method": method, **self._index.figures, **looked_at}

    def _has_outgrown_its_choice(self) -> bool:
        return not self._chosen_for / 2 <= len(self) <= self._chosen_for * 2

    def _settle(self, events: EncodedEvents) -> None:
        """Filters have come or gone: choose anew, if that is due, or go on with it."""
        if not self._has_outgrown_its_choice():
            self._settled_for = self.table.changes
        elif self._choosing.acquire(blocking=False):
            try:  # what another thread may have done meanwhile
                if self._has_outgrown_its_choice():
                    self._go_on_choosing(events)
            finally:
                self._choosing.release()

    def _go_on_choosing(self, events: EncodedEvents) -> None:
        recent = events.take(slice(0, EVENTS_MAX))
        if len(self) < FILTERS_MIN or len(recent) == 0:
            self._chosen(self._index)
        elif 2 * self._came_at_once > len(self):
            self._chosen(self._choose_at_once(recent))
        else:
            if self._rival is None:
                self._rival = Rival(self.table, by_access=not self._index.by_access)
            self._rival.go_on(len(events))
            if self._rival.is_whole:
                few = recent.take(slice(0, EVENTS_FEW))
                self._chosen(self._better(self._index, self._rival.index, few))

    def _chosen(self, index: Index) -> None:
        """The choice is made: this index, which may be the one in use."""
        made = [self._index] if self._rival is None else [self._index, self._rival.index]
        self._index = index
        for one in made:
            if one is not self._index:
                one.close()
        self._rival, self._came_at_once = None, 0
        self._chosen_for = max(len(self), FILTERS_MIN // 2)

    def _choose_at_once(self, recent: EncodedEvents) -> Index:
        """The choice by a sample of the filters, of which an index of either kind is made."""
        slots = self.table.slots
        sample = slots[:: -(-len(slots) // SAMPLE_MAX)]
        share = len(sample) / len(slots)
        tried = [Index(self.table, by_access=kind, share=share) for kind in (True, False)]
        for index in tried:
            index.insert(sample)
        by_access = self._better(tried[0], tried[1], recent, 1 / share).by_access
        for index in tried:
            index.close()
        if by_access == self._index.by_access:
            return self._index
        chosen = Index(self.table, by_access=by_access)
        chosen.insert(slots)
        return chosen

    def _better(self, one: Index, other: Index, events: EncodedEvents, scale: float = 1.0) -> Index:
        """The index that costs less; ``scale``: how many times as many filters there are."""
        pair, prices = (one, other), COSTS_NS * np.where(GROWS, scale, 1.0)
        counts = [self._counts_of(index, events) for index in pair]
        fixed = EVENT_NS * len(events)
        costs = [float(np.dot(own, prices)) + fixed for own in counts]
        if 0 < max(costs) <= CLEAR * min(costs):
            few = events.take(slice(0, max(1, int(len(events) * ROUND_NS / max(costs)))))
            rounds = [[self._time(index, few) for index in pair] for _ in range(ROUNDS)]
            # What a sample takes grows to what all take as the estimate of it does.
            costs = [
                min(times) * cost / (float(np.dot(own, COSTS_NS)) + fixed)
                for times, cost, own in zip(zip(*rounds, strict=True), costs, counts, strict=True)
            ]
        return one if costs[0] <= costs[1] else other

    def _counts_of(self, index: Index, events: EncodedEvents) -> Int64s:
        """The numbers of things that an index looks at for some events."""
        counts = np.zeros(COUNTS, np.int64)
        bits = np.zeros((len(events), self.table.interfaces.size // 64 + 1), np.int64)
        index.run(events, 0, Found(bits, _NONE, _NONE, False), counts)
        return counts

    def _time(self, index: Index, events: EncodedEvents) -> int:
        """Nanoseconds of this thread that an index takes for some events."""
        begun = thread_time_ns()
        self._counts_of(index, events)
        return thread_time_ns() - begun


MATCHERS: Mapping[str, Callable[[], Matcher]] = {
    "auto": AutoMatcher,
    "pcm": PcmMatcher,
    "counting": CountingMatcher,
    "signature": lambda: IndexedMatcher(by_access=False),
    "index": lambda: IndexedMatcher(by_access=True),
    "naive": NaiveMatcher,
}


def make(name: str = "auto") -> Matcher:
    """A matcher by name (docs/matching.md); KeyError for a name that is not in MATCHERS."""
    return MATCHERS[name]()

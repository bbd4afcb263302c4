"""Which matcher: by name, or ``auto``, which chooses by what matching costs on recent events.

The cost of an event under an index is estimated from what is counted while it is matched:
subsets of terms visited, keys probed, filters verified, groups and their terms evaluated, at so
many nanoseconds each. ``auto`` begins with access predicates, which no workload makes hopeless.
Whenever its filters have doubled or halved in number since it last chose, it makes up an index of
either kind over a sample of the filters, matches recent events against both, and takes the kind
that costs less; what grows with the filters (what is verified, and what is combined in groups) is
scaled from the sample to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock

import numpy as np

from matcher.counting import CountingMatcher
from matcher.indexed import COUNT_NAMES, Index, IndexedMatcher
from matcher.kernels.layout import COUNTS
from matcher.matcher import Matcher
from matcher.model import Int64s
from matcher.naive import NaiveMatcher
from matcher.pcm import PcmMatcher
from matcher.tabled import Found, TableMatcher
from matcher.vocabulary import EncodedEvents

COSTS_NS = np.array([6.5, 28.0, 11.5, 110.0, 54.0, 0.08])
"""Nanoseconds for each of indexed.COUNT_NAMES, fitted to the rates of both
kinds on the workloads 0 to 99 of benchmarks/choice.py."""
SAMPLE_MAX = 2**17
"""Filters of a sample."""
EVENTS_MAX = 256
"""Recent events that are tried."""
FILTERS_MIN = 256
"""With fewer filters there is nothing to choose."""


class AutoMatcher(TableMatcher):
    """An index of the kind that costs less on recent events."""

    def __init__(self) -> None:
        super().__init__()
        self._index = Index(self.table, by_access=True)
        self._chosen_for = FILTERS_MIN // 2
        self._choosing = Lock()
        self._counts = np.zeros(COUNTS, np.int64)

    def _insert(self, slots: Int64s) -> None:
        self._index.insert(slots)

    def _delete(self, slot: int) -> None:
        self._index.delete(slot)

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        if self._has_outgrown_its_choice():
            with self._choosing:  # another thread may have chosen meanwhile
                if self._has_outgrown_its_choice():
                    self._choose(events)
        return self._index.run(events, begin, found, self._counts)

    def _bytes(self) -> int:
        return self._index.bytes

    @property
    def figures(self) -> Mapping[str, int | str]:
        """As in ``TableMatcher``, and the kind of index chosen."""
        method = "index" if self._index.by_access else "signature"
        looked_at = dict(zip(COUNT_NAMES, self._counts.tolist(), strict=True))
        return {**super().figures, "method": method, **self._index.figures, **looked_at}

    def _has_outgrown_its_choice(self) -> bool:
        return not self._chosen_for / 2 <= len(self) <= self._chosen_for * 2

    def _choose(self, events: EncodedEvents) -> None:
        slots = self.table.slots
        self._chosen_for = max(len(slots), FILTERS_MIN // 2)
        recent = events.take(slice(0, EVENTS_MAX))
        if len(slots) < FILTERS_MIN or len(recent) == 0:
            return
        sample = slots[:: -(-len(slots) // SAMPLE_MAX)]
        scale = np.array([1.0, 1.0, len(slots) / len(sample), 1.0, 1.0, len(slots) / len(sample)])
        by_access = self._cost(True, sample, recent, scale) <= self._cost(
            False, sample, recent, scale
        )
        if by_access != self._index.by_access:
            self._index = Index(self.table, by_access=by_access)
            self._index.insert(slots)

    def _cost(self, by_access: bool, sample: Int64s, events: EncodedEvents, scale: Int64s) -> float:
        index = Index(self.table, by_access=by_access, share=len(sample) / len(self))
        index.insert(sample)
        counts = np.zeros(COUNTS, np.int64)
        bits = np.zeros((len(events), self.table.interfaces.size // 64 + 1), np.int64)
        none = np.empty(0, np.int64)
        index.run(events, 0, Found(bits, none, none, False), counts)
        return float(np.dot(counts * scale, COSTS_NS))


MATCHERS: Mapping[str, Callable[[], Matcher]] = {
    "auto": AutoMatcher,
    "pcm": PcmMatcher,
    "counting": CountingMatcher,
    "signature": lambda: IndexedMatcher(by_access=False),
    "index": lambda: IndexedMatcher(by_access=True),
    "naive": NaiveMatcher,
}


def make(name: str = "auto") -> Matcher:
    """A matcher by name (cli.md); KeyError for a name that is not in MATCHERS."""
    return MATCHERS[name]()

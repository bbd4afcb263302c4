"""Repeats of events: a (source, id) is taken once (tesla.md E1).

Law 1: exact. An event is dropped exactly when one with the same source and the same printed id
was accepted before and is still remembered; nothing is decided by a hash alone.

Law 2: a source whose numbers strictly increase costs no search. Its highest number tells that
the next batch is new; what it sent is only noted in a journal, which is sorted into searchable
runs when some event is in doubt for the first time: one that comes out of the order of its
numbers, as when one source's types arrive in batches of their own.

Law 3: bounded by the caller. An engine says with :meth:`DuplicateFilter.forget` what none of its
rules can see any more; at most about twice what is younger is remembered, 8 to 16 bytes for a
numbered event. Names of sources are kept for good. A repeat bears the time of its original, so
once that is forgotten here the repeat too is older than anything the engine still looks at.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from matcher.identity import number_of_id
from matcher.model import TIME_MIN, Bools, EventBatch, EventIds, Int64s, StringColumn

RUN_LENGTH_MAX = 65_536
"""Runs are merged up to this length, so that old ones can be forgotten one by one."""
JOURNAL_LENGTH_MAX = 1_024
"""Batches noted before they are sorted into runs, so that small ones cost little memory."""
SWEEP_MIN = 65_536
"""Fewer remembered events than this are not worth a sweep."""


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Accepted numbers of one source, ascending, and the greatest time among their events."""

    numbers: Int64s
    newest: int


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """Accepted numbers not yet sorted into runs: ``sources`` beside ``numbers``."""

    sources: Int64s
    numbers: Int64s
    newest: int


_Name: TypeAlias = tuple[int, str]


class DuplicateFilter:
    """Remembers which events were accepted; ``dropped`` counts those that were not."""

    def __init__(self) -> None:
        self.dropped = 0
        self._source_numbers: dict[str, int] = {}
        self._highest: Int64s = np.empty(0, np.int64)  # beside the sources' numbers
        self._journal: list[_Entry] = []
        self._runs: dict[int, list[_Run]] = {}
        self._names: dict[_Name, int] = {}  # ids that are no numbers, with their times
        self._remembered = 0  # events, in journal, runs and names
        self._sweep_above = SWEEP_MIN
        self._dictionary: tuple[str, ...] = ()
        self._dictionary_sources: Int64s = np.empty(0, np.int64)

    def accept(self, batch: EventBatch) -> EventBatch:
        """The batch without repeats, each of them counted in ``dropped``.

        Of repeats within the batch, the first is kept. The batch itself is returned when nothing
        is dropped.
        """
        if len(batch) == 0:
            return batch
        sources = self._sources_of(batch.ids.source)
        if len(batch) == 1 and self._exceeds_all(sources, batch):
            return batch
        newest = int(batch.time.max())
        if batch.ids.text is None and batch.ids.digest is None:
            fresh = self._accept_numbers(sources, batch.ids.sequence, newest)
        else:
            fresh = self._accept_printed(sources, batch.ids, batch.time)
        if fresh is None:
            self._remembered += len(batch)
            return batch
        taken = int(np.count_nonzero(fresh))
        self._remembered += taken
        self.dropped += len(batch) - taken
        return batch if taken == len(batch) else batch.take(fresh)

    def forget(self, before: int) -> None:
        """Forget events earlier than ``before``; the caller no longer takes any of them.

        Cheap enough to be called at every advance: nothing happens until the count of what is
        remembered has doubled.
        """
        if self._remembered <= self._sweep_above:
            return
        self._sort_journal()
        kept = {
            source: [run for run in runs if run.newest >= before]
            for source, runs in self._runs.items()
        }
        self._runs = {source: runs for source, runs in kept.items() if runs}
        self._names = {name: time for name, time in self._names.items() if time >= before}
        self._remembered = len(self._names) + sum(
            len(run.numbers) for runs in self._runs.values() for run in runs
        )
        self._sweep_above = max(SWEEP_MIN, 2 * self._remembered)

    def _sources_of(self, column: StringColumn) -> Int64s:
        """The local numbers of the sources of n events."""
        if column.values is not self._dictionary:
            known = self._source_numbers
            self._dictionary = column.values
            self._dictionary_sources = np.fromiter(
                (known.setdefault(name, len(known)) for name in column.values),
                np.int64,
                len(column.values),
            )
            missing = len(known) - len(self._highest)
            self._highest = np.append(self._highest, np.full(missing, TIME_MIN))
        return self._dictionary_sources[column.codes]

    def _exceeds_all(self, sources: Int64s, batch: EventBatch) -> bool:
        """Whether a single numbered event is new by Law 2; notes it if so.

        What :meth:`_accept_numbers` would say, without the cost of working on whole arrays: the
        latency of single events hangs on it.
        """
        ids = batch.ids
        source, number = sources[0], ids.sequence[0]
        if ids.text is not None or ids.digest is not None or number <= self._highest[source]:
            return False
        self._highest[source] = number
        self._remembered += 1
        self._note(_Entry(sources, ids.sequence, int(batch.time[0])))
        return True

    def _note(self, entry: _Entry) -> None:
        self._journal.append(entry)
        if len(self._journal) > JOURNAL_LENGTH_MAX:
            self._sort_journal()

    def _accept_numbers(self, sources: Int64s, numbers: Int64s, newest: int) -> Bools | None:
        """Which numbered events are new; None when all are, which is the common case."""
        order = _by_source(sources)
        sorted_sources, sorted_numbers = sources[order], numbers[order]
        if self._all_increase(sorted_sources, sorted_numbers):
            self._note(_Entry(sorted_sources, sorted_numbers, newest))
            return None
        self._sort_journal()
        fresh = np.zeros(len(numbers), np.bool_)
        for places in np.split(np.arange(len(numbers))[order], _changes(sorted_sources) + 1):
            source = int(sources[places[0]])
            distinct, first = np.unique(numbers[places], return_index=True)
            new = ~self._is_known(source, distinct)
            fresh[places[first[new]]] = True
            self._add_run(source, _Run(distinct[new], newest))
            self._highest[source] = max(int(self._highest[source]), int(distinct[-1]))
        return fresh

    def _all_increase(self, sources: Int64s, numbers: Int64s) -> bool:
        """Whether every number exceeds all before it of its source; notes the highest if so."""
        changes = _changes(sources)
        rises = numbers[1:] > numbers[:-1]
        rises[changes] = True
        firsts = np.append(0, changes + 1)
        if not rises.all() or (numbers[firsts] <= self._highest[sources[firsts]]).any():
            return False
        self._highest[sources[firsts]] = numbers[np.append(changes, len(numbers) - 1)]
        return True

    def _accept_printed(self, sources: Int64s, ids: EventIds, times: Int64s) -> Bools:
        """Which events are new, by printed ids, one by one; a decimal text is a number."""
        fresh = np.ones(len(ids), np.bool_)
        rows = zip(sources.tolist(), ids.printed(), times.tolist(), strict=True)
        for place, (source, text, time) in enumerate(rows):
            number = number_of_id(text)
            if number is not None:
                one = np.array([number])
                known = self._accept_numbers(np.array([source]), one, time)
                fresh[place] = known is None or known[0]
            elif (source, text) in self._names:
                fresh[place] = False
            else:
                self._names[source, text] = time
        return fresh

    def _sort_journal(self) -> None:
        """Move what the journal holds into runs, one a source."""
        if not self._journal:
            return
        sources = np.concatenate([entry.sources for entry in self._journal])
        numbers = np.concatenate([entry.numbers for entry in self._journal])
        newest = max(entry.newest for entry in self._journal)
        self._journal.clear()
        order = _by_source(sources)
        sources, numbers = sources[order], numbers[order]
        # Within a source the numbers ascend through the whole journal (Law 2).
        starts = [0, *(_changes(sources) + 1).tolist(), len(sources)]
        for start, end in pairwise(starts):
            self._add_run(int(sources[start]), _Run(numbers[start:end], newest))

    def _add_run(self, source: int, run: _Run) -> None:
        """Add a run, merged with its like so that a source has few of them."""
        if len(run.numbers) == 0:
            return
        runs = self._runs.setdefault(source, [])
        while runs and len(runs[-1].numbers) <= min(2 * len(run.numbers), RUN_LENGTH_MAX):
            previous = runs.pop()
            merged = np.sort(np.concatenate([previous.numbers, run.numbers]), kind="stable")
            run = _Run(merged, max(previous.newest, run.newest))
        runs.append(run)

    def _is_known(self, source: int, numbers: Int64s) -> Bools:
        """Which of some ascending numbers of a source were accepted before."""
        known = np.zeros(len(numbers), np.bool_)
        for run in self._runs.get(source, ()):
            if run.numbers[0] > numbers[-1] or run.numbers[-1] < numbers[0]:
                continue
            places = np.searchsorted(run.numbers, numbers)
            places[places == len(run.numbers)] = 0
            known |= run.numbers[places] == numbers
        return known


def _by_source(sources: Int64s) -> Int64s | slice:
    """The order that brings the events of one source together, their own order kept."""
    if (sources == sources[0]).all():
        return slice(None)
    return np.argsort(sources, kind="stable")


def _changes(sources: Int64s) -> Int64s:
    """The places after which the source changes."""
    return np.flatnonzero(sources[1:] != sources[:-1])

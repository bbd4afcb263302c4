"""Repeats of events: a (source, id) is taken once (tesla.md E1)."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matcher.contents import NOT_KEPT, SEED, contents_of
from matcher.identity import number_of_id, numbers_of_ids
from matcher.model import (
    TIME_MIN,
    AnyArray,
    Bools,
    EventBatch,
    Int64s,
    StringColumn,
    UInt64s,
)
from rules.engine.conflict import Conflict
from rules.engine.intake import blocks
from rules.engine.intake.blocks import Explicit
from rules.engine.intake.journal import Journal
from rules.engine.kernels.layout import KNOWN
from rules.engine.kernels.seen import CONFLICT, NEW, accept
from runtime.memory import grown

NAMES_MIN = 64
"""Room for so many ids that are no numbers there is at least."""
KEPT = 8
"""Memory of so many times what is needed is kept: new memory costs more than what is done in it."""
SWEEP_MIN = 4_096
"""Fewer remembered blocks and names than this are not worth a sweep."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A filter's memory as plain data: sources by number, blocks, explicit numbers, named
    ids with their sources, times and contents; and the seed of the digests of contents.
    """

    dropped: int
    conflicts: int
    sources: tuple[str, ...]
    blocks: AnyArray
    explicit: Explicit
    names: tuple[tuple[int, str, int, int], ...]
    seed: int


class DuplicateFilter:
    """Remembers which events were accepted; ``dropped`` counts those that were not, ``conflicts``
    those of them that were in conflict.

    Whoever takes numbered events in by kernels of its own enters them into ``table`` there, and
    explicit numbers into ``explicit.chunk`` too (see ``kernels.seen``), under the numbers of their
    sources here; ``grow`` when the table lacks room, and ``compare`` what repeats.

    An event is dropped exactly when one with the same source and the same printed id was accepted
    before and is still remembered; nothing is decided by a hash alone. A repeat is in *conflict* if
    it is another event, of another type or time or with other values: id 7 of a source at 1 s with
    20 degrees, and at 2 s with 50. What is compared is a digest of 64 bits, kept for explicit ids
    alone, as long as the id is; beyond that a repeat counts as a duplicate.

    A number costs one bit where a source's numbers follow one another: they are kept in blocks of
    64, found by a hash table. Their order does not matter; a source whose types arrive in batches
    of their own gives its numbers out of order all the time. An explicit number costs a record more
    (:mod:`.journal`).
    """

    def __init__(self) -> None:
        self.dropped = self.conflicts = 0
        self._conflict: Conflict | None = None  # the first that was not taken
        self._source_numbers: dict[str, int] = {}
        self.table: AnyArray = blocks.empty()
        self.explicit = Journal(Explicit.none())
        self._names: dict[int, dict[str, int]] = {}  # ids that are no numbers, by source, and
        self._known: AnyArray = np.empty(NAMES_MIN, KNOWN)  # where what is known of them stands
        self._named = 0  # how many they are
        self._sweep_above = SWEEP_MIN
        self._dictionary: tuple[str, ...] = ()
        self._dictionary_sources: Int64s = np.empty(0, np.int64)

    def __len__(self) -> int:
        """Blocks of numbers, of explicit numbers, and other ids, that are remembered."""
        return int(self.table[-1]["source"]) + len(self.explicit) + self._named

    def kept(self) -> Remembered:
        """All that it remembers; shares no memory with it."""
        known = self._known[: self._named].tolist()
        names = tuple(
            (source, text, *known[place])
            for source, own in self._names.items()
            for text, place in own.items()
        )
        return Remembered(
            self.dropped,
            self.conflicts,
            tuple(self._source_numbers),
            blocks.used(self.table),
            self.explicit.kept(),
            names,
            SEED,
        )

    def resume(self, kept: Remembered) -> None:
        """Remember this, and nothing else."""
        self.dropped, self.conflicts = kept.dropped, kept.conflicts
        self._source_numbers = {name: number for number, name in enumerate(kept.sources)}
        self._dictionary = ()
        is_ours = kept.seed == SEED
        self.table = blocks.filled(kept.blocks)
        explicit = kept.explicit.since(TIME_MIN) if is_ours else Explicit.none()
        self.explicit = Journal(explicit)
        self._names, self._named = {}, len(kept.names)
        self._known = np.empty(max(NAMES_MIN, self._named), KNOWN)
        for place, (source, text, time, contents) in enumerate(kept.names):
            self._names.setdefault(source, {})[text] = place
            self._known[place] = time, contents if is_ours else NOT_KEPT
        self._sweep_above = max(SWEEP_MIN, 2 * len(self))

    def accept(self, batch: EventBatch) -> EventBatch:
        """The batch without repeats, each of them counted in ``dropped``.

        Of repeats within the batch, the first is kept. The batch itself is returned when nothing
        is dropped.
        """
        if len(batch) == 0:
            return batch
        sources = self.numbers(batch.ids.source)[batch.ids.source.codes]
        if batch.ids.are_explicit or batch.ids.digest is not None:
            judged = self._judge(sources, batch)
            fresh = judged.verdicts == NEW
        else:
            judged, fresh = None, self._accept_numbers(sources, batch.ids.sequence, batch.time)
        taken = int(np.count_nonzero(fresh))
        if taken == len(batch):
            return batch
        self.dropped += len(batch) - taken
        if judged is not None:
            in_conflict = np.flatnonzero(judged.verdicts == CONFLICT)
            self._note_conflicts(batch, in_conflict, judged.before[in_conflict])
        return batch.take(fresh)

    def take_conflict(self) -> Conflict | None:
        """The first conflict since the last call, if there was one."""
        conflict, self._conflict = self._conflict, None
        return conflict

    def number(self, source: str) -> int:
        """The number of a source in the table."""
        return self._source_numbers.setdefault(source, len(self._source_numbers))

    def numbers(self, column: StringColumn) -> Int64s:
        """The numbers of the sources of a column's dictionary."""
        if column.values is not self._dictionary:
            self._dictionary = column.values
            numbers = list(map(self.number, column.values))
            self._dictionary_sources = np.array(numbers, np.int64)
        return self._dictionary_sources

    def grow(self) -> None:
        """Give the table, which is full, room for more."""
        self.table = blocks.filled(blocks.used(self.table))

    def compare(self, batch: EventBatch, places: Int64s, contents: UInt64s) -> None:
        """Look which of the events at these places, repeats by their explicit numbers, are in
        conflict; ``contents`` are their digests.
        """
        sources = self.numbers(batch.ids.source)[batch.ids.source.codes[places]]
        verdicts, before = self.explicit.compare(sources, batch.ids.sequence[places], contents)
        in_conflict = np.flatnonzero(verdicts == CONFLICT)
        self._note_conflicts(batch, places[in_conflict], before[in_conflict])

    def forget(self, before: int) -> None:
        """Forget events earlier than ``before``; the caller no longer takes any of them.

        Cheap enough to be called at every advance: nothing happens until the count of what is
        remembered has doubled. At most about twice what is younger is remembered (:mod:`.blocks`
        says in how much memory). Names of sources are kept for good. A repeat bears the time of its
        original, so once that is forgotten here the repeat too is older than anything the engine
        still looks at.
        """
        self.explicit.drop(before)
        if len(self) <= self._sweep_above:
            return
        used = blocks.used(self.table)
        self.table = blocks.filled(used[used["newest"] >= before])
        self.explicit.forget(before)
        self._forget_names(before)
        self._sweep_above = max(SWEEP_MIN, 2 * len(self))

    def _forget_names(self, before: int) -> None:
        """The same of ids that are no numbers; what is known of the others moves together."""
        kept, first = [np.empty(0, np.int64)], 0
        for source, own in self._names.items():
            places = np.fromiter(own.values(), np.int64, len(own))
            is_young = self._known["time"][places] >= before
            texts = itertools.compress(own, is_young.tolist())
            kept.append(places[is_young])
            self._names[source] = dict(zip(texts, itertools.count(first), strict=False))
            first += len(kept[-1])
        known = self._known[np.concatenate(kept)]
        if len(self._known) > KEPT * max(NAMES_MIN, first):
            self._known = np.empty(max(NAMES_MIN, 2 * first), KNOWN)
        self._known[:first] = known
        self._named = first

    def _accept_numbers(self, sources: Int64s, numbers: Int64s, times: Int64s) -> Bools:
        """Tell which numbered events are new."""
        fresh = np.empty(len(numbers), np.bool_)
        done = 0
        while True:
            done = accept(self.table, sources, numbers, times, fresh, done)
            if done == len(numbers):
                return fresh
            self.grow()

    def _judge(self, sources: Int64s, batch: EventBatch) -> _Judged:
        """Judge events by their ids, which are compared where they are explicit."""
        ids, count = batch.ids, len(batch)
        contents = contents_of(batch) if ids.are_explicit else np.full(count, NOT_KEPT, np.uint64)
        events = _Events(sources, _own(batch.time), contents)
        if ids.text is None and ids.digest is None:
            return self._judge_numbers(events, _own(ids.sequence))
        return self._judge_texts(events, ids.printed())

    def _note_conflicts(self, batch: EventBatch, places: Int64s, before: Int64s) -> None:
        """Count the events at these places, and keep the first."""
        self.conflicts += len(places)
        if len(places) and self._conflict is None:
            one = batch.event(int(places[0]))
            self._conflict = Conflict(one.source, one.id, one.type, one.time, int(before[0]))

    def _judge_texts(self, events: _Events, texts: Sequence[str]) -> _Judged:
        """Judge events by printed ids; a decimal text is a number."""
        numbers = numbers_of_ids(texts)
        if numbers is not None:
            return self._judge_numbers(events, numbers)
        found = {
            place: number
            for place in _perhaps_numbers(texts)
            if (number := number_of_id(texts[place])) is not None
        }
        if not found:
            return self._judge_names(events, texts)
        numbers = np.array(list(found.values()), np.int64)
        if len(found) == len(texts):
            return self._judge_numbers(events, numbers)
        is_number = np.zeros(len(texts), np.bool_)
        is_number[list(found)] = True
        others = list(itertools.compress(texts, (~is_number).tolist()))
        judged = _Judged.empty(len(texts))
        judged.put(is_number, self._judge_numbers(events.take(is_number), numbers))
        judged.put(~is_number, self._judge_names(events.take(~is_number), others))
        return judged

    def _judge_numbers(self, events: _Events, numbers: Int64s) -> _Judged:
        """Judge events by explicit numbers."""
        judged, (sources, times, contents) = _Judged.empty(len(numbers)), events
        is_new = self._accept_numbers(sources, numbers, times)
        judged.verdicts[is_new] = NEW
        noted = is_new & (contents != NOT_KEPT)
        self.explicit.add(sources[noted], numbers[noted], times[noted], contents[noted])
        places = np.flatnonzero(~is_new)
        if len(places):
            judged.verdicts[places], judged.before[places] = self.explicit.compare(
                sources[places], numbers[places], contents[places]
            )
        return judged

    def _judge_names(self, events: _Events, texts: Sequence[str]) -> _Judged:
        """Judge events by ids that are no numbers."""
        judged, top = _Judged.empty(len(texts)), self._named
        if top + len(texts) > len(self._known):
            self._known = grown(self._known, 2 * (top + len(texts)))
        coming = self._known[top : top + len(texts)]
        coming["time"], coming["contents"] = events.times, events.contents
        if self._are_all_new(events.sources, texts):
            judged.verdicts[:] = NEW
            return judged
        known = self._known
        rows = zip(events.sources.tolist(), texts, events.contents.tolist(), strict=True)
        for place, (source, text, contents) in enumerate(rows):
            own = self._names.setdefault(source, {})
            other = own.setdefault(text, self._named)
            if other == self._named:
                known[self._named] = known[top + place]
                self._named += 1
                judged.verdicts[place] = NEW
            elif contents and known[other]["contents"] not in (NOT_KEPT, contents):
                judged.verdicts[place] = CONFLICT
                judged.before[place] = known[other]["time"]
        return judged

    def _are_all_new(self, sources: Int64s, texts: Sequence[str]) -> bool:
        """Whether events are all of one source and all new, as nearly always; then they are
        remembered, without a look at each.
        """
        if not len(sources) or (sources != sources[0]).any():
            return False
        known = self._names.setdefault(int(sources[0]), {})
        coming = dict(zip(texts, range(self._named, self._named + len(texts)), strict=True))
        if len(coming) < len(texts) or not known.keys().isdisjoint(coming):
            return False
        known |= coming
        self._named += len(texts)
        return True


class _Events(NamedTuple):
    """Events to be judged: the numbers of their sources, their times and their contents."""

    sources: Int64s
    times: Int64s
    contents: UInt64s

    def take(self, mask: Bools) -> _Events:
        """Some of them."""
        return _Events(self.sources[mask], self.times[mask], self.contents[mask])


class _Judged(NamedTuple):
    """A verdict on each event, int8[n], and of those in conflict when the other event was,
    int64[n].
    """

    verdicts: npt.NDArray[np.int8]
    before: Int64s

    @classmethod
    def empty(cls, length: int) -> _Judged:
        """REPEAT, so many times."""
        return cls(np.zeros(length, np.int8), np.empty(length, np.int64))

    def put(self, mask: Bools, some: _Judged) -> None:
        """Take over what some of them are."""
        self.verdicts[mask], self.before[mask] = some


_is_below = operator.methodcaller("startswith", "-")


def _perhaps_numbers(texts: Sequence[str]) -> list[int]:
    """Where texts are that may be decimal numbers."""
    if not any(map(str.isdecimal, texts)) and not any(map(_is_below, texts)):
        return []  # as of nearly all ids that are texts
    digits, below = map(str.isdecimal, texts), map(_is_below, texts)
    return [place for place, one in enumerate(map(operator.or_, digits, below)) if one]


def _own(column: Int64s) -> Int64s:
    """A column as kernels are compiled for: what came in a message may not be written to."""
    is_plain = column.flags.writeable and column.flags.c_contiguous
    return column if is_plain else column.copy()

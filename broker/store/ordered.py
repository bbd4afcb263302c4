"""The events of a log in the order of their times, and of E4 at one instant.

Entries stand in the order in which they came; sources that run apart, or bring events late, mix
times. Entries are read by their first times, so an event can be handed out once all entries that
are still to be read begin later.

Law: memory holds the events of the entries that overlap in time, beside the numbers of all entries.
Of entries from 0 s to 9 s, 1 s to 3 s and 4 s to 8 s the second is handed out before the third is
read, with the events of the first up to 4 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from broker.errors import StoreError
from broker.store.reading import Reader
from broker.store.recording import message_of
from matcher.model import TIME_MAX, EventBatch, EventType, Int64s
from matcher.traces import TraceContexts
from rules.operators.batches import are_alike, concatenated

HANDED_OUT = 65_536
"""Events that are put in order at a time, where there are so many."""
READ_AT_ONCE = 64
"""Entries."""


class Wanted(NamedTuple):
    """The events that are asked for: of some types (None: of all), from a time on, before another,
    in microseconds.
    """

    types: frozenset[str] | None = None
    since: int | None = None
    before: int | None = None

    def of(self, batch: EventBatch) -> EventBatch | None:
        """The wanted events of a batch; None where there are none."""
        if self.types is not None and batch.type.name not in self.types:
            return None
        if self.since is None and self.before is None:
            return batch
        places = np.ones(len(batch), np.bool_)
        if self.since is not None:
            places &= batch.time >= self.since
        if self.before is not None:
            places &= batch.time < self.before
        return batch.take(places) if places.any() else None


class Positions(NamedTuple):
    """The entries that may hold what is wanted, by their first times: int64[n] each."""

    position: Int64s
    first_time: Int64s

    @classmethod
    def of(cls, reader: Reader, wanted: Wanted) -> tuple[Positions, dict[str, int]]:
        """The entries of a log, and the first position of each type in them."""
        positions, times, types = [], [], dict[str, int]()
        for one in reader.outlines():
            if wanted.since is not None and one.last_time < wanted.since:
                continue
            if wanted.before is not None and one.first_time >= wanted.before:
                continue
            names = [n for n in one.types if wanted.types is None or n in wanted.types]
            for name in names:
                types.setdefault(name, one.position)
            if names:
                positions.append(one.position)
                times.append(one.first_time)
        position, time = np.array(positions, np.int64), np.array(times, np.int64)
        order = np.argsort(time, kind="stable")
        return cls(position[order], time[order]), types


class Ordered:
    """The wanted events of a log; ``types`` are theirs, by the first entry that has each."""

    def __init__(self, reader: Reader, wanted: Wanted) -> None:
        self._reader = reader
        self.traces = TraceContexts()
        """Trace contexts of the events that were read of late."""
        self._wanted = wanted
        self._positions, firsts = Positions.of(reader, wanted)
        self.types: dict[str, EventType] = {
            name: self._type_at(position, name) for name, position in firsts.items()
        }

    def _type_at(self, position: int, name: str) -> EventType:
        (entry,) = self._reader.at([position])
        return next(one.type for one in message_of(entry).batches if one.type.name == name)

    def steps(self) -> Iterator[tuple[Sequence[EventBatch], Int64s]]:
        """Batches, one a type and a kind of ids, and the order of their events, as in Delivery.

        StoreError where a type has had two schemas.
        """
        waiting: list[EventBatch] = []
        count, enough = 0, HANDED_OUT
        total = len(self._positions.position)
        for begin in range(0, total, READ_AT_ONCE):
            end = begin + READ_AT_ONCE
            some = [self._wanted.of(one) for one in self._read(begin, end)]
            waiting += [one for one in some if one is not None]
            count += sum(len(one) for one in some if one is not None)
            if count < enough and end < total:
                continue
            bound = int(self._positions.first_time[end]) if end < total else TIME_MAX + 1
            ready, waiting = _parted(_joined(waiting), bound)
            if ready:
                yield ready, _order(ready)
            count = sum(map(len, waiting))
            enough = max(HANDED_OUT, 2 * count)

    def _read(self, begin: int, end: int) -> Iterator[EventBatch]:
        for entry in self._reader.at(self._positions.position[begin:end].tolist()):
            message = message_of(entry)
            self.traces.take(message.batches, message.traces)
            for batch in message.batches:
                known = self.types.get(batch.type.name)
                if known is not None and known != batch.type:
                    raise StoreError(
                        f"{batch.type.name} had another schema from entry {entry.position} of the "
                        f"log on: {batch.type}, before that {known}; ask for a stretch of time in "
                        f"which it has one"
                    )
                yield batch


def _joined(batches: Sequence[EventBatch]) -> list[EventBatch]:
    """The batches, those that are alike as one."""
    kinds: list[list[EventBatch]] = []
    for batch in batches:
        for kind in kinds:
            if are_alike(kind[0], batch):
                kind.append(batch)
                break
        else:
            kinds.append([batch])
    return [concatenated(kind) for kind in kinds]


def _parted(batches: Sequence[EventBatch], bound: int) -> tuple[list[EventBatch], list[EventBatch]]:
    """The events before a time, and the others."""
    ready: list[EventBatch] = []
    later: list[EventBatch] = []
    for batch in batches:
        is_ready = batch.time < bound
        for kind, places in ((ready, is_ready), (later, ~is_ready)):
            if places.any():
                kind.append(batch if places.all() else batch.take(places))
    return ready, later


def _order(batches: Sequence[EventBatch]) -> Int64s:
    """The order by time, source and number (E4)."""
    names = sorted({name for one in batches for name in one.ids.source.values})
    places = {name: place for place, name in enumerate(names)}
    sources = [
        np.array([places[name] for name in one.ids.source.values], np.int64)[one.ids.source.codes]
        for one in batches
    ]
    order: Int64s = np.lexsort(
        (
            np.concatenate([one.ids.sequence for one in batches]),
            np.concatenate(sources),
            np.concatenate([one.time for one in batches]),
        )
    )
    return order

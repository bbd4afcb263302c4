"""The events of one or several logs in the order of their times, and of E4 at one instant.

Entries stand in the order in which they came; sources that run apart, or bring events late, mix
times. Entries are read by their first times, so an event can be handed out once all entries that
are still to be read begin later.

An event that stands in the logs twice is handed out once: a source that loses its broker sends
again, at another one, what it does not know to be stored. A repeat has the source, the id and the
contents of the event (tesla.md E1), and so its time: both are handed out together, and are compared
there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from broker.errors import StoreError
from broker.store.entries import message_of
from matcher.joining import are_alike, concatenated
from matcher.model import TIME_MAX, EventBatch, EventType, Int64s
from matcher.traces import TraceContexts

HANDED_OUT = 65_536
"""Events that are put in order at a time, where there are so many."""
READ_AT_ONCE = 1_024
"""Entries, at most, that are read at a time: as many as have so many events together."""


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
        if places.all():
            return batch
        return batch.take(places) if places.any() else None


class Outline(Protocol):
    """An entry of a log, which may be without its frames."""

    @property
    def position(self) -> int:
        """Its position in its log."""
        ...

    @property
    def first_time(self) -> int:
        """The least time of its events."""
        ...

    @property
    def last_time(self) -> int:
        """The greatest time of its events."""
        ...

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its events."""
        ...

    @property
    def events(self) -> int:
        """How many they are."""
        ...

    @property
    def frames(self) -> bytes:
        """Its events (broker.store.entries)."""
        ...


class Log(Protocol):
    """A log: of a store, or of a broker that reads it for somebody."""

    def outlines(self) -> Iterable[Outline]:
        """All entries that are to be read."""
        ...

    def at(self, positions: Sequence[int]) -> Iterable[Outline]:
        """The entries at some positions, with their frames."""
        ...


class Step(NamedTuple):
    """Events in their order: batches, one a type and a kind of ids, the order as in Delivery, and
    the time before which all events have been given with this step.
    """

    batches: Sequence[EventBatch]
    order: Int64s
    complete: int


class Positions(NamedTuple):
    """The entries that may hold what is wanted, by their first times: int64[n] each."""

    log: Int64s
    position: Int64s
    first_time: Int64s
    events: Int64s

    @classmethod
    def of(
        cls, logs: Sequence[Log], wanted: Wanted
    ) -> tuple[Positions, dict[str, tuple[int, int]]]:
        """The entries of logs, and where each type is first found in them: log and position."""
        numbers = array("q")  # an entry is four of them, of which a long log has many
        types = dict[str, tuple[int, int]]()
        for log, one in ((number, one) for number, of in enumerate(logs) for one in of.outlines()):
            if wanted.since is not None and one.last_time < wanted.since:
                continue
            if wanted.before is not None and one.first_time >= wanted.before:
                continue
            names = [n for n in one.types if wanted.types is None or n in wanted.types]
            for name in names:
                types.setdefault(name, (log, one.position))
            if names:
                numbers.extend((log, one.position, one.first_time, one.events))
        table = np.array(numbers, np.int64).reshape(-1, 4)
        return cls(*table[np.argsort(table[:, 2], kind="stable")].T), types

    def stretches(self) -> Iterator[tuple[int, int]]:
        """The entries to be read at a time: from one, and up to another."""
        count, begin = np.cumsum(self.events), 0
        while begin < len(count):
            before = int(count[begin - 1]) if begin else 0
            end = int(np.searchsorted(count, before + HANDED_OUT, side="right"))
            end = min(max(end, begin + 1), begin + READ_AT_ONCE)
            yield begin, end
            begin = end


class Ordered:
    """The wanted events of logs; ``types`` are theirs, by the first entry that has each. Memory
    holds the events of the entries that overlap in time, beside the numbers of all entries: of
    entries from 0 s to 9 s, 1 s to 3 s and 4 s to 8 s the second is handed out before the third is
    read, with the events of the first up to 4 s.
    """

    def __init__(self, logs: Sequence[Log], wanted: Wanted) -> None:
        self._logs = logs
        self.traces = TraceContexts()
        """Trace contexts of the events that were read of late."""
        self._wanted = wanted
        self._positions, firsts = Positions.of(logs, wanted)
        self.types: dict[str, EventType] = {
            name: self._type_at(*place, name) for name, place in firsts.items()
        }

    def __len__(self) -> int:
        """How many entries there are to read."""
        return len(self._positions.position)

    def _type_at(self, log: int, position: int, name: str) -> EventType:
        (entry,) = self._logs[log].at([position])
        return next(one.type for one in message_of(entry).batches if one.type.name == name)

    def steps(self) -> Iterator[Step]:
        """All events. StoreError where a type has had two schemas."""
        waiting: list[EventBatch] = []
        count, enough = 0, HANDED_OUT
        total = len(self)
        for begin, end in self._positions.stretches():
            some = [self._wanted.of(one) for one in self._read(begin, end)]
            waiting += [one for one in some if one is not None]
            count += sum(len(one) for one in some if one is not None)
            if count < enough and end < total:
                continue
            bound = int(self._positions.first_time[end]) if end < total else TIME_MAX + 1
            ready, waiting = _parted(_joined(waiting), bound)
            if ready:
                yield Step(*_once(ready), bound)
            count = sum(map(len, waiting))
            enough = max(HANDED_OUT, 2 * count)

    def _read(self, begin: int, end: int) -> Iterator[EventBatch]:
        logs, positions = self._positions.log[begin:end], self._positions.position[begin:end]
        for number in np.unique(logs).tolist():
            for entry in self._logs[number].at(np.sort(positions[logs == number]).tolist()):
                yield from self._checked(entry)

    def _checked(self, entry: Outline) -> Iterator[EventBatch]:
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


def stand_in_order(batches: Sequence[EventBatch]) -> bool:
    """Whether events are in order as they stand: those of one source that come as it made them."""
    if len(batches) > 1 or len(batches[0].ids.source.values) > 1:
        return False
    time, sequence = batches[0].time, batches[0].ids.sequence
    return bool((time[1:] >= time[:-1]).all() and (sequence[1:] > sequence[:-1]).all())


def order_of(batches: Sequence[EventBatch]) -> Int64s:
    """The order by time, source and number (E4)."""
    if stand_in_order(batches):
        return np.arange(len(batches[0]))
    order: Int64s = np.lexsort(_keys(batches))
    return order


def _once(batches: Sequence[EventBatch]) -> tuple[list[EventBatch], Int64s]:
    """The events without repeats, and their order."""
    order = order_of(batches)
    if stand_in_order(batches):
        return [*batches], order
    keys = np.array(_keys(batches))[:, order]
    is_alike = (keys[:, 1:] == keys[:, :-1]).all(axis=0)
    if not is_alike.any():
        return [*batches], order
    suspects = np.zeros(len(order), np.bool_)
    suspects[order[1:][is_alike]] = suspects[order[:-1][is_alike]] = True
    left, first = list[EventBatch](), 0
    for batch in batches:
        places = np.flatnonzero(suspects[first : first + len(batch)])
        first += len(batch)
        repeats = _repeats(batch.take(places))
        if repeats:
            batch = batch.take(np.delete(np.arange(len(batch)), places[repeats]))
        left.append(batch)
    return left, order_of(left)


def _repeats(batch: EventBatch) -> list[int]:
    """The places of events that stand in the batch before."""
    from matcher.contents import marks_of  # which compiles: half a second that few readers need

    named = zip(batch.ids.source.tolist(), batch.ids.printed(), marks_of(batch), strict=True)
    known, repeats = set[tuple[str, str, bytes]](), list[int]()
    for place, name in enumerate(named):
        repeats.append(place) if name in known else known.add(name)
    return repeats


def _keys(batches: Sequence[EventBatch]) -> tuple[Int64s, Int64s, Int64s]:
    """The numbers, sources and times of events, sources as numbers in the order of their names."""
    names = sorted({name for one in batches for name in one.ids.source.values})
    places = {name: place for place, name in enumerate(names)}
    sources = [
        np.array([places[name] for name in one.ids.source.values], np.int64)[one.ids.source.codes]
        for one in batches
    ]
    return (
        np.concatenate([one.ids.sequence for one in batches]),
        np.concatenate(sources),
        np.concatenate([one.time for one in batches]),
    )

"""Recorded events as sources publish them: at their own times, under their own identities.

The events of one source keep their order (tesla.md E4: a file's lines). One that stands behind a
later one in its file is published as late as that; the source knows its recording, so it promises
the least time of what is still to come, and nothing is late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from matcher.formats.files import EventFile
from matcher.formats.intake import Intake
from matcher.model import MICROSECONDS, TIME_MAX, EventBatch, EventType, Int64s
from matcher.single import Single, singles
from simulator.clients import Publication

AT_ONCE = 256
"""Events that are made single together."""


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The events of one source, as they were read or made.

    ``declared``: types that it advertises beside those of its events. ``span``: from when to when
    it is there, in us; it promises from its begin on, and leaves at its end. Without one it says
    nothing before its first event, and leaves once its last one is acknowledged.
    """

    name: str
    batches: tuple[EventBatch, ...]
    declared: tuple[EventType, ...] = ()
    span: tuple[int, int] | None = None

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    @property
    def types(self) -> tuple[EventType, ...]:
        """The types that the source publishes."""
        published = (batch.type for batch in self.batches)
        return tuple({one.name: one for one in (*self.declared, *published)}.values())

    @property
    def least_time(self) -> int:
        """The time of the earliest event, or from when on the source is there, in us."""
        return min(self._ends())

    @property
    def greatest_time(self) -> int:
        """The time of the latest event, or until when the source is there, in us."""
        return max(self._ends())

    def _ends(self) -> Iterator[int]:
        yield from self.span or ()
        for batch in self.batches:
            yield int(batch.time.min())
            yield int(batch.time.max())

    def publications(self) -> Iterator[Publication]:
        """Publications of the source, in order: the events that share a moment go together."""
        begin, end = self.span or (None, TIME_MAX)
        if begin is not None:
            least = min((int(batch.time.min()) for batch in self.batches), default=end)
            yield Publication(begin / MICROSECONDS, (), least)
        if self.batches:
            yield from self._events(end)
        if end != TIME_MAX:
            yield Publication(end / MICROSECONDS, (), None)

    def _events(self, end: int) -> Iterator[Publication]:
        owners, rows, times = self._in_order()
        ones = _Ones(self.batches)
        moments = np.maximum.accumulate(times)
        rest = np.append(np.minimum.accumulate(times[::-1])[::-1], end)
        starts = np.flatnonzero(np.append(True, moments[1:] != moments[:-1]))
        for first, last in _spans(starts, len(times)):
            promise = int(rest[last])
            if last - first == 1:
                batches: tuple[EventBatch, ...] = (ones.at(int(owners[first]), int(rows[first])),)
            else:
                batches = self._select(owners[first:last], rows[first:last])
            moment = int(moments[first]) / MICROSECONDS
            yield Publication(moment, batches, None if promise == TIME_MAX else promise)

    def _in_order(self) -> tuple[Int64s, Int64s, Int64s]:
        """For each event in its source's order: its batch, its row there, and its time."""
        sizes = [len(batch) for batch in self.batches]
        owners = np.repeat(np.arange(len(sizes)), sizes)
        rows = np.concatenate([np.arange(size) for size in sizes])
        numbers = np.concatenate([batch.ids.sequence for batch in self.batches])
        times = np.concatenate([batch.time for batch in self.batches])
        order = np.argsort(numbers, kind="stable")
        return owners[order], rows[order], times[order]

    def _select(self, owners: Int64s, rows: Int64s) -> tuple[EventBatch, ...]:
        return tuple(
            self.batches[owner].take(rows[owners == owner]) for owner in np.unique(owners).tolist()
        )


def _spans(starts: Int64s, end: int) -> Iterator[tuple[int, int]]:
    """From each place to the next, the last up to ``end``; lists are made of few at a time."""
    for part in range(0, len(starts), AT_ONCE):
        places = starts[part : part + AT_ONCE + 1].tolist()
        if part + AT_ONCE >= len(starts):
            places.append(end)
        yield from pairwise(places)


class _Ones:
    """The events of some batches one by one, in about the batches' order."""

    def __init__(self, batches: Sequence[EventBatch]) -> None:
        self._batches = batches
        self._made: dict[int, tuple[int, list[Single]]] = {}
        """By batch: which part of it was made single last."""

    def at(self, owner: int, row: int) -> Single:
        """The event at a row of a batch."""
        part, place = divmod(row, AT_ONCE)
        made = self._made.get(owner)
        if made is None or made[0] != part:
            rows = slice(part * AT_ONCE, (part + 1) * AT_ONCE)
            made = self._made[owner] = part, singles(self._batches[owner].take(rows))
        return made[1][place]


def read(path: Path, type_name: str | None, declared: Mapping[str, EventType]) -> list[Recording]:
    """The recordings of a file, one for each source that its events bear, by name.

    Events that name no source have the file's name (tesla.md E3). Raises EventError with the
    place of a bad event, and OSError.
    """
    intake = Intake(declared)
    found: dict[str, list[EventBatch]] = {}
    for chunk in EventFile(path, path.name, type_name).read(intake):
        for batch in chunk.batches:
            for source, own in _by_source(batch):
                found.setdefault(source, []).append(own)
    return [Recording(name, tuple(parts)) for name, parts in sorted(found.items())]


def _by_source(batch: EventBatch) -> Iterator[tuple[str, EventBatch]]:
    source = batch.ids.source
    for code in np.unique(source.codes).tolist():
        yield source.values[code], batch.take(source.codes == code)

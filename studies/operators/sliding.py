"""Sliding windows: each event that comes, and those that it drives out.

Sequentially: an event enters the window; then those that are beyond its length, or older than its
duration, leave it, the oldest first. The changes are told in this order: for each event that comes
first what it drives out, expired, and then itself, current.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matcher.joining import are_alike, concatenated
from matcher.model import TIME_MIN, Bools, EventBatch, EventType, Int64s
from studies.operators.conditions import condition_of
from studies.operators.filters import Filter, Sieve, both, check_type, sent
from studies.operators.kernels.bodies import LEAVES
from studies.operators.linear import NO_PROGRAM, Columns, Linear, counted
from studies.operators.operator import Operator, Work
from studies.operators.places import AUTO, Place, Turn, Words
from studies.operators.texts import Texts
from studies.operators.windows import Extent, Order, Ring


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Changes of a window: n events in order, and which of them left it."""

    events: EventBatch
    expired: Bools

    def __len__(self) -> int:
        return len(self.expired)


class Window(Operator[EventBatch, Changes]):
    """The events that come into a window of a stream, and those that leave it, in order.

    ``where``: a condition of events that come at all, evaluated ahead of the window in the same
    place. Events keep their ids; all must be known in one way (numbers, texts or digests), else
    ValueError. ``auto`` is the processor: finding what leaves a window costs less than a copy.
    """

    def __init__(
        self, type_: EventType, extent: Extent, *, where: str = "", device: str | Place = AUTO
    ) -> None:
        super().__init__(
            device,
            Texts(),
            lambda place: Window(type_, extent, where=where, device=place),
        )
        self.type, self.extent, self.where = type_, extent, where
        self._columns = Columns(type_)
        self._sieve: Sieve | None = None
        if where.strip():
            conditions = condition_of(type_, where)
            self._sieve = Sieve(self.place, self._texts, self._columns, conditions)
        place = self.place
        self._code = place.constant(Linear(self._texts, self._columns).code)
        self._none = place.constant(counted([]))
        self._ring = Ring(place, 2, extent)
        self._order = Order()
        self._kept = _History()

    def behind(self, ahead: Filter) -> Window:
        """The same behind a filter, as one operator; ValueError if it has begun."""
        where = both(ahead, self.type, self.where, self._order)
        return Window(self.type, self.extent, where=where, device=self.asked)

    def _rings(self) -> Sequence[Ring]:
        return (self._ring,)

    def _check(self, batch: EventBatch) -> None:
        check_type(batch, self.type)
        self._order.check(batch)
        self._ring.check(len(batch))
        self._kept.check(batch)

    def _send(self, turn: Turn, batch: EventBatch) -> Words:
        return sent(turn, "batch", batch, self._columns, self._texts)

    def _work(self, turn: Turn, batch: EventBatch, sent: Words) -> Work[Changes]:
        results, ring = self._results(turn), self._ring
        latest, words, kept = self._order.check(batch), sent, batch
        if self._sieve is not None and len(batch):
            self._sieve.flag(turn, "batch", words, len(batch), results)
            turn.wait()
            count = self._sieve.kept(turn, "batch")
            words = self._sieve.gather(turn, "batch", words, len(batch), count, 1)
            turn.ask("places", turn.words("batch places", count), 0, count)
            turn.wait()
            kept = batch.take(turn.answer("places", count))
        count = len(kept)
        ring.reserve(turn, count)
        into = (1, ring.words, ring.capacity, ring.end)
        turn.run("append", count, words, count, *into, self._code, NO_PROGRAM, self._none, *results)
        lows = turn.words("lows", count)
        window = (ring.start, ring.end, ring.length, ring.duration)
        turn.run("oldest", count, ring.words, ring.capacity, *window, lows)
        before = ring.end - ring.start
        most = 2 * count + before
        turns = turn.words("turns", most)
        turn.run("arrange", most, lows, count, ring.start, ring.end, turns)
        turn.ask("lows", lows, max(count - 1, 0), min(count, 1))
        work = _Sliding(ring, turn, turns, self._kept.take_in(kept, ring.start), count)
        # What the filter dropped drives nothing out.
        ring.advance(count, int(kept.time[-1]) if count else TIME_MIN)
        self._order.latest = latest
        return work

    def _forget(self) -> None:
        self._finish_all()
        self._texts.forget(np.empty(0, np.int64))  # the window holds times alone


class _Sliding:
    """A batch that enters a window."""

    def __init__(self, ring: Ring, turn: Turn, turns: Words, line: EventBatch, count: int) -> None:
        self._ring, self._turn, self._turns, self._line = ring, turn, turns, line
        self._start, self._count = ring.start, count
        self._changes: int | None = None

    def settle(self) -> None:
        if self._changes is None:
            self._turn.wait()
            left = 0
            if self._count:
                gone = int(self._turn.answer("lows", 1)[0])
                left, self._ring.start = gone - self._start, max(gone, self._ring.start)
            self._changes = self._count + left
            self._turn.ask("turns", self._turns, 0, self._changes)

    def result(self) -> Changes:
        self._turn.wait()
        assert self._changes is not None
        turns: Int64s = self._turn.answer("turns", self._changes)
        expired = turns < 0
        numbers = turns + np.where(expired, LEAVES, 0)
        first = self._start
        return Changes(self._line.take(numbers - first), expired)


class _History:
    """The events of a window themselves, in the batches that they came in."""

    def __init__(self) -> None:
        self._batches: list[EventBatch] = []
        self._begin = 0

    def check(self, batch: EventBatch) -> None:
        """ValueError for events whose ids are of another form than those that are held."""
        if self._batches and not are_alike(self._batches[-1], batch):
            raise ValueError(
                f"events of {batch.type.name} whose ids are of another form than those before: "
                f"a window holds events known by numbers, or by texts, or by digests"
            )

    def take_in(self, batch: EventBatch, start: int) -> EventBatch:
        """The events from number ``start`` on, with those of a batch behind them; what is before
        is forgotten.
        """
        while self._batches and self._begin + len(self._batches[0]) <= start:
            self._begin += len(self._batches.pop(0))
        self._batches.append(batch)
        whole = concatenated(self._batches)
        if len(self._batches) > 64:  # else concatenating would take ever longer
            self._batches = [whole]
        return whole.take(slice(start - self._begin, None))

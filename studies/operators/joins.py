"""Joins: pairs of events of two streams, each in the other's window when it comes.

Sequentially: events of both streams come in order of time, at one time those of the right stream
first. One that comes meets every event that is in the other stream's window then, the oldest first,
and gives an event for each that satisfies the condition with it. Then it enters its own window.

So an event meets a range of the other stream, known by binary search: nothing is locked, and no
pair is lost or found in vain where a batch holds both of its events. The dissertation that had the
join first matched each batch with the window as it was before (``exact=False``): it loses pairs and
finds others that are no more; ``loss`` says how many.

How a condition is taken apart is told in :mod:`studies.operators.joinplan`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from matcher.model import EventBatch
from studies.operators.conditions import LEFT, RIGHT, Named, join_of
from studies.operators.filters import check_type, sent
from studies.operators.joinplan import programs_of
from studies.operators.linear import Columns, numbered
from studies.operators.operator import Operator, Work
from studies.operators.pairing import SIDES, Joined, Joining, Loss, Side, Stream, Told
from studies.operators.places import AUTO, Place, Turn, Words
from studies.operators.texts import Texts
from studies.operators.windows import Order, Ring

Pair: TypeAlias = tuple[EventBatch | None, EventBatch | None]
"""New events of the left stream and of the right one."""
BOTH = "both"


class Join(Operator[Pair, EventBatch]):
    """Events of two streams that satisfy a condition together.

    ``on`` is a condition as in a rule, of both streams' events by their names; ``select`` gives the
    attributes of the events that come out, which are of the type ``name``: their time is that of
    the later event, their source ``name``, their ids 1, 2 and so on. ``within``, in microseconds,
    bounds the time between both. ``trigger``: which stream's events look for others when they
    come, ``left``, ``right`` or ``both``.

    :meth:`push` takes a pair of batches, of which either may be None. Where a value of ``select``
    is undefined (tesla.md S9) no event comes out.

    Raises RuleErrors for a condition or a value that is none.
    """

    def __init__(
        self,
        left: Stream,
        right: Stream,
        on: str,
        select: Mapping[str, str],
        *,
        name: str = "Joined",
        within: int | None = None,
        trigger: str = BOTH,
        exact: bool = True,
        device: str | Place = AUTO,
    ) -> None:
        if trigger not in (*SIDES, BOTH):
            raise ValueError(f"trigger {trigger!r}: it is left, right or both")
        streams = (left, right)
        super().__init__(
            device,
            Texts(),
            lambda place: Join(
                left,
                right,
                on,
                dict(select),
                name=name,
                within=within,
                trigger=trigger,
                exact=exact,
                device=place,
            ),
        )
        first, second = (Named(one.type, one.name) for one in streams)
        self.type, conditions, values = join_of(name, first, second, on, select)
        self.loss = Loss()
        self._triggers = tuple(place for place, side in enumerate(SIDES) if trigger in (side, BOTH))
        columns = (Columns(left.type), Columns(right.type))
        programs = programs_of(self.place, self._texts, columns, conditions, values)
        one, other = (
            Side(self.place, self._texts, stream, own, kinds, within)
            for stream, own, kinds in zip(streams, columns, programs.kinds, strict=True)
        )
        self._of = Joined((one, other), programs, exact)
        self._order = Order()
        self._emitted = 0

    def enter(self, batch: Pair) -> None:
        """Let events into the windows that meet nobody: those that came before there was a join."""
        if self._instead is not None:
            self._instead.enter(batch)
            return
        triggers, self._triggers = self._triggers, ()
        try:
            self.push(batch)
        finally:
            for join in (self, self._instead):  # a device may have failed meanwhile
                if isinstance(join, Join):
                    join._triggers = triggers

    def _size(self, batch: Pair) -> int:
        return sum(len(part) for part in batch if part is not None)

    def _hand_over(self, other: Operator[Pair, EventBatch]) -> None:
        assert isinstance(other, Join)
        other._emitted, other.loss, other._triggers = self._emitted, self.loss, self._triggers

    def _rings(self) -> Sequence[Ring]:
        return [side.ring for side in self._of.sides]

    def _check(self, batch: Pair) -> None:
        for side, part in zip(self._of.sides, batch, strict=True):
            if part is not None:
                check_type(part, side.stream.type)
                self._order.check(part)
                side.ring.check(len(part))

    def _send(self, turn: Turn, batch: Pair) -> list[tuple[Words, int]]:
        found: list[tuple[Words, int]] = []
        for name, side, part in zip(SIDES, self._of.sides, batch, strict=True):
            if part is None or not len(part):
                found.append((turn.words(name, 1), 0))
            else:
                found.append((sent(turn, name, part, side.columns, self._texts), len(part)))
        return found

    def _work(self, turn: Turn, batch: Pair, sent: list[tuple[Words, int]]) -> Work[EventBatch]:
        results = self._results(turn)
        times = [self._order.check(part) for part in batch if part is not None]
        latest = max([self._order.latest, *times])
        counts = [self._append(turn, place, *sent[place], results) for place in (LEFT, RIGHT)]
        work = Joining(self._of, turn, results, self._tell)
        for place in self._triggers:
            if counts[place]:
                work.begin(place, counts)
        for side, count in zip(self._of.sides, counts, strict=True):
            side.ring.advance(count, latest)
        self._order.latest = latest
        return work

    def _append(
        self, turn: Turn, place: int, words: Words, count: int, results: tuple[Words, int]
    ) -> int:
        """Put new events into a window; how many, once they are filtered."""
        side, step = self._of.sides[place], count
        if side.sieve is not None and count:
            name = SIDES[place]
            side.sieve.flag(turn, name, words, count, results)
            turn.wait()
            kept = side.sieve.kept(turn, name)
            words = side.sieve.gather(turn, name, words, count, kept, side.raw)
            count = step = kept
        side.ring.reserve(turn, count)
        ring = (side.ring.words, side.ring.capacity, side.ring.end)
        of = self._of.programs
        programs = (of.code, of.alone[place], of.hoisted[place])
        turn.run("append", count, words, step, side.raw, *ring, *programs, *results)
        return count

    def _forget(self) -> None:
        self._finish_all()
        used = [
            (side.ring, column, side.ring.column(column))
            for side in self._of.sides
            for column in side.texts
        ]
        codes = self._texts.forget(np.concatenate([np.empty(0, np.int64), *(c for *_, c in used)]))
        for ring, column, values in used:
            ring.replace(column, codes[values])

    def _tell(self, told: Told) -> EventBatch:
        """The events that come out, from the words that were selected for each trigger."""
        parts, losses = told
        width = 2 + self._of.programs.width
        words = np.concatenate(parts, axis=1) if parts else np.empty((width, 0), np.int64)
        words = words[:, words[-1] != 0]
        words = words[:, np.argsort(words[0], kind="stable")]
        for loss in losses:
            self.loss.add(loss)
        begin, count = self._emitted + 1, words.shape[1]
        self._emitted += count
        return numbered(self.type, words[:-1], begin, self._texts)

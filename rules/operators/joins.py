"""Joins: pairs of events of two streams, each in the other's window when it comes.

Sequentially: events of both streams come in order of time, at one time those of the right stream
first. One that comes meets every event that is in the other stream's window then, the oldest first,
and gives an event for each that satisfies the condition with it. Then it enters its own window.

So an event meets a range of the other stream, known by binary search: nothing is locked, and no
pair is lost or found in vain where a batch holds both of its events. The dissertation that had the
join first matched each batch with the window as it was before (``exact=False``): it loses pairs and
finds others that are no more; ``loss`` says how many.

Of the condition, what speaks of one event is worked out when that enters, and so is each side of a
comparison of one event with the other; what is compared for each pair is two words. Only what mixes
both events is run for the pairs that are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import numpy as np

from matcher.model import Column, EventBatch, EventIds, EventType, Int64s, Kind, StringColumn
from rules.operators.conditions import LEFT, RIGHT, Named, condition_of, join_of
from rules.operators.filters import Sieve, check_type, sent
from rules.operators.kernels.machine import SAME
from rules.operators.linear import (
    MIRRORED,
    Columns,
    Linear,
    columns_of,
    comparison_of,
    events_in,
    is_by_words,
)
from rules.operators.operator import Operator, Work
from rules.operators.places import AUTO, Place, Turn, Words, place_of
from rules.operators.texts import Texts
from rules.operators.windows import UNBOUNDED, Extent, Length, Order, Ring
from rules.terms import Compare, Expression

Pair: TypeAlias = tuple[EventBatch | None, EventBatch | None]
"""New events of the left stream and of the right one."""
ROOM_MAX = 2**22
"""Pairs that are written at a time, so that memory on a device is bounded."""
PAYS_FROM = 1_000
"""``auto`` takes a device where a window is of so many events, or of a time."""
BOTH = "both"
_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Stream:
    """One side of a join: its events' type, their name in the condition, and their window.

    ``where``: a condition of events that come at all, as of a filter ahead of the window.
    """

    type: EventType
    name: str
    window: Extent
    where: str = ""


@dataclass(slots=True)
class Loss:
    """What a join by snapshots has found, beside the exact one: pairs."""

    exact: int = 0
    lost: int = 0
    spurious: int = 0


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
        if trigger not in (*_SIDES, BOTH):
            raise ValueError(f"trigger {trigger!r}: it is left, right or both")
        streams = (left, right)
        super().__init__(
            place_of(device, pays=any(map(_is_wide, streams))),
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
        self.exact, self.loss = exact, Loss()
        self._triggers = tuple(
            place for place, side in enumerate(_SIDES) if trigger in (side, BOTH)
        )
        columns = (Columns(left.type), Columns(right.type))
        linear = Linear(self._texts, *columns)
        plan = _planned(conditions)
        compared = [comparison_of(one) for one in plan.compared]
        self._rest = linear.conjunction(plan.rest)
        own = [linear.conjunction(plan.alone[side]) for side in (LEFT, RIGHT)]
        hoisted = (
            linear.values(one.left for one in plan.compared),
            linear.values(one.right for one in plan.compared),
        )
        selected = linear.values(values)
        kinds = [
            [one.left.kind for one in plan.compared],
            [one.right.kind for one in plan.compared],
        ]
        self._sides = tuple(
            _Side(self.place, self._texts, streams[side], columns[side], kinds[side], within)
            for side in (LEFT, RIGHT)
        )
        self._texts.settle()
        place = self.place
        self._code = place.constant(linear.code)
        self._own, self._hoisted = own, [place.constant(one) for one in hoisted]
        self._compared = place.constant(np.array([(len(compared), 0), *compared], np.int64))
        self._selected = place.constant(selected)
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
            self._triggers = triggers

    def _hand_over(self, other: Operator[Pair, EventBatch]) -> None:
        assert isinstance(other, Join)
        other._emitted, other.loss = self._emitted, self.loss

    def _rings(self) -> Sequence[Ring]:
        return [side.ring for side in self._sides]

    def _check(self, batch: Pair) -> None:
        for side, part in zip(self._sides, batch, strict=True):
            if part is not None:
                check_type(part, side.stream.type)
                self._order.check(part)
                side.ring.check(len(part))

    def _send(self, turn: Turn, batch: Pair) -> list[tuple[Words, int]]:
        found: list[tuple[Words, int]] = []
        for name, side, part in zip(_SIDES, self._sides, batch, strict=True):
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
        work = _Joining(self, turn, results)
        for place in self._triggers:
            if counts[place]:
                work.begin(place, counts)
        for side, count in zip(self._sides, counts, strict=True):
            side.ring.advance(count, latest)
        self._order.latest = latest
        return work

    def _append(
        self, turn: Turn, place: int, words: Words, count: int, results: tuple[Words, int]
    ) -> int:
        """Put new events into a window; how many, once they are filtered."""
        side, step = self._sides[place], count
        if side.sieve is not None and count:
            name = _SIDES[place]
            side.sieve.flag(turn, name, words, count, results)
            turn.wait()
            kept = side.sieve.kept(turn, name)
            words = side.sieve.gather(turn, name, words, count, kept, side.raw)
            count = step = kept
        side.ring.reserve(turn, count)
        ring = (side.ring.words, side.ring.capacity, side.ring.end)
        programs = (self._code, self._own[place], self._hoisted[place])
        turn.run("append", count, words, step, side.raw, *ring, *programs, *results)
        return count

    def _forget(self) -> None:
        self._finish_all()
        used = [
            (side.ring, column, side.ring.column(column))
            for side in self._sides
            for column in side.texts
        ]
        codes = self._texts.forget(np.concatenate([np.empty(0, np.int64), *(c for *_, c in used)]))
        for ring, column, values in used:
            ring.replace(column, codes[values])

    def batch_of(self, parts: Sequence[Int64s]) -> EventBatch:
        """The events that come out, from the words that were selected for each trigger."""
        words = np.concatenate(parts, axis=1) if parts else np.empty((2 + self.width, 0), np.int64)
        words = words[:, words[-1] != 0]
        words = words[:, np.argsort(words[0], kind="stable")]
        count = words.shape[1]
        kinds = [one.kind for one in self.type.attributes]
        columns = columns_of(words[1:-1], kinds, self._texts)
        begin, self._emitted = self._emitted + 1, self._emitted + count
        ids = EventIds(
            StringColumn.constant(self.type.name, count), np.arange(begin, begin + count)
        )
        made = cast("tuple[Column, ...]", tuple(columns))
        return EventBatch(self.type, words[0].copy(), ids, made)

    @property
    def width(self) -> int:
        """How many attributes come out."""
        return len(self.type.attributes)


class _Side:
    """One stream's window."""

    def __init__(
        self,
        place: Place,
        texts: Texts,
        stream: Stream,
        columns: Columns,
        kinds: Sequence[Kind],
        within: int | None,
    ) -> None:
        self.stream, self.columns = stream, columns
        self.raw = len(columns)
        self.texts = columns.texts
        self.texts += [self.raw + 1 + k for k, kind in enumerate(kinds) if kind is Kind.STRING]
        more = UNBOUNDED if within is None else within
        self.ring = Ring(place, self.raw + 1 + len(kinds), stream.window, more)
        self.sieve: Sieve | None = None
        if stream.where.strip():  # its columns stand behind those that are kept
            conditions = condition_of(stream.type, stream.where)
            self.sieve = Sieve(place, texts, columns, conditions)


class _Joining:
    """A batch that is joined."""

    def __init__(self, join: Join, turn: Turn, results: tuple[Words, int]) -> None:
        self._join, self._turn, self._results = join, turn, results
        self._parts: list[_Part] = []
        self._settled = False

    def begin(self, side: int, counts: Sequence[int]) -> None:
        """Count the pairs that the new events of a side make."""
        self._parts.append(_Part(self._join, self._turn, self._results, side, counts))

    def settle(self) -> None:
        if self._settled:
            return
        self._settled = True
        self._turn.wait()
        for part in self._parts:
            part.emit(0)

    def result(self) -> EventBatch:
        join, made = self._join, []
        # At one time the right stream's events came first: a stable sort keeps it so.
        for part in self._parts[::-1]:
            made += part.words()
        for part in self._parts:
            join.loss.exact += part.loss.exact
            join.loss.lost += part.loss.lost
            join.loss.spurious += part.loss.spurious
        return join.batch_of(made)


class _Part:
    """The pairs of one side's new events."""

    def __init__(
        self,
        join: Join,
        turn: Turn,
        results: tuple[Words, int],
        side: int,
        counts: Sequence[int],
    ) -> None:
        self._join, self._turn, self._results = join, turn, results
        self._mine, self._theirs = join._sides[side], join._sides[1 - side]
        self._flipped, self._count = int(side == RIGHT), counts[side]
        self._name = _SIDES[side]
        mine, theirs = self._mine.ring, self._theirs.ring
        self._my_end, self._their_end = mine.end, theirs.end
        self._rings = (mine.words, mine.capacity, theirs.words, theirs.capacity)
        new = counts[1 - side]
        population = theirs.end + new - theirs.start
        self._slices = join.place.slices(self._count, population)
        self._size = -(-population // self._slices) if population else 1
        self.loss, self._total = Loss(), 0
        self._exact = self._spans("exact", new, UNBOUNDED)
        self._counted = ["exact"]
        if not join.exact:
            self._count_snapshot(new)
        else:
            self._count_pairs("exact", self._exact)

    def _count_snapshot(self, new: int) -> None:
        """Count the pairs as they were published, the exact ones, and those that are both."""
        visible, last = (new, self._their_end + new) if self._flipped else (0, self._their_end)
        published = self._spans("published", visible, last)
        both = self._turn.words(f"{self._name} both spans", 2 * self._count)
        self._turn.run("common", self._count, self._exact, published, both)
        for name, spans in (("exact", self._exact), ("both", both), ("published", published)):
            self._count_pairs(name, spans)
        self._counted = ["exact", "both", "published"]
        self._exact = published

    def _spans(self, name: str, new: int, snapshot: int) -> Words:
        spans = self._turn.words(f"{self._name} {name} spans", 2 * self._count)
        mine, my_capacity, theirs, their_capacity = self._rings
        ring = self._theirs.ring
        self._turn.run(
            "span",
            self._count,
            mine,
            my_capacity,
            self._my_end,
            theirs,
            their_capacity,
            ring.start,
            self._their_end,
            self._their_end + new,
            ring.length,
            ring.duration,
            1 - self._flipped,  # at one time the right stream's events come first
            snapshot,
            spans,
        )
        return spans

    def _count_pairs(self, name: str, spans: Words) -> None:
        turn, count = self._turn, self._count
        counts = turn.words(f"{self._name} {name} counts", count * self._slices)
        totals = turn.words(f"{self._name} {name} totals", count + 1)
        self._pair(spans, counts, totals, totals, 0, UNBOUNDED)
        turn.run("total", count, count, self._slices, counts, totals)
        turn.scan(f"{self._name} {name}", totals, count)
        turn.ask(f"{self._name} {name}", totals, count, 1)
        self._counts, self._totals = counts, totals

    def _pair(
        self, spans: Words, counts: Words, totals: Words, pairs: Words, skip: int, room: int
    ) -> None:
        mine, my_capacity, theirs, their_capacity = self._rings
        join = self._join
        self._turn.run(
            "pair",
            self._count * self._slices,
            self._count,
            self._slices,
            self._size,
            spans,
            mine,
            my_capacity,
            self._my_end,
            theirs,
            their_capacity,
            self._flipped,
            self._mine.raw,
            self._theirs.raw,
            join._compared,
            join._code,
            join._rest,
            *self._results,
            counts,
            totals,
            pairs,
            skip,
            room,
        )

    def emit(self, skip: int) -> None:
        """Begin to write the pairs from number ``skip`` on; the turn has been waited for."""
        turn, join = self._turn, self._join
        if skip == 0:
            found = [int(turn.answer(f"{self._name} {one}", 1)[0]) for one in self._counted]
            self._total = found[-1]
            self.loss = Loss(found[0])
            if not join.exact:
                self.loss = Loss(found[0], found[0] - found[1], found[2] - found[1])
        rows = self._rows(skip)
        if not rows:
            return
        pairs = turn.words(f"{self._name} pairs", 2 * rows)
        self._pair(self._exact, self._counts, self._totals, pairs, skip, rows)
        size = (2 + join.width) * rows
        out = turn.words(f"{self._name} selected", size)
        programs = (join._code, join._selected, *self._results)
        turn.run("select", rows, pairs, self._flipped, *self._rings, *programs, out, rows)
        turn.ask(f"{self._name} selected", out, 0, size)

    def _rows(self, skip: int) -> int:
        return min(self._total - skip, ROOM_MAX)

    def words(self) -> list[Int64s]:
        """What was selected, int64[2 + attributes, pairs]."""
        made, skip = [], 0
        while skip < self._total:
            self._turn.wait()
            rows = self._rows(skip)
            width = 2 + self._join.width
            found = self._turn.answer(f"{self._name} selected", width * rows)
            made.append(found.reshape(width, rows))
            skip += rows
            if skip < self._total:
                self.emit(skip)
        return made


@dataclass(slots=True)
class _Plan:
    """A join's condition in its parts."""

    alone: tuple[list[Expression], list[Expression]] = field(default_factory=lambda: ([], []))
    compared: list[Compare] = field(default_factory=list)
    """Left of each the left event, right the right one; equalities first."""
    rest: list[Expression] = field(default_factory=list)


def _planned(conditions: Sequence[Expression]) -> _Plan:
    plan = _Plan()
    for condition in conditions:
        events = events_in(condition)
        compare = _apart(condition)
        if events <= {LEFT}:
            plan.alone[LEFT].append(condition)
        elif events <= {RIGHT}:
            plan.alone[RIGHT].append(condition)
        elif compare is not None:
            plan.compared.append(compare)
        else:
            plan.rest.append(condition)
    plan.compared.sort(key=lambda one: comparison_of(one)[1] != SAME)
    return plan


def _apart(condition: Expression) -> Compare | None:
    """A comparison of what the left event has with what the right one has; None for another."""
    if not isinstance(condition, Compare) or not is_by_words(condition):
        return None
    sides: Any = (events_in(condition.left), events_in(condition.right))
    if sides == ({LEFT}, {RIGHT}):
        return condition
    if sides == ({RIGHT}, {LEFT}):
        return replace(
            condition,
            comparison=MIRRORED[condition.comparison],
            left=condition.right,
            right=condition.left,
        )
    return None


def _is_wide(stream: Stream) -> bool:
    return not isinstance(stream.window, Length) or stream.window.events >= PAYS_FROM

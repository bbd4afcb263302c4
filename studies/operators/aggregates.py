"""Aggregates over a sliding window, by group: one event comes out for each that comes.

Sequentially: an event enters the window, and what is too old leaves it; then each aggregate is
computed over the events of the window that are of the event's group. Values are those of TESLA
(tesla.md S8): sums of ints are exact, averages the nearest float to the exact quotient, and so are
sums of floats. Where a value is undefined (S9), no event comes out.

The processor adds what comes to its group and takes away what leaves. A device has no such order:
it looks at the whole window for each event, many threads an event, as a join does. It does so for
``Count``, ``Min`` and ``Max``, and for ``Sum`` and ``Avg`` of ints, whose exact sum is two words.
An exact sum of floats is up to 68; an operator with one is the processor's, wherever it was to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from matcher.model import (
    TIME_MIN,
    EventBatch,
    EventType,
    Int64s,
    Kind,
)
from rules.terms import CANDIDATE, Aggregate as Term, Function
from studies.operators.conditions import aggregates_of, condition_of
from studies.operators.filters import Filter, Sieve, both, check_type, sent
from studies.operators.kernels import sliding
from studies.operators.kernels.bodies import IS_FLOAT, PARTS
from studies.operators.linear import NO_PROGRAM, Columns, Linear, counted, events_in, numbered
from studies.operators.operator import Operator, Work
from studies.operators.places import AUTO, HOST, Place, Turn, Words, place_of
from studies.operators.texts import Texts
from studies.operators.windows import Extent, Order, Ring, power_of_two

_NUMBERS = {
    Function.COUNT: sliding.OF_COUNT,
    Function.SUM: sliding.OF_SUM,
    Function.AVG: sliding.OF_AVG,
    Function.MIN: sliding.OF_MIN,
    Function.MAX: sliding.OF_MAX,
}
_SUMS = (sliding.OF_SUM, sliding.OF_AVG)
GROUPS_MIN = 1_024


class Aggregate(Operator[EventBatch, EventBatch]):
    """Aggregates over the window of a stream, for each event of its own group.

    ``by`` are the attributes that make a group (none: all events are one); ``select`` gives the
    aggregates as in a rule, without a window: ``{"mean": "Avg(Temp().value)"}``. What comes out is
    of the type ``name``, with the group's attributes and the aggregates, at the time of the event
    that came; its source is ``name``, its ids are 1, 2 and so on. ``where``: a condition of events
    that come at all, evaluated ahead of the window in the same place.

    Raises RuleErrors for a text that is none; ValueError for an aggregate that an operator has not.
    """

    def __init__(
        self,
        type_: EventType,
        extent: Extent,
        select: Mapping[str, str],
        *,
        by: Sequence[str] = (),
        name: str = "Aggregated",
        where: str = "",
        device: str | Place = AUTO,
    ) -> None:
        self.type, keys, terms = aggregates_of(name, type_, by, select)
        for key, term in zip(select, terms, strict=True):
            _check_term(f"{key} = {select[key]}", term)
        functions = [_NUMBERS[term.function] for term in terms]
        kinds = [int(term.value is not None and term.value.kind is Kind.FLOAT) for term in terms]
        self.on_processor = any(
            kind == IS_FLOAT and one in _SUMS for one, kind in zip(functions, kinds, strict=True)
        )
        """Whether an exact sum of floats keeps it there."""
        of = (type_, extent, dict(select))

        def again(place: str | Place, where: str = where) -> Aggregate:
            return Aggregate(*of, by=tuple(by), name=name, where=where, device=place)

        place_of(device)  # raises where there is none
        super().__init__(HOST if self.on_processor else device, Texts(), again)
        self._with = again
        self.taken, self.where = type_, where
        columns = self._columns = Columns(type_)
        for attribute in keys:
            columns.of(attribute)
        self._keys = len(columns) - 1
        linear = Linear(self._texts, columns)
        conditions = [linear.conjunction(term.conditions) for term in terms]
        values = [NO_PROGRAM if term.value is None else linear.value(term.value) for term in terms]
        self._sieve: Sieve | None = None
        if where.strip():
            self._sieve = Sieve(self.place, self._texts, columns, condition_of(type_, where))
        self._texts.settle()
        place = self.place
        self._code = place.constant(linear.code)
        self._conditions, self._values = (
            place.constant(counted(conditions)),
            place.constant(counted(values)),
        )
        self.functions, self.kinds = counted(functions), counted(kinds)
        self._kinds = place.constant(self.kinds)
        self._first = 1 + self._keys
        self._ring = Ring(place, self._first + 2 * len(terms) + 1, extent)
        self._order = Order()
        self._groups = None if place.is_device else _Groups(self._ring, self)
        self._emitted = 0

    def behind(self, ahead: Filter) -> Aggregate:
        """The same behind a filter, as one operator; ValueError if it has begun."""
        return self._with(self.asked, both(ahead, self.taken, self.where, self._order))

    def _hand_over(self, other: Operator[EventBatch, EventBatch]) -> None:
        assert isinstance(other, Aggregate)
        other._emitted = self._emitted

    def _rings(self) -> Sequence[Ring]:
        return (self._ring,)

    @property
    def aggregates(self) -> int:
        """The number of aggregates."""
        return int(self.functions[0])

    def _check(self, batch: EventBatch) -> None:
        check_type(batch, self.taken)
        self._order.check(batch)
        self._ring.check(len(batch))

    def _send(self, turn: Turn, batch: EventBatch) -> Words:
        return sent(turn, "batch", batch, self._columns, self._texts)

    def _work(self, turn: Turn, batch: EventBatch, sent: Words) -> Work[EventBatch]:
        results, ring = self._results(turn), self._ring
        latest, words, count = self._order.check(batch), sent, len(batch)
        raw = self._first
        width = len(self._columns)
        if self._sieve is not None and count:
            self._sieve.flag(turn, "batch", words, count, results)
            turn.wait()
            kept = self._sieve.kept(turn, "batch")
            words = self._sieve.gather(turn, "batch", words, count, kept, width)
            count = kept
        moved = ring.reserve(turn, count)
        into = (raw, ring.words, ring.capacity, ring.end)
        programs = (self._code, self._conditions, self._values, *results)
        turn.run("append_values", count, words, count, *into, *programs)
        lows = turn.words("lows", count)
        window = (ring.start, ring.end, ring.length, ring.duration)
        turn.run("oldest", count, ring.words, ring.capacity, *window, lows)
        made = turn.words("made", PARTS * count * self.aggregates)
        if self._groups is not None:
            self._groups.slide(count, lows, made, moved)
        else:
            self._aggregate(turn, count, lows, made)
        turn.ask("made", made, 0, PARTS * count * self.aggregates)
        turn.ask("keys", words, 0, raw * count)
        self._order.latest = latest
        if self._groups is not None:  # what is to be taken away must be there until it is
            latest = int(words[count - 1]) if count else TIME_MIN
        ring.advance(count, latest)
        return _Aggregating(self, turn, count)

    def _aggregate(self, turn: Turn, count: int, lows: Words, made: Words) -> None:
        """Look at the window of each event, in slices."""
        ring, many = self._ring, self.aggregates
        population = ring.end + count - ring.start
        slices = self.place.slices(count * many, population)
        size = -(-population // slices) if population else 1
        threads = count * slices * many
        parts = turn.words("parts", PARTS * threads)
        window = (ring.words, ring.capacity, ring.end)
        cut = (count, slices, size, lows)
        kept = (self._keys, self._kinds, self._first, threads, parts)
        turn.run("aggregate", threads, *cut, *window, *kept)
        combined = (count, slices, self._kinds, threads, parts, made, count * many)
        turn.run("combine", count * many, *combined)

    def _forget(self) -> None:
        self._finish_all()
        columns = [one for one in self._columns.texts if one <= self._keys]
        values = [self._ring.column(one) for one in columns]
        codes = self._texts.forget(np.concatenate([np.empty(0, np.int64), *values]))
        for column, value in zip(columns, values, strict=True):
            self._ring.replace(column, codes[value])
        if self._groups is not None:
            self._groups.stale = True

    def batch_of(self, keys: Int64s, made: Int64s, count: int) -> EventBatch:
        """The events that come out: int64[1 + keys, n] words of those that came, and what was
        found of each aggregate.
        """
        many = self.aggregates
        out = np.empty((2 + many, count), np.int64)
        spare = np.empty(16, np.int64)
        step = count * many
        sliding.finish(count, self.functions, self.kinds, made, step, out.reshape(-1), count, spare)
        is_so = out[-1] != 0
        words = np.concatenate((keys, out[1:-1]))[:, is_so]
        begin = self._emitted + 1
        self._emitted += words.shape[1]
        return numbered(self.type, words, begin, self._texts)


class _Aggregating:
    """A batch that is aggregated."""

    def __init__(self, operator: Aggregate, turn: Turn, count: int) -> None:
        self._operator, self._turn, self._count = operator, turn, count

    def settle(self) -> None:
        self._turn.wait()

    def result(self) -> EventBatch:
        operator, turn, count = self._operator, self._turn, self._count
        rows = len(operator.type.attributes) - operator.aggregates + 1
        keys = turn.answer("keys", rows * count).reshape(rows, count)
        made = turn.answer("made", PARTS * count * operator.aggregates)
        return operator.batch_of(keys, made, count)


class _Groups:
    """State that the processor keeps of each group (studies.operators.kernels.sliding).

    Groups are not forgotten one by one: when there may be too many for the room, all is made anew
    from the events that the window holds.
    """

    def __init__(self, ring: Ring, operator: Aggregate) -> None:
        self._ring, self._operator = ring, operator
        self.stale = False
        self._gone = 0
        """The first event that has not been taken away."""
        self._make(GROUPS_MIN)

    def _make(self, room: int) -> None:
        operator, many = self._operator, self._operator.aggregates
        functions, kinds = operator.functions[1:], operator.kinds[1:]
        with_digits = bool((np.isin(functions, _SUMS) & (kinds == IS_FLOAT)).any())
        with_links = bool((functions >= sliding.OF_MIN).any())
        self._room = room
        self._table = np.full(2 * room, sliding.NONE, np.int64)
        self._keys = np.zeros((room, max(operator._keys, 1)), np.int64)
        self._groups = np.zeros(1, np.int64)
        self._numbers = np.zeros((many, room), np.int64)
        self._sums = np.zeros((many, room, 2), np.int64)
        digits = (many, room, sliding.DIGITS) if with_digits else (1, 1, 1)
        self._digits = np.zeros(digits, np.int64)
        links = (many, self._ring.capacity, 2) if with_links else (1, 1, 2)
        self._links = np.full(links, sliding.NONE, np.int64)
        self._ends = np.full((many, room, 2), sliding.NONE, np.int64)
        self._spare = np.zeros(sliding.DIGITS + 16, np.int64)
        self.stale = False

    def slide(self, count: int, lows: Int64s, made: Int64s, moved: bool) -> None:
        """Let new events come, which are in the ring behind its end."""
        if moved or self.stale or int(self._groups[0]) + count > self._room:
            self._again(count)
        if count:
            self._run(count, lows[:count], self._ring.end, made, count * self._operator.aggregates)
            self._gone = int(lows[count - 1])

    def _again(self, count: int) -> None:
        """Make all anew from what the window holds, with room for so many groups more."""
        live = self._ring.end - self._gone
        self._make(power_of_two(max(GROUPS_MIN, 2 * (live + count))))
        lows = np.full(live, self._gone, np.int64)
        self._run(live, lows, self._gone, np.empty(0, np.int64), 0)

    def _run(self, count: int, lows: Int64s, begin: int, made: Int64s, step: int) -> None:
        ring, operator = self._ring, self._operator
        sliding.slide(
            count,
            lows,
            self._gone,
            ring.words,
            ring.capacity,
            begin,
            operator._keys,
            operator._first,
            operator.functions,
            operator.kinds,
            self._table,
            self._keys,
            self._groups,
            self._numbers,
            self._sums,
            self._digits,
            self._links,
            self._ends,
            made,
            step,
            self._spare,
        )


def _check_term(text: str, term: Term) -> None:
    """ValueError for an aggregate that an operator has not."""
    if term.function not in _NUMBERS:
        raise ValueError(f"{text}: an operator has Count, Sum, Avg, Min and Max; write a rule")
    expressions = [*term.conditions, *([] if term.value is None else [term.value])]
    if any(events_in(one) - {CANDIDATE} for one in expressions):
        raise ValueError(f"{text}: it speaks of the event that came; group by an attribute")
    kind = None if term.value is None else term.value.kind
    if kind is Kind.STRING and term.function is not Function.COUNT:
        raise ValueError(
            f"{text}: an operator has no {term.function.value} of strings; write a rule"
        )

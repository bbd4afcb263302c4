"""Filters: the events of a stream that satisfy a condition, in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matcher.model import TIME_MIN, EventBatch, EventType, Int64s, Kind
from rules.terms import Expression, Literal
from studies.operators.conditions import condition_of
from studies.operators.linear import Columns, Linear
from studies.operators.operator import Operator, Work
from studies.operators.places import AUTO, Place, Turn, Words
from studies.operators.texts import Texts
from studies.operators.windows import Order

NONE = np.empty(0, np.int64)


class Filter(Operator[EventBatch, EventBatch]):
    """The events of ``type_`` that satisfy a condition, written as in a rule.

    >>> temp = EventType.of("Temp", area="string", value="float")
    >>> hot = Filter(temp, 'value > 30 and area prefix "ha"')

    It gives numbers of events alone (``places``) or the events. Only the columns that the condition
    reads are brought to a device, and numbers come back: one copy of words each way. ``auto`` is
    the processor, since a filter alone is no more than these copies.

    Raises RuleErrors for a text that is none, or of attributes that the type has not.
    """

    def __init__(self, type_: EventType, condition: str, *, device: str | Place = AUTO) -> None:
        super().__init__(
            device,
            Texts(),
            lambda place: Filter(type_, condition, device=place),
        )
        self.type, self.condition = type_, condition
        self._columns = Columns(type_)
        self.sieve = Sieve(self.place, self._texts, self._columns, condition_of(type_, condition))

    def places(self, batch: EventBatch) -> Int64s:
        """int64: which events of a batch satisfy the condition, ascending."""
        self._begin(batch)
        return self._end(_places)

    def _check(self, batch: EventBatch) -> None:
        check_type(batch, self.type)

    def _send(self, turn: Turn, batch: EventBatch) -> Words:
        return sent(turn, "batch", batch, self._columns, self._texts)

    def _work(self, turn: Turn, batch: EventBatch, sent: Words) -> Work[EventBatch]:
        results = self._results(turn)
        self.sieve.flag(turn, "batch", sent, len(batch), results)
        return _Sifting(self.sieve, turn, batch, sent)

    def _forget(self) -> None:
        self._finish_all()
        self._texts.forget(NONE)


def _places(work: Work[EventBatch]) -> Int64s:
    assert isinstance(work, _Sifting)
    return work.places()


class _Sifting:
    """A batch that is filtered."""

    def __init__(self, sieve: Sieve, turn: Turn, batch: EventBatch, words: Words) -> None:
        self._sieve, self._turn, self._batch, self._words = sieve, turn, batch, words
        self._kept: int | None = None

    def settle(self) -> None:
        if self._kept is None:
            self._turn.wait()
            self._kept = self._sieve.kept(self._turn, "batch")
            count = len(self._batch)
            self._sieve.gather(self._turn, "batch", self._words, count, self._kept, 0)
            places = self._turn.words("batch places", self._kept)
            self._turn.ask("batch places", places, 0, self._kept)

    def places(self) -> Int64s:
        self._turn.wait()
        assert self._kept is not None
        return self._turn.answer("batch places", self._kept)

    def result(self) -> EventBatch:
        return self._batch.take(self.places())


class Sieve:
    """The kernels of a filter: flags, their scan, and what is flagged gathered."""

    def __init__(
        self, place: Place, texts: Texts, columns: Columns, conditions: Sequence[Expression]
    ) -> None:
        linear = Linear(texts, columns)
        self._first = linear.conjunction(conditions or (Literal(True, Kind.BOOL),))
        texts.settle()
        self._code = place.constant(linear.code)

    def flag(
        self, turn: Turn, name: str, words: Words, count: int, results: tuple[Words, int]
    ) -> None:
        """Find which of ``count`` events in columns pass, and ask how many."""
        counts = turn.words(f"{name} flags", count + 1)
        turn.run("flag", count, words, count, self._code, self._first, *results, counts)
        turn.scan(f"{name} flags", counts, count)
        turn.ask(f"{name} kept", counts, count, 1)

    def kept(self, turn: Turn, name: str) -> int:
        """The number of events that pass, once the turn has been waited for."""
        return int(turn.answer(f"{name} kept", 1)[0])

    def gather(
        self, turn: Turn, name: str, words: Words, count: int, kept: int, columns: int
    ) -> Words:
        """Their numbers, and the first of their columns one behind the other."""
        counts = turn.words(f"{name} flags", count + 1)
        places = turn.words(f"{name} places", kept)
        out = turn.words(f"{name} sifted", columns * kept)
        turn.run("gather", count, counts, words, count, columns, places, out, kept)
        return out


def sent(turn: Turn, name: str, batch: EventBatch, columns: Columns, texts: Texts) -> Words:
    """The columns of a batch as words, brought to the place of a turn."""
    size = len(columns) * len(batch)
    columns.write(batch, texts, turn.stage(name, size))
    return turn.send(name, size)


def check_type(batch: EventBatch, type_: EventType) -> None:
    """ValueError for a batch of another type."""
    if batch.type is not type_ and batch.type != type_:
        raise ValueError(f"a batch of {batch.type} for an operator on {type_}")


def both(ahead: Filter, type_: EventType, where: str, order: Order) -> str:
    """The condition of a filter and that of the operator behind it, as one.

    Raises ValueError where they are of different types, or the operator has taken events in.
    """
    if ahead.type != type_:
        raise ValueError(f"a filter of {ahead.type} ahead of an operator on {type_}")
    if order.latest != TIME_MIN:
        raise ValueError("an operator that has taken events in joins no chain")
    return " and ".join(f"({one})" for one in (ahead.condition, where) if one.strip())

"""The memory of engines, carried into a new one that evaluates their rules from now on.

Rules that have nothing to do with each other may be evaluated by engines of their own
(:mod:`rules.engine.threads.parts`), until a rule comes that has to do with both. Then one engine
takes over, and must answer as if it had been the only one from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from matcher.model import AnyArray, EventType, Int64s, Kind
from rules.engine.intake.rows import RowWriter
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.entering import forget_access
from rules.engine.linking.linker import LinkedRule, Linker
from rules.engine.linking.switching import enter_all, held_by
from rules.engine.memory.storage import stored_rows
from rules.pattern import TIMER
from rules.planning.plan import ColumnPlan


@dataclass(frozen=True, slots=True)
class Holding:
    """An engine's memory of its rules; ``deferred`` is layout.DEFERRED_TRIGGER[n]."""

    linker: Linker
    writer: RowWriter
    arrays: Arrays
    deferred: AnyArray

    def rows(self, type_name: str) -> Int64s:
        """The rows of a type, int64[n, words], from the oldest on; none where it is unknown."""
        number = self.linker.tables.type_numbers.get(type_name)
        if number is None:
            return np.empty((0, 0), np.int64)
        return stored_rows(self.arrays, self.linker.tables.types.array[number])

    def first_row(self, type_name: str) -> int:
        """The number of the oldest of them."""
        number = self.linker.tables.type_numbers[type_name]
        return int(self.linker.tables.types.array[number]["head"])


class Move:
    """From engines to one that has their rules and no events yet.

    ``arrivals`` are to be taken in first, by its kernels; the rest is read off what they then hold.

    An engine's numbers mean nothing to another. Sources, strings and texts of ids are carried over
    by what they stand for, and an event is recognised by the whole header of its row: of each event
    there is one row, wherever it stood before. Composite events of one rule come from one engine,
    and stay in the order in which they came, which is that of their causes (E4). Columns and
    automata are made anew from the rows.
    """

    def __init__(self, old: Sequence[Holding], new: Holding) -> None:
        texts = dict[str, int]()
        self._old = [_Carried(one, new, texts) for one in old]
        self._new = new

    def arrivals(self) -> Iterator[tuple[int, Int64s]]:
        """The events of the types that the new engine uses: numbers of types, and their rows in
        the order in which they came, int64[n, words].
        """
        for name, number in self._new.linker.tables.type_numbers.items():
            parts = [rows for one in self._old if len(rows := one.rows(name))]
            if parts and name != TIMER.name:
                rows = np.concatenate(parts)
                _, firsts = np.unique(rows[:, : layout.HEADER], axis=0, return_index=True)
                yield number, rows[np.sort(firsts)]

    def deferred(self) -> AnyArray:
        """The terminators that wait for the marks of rules, layout.DEFERRED_TRIGGER[n] by time."""
        parts = [one.deferred() for one in self._old]
        found = np.concatenate(parts)
        in_time: AnyArray = found[np.argsort(found["time"], kind="stable")]
        return in_time

    def consume(self, grow: Callable[[Arrays, int], None]) -> None:
        """Let each rule's own columns (S11) hold no more than they did: what the rule has consumed
        is missing there, and nowhere else is it written down.
        """
        for one in self._old:
            for before, after in one.rules():
                if after[0].deployed.rule.consuming:
                    one.consume(before, after, grow)


class _Carried:
    """One engine's holding, as the new engine numbers things; ``texts`` are the codes there of the
    ids that were carried over, so that equal ones have one.
    """

    def __init__(self, old: Holding, new: Holding, texts: dict[str, int]) -> None:
        self._old = old
        self._new = new
        self._texts = texts
        self._places: dict[str, Int64s] = {}  # by type: see ``_moved``

    def rules(self) -> Iterator[tuple[Sequence[LinkedRule], Sequence[LinkedRule]]]:
        """Each rule's variants, as they were linked and as they are."""
        for name, before in self._old.linker.linked.items():
            if name in self._new.linker.linked:
                yield before, self._new.linker.linked[name]

    def rows(self, type_name: str) -> Int64s:
        """The rows of a type, in the order in which they came."""
        rows = self._old.rows(type_name)
        if len(rows):
            type_ = self._type(type_name)
            old, new = self._old.writer, self._new.writer
            rows[:, layout.ROW_SOURCE] = _exchanged(rows[:, layout.ROW_SOURCE], self._source)
            is_text = rows[:, layout.ROW_ID] >= 0
            rows[is_text, layout.ROW_ID] = _exchanged(rows[is_text, layout.ROW_ID], self._text)
            for place, attribute in enumerate(type_.attributes, layout.HEADER):
                if attribute.kind is Kind.STRING:
                    rows[:, place] = _exchanged(
                        rows[:, place], lambda code: new.strings.code(old.strings.text(code))
                    )
        return rows

    def _type(self, name: str) -> EventType:
        tables = self._old.linker.tables
        return tables.event_types[tables.type_numbers[name]]

    def _text(self, code: int) -> int:
        text = self._old.writer.texts.text(code)
        if text not in self._texts:
            self._texts[text] = self._new.writer.texts.code(text)
        return self._texts[text]

    def _source(self, number: int) -> int:
        old, new = self._old.writer.sources, self._new.writer.sources
        name = old.names[number]
        return new.rule_number(name) if old.is_rule(number) else new.number(name)

    def _moved(self, type_name: str, rows: Int64s) -> Int64s:
        """For numbers of rows of a type, those that they have now; -1 for none."""
        places = self._places.get(type_name)
        if places is None:
            before, after = self.rows(type_name), self._new.rows(type_name)
            found = places_of(before[:, : layout.HEADER], after[:, : layout.HEADER])
            first = self._new.first_row(type_name)
            places = self._places[type_name] = np.where(found < 0, -1, found + first)
        numbers = rows - self._old.first_row(type_name)  # below 0 for entries without rows
        known = np.flatnonzero(numbers >= 0)
        moved = np.full(len(rows), -1, np.int64)
        moved[known] = places[numbers[known]]
        return moved

    def deferred(self) -> AnyArray:
        """Its terminators that wait, of the rules that have moved."""
        parts = [self._old.deferred[:0]]
        for before, after in self.rules():
            for old, new in zip(before, after, strict=True):
                waiting = self._old.deferred[self._old.deferred["rule"] == old.number]
                if len(waiting):
                    name = old.plan.terminator.type.name
                    waiting["row"] = self._moved(name, waiting["row"])
                    waiting["rule"] = new.number
                    parts.append(waiting)
        return np.concatenate(parts)

    def consume(
        self,
        before: Sequence[LinkedRule],
        after: Sequence[LinkedRule],
        grow: Callable[[Arrays, int], None],
    ) -> None:
        """Take out of a rule's own columns what is not in them here."""
        held: dict[ColumnPlan, list[Int64s]] = {}
        for access, plan in _own_accesses(self._old, before):
            rows = held_by(self._old.arrays, access)[:, 1]
            held.setdefault(plan, []).append(self._moved(plan.type.name, rows))
        arrays = self._new.arrays
        for access, plan in _own_accesses(self._new, after):
            entries = held_by(arrays, access)
            kept = np.isin(entries[:, 1], np.concatenate(held[plan]))
            if not kept.all():
                forget_access(arrays.state, access)
                enter_all(arrays, access, entries[kept], grow)


def _own_accesses(
    holding: Holding, variants: Iterable[LinkedRule]
) -> Iterator[tuple[int, ColumnPlan]]:
    """The accesses to columns of a rule's own that events enter as they come, each once."""
    tables = holding.linker.tables
    for access in sorted({access for one in variants for access in one.uses}):
        plan = tables.access_plan(access)
        if plan.column.owner and not plan.derived:
            yield access, plan.column


def places_of(rows: Int64s, among: Int64s) -> Int64s:
    """For each of n rows of words its place among other rows, which are distinct; -1 for none."""
    _, numbers = np.unique(np.concatenate([among, rows]), axis=0, return_inverse=True)
    numbers = numbers.ravel()
    places = np.full(len(numbers), -1, np.int64)
    places[numbers[: len(among)]] = np.arange(len(among))
    found: Int64s = places[numbers[len(among) :]]
    return found


def _exchanged(words: Int64s, exchange: Callable[[int], int]) -> Int64s:
    """Words with each distinct one exchanged for another."""
    distinct, places = np.unique(words, return_inverse=True)
    return np.array([exchange(word) for word in distinct.tolist()], np.int64)[places]

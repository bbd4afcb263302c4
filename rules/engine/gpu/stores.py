"""The host's side of columns on a device: events of each type in order, and their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from matcher.model import Bools, EventBatch, EventType, Int64s, Kind, StringColumn
from rules.engine.gpu.batches import Names, rows_as_batch
from rules.engine.intake.rows import RowWriter
from rules.engine.kernels.layout import (
    HEADER,
    ID_IS_DIGEST,
    ROW_ID,
    ROW_KEY_HIGH,
    ROW_KEY_LOW,
    ROW_SEQUENCE,
    ROW_SOURCE,
    ROW_TIME,
)
from rules.engine.linking.interner import Interner
from rules.planning.columnar import satisfied
from rules.planning.plan import ColumnPlan
from runtime.growing import Growing

FORGET_MIN = 4_096
"""Fewer rows than this are not worth forgetting."""


Array = TypeVar("Array", Int64s, Bools)


@dataclass(slots=True, eq=False)
class Column:
    """The rows of a store that static conditions hold for.

    ``rows`` int64[n] are their numbers in the store, ascending, and ``times`` int64[n] theirs. The
    device has ``known`` entries, of which those from ``fresh`` on are not as they stand here.
    ``users`` counts rules. Conditions are tested when a row comes, on the host, for a batch at once
    (:mod:`rules.planning.columnar`).
    """

    plan: ColumnPlan
    number: int
    entries: Growing = field(default_factory=lambda: Growing(np.int64))
    instants: Growing = field(default_factory=lambda: Growing(np.int64))
    fresh: int = 0
    known: int = 0
    users: int = 0

    def __len__(self) -> int:
        return self.entries.size

    @property
    def words(self) -> int:
        """Words of its arrays here."""
        return self.entries.rows.size + self.instants.rows.size

    @property
    def rows(self) -> Int64s:
        """int64[n]."""
        return self.entries.rows[: self.entries.size]

    @property
    def times(self) -> Int64s:
        """int64[n], microseconds."""
        return self.instants.rows[: self.instants.size]

    def follow(self, member: Growing, times: Int64s, start: int) -> None:
        """Find its rows anew from a row of the store on, whose times are given."""
        kept, rows = len(self), self.rows
        if kept and rows[-1] >= start:
            kept = int(np.searchsorted(rows, start))
        self.entries.size = self.instants.size = kept
        fresh = start + np.flatnonzero(member.rows[start : member.size])
        self.entries.extend(fresh)
        self.instants.extend(times[fresh])
        self.fresh = min(self.fresh, kept)

    def append(self, member: Bools, start: int, times: Int64s) -> None:
        """Take rows in that stand behind all others, from row ``start`` of the store on."""
        fresh = start + member.nonzero()[0]
        if len(fresh):
            self.entries.extend(fresh)
            self.instants.extend(times[fresh])


class Store:
    """The events of one type: ``rows`` int64[n, width], their ``times`` by themselves, and
    ``member`` bool[n] for each column.

    The events stand in the order of time and then E4, whatever order they came in. A *row* is as on
    the processor (:mod:`rules.engine.kernels.layout`): a header, then a word for each attribute.
    """

    def __init__(self, type_: EventType) -> None:
        self.type = type_
        self.columns: list[Column] = []
        self.member: list[Growing] = []
        self.waiting: list[EventBatch] = []
        self._rows = Growing(np.int64, HEADER + len(type_.attributes))
        self._times = Growing(np.int64)

    @property
    def words(self) -> int:
        """Words of its rows and their times, with the room that there is for more."""
        return self._rows.rows.size + self._times.rows.size

    @property
    def rows(self) -> Int64s:
        """int64[n, width]."""
        return self._rows.rows[: self._rows.size]

    @property
    def times(self) -> Int64s:
        """int64[n], microseconds."""
        return self._times.rows[: self._times.size]

    def put(self, start: int, rows: Int64s, members: Sequence[Bools]) -> None:
        """Have these rows from a place on, and nothing behind them."""
        self._rows.size = self._times.size = start
        self._rows.extend(rows)
        self._times.extend(rows[:, ROW_TIME])
        for member, fresh in zip(self.member, members, strict=True):
            member.size = start
            member.extend(fresh)

    def stands_behind(self, times: Int64s) -> bool:
        """Whether events are in order, and later than all that are there."""
        count = self._times.size
        if count and times[0] <= self._times.rows[count - 1]:
            return False
        return len(times) == 1 or bool((times[1:] > times[:-1]).all())

    def append(self, rows: Int64s, members: Sequence[Bools]) -> None:
        """Take in rows that stand behind all others, and tell the columns. An append costs the same
        however many rows there are: nothing that stands before is looked at.
        """
        start = self._rows.extend(rows)
        self._times.extend(rows[:, ROW_TIME])
        times = self.times
        for column, member, fresh in zip(self.columns, self.member, members, strict=True):
            member.extend(fresh)
            column.append(fresh, start, times)

    def members(self, start: int) -> list[Bools]:
        """For each column, which rows from a place on are its."""
        return [member.rows[start : member.size] for member in self.member]

    def forget(self, count: int) -> None:
        """Forget the first rows."""
        self.put(0, self.rows[count:].copy(), [one.copy() for one in self.members(count)])
        self.follow(0)

    def follow(self, start: int) -> None:
        """Find the entries of columns anew from a row on."""
        for column, member in zip(self.columns, self.member, strict=True):
            column.follow(member, self.times, start)


def _together(parts: Sequence[Array]) -> Array:
    """Arrays, one behind the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _fits(plan: ColumnPlan, batch: EventBatch) -> Bools:
    """Whether a column takes each event."""
    if not plan.conditions:
        return np.ones(len(batch), np.bool_)
    return satisfied(plan.conditions, batch)


class Stores:
    """Owner of all events that rules on a device may still see."""

    def __init__(self) -> None:
        self.strings = Interner()
        self.writer = RowWriter(self.strings)
        self.of_type: dict[str, Store] = {}
        self._columns: dict[ColumnPlan, Column] = {}
        self._next = 0

    @property
    def names(self) -> Names:
        """The texts that codes stand for at present."""
        return Names(self.strings.texts, self.writer.texts.texts, self.writer.sources.names)

    @property
    def columns(self) -> Iterable[Column]:
        """All columns that some rule uses."""
        return self._columns.values()

    # --- columns -----------------------------------------------------------------------------

    def use(self, plan: ColumnPlan) -> Column:
        """The column of a plan, with one more user. A new one takes in the rows that are there."""
        column = self._columns.get(plan)
        if column is None:
            store = self.of_type.setdefault(plan.type.name, Store(plan.type))
            column = Column(plan, self._next)
            self._next += 1
            self._columns[plan] = column
            store.columns.append(column)
            store.member.append(Growing(np.bool_))
            store.member[-1].extend(self._members(plan, store))
            column.follow(store.member[-1], store.times, 0)
        column.users += 1
        return column

    def drop(self, column: Column) -> None:
        """Take a user away; without any the column goes, and with the last one its type's rows."""
        column.users -= 1
        if column.users:
            return
        del self._columns[column.plan]
        store = self.of_type[column.plan.type.name]
        place = store.columns.index(column)
        del store.columns[place], store.member[place]
        if not store.columns:
            del self.of_type[column.plan.type.name]

    def _members(self, plan: ColumnPlan, store: Store) -> Bools:
        return _fits(plan, rows_as_batch(store.type, store.rows, self.strings))

    # --- events ------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> None:
        """Let events wait for :meth:`take_in`."""
        store = self.of_type.get(batch.type.name)
        if store is not None and len(batch):
            store.waiting.append(batch)

    def empty(self, name: str) -> None:
        """Forget all events of a type."""
        store = self.of_type[name]
        store.waiting = []
        store.forget(len(store.rows))

    def take_in(self) -> None:
        """Put what waits in its places."""
        for store in self.of_type.values():
            if store.waiting:
                batches, store.waiting = store.waiting, []
                self._enter(store, batches)

    def _enter(self, store: Store, batches: Sequence[EventBatch]) -> None:
        rows = _together([self._rows(batch) for batch in batches])
        members = [
            _together([_fits(column.plan, batch) for batch in batches]) for column in store.columns
        ]
        if store.stands_behind(rows[:, ROW_TIME]):
            store.append(rows, members)
            return
        old = len(store.rows)
        # Of what is there, only rows not earlier than the first new one may have to move.
        first, start = rows[:, ROW_TIME].min(), old
        if old and store.times[-1] >= first:
            start = int(np.searchsorted(store.times, first, side="left"))
        together = np.concatenate([store.rows[start:], rows]) if start < old else rows
        order = self._order(together)
        pairs = zip(store.members(start), members, strict=True)
        store.put(start, together[order], [np.concatenate(pair)[order] for pair in pairs])
        is_behind = bool((order[: old - start] == np.arange(old - start)).all())
        store.follow(old if is_behind else start)

    def _rows(self, batch: EventBatch) -> Int64s:
        """A batch as rows, int64[n, width]."""
        ids = batch.ids
        form, texts, keys = self.writer.ids(ids)
        rows = np.empty((len(batch), HEADER + len(batch.columns)), np.int64)
        rows[:, ROW_TIME] = batch.time
        rows[:, ROW_SOURCE] = self.writer.sources.numbers(ids.source)[ids.source.codes]
        rows[:, ROW_SEQUENCE] = ids.sequence
        rows[:, ROW_ID] = form if texts is None else texts
        if keys is None:
            hashes = self.writer.sources.hashes[rows[:, ROW_SOURCE]]
            rows[:, ROW_KEY_HIGH] = hashes
            rows[:, ROW_KEY_LOW] = ids.sequence
        else:
            rows[:, ROW_KEY_HIGH : ROW_KEY_LOW + 1] = keys
        for place, column in enumerate(batch.columns, HEADER):
            if isinstance(column, StringColumn):
                rows[:, place] = self.strings.codes(column.values)[column.codes]
            elif column.dtype == np.float64:
                rows[:, place] = column.view(np.int64)
            else:
                rows[:, place] = column
        return rows

    def _order(self, rows: Int64s) -> Int64s:
        """The permutation that puts rows in the order of time and then E4."""
        if len(rows) == 1:
            return np.zeros(1, np.int64)
        is_digest = rows[:, ROW_ID] == ID_IS_DIGEST
        rank = np.where(is_digest, 0, self.writer.sources.ranks[rows[:, ROW_SOURCE]])
        keys = [rows[:, ROW_SEQUENCE], rank, is_digest, rows[:, ROW_TIME]]
        if (rows[:, ROW_ID] >= 0).any():  # E4 leaves open which of two with one number is first
            keys.insert(0, np.unique(self._printed(rows), return_inverse=True)[1])
        return np.lexsort(keys)

    def _printed(self, rows: Int64s) -> list[str]:
        """The ids of rows that are no digests, as they are printed."""
        texts = self.writer.texts
        pairs = zip(rows[:, ROW_ID].tolist(), rows[:, ROW_SEQUENCE].tolist(), strict=True)
        return [texts.text(id_) if id_ >= 0 else str(sequence) for id_, sequence in pairs]

    def forget(self, horizons: dict[str, int]) -> None:
        """Forget rows older than the horizons of their types, where they are many; and strings.
        Rows go when more than half are too old.
        """
        for name, store in self.of_type.items():
            old = int(np.searchsorted(store.times, horizons[name]))
            if old > max(FORGET_MIN, len(store.rows) // 2):
                store.forget(old)

    def sweep(self, constants: set[int]) -> None:
        """Forget strings, and texts of ids, that neither ``constants`` nor rows mention."""
        if self.strings.wants_sweep:
            self.strings.forget(constants | self._mentioned(Kind.STRING))
        if self.writer.texts.wants_sweep:
            self.writer.texts.forget(self._mentioned(None))

    def _mentioned(self, kind: Kind | None) -> set[int]:
        """Codes in attributes of a kind, or (None) in ids."""
        found: set[int] = set()
        for store in self.of_type.values():
            places = [
                HEADER + place
                for place, attribute in enumerate(store.type.attributes)
                if attribute.kind is kind
            ]
            for place in [ROW_ID] if kind is None else places:
                found.update(np.unique(store.rows[:, place]).tolist())
        return found

"""Columns and rules in the memory of a device: one array of words, the heap.

Law 1: after :meth:`Memory.synchronise`, and :meth:`Memory.bring_few` behind it, the heap holds what
the stores hold. New entries are brought over by one copy and spread by one kernel; all is laid out
anew, with room for as much again, when a column has outgrown its room or other rules are there.

Law 2: where things stand changes only then (``generation`` tells it), so that launches may be
recorded.

Few entries wait in page-locked memory of a fixed size, and an evaluation's recorded launches begin
with bringing them: so for one terminator the host copies nothing and launches nothing but a graph.
Several evaluations of an advance bring the same words to the same places.

Law 3: an index by a key knows all entries. One by value, in which ranges are looked up, knows the
first ones, and is made anew when those that it does not know are more than an eighth of them, or
others have come between. So few events cost a sort; a terminator looks at the rest one by one.

Example: of 1,000,000 entries sorted by ``price``, and 9 that came since, ``price < $p`` looks at
those of the former that the range has, and at the 9.

The heap begins with the number of entries of each column, and with how many of them each index by
value knows; then come the columns' segments, and the words of rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matcher.gpu.device import Buffer, Device, Lane
from matcher.model import AnyArray, Int64s, Kind
from rules.engine.gpu.kernels import index_keys, index_sorted, range_keys, spread
from rules.engine.gpu.linking import NUMBER, Addresses, Linked, Search, Words, addressed
from rules.engine.gpu.stores import Column, Stores
from rules.engine.kernels.layout import HEADER, KIND_FLOAT, KIND_INT, ROW_TIME, offset_of

CAPACITY_MIN = 1_024
"""Entries that a column has room for at least."""
INDEX_SEGMENTS = 3
"""Segments of an index, each as large as one of its column: keys, order, sorted."""
INDEX_MIN = 2_048
"""Columns with room for fewer entries have no index: to look at all is as fast."""
TAIL_MIN, TAIL_SHARE = 4_096, 8
"""So many entries, and one part in so many of what it knows, an index by value may not know."""
FEW_RUNS, FEW_WORDS = 64, 1_024
"""Runs of neighbouring words, and words, that are few; an evaluation brings them."""
THREADS, BLOCKS = 256, 64
"""Threads of a block, and blocks, of kernels that copy."""


@dataclass(frozen=True, slots=True)
class _Index:
    """An index of a column by the words of an offset in the row: its three segments."""

    offset: int
    is_float: bool
    keys: int
    order: int
    sorted: int


@dataclass(slots=True)
class _ByValue:
    """An index of a column by the values of an offset in the row, of a kind (layout.KIND_...), of
    which it knows the first ``known`` entries; ``number`` is the address of that. Its segments.
    """

    offset: int
    kind: int
    number: int
    keys: int
    order: int
    sorted: int
    known: int = 0

    def is_due(self, column: Column) -> bool:
        """Whether it is to be made anew (Law 3)."""
        left = len(column) - self.known
        return column.fresh < self.known or left > max(TAIL_MIN, self.known // TAIL_SHARE)


@dataclass(frozen=True, slots=True)
class _Place:
    """The addresses of a column: of its number of entries, and of how many its indexes by value
    know; its segment for each offset in the row, and its indexes.
    """

    size: int
    first_index: int
    capacity: int
    segments: Mapping[int | str, int]
    indexes: tuple[_Index, ...]
    by_value: tuple[_ByValue, ...]


class Memory:
    """Owner of the heap."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.lane: Lane = device.lane()
        self.heap: Buffer = device.zeros(1, np.int64)
        self.generation = 0
        self.addresses: dict[str, Addresses] = {}
        self._places: dict[int, _Place] = {}
        self._keys: dict[int, list[tuple[int, bool]]] = {}
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        self._top = 0
        """Words of the heap that are taken."""
        self._staged = device.zeros(1, np.int64)
        self._pinned: AnyArray = device.pinned(1, np.int64)
        self._few: AnyArray = device.pinned(3 * FEW_RUNS + FEW_WORDS, np.int64)
        self._few_staged = device.zeros(len(self._few), np.int64)
        self._is_stale = True

    @property
    def bytes(self) -> int:
        """Bytes of its buffers on the device."""
        return self.heap.bytes + self._staged.bytes + self._few_staged.bytes

    def words_of(self, column: Column) -> int:
        """The words of the heap that a column and its indexes take."""
        place = self._places.get(column.number)
        if place is None:
            return 0
        indexes = len(place.indexes) + len(place.by_value)
        return place.capacity * (len(place.segments) + INDEX_SEGMENTS * indexes)

    def forget_layout(self) -> None:
        """Lay all out anew when it is next synchronised: other rules are there."""
        self._is_stale = True

    def synchronise(self, stores: Stores, rules: Sequence[Linked]) -> None:
        """Bring the heap to what the stores hold (Law 1)."""
        self.lane.wait()  # for the last copy out of page-locked memory
        columns = list(stores.columns)
        if self._is_stale:
            self._lay_out(columns, stores, rules)
        outgrown = [one for one in columns if len(one) > self._places[one.number].capacity]
        if outgrown and not self._widen(outgrown, stores, rules):
            self._lay_out(columns, stores, rules)
        changed = [one for one in columns if one.fresh < len(one) or one.fresh < one.known]
        self._few[: 3 * FEW_RUNS] = 0
        if not changed:
            return
        places = [self._places[one.number] for one in columns]
        due = [
            (column, index)
            for column in changed
            for index in self._places[column.number].by_value
            if index.is_due(column)
        ]
        for column, index in due:
            index.known = len(column)
        sizes = list(map(len, columns))
        sizes += [index.known for place in places for index in place.by_value]
        has_indexes = due or any(self._places[one.number].indexes for one in changed)
        if has_indexes or not self._leave_few(sizes, changed, stores):
            parts: list[tuple[int, Int64s]] = [(0, np.array(sizes, np.int64))]
            for column in changed:
                parts += self._fresh(column, stores)
            self._bring(parts)
        for column in changed:
            column.fresh = column.known = len(column)
            self._index(self._places[column.number], len(column))
        for column, index in due:
            self._sort(self._places[column.number], index)

    def _leave_few(self, sizes: list[int], changed: Sequence[Column], stores: Stores) -> bool:
        """Leave what is new for an evaluation to bring; False where it is too much."""
        entries = sum(len(one) - one.fresh for one in changed)
        if len(sizes) + entries * max(map(_width, changed)) > FEW_WORDS:
            return False
        starts, runs = [0], [sizes]
        for column in changed:
            store, numbers = stores.of_type[column.plan.type.name], column.rows[column.fresh :]
            if not len(numbers):
                continue
            words = store.rows[numbers].T.tolist()
            for offset, start in self._places[column.number].segments.items():
                starts.append(start + column.fresh)
                runs.append(numbers.tolist() if offset == NUMBER else words[int(offset)])
        if len(runs) > FEW_RUNS:
            return False
        head: list[int] = []
        data: list[int] = []
        for start, run in zip(starts, runs, strict=True):
            head += start, 3 * FEW_RUNS + len(data), len(run)
            data += run
        self._few[: len(head)] = head
        self._few[3 * FEW_RUNS : 3 * FEW_RUNS + len(data)] = data
        return True

    def bring_few(self) -> None:
        """Launch what brings over the few words that wait."""
        self.device.upload(self._few_staged, 0, self._few, self.lane)
        grid, threads = ((1, 1), 4) if self.device.simulated else ((1, FEW_RUNS), THREADS)
        arguments = (self.heap, self._few_staged, FEW_RUNS)
        self.device.launch(spread, grid, threads, self.lane, *arguments)

    def _fresh(self, column: Column, stores: Stores) -> list[tuple[int, Int64s]]:
        """The entries that are not on the device: addresses, and words."""
        if column.fresh == len(column):
            return []
        numbers = column.rows[column.fresh :]
        rows = stores.of_type[column.plan.type.name].rows[numbers]
        return [
            (start + column.fresh, numbers if offset == NUMBER else rows[:, int(offset)])
            for offset, start in self._places[column.number].segments.items()
        ]

    def _lay_out(self, columns: Sequence[Column], stores: Stores, rules: Sequence[Linked]) -> None:
        """Give all columns and rules another place, in a heap with room for half as much again."""
        self._places.clear()
        self.addresses = {}
        self._keys, self._ranges = _keys_of(rules), _ranges_of(rules)
        index = len(columns)
        self._top = index + sum(map(len, self._ranges.values()))
        for number, column in enumerate(columns):
            self._places[column.number] = self._place(column, number, index)
            index += len(self._ranges.get(column.number, ()))
        start, words = self._top, self._write(stores, rules)
        self.heap = self.device.zeros(self._top + self._top // 2 + 1, np.int64)
        self._bring([(start, np.array(words.words, np.int64))])
        self.generation += 1
        self._is_stale = False

    def _widen(self, outgrown: Sequence[Column], stores: Stores, rules: Sequence[Linked]) -> bool:
        """Give some columns, and the rules that use them, another place behind all others; False
        where the heap has no room for that.
        """
        before = self._top, dict(self._places), self.addresses
        for column in outgrown:
            old = self._places[column.number]
            self._places[column.number] = self._place(column, old.size, old.first_index)
        users = [rule for rule in rules if not set(outgrown).isdisjoint(rule.all_columns)]
        start, words = self._top, self._write(stores, users)
        if self._top > len(self.heap):
            self._top, self._places, self.addresses = before
            return False
        self._bring([(start, np.array(words.words, np.int64))])
        return True

    def _place(self, column: Column, size: int, index: int) -> _Place:
        """Another place for a column at the top; ``size`` and ``index`` are the addresses of its
        number of entries, and of how many the first of its indexes by value knows.
        """
        capacity = max(CAPACITY_MIN, 2 * len(column))
        offsets = [NUMBER, ROW_TIME, *range(HEADER, _width(column))]
        segments = {offset: self._take(capacity) for offset in offsets}
        is_indexed = capacity >= INDEX_MIN
        keys = self._keys.get(column.number, ()) if is_indexed else ()
        ranges = self._ranges.get(column.number, ()) if is_indexed else ()
        column.fresh = column.known = 0
        return _Place(
            size,
            index,
            capacity,
            segments,
            tuple(_Index(*key, *(self._take(capacity) for _ in range(3))) for key in keys),
            tuple(
                _ByValue(*one, index + number, *(self._take(capacity) for _ in range(3)))
                for number, one in enumerate(ranges)
            ),
        )

    def _take(self, words: int) -> int:
        """Take words at the top: the address of the first."""
        first, self._top = self._top, self._top + words
        return first

    def _write(self, stores: Stores, rules: Sequence[Linked]) -> Words:
        """The words of rules at the top, with which they are addressed from now on."""
        words = Words(self._top, self._segment, stores)
        written = {
            one.deployed.rule.name: addressed(
                one, words, self._segment, self._size, self._index_of, self._by_value_of
            )
            for one in rules
        }
        self.addresses = {**self.addresses, **written}
        self._take(len(words.words))
        return words

    def _segment(self, column: Column, offset: int | str) -> int:
        return self._places[column.number].segments[offset]

    def _size(self, column: Column) -> int:
        return self._places[column.number].size

    def _index_of(self, search: Search) -> tuple[int, int]:
        """The sorted keys of a search's index and their entries; -1 without."""
        for index in self._places[search.column.number].indexes:
            if search.key >= 0 and index.offset == search.key_offset:
                return index.sorted, index.order
        return -1, -1

    def _by_value_of(self, search: Search) -> tuple[int, int, int] | None:
        """Where it stands how much a search's index by value knows, its keys, and their entries."""
        if search.ordered is not None:
            for index in self._places[search.column.number].by_value:
                if index.offset == offset_of(search.ordered.attribute):
                    return index.number, index.sorted, index.order
        return None

    def _bring(self, parts: Sequence[tuple[int, Int64s]]) -> None:
        """Copy words to their addresses."""
        parts = [part for part in parts if len(part[1])]
        head = 3 * len(parts)
        total = head + sum(len(words) for _, words in parts)
        self.lane.wait()
        if total > len(self._pinned):
            self._pinned = self.device.pinned(2 * total, np.int64)
            self._staged = self.device.empty(2 * total, np.int64)
        source = head
        for number, (target, words) in enumerate(parts):
            self._pinned[3 * number : 3 * number + 3] = target, source, len(words)
            self._pinned[source : source + len(words)] = words
            source += len(words)
        self.device.upload(self._staged, 0, self._pinned[:total], self.lane)
        self._launch(spread, min(len(parts), BLOCKS), self.heap, self._staged, len(parts))

    def _index(self, place: _Place, size: int) -> None:
        for one in place.indexes:
            source = place.segments[one.offset]
            self._launch(index_keys, 1, self.heap, source, one.keys, size, int(one.is_float))
            self.device.sort_places(self.heap, one.keys, one.order, size, self.lane)
            self._launch(index_sorted, 1, self.heap, one.keys, one.order, one.sorted, size)

    def _sort(self, place: _Place, one: _ByValue) -> None:
        """Make an index by value of the entries that it is to know."""
        source = place.segments[one.offset]
        self._launch(range_keys, 1, self.heap, source, one.keys, one.known, one.kind)
        self.device.sort_places(self.heap, one.keys, one.order, one.known, self.lane)
        self._launch(index_sorted, 1, self.heap, one.keys, one.order, one.sorted, one.known)

    def _launch(self, kernel: object, rows: int, *arguments: Buffer | int) -> None:
        blocks, threads = (1, 4) if self.device.simulated else (BLOCKS, THREADS)
        self.device.launch(kernel, (blocks, rows), threads, self.lane, *arguments)


def _width(column: Column) -> int:
    return HEADER + len(column.plan.type.attributes)


def _keys_of(rules: Sequence[Linked]) -> dict[int, list[tuple[int, bool]]]:
    """The keys of each column's indexes: offsets in the row, and whether they are floats."""
    found: dict[int, list[tuple[int, bool]]] = {}
    for rule in rules:
        for search in rule.searches:
            if search is not None and search.key >= 0:
                keys = found.setdefault(search.column.number, [])
                if (search.key_offset, search.key_is_float) not in keys:
                    keys.append((search.key_offset, search.key_is_float))
    return found


def _ranges_of(rules: Sequence[Linked]) -> dict[int, list[tuple[int, int]]]:
    """The indexes by value of each column: offsets in the row, and kinds."""
    found: dict[int, list[tuple[int, int]]] = {}
    for rule in rules:
        for search in rule.searches:
            if search is not None and search.ordered is not None:
                kind = KIND_FLOAT if search.ordered.kind is Kind.FLOAT else KIND_INT
                ranges = found.setdefault(search.column.number, [])
                if (asked := (offset_of(search.ordered.attribute), kind)) not in ranges:
                    ranges.append(asked)
    return found

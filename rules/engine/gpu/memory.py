"""Columns and rules in the memory of a device: one array of words, the heap.

What stands in the heap stays where it is, so that launches may be recorded. A column that has
outgrown its room, or is to have other indexes, gets another place behind all others, to which the
device copies what it has; the rules that use it are written anew there, and so is a rule that
comes. The heap itself grows where it stands (:mod:`rules.engine.gpu.heap`). Only where it would
have to, and more than half of it is of no use any more, is all laid out anew, in its other half.

Example: of 1,000 rules over 100 types ten look at type T. When T's columns double, the words of ten
rules move, and their graphs are recorded anew; 990 go on as they are, though the heap has grown.

Few entries wait in page-locked memory of a fixed size, and an evaluation's recorded launches begin
with bringing them: so for one terminator the host copies nothing and launches nothing but a graph.
Several evaluations of an advance bring the same words to the same places.

An index by a key knows all entries. One by value, in which ranges are looked up, knows the first
ones, and is made anew when those that it does not know are more than an eighth of them, or others
have come between. So few events cost a sort; a terminator looks at the rest one by one.

Example: of 1,000,000 entries sorted by ``price``, and 9 that came since, ``price < $p`` looks at
those of the former that the range has, and at the 9.

A column's place begins with the number of its entries, and with how many of them each index by
value knows; then come its segments, and those of its indexes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matcher.gpu.device import Buffer, Device, Lane
from matcher.model import AnyArray, Int64s, Kind
from rules.engine.gpu.heap import Heap
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
        """Whether it is to be made anew."""
        left = len(column) - self.known
        return column.fresh < self.known or left > max(TAIL_MIN, self.known // TAIL_SHARE)


@dataclass(frozen=True, slots=True)
class _Served:
    """The offsets in the row by which a column has indexes, or is to have some: of keys, each with
    whether it is a float, and of ranges, each with its kind.
    """

    keys: frozenset[tuple[int, bool]] = frozenset()
    ranges: frozenset[tuple[int, int]] = frozenset()


NONE = _Served()


@dataclass(frozen=True, slots=True)
class _Place:
    """The addresses of a column: of its number of entries, behind which stand how many its indexes
    by value know; its segment for each offset in the row, and its indexes, of what is ``served``.
    ``words`` is its length.
    """

    size: int
    words: int
    capacity: int
    served: _Served
    segments: Mapping[int | str, int]
    indexes: tuple[_Index, ...]
    by_value: tuple[_ByValue, ...]


class Memory:
    """Owner of the heap."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.lane: Lane = device.lane()
        self._range = Heap(device, self.lane)
        self.heap: Buffer = self._range.words
        self.addresses: dict[str, Addresses] = {}
        self._places: dict[int, _Place] = {}
        self._written: dict[str, int] = {}
        """How many words a rule has."""
        self._wanted: dict[int, _Served] = {}
        """The indexes that rules ask columns for."""
        self._top = 0
        """Where the words of the heap end that are taken, or were."""
        self._staged = device.zeros(1, np.int64)
        self._pinned: AnyArray = device.pinned(1, np.int64)
        self._few: AnyArray = device.pinned(3 * FEW_RUNS + FEW_WORDS, np.int64)
        self._few_staged = device.zeros(len(self._few), np.int64)
        self._has_followed = False
        """Whether it knows of all rules that are there."""

    @property
    def bytes(self) -> int:
        """Bytes of its buffers on the device."""
        return self._range.bytes + self._staged.bytes + self._few_staged.bytes

    def words_of(self, column: Column) -> int:
        """The words of the heap that a column and its indexes take."""
        place = self._places.get(column.number)
        return 0 if place is None else place.words

    def forget(self, name: str) -> None:
        """Forget the words of a rule that is there no more."""
        self.addresses.pop(name, None)
        self._written.pop(name, None)

    def follow_rules(self) -> None:
        """Look at the rules when it is next synchronised: others may be there."""
        self._has_followed = False

    def synchronise(self, stores: Stores, rules: Sequence[Linked]) -> None:
        """Bring the heap to what the stores hold, with ``bring_few`` behind it: new entries are
        brought over by one copy and spread by one kernel.
        """
        self.lane.wait()  # for the last copy out of page-locked memory
        columns = list(stores.columns)
        is_moving = not self._has_followed or [
            one for one in columns if len(one) > self._places[one.number].capacity
        ]
        moved = self._arrange(columns, stores, rules) if is_moving else ()
        changed = [
            one
            for one in columns
            if one.fresh < len(one) or one.fresh < one.known or one.number in moved
        ]
        self._few[: 3 * FEW_RUNS] = 0
        if not changed:
            return
        due = [
            (column, index)
            for column in changed
            for index in self._places[column.number].by_value
            if index.is_due(column)
        ]
        for column, index in due:
            index.known = len(column)
        has_indexes = due or any(self._places[one.number].indexes for one in changed)
        if has_indexes or not self._leave_few(changed, stores):
            self._bring([part for column in changed for part in self._fresh(column, stores)])
        for column in changed:
            column.fresh = column.known = len(column)
            self._index(self._places[column.number], len(column))
        for column, index in due:
            self._sort(self._places[column.number], index)

    def _leave_few(self, changed: Sequence[Column], stores: Stores) -> bool:
        """Leave what is new for an evaluation to bring; False where it is too much."""
        starts: list[int] = []
        runs: list[list[int]] = []
        room = FEW_WORDS
        for column in changed:
            place, numbers = self._places[column.number], column.rows[column.fresh :]
            room -= (1 + len(numbers)) * _width(column)
            if room < 0:
                return False
            starts.append(place.size)
            runs.append(_sizes(column, place))
            store = stores.of_type[column.plan.type.name]
            if not len(numbers):
                continue
            words = store.rows[numbers].T.tolist()
            for offset, start in place.segments.items():
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
        """The number of entries, and those that are not on the device: addresses, and words."""
        place = self._places[column.number]
        parts = [(place.size, np.array(_sizes(column, place), np.int64))]
        if column.fresh == len(column):
            return parts
        numbers = column.rows[column.fresh :]
        rows = stores.of_type[column.plan.type.name].rows[numbers]
        return parts + [
            (start + column.fresh, numbers if offset == NUMBER else rows[:, int(offset)])
            for offset, start in place.segments.items()
        ]

    # --- places ----------------------------------------------------------------------------------

    def _arrange(
        self, columns: Sequence[Column], stores: Stores, rules: Sequence[Linked]
    ) -> Collection[int]:
        """Have a place for each column and each rule; the numbers of columns that moved."""
        if not self._has_followed:
            numbers = {one.number for one in columns}
            self._places = {key: one for key, one in self._places.items() if key in numbers}
            self._wanted, self._has_followed = _wanted_of(rules), True
        moving = [one for one in columns if not self._has_place(one)]
        theirs = set(moving)
        users = [
            one
            for one in rules
            if one.deployed.rule.name not in self.addresses
            or not theirs.isdisjoint(one.all_columns)
        ]
        if not (moving or users):
            return ()
        before, heap = dict(self._places), self._range
        words = self._put(moving, users, stores)
        if self._top > heap.end and 2 * self._live < self._top - heap.begin:
            heap.turn()
            self._top, self._places, self.addresses, self._written = heap.begin, {}, {}, {}
            moving = list(columns)
            words = self._put(moving, rules, stores)
        heap.extend(self._top)
        for column in moving:
            self._move(column, before.get(column.number))
        self._bring([words])
        heap.give_back()
        return {one.number for one in moving}

    def _has_place(self, column: Column) -> bool:
        """Whether it has a place, with room, and with the indexes that are asked for."""
        place = self._places.get(column.number)
        return (
            place is not None
            and len(column) <= place.capacity
            and place.served == self._served(column, place.capacity)
        )

    def _served(self, column: Column, capacity: int) -> _Served:
        """The indexes that a column of such a capacity is to have."""
        return self._wanted.get(column.number, NONE) if capacity >= INDEX_MIN else NONE

    @property
    def _live(self) -> int:
        """Words of the heap that are of use."""
        return sum(one.words for one in self._places.values()) + sum(self._written.values())

    def _put(
        self, columns: Sequence[Column], rules: Sequence[Linked], stores: Stores
    ) -> tuple[int, Int64s]:
        """Give columns places at the top, and behind them rules: these words, and their address."""
        for column in columns:
            self._places[column.number] = self._place(column)
        start, words = self._top, Words(self._top, self._segment, stores)
        written = dict(self.addresses)
        for one in rules:
            name, begun = one.deployed.rule.name, len(words.words)
            written[name] = addressed(
                one, words, self._segment, self._size, self._index_of, self._by_value_of
            )
            self._written[name] = len(words.words) - begun
        self.addresses = written
        self._take(len(words.words))
        return start, np.array(words.words, np.int64)

    def _place(self, column: Column) -> _Place:
        """Another place for a column, at the top."""
        begin, capacity = self._top, max(CAPACITY_MIN, 2 * len(column))
        served = self._served(column, capacity)
        size = self._take(1 + len(served.ranges))
        offsets = [NUMBER, ROW_TIME, *range(HEADER, _width(column))]
        segments = {offset: self._take(capacity) for offset in offsets}

        def taken() -> Iterator[int]:
            return (self._take(capacity) for _ in range(INDEX_SEGMENTS))

        indexes = tuple(_Index(*key, *taken()) for key in sorted(served.keys))
        by_value = tuple(
            _ByValue(*one, size + 1 + number, *taken())
            for number, one in enumerate(sorted(served.ranges))
        )
        return _Place(size, self._top - begin, capacity, served, segments, indexes, by_value)

    def _move(self, column: Column, before: _Place | None) -> None:
        """Copy what the device has of a column, at the place before, to its place."""
        if before is None:
            column.fresh = column.known = 0
            return
        for offset, start in self._places[column.number].segments.items():
            source = before.segments[offset]
            self.device.copy(self.heap, start, self.heap, source, column.fresh, self.lane)

    def _take(self, words: int) -> int:
        """Take words at the top: the address of the first."""
        first, self._top = self._top, self._top + words
        return first

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


def _sizes(column: Column, place: _Place) -> list[int]:
    """The number of a column's entries, and of those that each of its indexes by value knows."""
    return [len(column), *[index.known for index in place.by_value]]


def _wanted_of(rules: Sequence[Linked]) -> dict[int, _Served]:
    """The indexes that rules ask of columns, by the columns' numbers."""
    keys: dict[int, set[tuple[int, bool]]] = defaultdict(set)
    ranges: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for rule in rules:
        for search in rule.searches:
            if search is None:
                continue
            if search.key >= 0:
                keys[search.column.number].add((search.key_offset, search.key_is_float))
            if search.ordered is not None:
                kind = KIND_FLOAT if search.ordered.kind is Kind.FLOAT else KIND_INT
                ranges[search.column.number].add((offset_of(search.ordered.attribute), kind))
    return {
        number: _Served(frozenset(keys.get(number, ())), frozenset(ranges.get(number, ())))
        for number in keys.keys() | ranges.keys()
    }

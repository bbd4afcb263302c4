"""Many events at once against all filters, 32 events to a word.

Events of a launch are first laid out by group and term: one word says which 32 events of a group
have the term. Then a thread takes a filter, and for each group the words of its two rarest terms
dismiss it for all 32 events, mostly; what is left is verified row by row. Atomic operations are
needed for matches alone, and not for those of an interface that the event has already.

Large batches are cut into launches, which two lanes take in turn: while one computes, the other
copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock

import numpy as np
import numpy.typing as npt

from matcher.filters.encoded import EncodedEvents
from matcher.filters.table import COUNT, INTERFACE, START, FilterTable
from matcher.gpu.device import Buffer, Device, device
from matcher.gpu.kernels import FIRST, GROUP, HEAD, PLACE, ROWS, SECOND, SIZE, match, spread
from matcher.gpu.mirror import Mirror, TextMirror
from matcher.kernels.layout import TERM_MASK
from matcher.methods.tabled import Found, TableMatcher
from matcher.model import AnyArray, Int64s
from runtime.growing import Growing

THREADS, EVENT_THREADS = 256, 64
"""Threads of a block, where a thread takes a filter and where it takes an event."""
EVENTS_MAX = 4_096
"""Events of a launch, if memory allows."""
LAUNCH_BYTES = 2**29
"""Memory that the layout and the bits of one launch may take; fewer events are taken then."""
FOUND_MIN = 2**16
"""Pairs of event and filter of a launch that there is room for at first."""
BLOCKS_OF_GROUPS = 16
"""Blocks that share out the groups, so that few filters too keep a device busy."""


class BatchedMatcher(TableMatcher):
    """Filters in a table, matched by a device."""

    def __init__(self, on: Device | None = None) -> None:
        super().__init__()
        self._tables = DeviceTables(self.table, on or device())

    def _insert(self, slots: Int64s) -> None:
        self._tables.insert(slots)

    def _delete(self, slot: int) -> None:
        self._tables.delete(slot)

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        return self._tables.run(events, begin, found)

    def launch_again(
        self, events: EncodedEvents, *, recorded: bool = False
    ) -> Callable[[int], None]:
        """A function that computes the same for these events so many times, copying nothing, by
        a graph where ``recorded``: for benchmarks. At most EVENTS_MAX events.
        """
        return self._tables.launch_again(events, recorded)

    def _bytes(self) -> int:
        return self._tables.host_bytes

    @property
    def figures(self) -> Mapping[str, int | str]:
        """Figures of ``TableMatcher``, and of the device."""
        return dict(super().figures) | {
            "device": self._tables.device.name,
            "device bytes": self._tables.bytes,
        }


class DeviceTables:
    """The filters of a table on a device; the table itself stays the host's."""

    def __init__(self, table: FilterTable, on: Device) -> None:
        self.device = on
        self._table = table
        self._heads = Growing(np.int32, HEAD)
        self._always: set[int] = set()
        self._head_mirror = Mirror(on, np.int32, HEAD)
        self._row_mirror, self._texts = Mirror(on, np.int64, 2), TextMirror(on)
        self._launches = [_Launch(on) for _ in range(2)]
        self._lock = Lock()

    @property
    def host_bytes(self) -> int:
        """Bytes of the arrays that the host keeps for it."""
        return int(self._heads.rows.nbytes)

    @property
    def bytes(self) -> int:
        """Bytes of the buffers on the device."""
        mirrors = (self._head_mirror, self._row_mirror)
        return sum(one.buffer.bytes for one in mirrors) + sum(one.bytes for one in self._launches)

    def insert(self, slots: Int64s) -> None:
        """Take filters in."""
        if len(slots) == 0:
            return
        table, heads = self._table, self._heads
        if table.filters.size > heads.size:
            heads.reserve(table.filters.size - heads.size)
        filters = table.filters.rows[slots]
        heads.rows[slots, SIZE] = filters[:, COUNT]
        heads.rows[slots, PLACE] = filters[:, INTERFACE]
        heads.rows[slots, ROWS] = filters[:, START]
        empty = filters[:, COUNT] == 0
        self._always.update(slots[empty].tolist())
        self._set_rarest(slots[~empty], filters[~empty])
        self._changed(slots, filters)

    def delete(self, slot: int) -> None:
        """Take a filter out."""
        self._always.discard(slot)
        self._heads.rows[slot, SIZE] = 0
        self._head_mirror.mark(slot, slot + 1)

    def run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        """Match a run of events, as ``TableMatcher._run`` does."""
        always = np.array(sorted(self._always), np.int64)
        with self._lock:
            parts = self._run_launches(events, begin, found.bits, found.wanted)
        places = self._table.filters.rows[always, INTERFACE]
        for place in np.unique(places).tolist():
            found.bits.view(np.uint64)[begin:, place >> 6] |= np.uint64(1 << (place & 63))
        if not found.wanted:
            return len(events), 0
        rest = np.arange(begin, len(events))
        parts.append(np.stack((np.repeat(rest, len(always)), np.tile(always, len(rest))), 1))
        rows = np.concatenate(parts)
        return found.take(begin, rows[:, 0], rows[:, 1])

    @property
    def _widths(self) -> tuple[int, int]:
        """The numbers of terms, and of 32-bit words for the interfaces of an event."""
        table = self._table
        return max(len(table.vocabulary.terms), 1), 2 * (table.interfaces.size // 64 + 1)

    def launch_again(self, events: EncodedEvents, recorded: bool) -> Callable[[int], None]:
        """The function of ``BatchedMatcher.launch_again``."""
        launch, part = self._launches[0], slice(0, min(len(events), EVENTS_MAX))
        terms, words = self._widths
        filters = self._synchronised(events)
        compute = launch.repeated(filters, events, part, terms, words)
        if recorded:
            compute = self.device.recorded(compute, launch.lane)

        def again(times: int) -> None:
            for _ in range(times):
                compute()
            launch.lane.wait()

        return again

    def _run_launches(
        self, events: EncodedEvents, begin: int, bits: Int64s, wanted: bool
    ) -> list[Int64s]:
        terms, words = self._widths
        a_group = terms * (8 + 8 * GROUP) + GROUP * words * 4
        size = GROUP * int(np.clip(LAUNCH_BYTES // a_group, 1, EVENTS_MAX // GROUP))
        filters = self._synchronised(events)
        parts: list[Int64s] = []
        for turn, first in enumerate(range(begin, len(events), size)):
            launch = self._launches[turn % 2]
            launch.collect(bits, parts)
            part = slice(first, min(first + size, len(events)))
            launch.submit(filters, events, part, terms, words, wanted)
        for launch in self._launches:
            launch.collect(bits, parts)
        return parts

    def _synchronised(self, events: EncodedEvents) -> _Filters:
        """The tables, brought over in one lane and there for both."""
        lane = self._launches[0].lane
        filters = _Filters(
            self._head_mirror.synchronise(self._heads.rows, self._heads.size, lane),
            self._row_mirror.synchronise(self._table.rows.rows, self._table.rows.size, lane),
            self._heads.size,
            self._texts.synchronise(events.texts, lane),
        )
        lane.wait()
        return filters

    def _set_rarest(self, slots: Int64s, filters: Int64s) -> None:
        """The two rarest terms of each filter: those of least rank."""
        counts = filters[:, COUNT]
        ends = np.cumsum(counts)
        owners = np.repeat(np.arange(len(slots)), counts)
        places = np.arange(len(owners)) - np.repeat(ends - counts, counts)
        rows = self._table.rows.rows[places + np.repeat(filters[:, START], counts)]
        terms = rows[:, 0] & TERM_MASK
        order = np.lexsort((self._table.vocabulary.ranks[terms], owners))
        firsts = ends - counts
        self._heads.rows[slots, FIRST] = terms[order[firsts]]
        self._heads.rows[slots, SECOND] = terms[order[np.minimum(firsts + 1, ends - 1)]]

    def _changed(self, slots: Int64s, filters: Int64s) -> None:
        if len(slots) > GROUP:
            self._head_mirror.mark(int(slots.min()), int(slots.max()) + 1)
            ends = filters[:, START] + filters[:, COUNT]
            self._row_mirror.mark(int(filters[:, START].min()), int(ends.max()))
            return
        for slot, row in zip(slots.tolist(), filters.tolist(), strict=True):
            self._head_mirror.mark(slot, slot + 1)
            self._row_mirror.mark(row[START], row[START] + row[COUNT])


@dataclass(frozen=True, slots=True, eq=False)
class _Filters:
    """Buffers of filters and texts that kernels read."""

    heads: Buffer
    rows: Buffer
    slots: int
    texts: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes of one launch, which takes ``part`` of the events."""

    part: slice
    cells: int
    terms: int
    words: int
    wanted: bool

    @property
    def events(self) -> int:
        return int(self.part.stop - self.part.start)

    @property
    def groups(self) -> int:
        return -(-self.events // GROUP)


class _Launch:
    """One run of some events, from the copy of their cells to that of their bits.

    Buffers are kept from run to run and grow. What is copied by the device itself lies in
    page-locked memory, which is not touched between :meth:`submit` and :meth:`collect`.
    """

    def __init__(self, on: Device) -> None:
        self.lane = on.lane()
        self._device = on
        self._buffers: dict[str, Buffer] = {}
        self._pinned: dict[str, AnyArray] = {}
        self._under_way: tuple[_Filters, _Shape] | None = None
        self._room = FOUND_MIN

    @property
    def bytes(self) -> int:
        """Bytes of its buffers."""
        return sum(buffer.bytes for buffer in self._buffers.values())

    def submit(
        self,
        filters: _Filters,
        events: EncodedEvents,
        part: slice,
        terms: int,
        words: int,
        wanted: bool,
    ) -> None:
        """Begin to match a run of events."""
        begin, end = events.offsets[part.start], events.offsets[part.stop]
        shape = _Shape(part, int(end - begin), terms, words, wanted)
        offsets = self._host("offsets", shape.events + 1, np.int64)
        np.subtract(events.offsets[part.start : part.stop + 1], begin, out=offsets)
        self._host("cells", shape.cells, np.int64, 2)[:] = events.cells[begin:end]
        self._under_way = filters, shape
        self._launch(filters, shape)

    def repeated(
        self, filters: _Filters, events: EncodedEvents, part: slice, terms: int, words: int
    ) -> Callable[[], None]:
        """The kernels alone over a run of events that is brought over now."""
        self.submit(filters, events, part, terms, words, wanted=False)
        self.lane.wait()
        assert self._under_way is not None
        (_, shape), self._under_way = self._under_way, None
        return lambda: self._compute(filters, shape)

    def collect(self, bits: Int64s, parts: list[Int64s]) -> None:
        """Wait for the run, if one is under way; its bits, and its pairs behind ``parts``."""
        if self._under_way is None:
            return
        (filters, shape), self._under_way = self._under_way, None
        self.lane.wait()
        if shape.wanted:
            pairs = int(self._host("found", 1, np.int64, 2)[0, 0])
            if pairs > self._room:
                self._room = 2 * pairs
                self._launch(filters, shape)
                self.lane.wait()
            rows = self._host("found", 1 + pairs, np.int64, 2)
            self._device.download(rows, self._buffers["found"], self.lane)
            self.lane.wait()
            parts.append(rows[1:] + np.array([shape.part.start, 0]))
        own = self._host("bits", shape.events * shape.words, np.uint32)
        bits[shape.part] |= own.view(np.int64).reshape(shape.events, -1)

    def _launch(self, filters: _Filters, shape: _Shape) -> None:
        on, lane, count = self._device, self.lane, shape.events
        offsets = self._buffer("offsets", count + 1, np.int64)
        cells = self._buffer("cells", shape.cells, np.int64, 2)
        on.upload(offsets, 0, self._host("offsets", count + 1, np.int64), lane)
        on.upload(cells, 0, self._host("cells", shape.cells, np.int64, 2), lane)
        self._compute(filters, shape)
        bits = self._host("bits", count * shape.words, np.uint32)
        on.download(bits, self._buffers["bits"], lane)
        on.download(self._host("found", 1, np.int64, 2), self._buffers["found"], lane)

    def _compute(self, filters: _Filters, shape: _Shape) -> None:
        """Both kernels, on events that are on the device."""
        on, lane, count = self._device, self.lane, shape.events
        places, room = shape.groups * shape.terms, self._room if shape.wanted else 0
        presence = self._buffer("presence", places, np.uint32)
        floats = self._buffer("floats", places, np.uint32)
        values = self._buffer("values", places, np.int64, GROUP)
        bits = self._buffer("bits", count * shape.words, np.uint32)
        found = self._buffer("found", 1 + room, np.int64, 2)
        sizes = ((presence, places), (floats, places), (bits, count * shape.words), (found, 1))
        for buffer, rows in sizes:
            on.clear(buffer, rows, lane)
        blocks = (-(-count // EVENT_THREADS), 1)
        laid_out = (presence, floats, values)
        arguments = (self._buffers["offsets"], self._buffers["cells"], shape.terms, count)
        on.launch(spread, blocks, EVENT_THREADS, lane, *arguments, *laid_out)
        blocks = (max(-(-filters.slots // THREADS), 1), min(shape.groups, BLOCKS_OF_GROUPS))
        asked = (filters.heads, filters.rows, filters.slots, shape.terms, shape.groups)
        told = (shape.words, bits, room, found)
        on.launch(match, blocks, THREADS, lane, *asked, *laid_out, *told, *filters.texts)

    def _buffer(self, name: str, rows: int, dtype: npt.DTypeLike, *width: int) -> Buffer:
        held = self._buffers.get(name)
        if held is None or rows > len(held):
            held = self._device.empty((max(2 * rows, 1), *width), dtype)
            self._buffers[name] = held
        return held

    def _host(self, name: str, rows: int, dtype: npt.DTypeLike, *width: int) -> AnyArray:
        held = self._pinned.get(name)
        if held is None or rows > len(held):
            held = self._device.pinned((max(2 * rows, 1), *width), dtype)
            self._pinned[name] = held
        return held[:rows]

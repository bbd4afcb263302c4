"""CCM: PCM on a GPU, as published (thesis 4.4.3), kept as the baseline of its kind.

The processor selects the lists of an event's names and fills the table Input; the device evaluates
every constraint of them at once, counts by atomic additions, and sets Interfaces. Count and
Interfaces stand there twice: while an event uses one copy, the same kernel sets the other to zero
(*Kernel* of figure 4.6). With ``memset`` it is set by a command before the kernel, which the
thesis compares (*Memset*).

The thesis's other variants are options, too: constraints ``ordered`` by type, operator and value,
so that neighbouring threads do the same; each constraint once (``distinct``), with a list of its
filters; and several events by one kernel (``together``), each with its own Count and Interfaces.
Ordered or distinct tables are made anew with each change of filters.

Events follow one another on the device without a wait between them; the host waits for ``RING``
launches at a time. The copies and the kernel of a launch can be recorded once as a graph and
repeated, which spares the preparing of arguments; graphs hold as long as no table has moved.
``recorded=False`` launches each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from matcher.filters.encoded import EncodedEvents
from matcher.gpu.arrangement import Arrangement, arranged
from matcher.gpu.device import Buffer, Device, Lane, device
from matcher.gpu.kernels import (
    CELL,
    EVENT,
    INPUT,
    LIST,
    VALUE,
    ccm,
    ccm_distinct,
    ccm_together,
)
from matcher.gpu.mirror import Mirror, TextMirror
from matcher.kernels.layout import COUNT, ROOM, START, TERM_MASK
from matcher.methods.pcm import PcmMatcher, Share
from matcher.methods.tabled import Found
from matcher.model import AnyArray, Int64s

THREADS = 256
"""Threads of a block (the thesis: 256 or 512)."""
RING = 32
"""Launches that may be under way; an even number, for their turns to alternate."""
ATTRIBUTES_MIN = 16
"""Attributes that Input has room for at first."""
FOUND_MIN = 4_096
"""Filters of one event that there is room for at first."""
LISTS_APART = 64
"""Changes up to which lists are copied one by one; beyond, the arena is copied whole."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Options of CCM; raises ValueError for two that exclude one another."""

    recorded: bool = True
    memset: bool = False
    ordered: bool = False
    distinct: bool = False
    together: int = 1

    def __post_init__(self) -> None:
        if self.together < 1 or (self.distinct and self.together > 1):
            raise ValueError("CCM takes several events at once, or each constraint once, not both")


class CcmMatcher(PcmMatcher):
    """PCM, its evaluation and counting done on a device."""

    def __init__(
        self,
        on: Device | None = None,
        *,
        recorded: bool = True,
        memset: bool = False,
        ordered: bool = False,
        distinct: bool = False,
        together: int = 1,
    ) -> None:
        super().__init__()
        variant = Variant(recorded, memset, ordered, distinct, together)
        self._evaluation = _Evaluation(on or device(), variant)

    def launch_again(self, events: EncodedEvents) -> Callable[[int], None]:
        """A function that evaluates one event, or so many as are done together, so many times,
        copying nothing: for benchmarks.
        """
        with self._evaluation.lock:
            self._evaluation.synchronise(self, events, False)
            return self._evaluation.launch_again(self, events)

    def _insert(self, slots: Int64s) -> None:
        super()._insert(slots)
        self._evaluation.changed(self, slots)

    def _delete(self, slot: int) -> None:
        super()._delete(slot)
        self._evaluation.changed(self, np.array([slot], np.int64))

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        always = np.array(sorted(self.shares[0].always), np.int64)
        places = self.shares[0].filters.rows[always, 2]
        size = 0
        with self._evaluation.lock:
            self._evaluation.synchronise(self, events, found.wanted)
            for some in _runs(range(begin, len(events)), self._evaluation.events_max):
                results = self._evaluation.evaluate(self, events, some)
                for event, (interfaces, matched) in zip(some, results, strict=True):
                    _set_bits(
                        found.bits[event], np.concatenate((np.flatnonzero(interfaces), places))
                    )
                    if not found.wanted:
                        continue
                    slots = np.concatenate((always, matched))
                    if size + len(slots) > len(found.slots):
                        return event, size
                    found.slots[size : size + len(slots)] = slots
                    size += len(slots)
                    found.ends[event] = size
        return len(events), size

    @property
    def figures(self) -> Mapping[str, int | str]:
        """Figures of PCM, and of the device."""
        on = self._evaluation.device
        return dict(super().figures) | {"device": on.name, "device bytes": self._evaluation.bytes}


def _set_bits(bits: Int64s, places: Int64s) -> None:
    words = bits.view(np.uint64)
    np.bitwise_or.at(words, places >> 6, np.uint64(1) << (places & 63).astype(np.uint64))


def _runs(events: range, length: int) -> Iterator[range]:
    """The events in order, so many at a time."""
    for first in range(events.start, events.stop, length):
        yield range(first, min(first + length, events.stop))


class _Constraints:
    """The constraints on the device, by name, as the host has them or arranged otherwise."""

    def __init__(self, on: Device, variant: Variant) -> None:
        self._variant = variant
        self._lists, self._arena = Mirror(on, np.int64, 4), Mirror(on, np.int64, 3)
        self._owners, self._members = Mirror(on, np.int64), Mirror(on, np.int64)
        self._arranged: Arrangement | None = None

    def changed(self, matcher: CcmMatcher, slots: Int64s) -> None:
        """Filters came or went: the lists of their names."""
        share, table = matcher.shares[0], matcher.table
        self._arranged = None
        if len(slots) > LISTS_APART:
            self._lists.mark(0, share.lists.size)
            self._arena.mark(0, len(share.arena))
            return
        for slot in slots.tolist():
            terms = table.rows_of(slot)[:, 0] & TERM_MASK
            for number in np.unique(matcher.list_of_term[terms]).tolist():
                row = share.lists.rows[number]
                self._lists.mark(number, number + 1)
                self._arena.mark(int(row[START]), int(row[START] + row[ROOM]))

    def sizes(self, share: Share) -> Int64s:
        """The number of each list's constraints on the device; after ``synchronise``."""
        rows = share.lists.rows[: share.lists.size]
        return (rows if self._arranged is None else self._arranged.lists)[:, COUNT]

    def synchronise(self, share: Share, lane: Lane) -> tuple[Buffer, ...]:
        """Lists and constraints; where each stands once, its filters, too."""
        lists, arena = share.lists.rows[: share.lists.size], share.arena
        if not (self._variant.ordered or self._variant.distinct):
            return (
                self._lists.synchronise(lists, len(lists), lane),
                self._arena.synchronise(arena, len(arena), lane),
            )
        if self._arranged is None:
            made = arranged(lists, arena, distinct=self._variant.distinct)
            self._arranged = made
            self._all_is_new(made)
        made = self._arranged
        tables = (
            self._lists.synchronise(made.lists, len(made.lists), lane),
            self._arena.synchronise(made.rows, len(made.rows), lane),
        )
        if not self._variant.distinct:
            return tables
        owners = self._owners.synchronise(made.owners, len(made.owners), lane)
        return *tables, owners, self._members.synchronise(made.members, len(made.members), lane)

    def _all_is_new(self, made: Arrangement) -> None:
        mirrors = (self._lists, self._arena, self._owners, self._members)
        arrays = (made.lists, made.rows, made.owners, made.members)
        for mirror, array in zip(mirrors, arrays, strict=True):
            mirror.mark(0, len(array))


class _Evaluation:
    """The tables on the device, and how events are run over them, up to RING launches under way."""

    def __init__(self, on: Device, variant: Variant) -> None:
        self.device = on
        self.lock = Lock()
        self._variant = variant
        self._graphs = variant.recorded and not on.simulated
        self._lane = on.lane()
        self._constraints = _Constraints(on, variant)
        self._filters, self._texts = Mirror(on, np.int64, 3), TextMirror(on)
        self._tables: tuple[tuple[Buffer, ...], ...] = ()
        self._copies = _Copies(on, 1, 1, variant.together)
        self._sizes = np.zeros(0, np.int64)
        self._longest, self._attributes, self._room = 1, ATTRIBUTES_MIN, 0
        self._next = 0
        self._ring: list[_Place] = []

    @property
    def events_max(self) -> int:
        """Events that may be under way."""
        return RING * self._variant.together

    @property
    def bytes(self) -> int:
        """Bytes of its buffers."""
        buffers = (*(one for table in self._tables for one in table), *self._copies.buffers)
        return sum(buffer.bytes for buffer in buffers) + sum(one.bytes for one in self._ring)

    def changed(self, matcher: CcmMatcher, slots: Int64s) -> None:
        """Filters came or went: their rows, and the lists of their names."""
        self._constraints.changed(matcher, slots)
        if len(slots) > LISTS_APART:
            self._filters.mark(int(slots.min()), int(slots.max()) + 1)
            return
        for slot in slots.tolist():
            self._filters.mark(slot, slot + 1)

    def synchronise(self, matcher: CcmMatcher, events: EncodedEvents, wanted: bool) -> None:
        """Bring the device's tables to the host's, with room for these events."""
        share, lane = matcher.shares[0], self._lane
        lists, arena, *owners = self._constraints.synchronise(share, lane)
        filters = self._filters.synchronise(share.filters.rows, share.filters.size, lane)
        tables = (
            (lists, arena, filters, *owners),
            tuple(self._texts.synchronise(events.texts, lane)),
        )
        copies = self._copies.fitting(share.filters.size, matcher.table.interfaces.size)
        self._sizes = self._constraints.sizes(share)
        longest = max(self._longest, -(-int(self._sizes.max(initial=0)) // THREADS))
        widest = int(np.diff(events.offsets).max(initial=0)) * self._variant.together
        attributes = self._attributes if widest <= self._attributes else 2 * widest
        room = max(self._room, FOUND_MIN) if wanted else 0
        shape = (tables, copies, longest, attributes, room)
        if shape != (self._tables, self._copies, self._longest, self._attributes, self._room):
            self._tables, self._copies, self._longest, self._attributes, self._room = shape
            self._lay_out()

    def evaluate(
        self, matcher: CcmMatcher, events: EncodedEvents, some: range
    ) -> list[tuple[AnyArray, Int64s]]:
        """The vector Interfaces of each event, and the slots of its filters, in no order."""
        used = []
        for run in _runs(some, self._variant.together):
            place = self._ring[self._next]
            self._next = (self._next + 1) % RING
            place.fill(matcher.list_of_term, self._sizes, events, run)
            place.work()
            used.append((place, len(run)))
        self._lane.wait()
        most = max(int(place.found[0]) for place, _ in used)
        if self._room and most > self._room:
            self._room = 2 * most
            self._lay_out()
            return self.evaluate(matcher, events, some)
        return [one for place, count in used for one in self._results(place, count)]

    def _results(self, place: _Place, count: int) -> Iterator[tuple[AnyArray, Int64s]]:
        events, slots = np.divmod(place.found[1 : 1 + place.found[0]], self._copies.filters)
        for event in range(count):
            first = event * self._copies.interfaces
            interfaces = place.interfaces[first : first + self._copies.interfaces]
            yield interfaces, slots if count == 1 else slots[events == event]

    def launch_again(self, matcher: CcmMatcher, events: EncodedEvents) -> Callable[[int], None]:
        """The function of ``CcmMatcher.launch_again``; both copies are clean after each call."""
        place, lane = self._ring[0], self._lane
        run = range(min(len(events), self._variant.together))
        place.fill(matcher.list_of_term, self._sizes, events, run)
        self._upload(place)
        turns = [self._repeatable(partial(self._compute, place, turn)) for turn in range(2)]
        self._copies.clear(lane)

        def again(times: int) -> None:
            for number in range(times):
                turns[number % 2]()
            self._copies.clear(lane)
            lane.wait()

        return again

    def _lay_out(self) -> None:
        """Make the places of the ring anew, with clean copies to begin with."""
        self._next = 0
        interfaces = self._copies.interfaces * self._variant.together
        lengths = (self._attributes, self._room, interfaces)
        self._ring = [_Place(self.device, *lengths) for _ in range(RING)]
        for turn, place in enumerate(self._ring):
            place.work = self._repeatable(partial(self._launch, place, turn % 2))
        self._copies.clear(self._lane)

    def _repeatable(self, work: Callable[[], None]) -> Callable[[], None]:
        return self.device.recorded(work, self._lane) if self._graphs else work

    def _launch(self, place: _Place, turn: int) -> None:
        on, lane = self.device, self._lane
        self._upload(place)
        on.clear(place.matched, 1, lane)
        self._compute(place, turn)
        on.download(place.interfaces, self._copies.of(turn)[1], lane)
        on.download(place.found, place.matched, lane)

    def _upload(self, place: _Place) -> None:
        self.device.upload(place.inputs, 0, place.input, self._lane)
        self.device.upload(place.size, 0, place.count, self._lane)

    def _compute(self, place: _Place, turn: int) -> None:
        """The kernel, on events that are on the device."""
        on, lane, copies = self.device, self._lane, self._copies
        mine, other = copies.of(turn), copies.of(1 - turn)
        if self._variant.memset:
            for buffer in mine:
                on.clear(buffer, len(buffer), lane)
            other = copies.none
        tables, texts = self._tables
        kernel: Any = ccm
        strides: tuple[int, ...] = ()
        if self._variant.distinct:
            kernel = ccm_distinct
        elif self._variant.together > 1:
            kernel, strides = ccm_together, (copies.filters, copies.interfaces)
        # A graph's grid is fixed: it covers the longest list of all, and all of Input.
        grid = (self._longest, self._attributes) if self._graphs else place.grid
        given: tuple[Buffer | int, ...] = (
            place.size,
            place.inputs,
            *tables,
            *strides,
            *mine,
            *other,
        )
        on.launch(kernel, grid, THREADS, lane, *given, self._room, place.matched, *texts)


class _Place:
    """Buffers of one launch under way: Input and the answers, on the host and on the device."""

    def __init__(self, on: Device, attributes: int, room: int, interfaces: int) -> None:
        self.input = on.pinned((attributes, INPUT), np.int64)
        self.inputs = on.zeros((attributes, INPUT), np.int64)
        self.count, self.size = on.pinned(1, np.int64), on.zeros(1, np.int64)
        self.interfaces = on.pinned(interfaces, np.int32)
        self.found, self.matched = on.pinned(1 + room, np.int64), on.zeros(1 + room, np.int64)
        self.grid = (1, 1)
        self.work: Callable[[], None] = lambda: None

    @property
    def bytes(self) -> int:
        """Bytes of its buffers on the device."""
        return self.inputs.bytes + self.size.bytes + self.matched.bytes

    def fill(self, list_of_term: Int64s, sizes: Int64s, events: EncodedEvents, run: range) -> None:
        """Select the lists of the names of some events; ``sizes``: how long lists are."""
        bounds = events.offsets[run.start : run.stop + 1]
        cells = events.cells[bounds[0] : bounds[-1]]
        count = len(cells)
        lists = list_of_term[cells[:, 0] & TERM_MASK]
        self.input[:count, LIST] = lists
        self.input[:count, CELL] = cells[:, 0]
        self.input[:count, VALUE] = cells[:, 1]
        self.input[:count, EVENT] = np.repeat(np.arange(len(run)), np.diff(bounds))
        self.count[0] = count
        longest = int(sizes[lists].max(initial=0))
        self.grid = (max(-(-longest // THREADS), 1), max(count, 1))


class _Copies:
    """Count and Interfaces of so many events, twice."""

    def __init__(self, on: Device, filters: int, interfaces: int, events: int) -> None:
        self._device = on
        self._counts = [on.zeros(filters * events, np.int32) for _ in range(2)]
        self._interfaces = [on.zeros(interfaces * events, np.int32) for _ in range(2)]
        self.filters, self.interfaces, self._events = filters, interfaces, events
        self.none = (on.zeros(1, np.int32), on.zeros(1, np.int32))

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The four arrays: two of Count, two of Interfaces."""
        return (*self._counts, *self._interfaces)

    def of(self, turn: int) -> tuple[Buffer, Buffer]:
        """Count and Interfaces of one turn."""
        return self._counts[turn], self._interfaces[turn]

    def clear(self, lane: Lane) -> None:
        """Set all four to zero."""
        for buffer in self.buffers:
            self._device.clear(buffer, len(buffer), lane)

    def fitting(self, filters: int, interfaces: int) -> _Copies:
        """Give these copies, or larger ones."""
        if filters <= self.filters and interfaces <= self.interfaces:
            return self
        return _Copies(
            self._device,
            self.filters if filters <= self.filters else 2 * filters,
            self.interfaces if interfaces <= self.interfaces else 2 * interfaces,
            self._events,
        )

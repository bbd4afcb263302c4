"""The columns of one rule: rings of copies of events, in main memory and on the device (6.3).

Law 1: the host keeps its own copy of everything and decides what is in a window; the device has
the rows alone. An event that enters a column is written to the host's ring, which is page-locked,
and copied from there without waiting.

Law 2: a column's events stand in order of (time, E4), also one that comes late. Each has a number
that counts the column's events from the first; event n stands at place ``n % capacity`` of the
ring.

Law 3: a rule that the device has no room for is *apart*: its rows stay in main memory, and what is
in the windows of a terminator is copied, to the same places of a buffer that all such rules share,
when there is one (6.3.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from matcher.gpu.device import Buffer
from matcher.model import TIME_MIN, AnyArray, Int64s
from studies.cdp_on_cuda.compiling import ColumnForm
from studies.cdp_on_cuda.events import IDENTITY, Block, Sources
from studies.cdp_on_cuda.queue import Queue

WORD = 8
"""Bytes of a word."""
ROOM_MIN = 64
"""The host keeps room for so many events of a column at least."""


class DeviceMemory:
    """The memory that rules may have on the device, and the buffer of those that are apart.

    ``limit`` in bytes, None for no limit; ``used`` is what rules have of it.
    """

    def __init__(self, queue: Queue, limit: int | None) -> None:
        self.limit = limit
        self.used = 0
        self._queue = queue
        self._staging: Buffer | None = None

    def taken(self, words: int) -> Buffer | None:
        """A buffer of so many words; None where there is no room for it."""
        if self.limit is not None and self.used + WORD * words > self.limit:
            return None
        try:
            buffer = self._queue.empty(words, np.int64)
        except MemoryError:  # of the device
            return None
        self.used += buffer.bytes
        return buffer

    def give_back(self, buffer: Buffer | None) -> None:
        """Have room again for what a buffer takes."""
        if buffer is not None:
            self.used -= buffer.bytes

    def staging(self, words: int) -> Buffer:
        """The shared buffer, of so many words at least; its content is nobody's."""
        if self._staging is None or len(self._staging) < words:
            self._staging = self._queue.empty(words, np.int64)
        return self._staging


class Column:
    """The host's side of a column; the arena owns its rows."""

    def __init__(self, form: ColumnForm, capacity: int, since: int) -> None:
        self.form = form
        self.base = 0
        self.capacity = capacity
        self.head = self.tail = 0
        self._from = since
        """No event earlier than this is of use."""
        self._first = 0  # the number of the first event that the two arrays hold
        self._identity: AnyArray = np.empty(ROOM_MIN, IDENTITY)  # with room behind
        self._times: Int64s = np.empty(ROOM_MIN, np.int64)
        self._pending: list[Block] = []
        self._none = Block(self._identity[:0], np.empty((0, form.row), np.int64))
        self._due = self._none
        self._due_times: Int64s = np.empty(0, np.int64)
        self._next = 0  # of those that are due

    def __len__(self) -> int:
        return self.tail - self.head

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The events that have not entered yet."""
        return (*self._pending, self._due.take(slice(self._next, None)))

    @property
    def is_idle(self) -> bool:
        """Whether no event waits for its mark."""
        return not self._pending

    @property
    def waiting(self) -> int:
        """The number of events that have not entered yet."""
        return sum(map(len, self.blocks))

    def add(self, block: Block) -> None:
        """Have events wait for their marks."""
        self._pending.append(block)

    def collect(self, end: int, sources: Sources) -> None:
        """Put the events before ``end`` into order, for :meth:`next_block`; all that were due
        before have entered.
        """
        self._due, self._next = self._none, 0
        if not self._pending:
            return
        due, later = [], []
        for block in self._pending:
            is_due = block.identity["time"] < end
            if not is_due.all():
                later.append(block.take(~is_due))
                block = block.take(is_due)
            due.append(block)
        self._pending = later
        found = Block.together(due, self.form.row)
        self._due = found.take(found.identity["time"] >= self._from).in_order(sources)
        self._due_times = self._due.identity["time"].copy()

    def next_block(self, until: int | None) -> Block:
        """The events that are due up to an instant, included, or all; they are to be entered."""
        start, self._next = self._next, len(self._due)
        if start == self._next:
            return self._none
        if until is not None:
            self._next = int(self._due_times.searchsorted(until, "right"))
        return self._due.take(slice(start, self._next))

    def forget(self, before: int) -> None:
        """Let go of the events before an instant."""
        self._from = max(self._from, before)
        self.head = self._number(self._from, "left")

    def window(self, low: int, high: int) -> tuple[int, int]:
        """The numbers of the events from ``low`` to ``high``, both included, in time; the second
        number is excluded.
        """
        return (
            max(self.head, self._number(low, "left")),
            self._number(high, "right"),
        )

    def _number(self, time: int, side: Literal["left", "right"]) -> int:
        """The number of the first event that is not earlier, or (right) that is later."""
        times = self._times[: self.tail - self._first]
        return self._first + int(times.searchsorted(time, side))

    def time(self, number: int) -> int:
        """The time of an event by its number."""
        return int(self._times[number - self._first])

    def identity(self, numbers: AnyArray | slice) -> AnyArray:
        """The identities of events by their numbers (indices or slice)."""
        if isinstance(numbers, slice):
            places = slice(numbers.start - self._first, numbers.stop - self._first)
            return self._identity[places].copy()
        found: AnyArray = self._identity[numbers - self._first]
        return found

    def number_of(self, time: int, serial: int) -> int | None:
        """The number of the event with a serial number, if it is here."""
        for number in range(*self.window(time, time)):
            if self._identity[number - self._first]["serial"] == serial:
                return number
        return None

    def append(self, identity: AnyArray) -> None:
        """Count events as entered."""
        start = self.tail - self._first
        if start + len(identity) > len(self._times):
            start = self._make_room(len(identity))
        self._identity[start : start + len(identity)] = identity
        self._times[start : start + len(identity)] = identity["time"]
        self.tail += len(identity)

    def cut(self, number: int) -> None:
        """Count the events from a number on as not entered."""
        self.tail = number

    def _make_room(self, count: int) -> int:
        """Have room for more events, and let go of those that are gone: where room begins."""
        kept = slice(self.head - self._first, self.tail - self._first)
        identity, times = self._identity[kept], self._times[kept]
        room = max(ROOM_MIN, 2 * (len(times) + count))
        self._identity, self._times = np.empty(room, IDENTITY), np.empty(room, np.int64)
        self._identity[: len(times)], self._times[: len(times)] = identity, times
        self._first = self.head
        return len(times)


class Arena:
    """The rings of a rule's columns, in main memory and, if there is room, on the device.

    ``layouts`` counts how often columns got other places.
    """

    def __init__(
        self,
        queue: Queue,
        memory: DeviceMemory,
        forms: Sequence[ColumnForm],
        capacity: int,
        since: int,
    ) -> None:
        self._queue = queue
        self._memory = memory
        self._terminator = forms[0].row
        self.columns = [Column(form, capacity, since) for form in forms[1:]]
        self.layouts = 0
        self._buffer: Buffer | None = None
        self._mirror: Int64s = np.empty(0, np.int64)
        self._lay_out()

    @property
    def is_apart(self) -> bool:
        """Whether the rows are in main memory alone."""
        return self._buffer is None

    @property
    def words(self) -> int:
        """Words of the arena."""
        return len(self._mirror)

    def release(self) -> None:
        """Give the memory of the device back."""
        self._memory.give_back(self._buffer)
        self._buffer = None

    def enter(self, column: Column, block: Block, sources: Sources) -> None:
        """Have events, in order, enter a column."""
        if not len(block):
            return
        if len(column) and block.identity["time"][0] <= column.time(column.tail - 1):
            start, _ = column.window(int(block.identity["time"][0]), TIME_MIN)
            later = Block(
                column.identity(slice(start, column.tail)), self.rows(column, start, column.tail)
            )
            column.cut(start)
            block = Block.together([later, block], column.form.row).in_order(sources)
        if len(column) + len(block) > column.capacity:
            self._grow(column, len(column) + len(block))
        start = column.tail
        column.append(block.identity)
        self._write(column, start, block.rows)

    def rows(self, column: Column, start: int, stop: int) -> AnyArray:
        """A copy of the rows of some events, by number."""
        ring = self._ring(column)
        return ring[np.arange(start, stop) % column.capacity]

    def overwrite(self, column: Column, number: int, word: int, value: int) -> None:
        """Change a word of a row."""
        row = self.rows(column, number, number + 1)
        row[0, word] = value
        self._write(column, number, row)

    def numbers(self, column: Column, addresses: Int64s) -> Int64s:
        """The numbers of the events that stand at some addresses."""
        slots = (addresses - column.base) // column.form.row
        return column.head + (slots - column.head) % column.capacity

    def present(self, terminator: AnyArray, windows: Iterable[tuple[Column, int, int]]) -> Buffer:
        """The arena on the device, with the row of a terminator and all that is in some windows,
        each given by the numbers of its events.
        """
        self._mirror[: self._terminator] = terminator
        buffer = self._buffer
        if buffer is None:
            buffer = self._memory.staging(self.words)
            for column, start, stop in windows:
                self._copy(buffer, column, start, stop)
        self._queue.upload(buffer, 0, self._mirror[: self._terminator])
        return buffer

    def _ring(self, column: Column) -> AnyArray:
        words = column.capacity * column.form.row
        ring: AnyArray = self._mirror[column.base : column.base + words]
        return ring.reshape(column.capacity, column.form.row)

    def _write(self, column: Column, start: int, rows: AnyArray) -> None:
        """Write rows to their places, which there are, and copy them if the rule is not apart."""
        places = np.arange(start, start + len(rows)) % column.capacity
        self._ring(column)[places] = rows
        if self._buffer is not None:
            self._copy(self._buffer, column, start, start + len(rows))

    def _copy(self, buffer: Buffer, column: Column, start: int, stop: int) -> None:
        """Copy rows by number from the host's ring; two pieces where they go around its end."""
        row, first = column.form.row, start % column.capacity
        end = first + stop - start
        pieces = [(first, min(end, column.capacity)), (0, end - column.capacity)]
        for low, high in pieces:
            if high > low:
                words = slice(column.base + low * row, column.base + high * row)
                self._queue.upload(buffer, words.start, self._mirror[words])

    def _grow(self, column: Column, needed: int) -> None:
        """Give a column a ring of twice the rows, or as many as are needed."""
        self._queue.lane.wait()  # nothing may still be copied from the old memory
        kept = [self.rows(one, one.head, one.tail) for one in self.columns]
        column.capacity = max(2 * column.capacity, needed)
        self._lay_out()
        for one, rows in zip(self.columns, kept, strict=True):
            self._write(one, one.head, rows)

    def _lay_out(self) -> None:
        """Give every column its place, in main memory and on the device."""
        self.layouts += 1
        end = self._terminator
        for column in self.columns:
            column.base = end
            end += column.capacity * column.form.row
        self._mirror = self._queue.device.pinned(end, np.int64)
        self.release()
        self._buffer = self._memory.taken(end)

"""One rule on the device: from a terminator to its matches, column by column (6.3.1 to 6.3.3).

The host finds the window of each column by binary search, launches the kernels over it, and reads
how many partial sequences there are before it goes on to the next; the two arrays of sequences
change places at each step. They do so after single selection too, where the papers change the one
array in place: what is left of it moves together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from matcher.gpu.device import Buffer
from matcher.model import TIME_MAX, TIME_MIN, AnyArray, Int64s, Kind
from rules.engine.order.catalogue import Deployed
from rules.pattern import Policy
from rules.planning.plan import Span, StepKind
from studies.cdp_on_cuda import kernels, layout
from studies.cdp_on_cuda.columns import Arena, Column, DeviceMemory
from studies.cdp_on_cuda.compiling import CompiledRule, Task
from studies.cdp_on_cuda.events import Block, Sources
from studies.cdp_on_cuda.queue import Queue
from studies.cdp_on_cuda.results import Found

THREADS = 256
"""Threads of a block, a power of two; the thesis has 512, which may be too many for the registers
that a stack machine takes."""
ROWS_MAX = 65_535
"""Blocks of y there may be: more partial sequences share them."""
SEQUENCES_MIN = 256
"""Room for so many partial sequences there is at first."""


@dataclass(frozen=True, slots=True)
class _Window:
    """The events of a column to look at, by number; ``stop`` is excluded."""

    column: Column
    start: int
    stop: int

    @property
    def first(self) -> int:
        """The place in the ring where they begin."""
        return self.start % self.column.capacity

    def __len__(self) -> int:
        return self.stop - self.start


class _Sequences:
    """The partial sequences: two arrays on the device that are swapped, and what goes with them.

    ``given`` holds the first ``total`` of them; a step writes to the other array. ``indexes`` and
    ``bounds`` are those of single selection, one for each sequence.
    """

    def __init__(self, queue: Queue, words: int) -> None:
        self._queue = queue
        self._words = words
        self._start = queue.table(np.zeros((1, words), np.int64))
        self._index = queue.empty(1, np.int64)
        self._count: Int64s = queue.device.pinned(1, np.int64)
        self._fit(SEQUENCES_MIN)
        self.begin()

    def _fit(self, room: int) -> None:
        queue, shape = self._queue, (room, self._words)
        self._room = room
        self._pair = [queue.empty(shape, np.int64), queue.empty(shape, np.int64)]
        self.indexes, self.bounds = queue.empty(room, np.int64), queue.empty(room, np.int64)
        self._rows: Int64s = queue.device.pinned(shape, np.int64)

    def begin(self) -> None:
        """There is one, of the terminator alone, whose address is 0."""
        self.given, self.total = self._start, 1

    def step(self, kernel: Any, blocks: tuple[int, int], *arguments: Buffer | int) -> bool:
        """Launch a kernel that copies sequences to the other array, and swap the two; whether any
        is left. It is launched again with more room where there was not enough.
        """
        while True:
            out = self._pair[0] if self.given is not self._pair[0] else self._pair[1]
            self._queue.clear(self._index, 1)
            self._queue.launch(kernel, blocks, THREADS, *arguments, out, self._room, self._index)
            self._queue.download(self._count, self._index)
            count = int(self._count[0])
            if count <= self._room:
                break
            self._fit(max(2 * self._room, count))
        self.given, self.total = out, count
        return count > 0

    def taken(self) -> AnyArray:
        """All sequences, on the host."""
        rows = self._rows[: self.total]
        self._queue.download(rows, self.given)
        return rows.copy()


class DeviceRule:
    """A deployed rule: its columns, its tables on the device, and the terminators that wait."""

    def __init__(
        self,
        deployed: Deployed,
        compiled: CompiledRule,
        queue: Queue,
        memory: DeviceMemory,
        capacity: int,
        sources: Sources,
    ) -> None:
        self.deployed = deployed
        self.compiled = compiled
        self.mark = deployed.floor
        """All instants before it have been evaluated."""
        self._queue, self._sources = queue, sources
        self.terminators = Column(compiled.columns[0], 1, deployed.since)
        self.arena = Arena(queue, memory, compiled.columns, capacity, deployed.since)
        self.columns = (self.terminators, *self.arena.columns)
        """All columns, that of the terminators first."""
        self._code, self._values = queue.table(compiled.code), queue.table(compiled.values)
        self._sequences = _Sequences(queue, compiled.words)
        self._partials = [queue.empty((1, layout.PARTIAL), np.int64) for _ in range(2)]
        self._steps = queue.table(compiled.steps)
        self._layout = 0

    @property
    def is_idle(self) -> bool:
        """Whether no event waits for its mark."""
        return all(column.is_idle for column in self.columns)

    @property
    def horizon(self) -> int:
        """The rule sees no events earlier than this any more."""
        return _back_from(self.mark, max(form.reach for form in self.compiled.columns))

    def reach(self, mark: int) -> None:
        """Know that every instant before a mark is done with: there were no terminators."""
        self.mark = max(self.mark, mark)

    def codes(self) -> Iterator[int]:
        """The codes of the strings that the rule and its events have."""
        yield from self.compiled.codes
        for place, column in enumerate(self.columns):
            kinds = [one.kind for one in column.form.plan.type.attributes]
            kept = [block.rows for block in column.blocks]
            if place:
                kept.append(self.arena.rows(column, column.head, column.tail))
            for attribute in column.form.attributes:
                if kinds[attribute] is Kind.STRING:
                    for rows in kept:
                        yield from np.unique(rows[:, column.form.offset(attribute)]).tolist()

    def run(self, end: int) -> Iterator[Found]:
        """Evaluate the rule at every instant from its mark to before ``end``."""
        arena, sources = self.arena, self._sources
        for column in self.columns:
            column.collect(end, sources)
        due = self.terminators.next_block(None)
        due = due.take(due.identity["time"] >= self.mark)  # some may have come late
        times = due.identity["time"].tolist()
        for time, places in groupby(range(len(due)), key=times.__getitem__):
            self._enter(time)
            found = [self._at(due, place) for place in places]
            yield from (one for one in found if one is not None)
            self._consume([one for one in found if one is not None])
        self._enter(None)
        self.mark = end
        for column in arena.columns:
            column.forget(_back_from(end, column.form.reach))
        self.terminators.forget(end)

    def _enter(self, until: int | None) -> None:
        """Have events enter columns up to an instant, included, or all that are due, in place of
        those that no terminator from there on reaches.
        """
        for column in self.arena.columns:
            block = column.next_block(until)
            if len(block):
                if until is not None:
                    column.forget(_back_from(until, column.form.reach))
                self.arena.enter(column, block, self._sources)

    def _at(self, due: Block, place: int) -> Found | None:
        """The matches of one terminator."""
        identity = due.identity[place : place + 1]
        windows = self._windows(int(identity["time"][0]))
        if windows is None or not self._search(due.rows[place], windows):
            return None
        rows = self._sequences.taken()
        numbers = self._numbers(rows)
        if len(numbers):
            order = np.lexsort(numbers[::-1])
            rows, numbers = rows[order], [column[order] for column in numbers]
        return Found(
            self.deployed,
            int(identity["time"][0]),
            (
                np.repeat(identity, len(rows)),
                *(
                    self._column_of(event).identity(column)
                    for event, column in enumerate(numbers, 1)
                ),
            ),
            rows[:, self.compiled.first_value :],
        )

    def _numbers(self, rows: AnyArray) -> list[Int64s]:
        """The numbers of the selected events in their columns, event by event."""
        return [
            self.arena.numbers(self._column_of(event), rows[:, event])
            for event in range(1, self.compiled.events)
        ]

    def _column_of(self, event: int) -> Column:
        return self.columns[self.compiled.column_of_event[event]]

    # --- windows -------------------------------------------------------------------------------

    def _windows(self, time: int) -> list[_Window | None] | None:
        """The events that each step has to look at, by binary search; None if there can be no
        match.
        """
        lows, highs = {0: time}, {0: time}
        windows: list[_Window | None] = []
        for task in self.compiled.tasks:
            if not task.column:
                windows.append(None)
                continue
            step, column = task.step, self.columns[task.column]
            span = step.span
            window = _Window(column, *column.window(_low(span, lows), highs[span.later]))
            if step.kind is StepKind.SELECT:
                if not len(window):
                    return None
                lows[step.event] = column.time(window.start)
                highs[step.event] = column.time(window.stop - 1)
            windows.append(window)
        return windows

    # --- launches ------------------------------------------------------------------------------

    def _search(self, terminator: AnyArray, windows: list[_Window | None]) -> bool:
        """Work through the steps; whether there are matches, which are the sequences then."""
        if self._layout != self.arena.layouts:
            self._place_steps()
        looked_at = [(one.column, one.start, one.stop) for one in windows if one is not None]
        arena = self.arena.present(terminator, looked_at)
        self._sequences.begin()
        for number, (task, window) in enumerate(zip(self.compiled.tasks, windows, strict=True)):
            if not self._do(arena, number, task, window):
                return False
        sequences = self._sequences
        return sequences.step(
            kernels.evaluate,
            (_blocks(sequences.total), 1),
            *(arena, self._code, self._values, len(self.compiled.values)),
            *(self.compiled.first_value, sequences.given, sequences.total),
        )

    def _place_steps(self) -> None:
        """Tell the kernels where the columns stand."""
        steps = self.compiled.steps
        for number, task in enumerate(self.compiled.tasks):
            if task.column:
                column = self.columns[task.column]
                steps[number, layout.BASE] = column.base
                steps[number, layout.CAPACITY] = column.capacity
        self._steps = self._queue.table(steps)
        self._layout = self.arena.layouts

    def _do(self, arena: Buffer, number: int, task: Task, window: _Window | None) -> bool:
        """Work through one step; whether any partial sequence is left."""
        sequences = self._sequences
        step, total = task.step, sequences.total
        told = (arena, self._code, self._steps, number)
        if window is None:
            blocks = (_blocks(total), 1)
            if step.kind is StepKind.TIMED:
                timed = (arena, self._steps, number)
                return sequences.step(kernels.test_time, blocks, *timed, sequences.given, total)
            kernel = kernels.bind if step.kind is StepKind.LET else kernels.test
            return sequences.step(kernel, blocks, *told, sequences.given, total)
        if step.kind is StepKind.AGGREGATE:
            for row in range(total):
                self._aggregate(told, window, row)
            return True
        if step.kind is StepKind.SELECT and step.policy is Policy.EACH:
            grid = (_blocks(len(window)), min(total, ROWS_MAX))
            seen = (window.first, len(window), sequences.given, total)
            return sequences.step(kernels.combine, grid, *told, *seen)
        return self._choose(told, task, window)

    def _choose(self, told: _Told, task: Task, window: _Window) -> bool:
        """Single selection: the event nearest to its end of the window, and for a rank above 1 the
        next one, as often as the rank says. A negation looks for any one event.
        """
        sequences, step = self._sequences, task.step
        total, count = sequences.total, len(window)
        kernel, none, byte = _CHOOSING[step.policy is Policy.FIRST]
        for turn in range(max(1, step.rank)):
            # What was chosen bounds what comes next.
            bounds, indexes = sequences.indexes, sequences.bounds
            sequences.indexes, sequences.bounds = indexes, bounds
            self._queue.clear(indexes, total, byte)
            if count:
                self._queue.launch(
                    kernel,
                    (_blocks(count), min(total, ROWS_MAX)),
                    THREADS,
                    *(*told, window.first, count, sequences.given, total, bounds, turn, indexes),
                )
        one_each = (_blocks(total), 1)
        if step.kind is StepKind.NEGATE:
            given = (sequences.given, total, sequences.indexes, none)
            return sequences.step(kernels.spare, one_each, *given)
        chosen = (window.first, sequences.given, total, sequences.indexes, none)
        return sequences.step(kernels.extend, one_each, *told[2:], *chosen)

    def _aggregate(self, told: _Told, window: _Window, row: int) -> None:
        """The aggregate of one partial sequence: launched again over the partial values of the
        blocks until one block is enough.
        """
        given, shared = self._sequences.given, kernels.PARTIAL_BYTES * THREADS
        count = len(window)
        blocks = _blocks(count, 2 * THREADS)
        self._fit_partials(blocks)
        partials, others = self._partials
        self._queue.launch(
            kernels.aggregate,
            (blocks, 1),
            THREADS,
            *(*told, window.first, count, given, row, partials),
            shared=shared,
        )
        while blocks > 1:
            count, blocks = blocks, _blocks(blocks, 2 * THREADS)
            self._queue.launch(
                kernels.aggregate_again,
                (blocks, 1),
                THREADS,
                *(*told[2:], partials, count, given, row, others),
                shared=shared,
            )
            partials, others = others, partials

    def _fit_partials(self, blocks: int) -> None:
        if len(self._partials[0]) < blocks:
            shape = (2 * blocks, layout.PARTIAL)
            self._queue.lane.wait()
            self._partials = [self._queue.empty(shape, np.int64) for _ in range(2)]

    # --- consumption ---------------------------------------------------------------------------

    def _consume(self, found: Sequence[Found]) -> None:
        """Take the consumed events of an instant's matches from every column (S11)."""
        for event in self.deployed.rule.consuming:
            for one in found:
                for identity in one.events[event]:
                    self._take_away(int(identity["time"]), int(identity["serial"]))

    def _take_away(self, time: int, serial: int) -> None:
        """Have one event fit nothing from now on."""
        for column in self.arena.columns:
            number = column.number_of(time, serial)
            if number is not None:
                self.arena.overwrite(column, number, layout.TIME, TIME_MAX)


_CHOOSING = (
    (kernels.choose_last, layout.NO_LAST, layout.NO_LAST_BYTE),
    (kernels.choose_first, layout.NO_FIRST, layout.NO_FIRST_BYTE),
)

_Told: TypeAlias = tuple[Buffer, Buffer, Buffer, int]
"""The arguments that most kernels begin with: arena, code, steps, and the step at hand."""


def _blocks(count: int, size: int | None = None) -> int:
    """The number of blocks for so many threads; at least one."""
    return max(1, -(-count // (size or THREADS)))


def _low(span: Span, lows: Mapping[int, int]) -> int:
    """The earliest time that a step looks at, by the earliest times of the events before it."""
    if span.earlier >= 0:
        return lows[span.earlier]
    return _back_from(lows[span.later], span.duration)


def _back_from(late: int, duration: int) -> int:
    """The instant so long before another one, or the first that there is."""
    return max(TIME_MIN, late - duration)

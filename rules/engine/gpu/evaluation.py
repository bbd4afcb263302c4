"""One rule over its terminators: the launches that make its matches, recorded as a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from matcher.gpu.device import Buffer, Device, Lane
from matcher.gpu.scan import PARTS, sum_up_wide
from matcher.model import AnyArray, Int64s
from rules.engine.gpu import kernels, records
from rules.engine.gpu.linking import Addresses, Linked, is_multiple
from rules.engine.gpu.memory import Memory
from rules.pattern import Policy
from rules.planning.plan import Step, StepKind

TERMINATORS_MAX = 4_096
"""Terminators that are evaluated at once, at most."""
CAPACITY_MIN, CAPACITY_MAX = 16_384, 2**22
"""Partial sequences of a level that there is room for at first, and at most."""
WORDS_MIN, WORDS_MAX = 2**20, 2**27
"""Words of marks, 32 candidates each, that there is room for at first, and at most."""
FIRST_MATCHES = 256
"""Matches that are copied back together with the sizes; more take another copy."""
THREADS = 256
BLOCKS, FEW_BLOCKS = 528, 128
"""Blocks of kernels over units, and of those over partial sequences."""


class DeviceFailed(RuntimeError):
    """The device cannot go on; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Complete matches of a rule, in order: the rows of their events, int64[n, events], and the
    words of their values, int64[n, values].
    """

    rows: Int64s
    words: Int64s


def needs_marks(step: Step) -> bool:
    """Whether it must be known of each candidate if it fits: for ``each``, and for a rank."""
    return step.kind is StepKind.SELECT and (step.policy is Policy.EACH or step.rank > 1)


class Workspace:
    """Owner of what kernels work in: the levels of partial sequences, windows, sums, results.

    It is shared by all rules, which are evaluated one after the other on one lane.
    """

    def __init__(self, device: Device, lane: Lane) -> None:
        self.device, self.lane = device, lane
        self.words = 64 if device.simulated else WORDS_MIN
        self.capacity = 64 if device.simulated else CAPACITY_MIN
        self.generation = self.bytes = 0
        self._shape = (0, 0, 0, 0, 0)  # levels, events, slots, terms, values
        self.sizes = device.zeros(records.SIZES, np.int64)
        self.owner: Evaluation | None = None
        """The evaluation whose results stand there."""

    def fit(self, linked: Linked) -> None:
        """Have room for a rule."""
        plan = linked.plan
        searches = [one for one in linked.searches if one is not None]
        terms = max((len(one.terms) + len(one.operands) for one in searches), default=0)
        wanted = (linked.levels, len(linked.columns), plan.slots, terms, len(plan.values))
        shape = tuple(map(max, wanted, self._shape))
        if shape != self._shape:
            self._shape = (shape[0], shape[1], shape[2], shape[3], shape[4])
            self._make()

    def grow(self, need: int) -> bool:
        """Have room for so many partial sequences of a level; False where that is too many."""
        if need > CAPACITY_MAX:
            return False
        self.capacity = min(CAPACITY_MAX, max(2 * self.capacity, need + need // 4))
        self._make()
        return True

    def grow_marks(self, need: int) -> bool:
        """Have room for so many words of marks; False where that is too many."""
        if need > WORDS_MAX:
            return False
        self.words = min(WORDS_MAX, max(2 * self.words, need))
        self._make()
        return True

    def _make(self) -> None:
        levels, events, slots, terms, values = self._shape
        on, capacity = self.device, self.capacity
        empty = partial(on.empty, dtype=np.int64)
        self.frames = [empty(max(1, events) * capacity) for _ in range(levels)]
        self.slots = [empty(max(1, 2 * slots) * capacity) for _ in range(levels)]
        self.alive = [empty(capacity) for _ in range(levels)]
        self.lows, self.highs = empty(capacity), empty(capacity)
        self.operands = empty(max(1, terms) * capacity)
        self.ranges = tuple(empty(capacity) for _ in range(4))
        self.reduced = (empty(capacity), empty(capacity))
        self.marks = on.zeros(self.words, np.int64)
        self.sums, self.parts = empty(kernels.CHUNKS + 2), empty(PARTS)
        room = max(capacity, FIRST_MATCHES)
        self.results = empty(records.SIZES + room * (1 + events + 2 * values))
        self.generation += 1
        levels_of = (*self.frames, *self.slots, *self.alive)
        others = (self.lows, self.highs, self.operands, *self.ranges, *self.reduced)
        others += (self.marks, self.sums)
        self.bytes = sum(one.bytes for one in (*levels_of, *others, self.parts, self.results))


class Evaluation:
    """A rule on a device. Its matches are those that the rule has at each terminator by itself, in
    the order of terminators: the windows of a partial sequence depend on its own events alone.
    """

    def __init__(self, linked: Linked, memory: Memory, workspace: Workspace) -> None:
        self.linked = linked
        self._memory, self._workspace = memory, workspace
        self._width = 1 + len(linked.columns) + 2 * len(linked.plan.values)
        self._pinned: AnyArray = workspace.device.pinned(
            records.SIZES + FIRST_MATCHES * self._width, np.int64
        )
        values = 1 + len(linked.columns) + len(linked.plan.values)
        self._flags = np.array([0, *range(values, self._width)])
        """Words of a result that are 0 where it is no match, or a value is undefined."""
        self._asked: AnyArray = workspace.device.pinned(2, np.int64)
        self._first = self._stop = 0
        self._room = (0, 0)
        """Partial sequences of a level, and words of marks, that what was launched has room for."""
        self._recorded: Callable[[], None] | None = None
        self._made_for: tuple[Addresses, int] | None = None

    def ask(self, begin: int, end: int) -> bool:
        """Take the terminators whose times are from ``begin`` to before ``end``; whether there are
        some, for which it is to be started.
        """
        times = self.linked.columns[0].times
        since = max(begin, self.linked.deployed.since)
        first, stop = times.searchsorted((since, end)).tolist()
        self._first, self._stop = first, stop
        return bool(first < stop)

    def start(self) -> None:
        """Launch the evaluation of the first of these; the workspace fits the rule."""
        self._submit(TERMINATORS_MAX)

    def matches(self) -> Iterator[Matches]:
        """All matches of the terminators that were asked for when it was started."""
        while self._first < self._stop:
            self._workspace.lane.wait()
            sizes, levels = self._pinned[: records.SIZES], self.linked.levels
            most = int(self._asked[1])
            if not self._fits(sizes, most):
                continue
            count = int(sizes[records.LEVELS + levels - 1])
            if count > FIRST_MATCHES and self._workspace.owner is not self:
                self._submit(most)  # what does not fit beside the sizes has been written over
                continue
            found = self._found(count)
            self._first += most
            if self._first < self._stop:
                self._submit(TERMINATORS_MAX)
            if len(found.rows):
                yield found

    def _fits(self, sizes: Int64s, most: int) -> bool:
        """Whether there was room for all; else what is asked for anew has room. A level of partial
        sequences that finds none makes the workspace grow, up to ``CAPACITY_MAX``; then fewer
        terminators are taken at once; a single one that needs more is a DeviceFailed, and the
        processor goes on.
        """
        space = self._workspace
        need = max(sizes[records.NEEDS : records.NEEDS + self.linked.levels].tolist())
        words = int(sizes[records.WORDS_NEEDED])
        if need <= self._room[0] and words <= self._room[1]:
            return True
        has_room = need <= space.capacity or space.grow(need)
        if not (has_room and (words <= space.words or space.grow_marks(words))):
            most //= 2
            if most == 0:
                raise DeviceFailed(f"one terminator makes {need} partial sequences")
        self._submit(most)
        return False

    def _submit(self, most: int) -> None:
        """Launch the evaluation of so many terminators at most."""
        space = self._workspace
        self._asked[:] = self._first, min(most, space.capacity, self._stop - self._first)
        addresses = self._memory.addresses[self.linked.deployed.rule.name]
        made_for = (addresses, space.generation)
        if made_for != self._made_for:
            self._made_for, self._recorded = made_for, None
        if self._recorded is None:
            work = partial(self.launch, addresses)
            self._recorded = space.device.recorded(work, space.lane)
        space.owner, self._room = self, (space.capacity, space.words)
        self._recorded()

    def _found(self, count: int) -> Matches:
        """The matches among so many partial sequences of the last level."""
        head, events = records.SIZES, len(self.linked.columns)
        if count <= FIRST_MATCHES:
            words = self._pinned[head : head + count * self._width].copy()
        else:
            space = self._workspace
            whole = np.empty(head + count * self._width, np.int64)
            space.device.download(whole, space.results, space.lane)
            space.lane.wait()
            words = whole[head:]
        table = words.reshape(count, self._width)
        values = 1 + events + len(self.linked.plan.values)
        is_match = table.take(self._flags, axis=1).all(axis=1)  # S9
        if not is_match.all():
            table = table[is_match]
        return Matches(table[:, 1 : 1 + events], table[:, 1 + events : values])

    # --- launches --------------------------------------------------------------------------------

    def launch(self, addresses: Addresses) -> None:
        """Launch everything from the question to the first matches, on the lane."""
        space, heap = self._workspace, self._memory.heap
        on, lane = space.device, space.lane
        self._memory.bring_few()
        on.upload(space.sizes, 0, self._asked, lane)
        threads = 4 if on.simulated else 1_024
        begun = (space.frames[0], space.alive[0], space.sizes)
        on.launch(kernels.begin, (1, 1), threads, lane, *begun)
        level = 0
        steps = zip(self.linked.plan.steps, addresses.steps, addresses.sorted, strict=True)
        for step, address, is_sorted in steps:
            if step.access is None:
                self._check(address, level)
                continue
            self._look(address, level)
            if is_sorted:
                self._narrow(address, level)
            self._search(step, address, level, is_sorted)
            level += is_multiple(step)
        self._wide(
            kernels.conclude,
            (heap, addresses.numbers, len(self.linked.columns), len(self.linked.plan.values)),
            (addresses.first_value, *self._sequences(level), space.alive[level], space.capacity),
            (space.sizes, level, space.results),
        )
        on.download(self._pinned, space.results, lane)

    def _sequences(self, level: int) -> tuple[Buffer, Buffer]:
        return self._workspace.frames[level], self._workspace.slots[level]

    def _windows(self, level: int) -> tuple[Buffer | int, ...]:
        """The arguments that tell kernels of the windows of a level."""
        space = self._workspace
        return (space.lows, space.highs, space.operands, space.capacity, space.sizes, level)

    def _check(self, address: int, level: int) -> None:
        space = self._workspace
        self._few(
            kernels.check,
            (self._memory.heap, address, *self._sequences(level), space.alive[level]),
            (space.capacity, space.sizes, level),
        )

    def _look(self, address: int, level: int) -> None:
        space = self._workspace
        self._few(
            kernels.look,
            (self._memory.heap, address, *self._sequences(level), space.alive[level]),
            (*self._windows(level), *space.reduced),
        )

    def _narrow(self, address: int, level: int) -> None:
        space = self._workspace
        base = (self._memory.heap, address, *self._sequences(level), space.lows, space.highs)
        self._few(kernels.narrow, base, (space.capacity, space.sizes, level), space.ranges)

    def _search(self, step: Step, address: int, level: int, is_sorted: bool) -> None:
        """Launch the kernels that look at the candidates of the windows that ``look`` found, and
        of the ranges that ``narrow`` took in their place, where the column is sorted.
        """
        space, heap = self._workspace, self._memory.heap
        base = (heap, address, *self._sequences(level))
        rest = (space.capacity, space.sizes, level)
        ranges = (*base, space.lows, space.operands, *rest)
        if not needs_marks(step):
            self._wide(kernels.reduce, base, self._windows(level), space.reduced)
            if is_sorted:
                self._wide(kernels.reduce_range, ranges, space.reduced, space.ranges)
            self._few(kernels.settle, base, (space.alive[level], *rest, *space.reduced))
            return
        self._wide(kernels.mark, base, self._windows(level), (space.marks,))
        if is_sorted:
            self._wide(kernels.mark_range, ranges, (space.marks,), space.ranges)
        self._wide(kernels.tally, (space.marks, space.sums, space.sizes))
        place = records.CHUNKS_PLACE
        sum_up_wide(space.device, space.sums, space.parts, space.sizes, place, space.lane)
        marked = (space.marks, space.sums)
        if is_multiple(step):
            longer = (*self._sequences(level + 1), space.alive[level + 1])
            words = 2 * self.linked.plan.slots
            self._wide(kernels.extend, base, (space.lows, *rest, *marked, *longer, words))
            return
        sequences = (heap, address, space.frames[level], space.alive[level], space.lows)
        self._few(kernels.pick, sequences, rest, marked)
        self._wide(kernels.clear, (space.marks, space.sizes))

    def _wide(self, kernel: object, *arguments: tuple[Buffer | int, ...]) -> None:
        self._run(kernel, BLOCKS, arguments)

    def _few(self, kernel: object, *arguments: tuple[Buffer | int, ...]) -> None:
        self._run(kernel, FEW_BLOCKS, arguments)

    def _run(
        self, kernel: object, blocks: int, arguments: tuple[tuple[Buffer | int, ...], ...]
    ) -> None:
        on = self._workspace.device
        grid, threads = ((1, 1), 4) if on.simulated else ((blocks, 1), THREADS)
        flat = [one for some in arguments for one in some]
        on.launch(kernel, grid, threads, self._workspace.lane, *flat)

"""One rule's pipeline on the side of the host: its events, its block of words, and its slices.

What an advance brings is worked off in *slices* of some thousand events, at instants. Within a
slice all workers run at once; between two of them none does: then sequences that have expired are
deleted, and complete ones are taken and sorted.

Law: a slice holds all events before an instant that no earlier slice held. So when it is worked off
that instant is the low watermark of all places: nothing is in flight, no later event is before it,
and no event of this slice is needed any more, since it can only stand before those of later ones as
part of a sequence that is there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from matcher.model import TIME_MIN, Int64s
from rules.engine.chains.hybrid import kernels, layout
from rules.engine.chains.hybrid.chains import Window, is_decided, windows_of
from rules.engine.chains.hybrid.chunks import settle
from rules.engine.chains.hybrid.costs import AgentWork, loads_of, shares_of, units_of
from rules.engine.chains.hybrid.memory import ChunkMemory
from rules.engine.chains.hybrid.roles import LEAST, inputs_of, verify_roles
from rules.engine.chains.hybrid.working import work
from rules.engine.chains.published import layout as words_of_models
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.layout import LAST_OF_RUN
from rules.engine.linking.linker import LinkedRule
from runtime.memory import first_length, grown, zeros

SLICE_LEAST, SLICE_MOST = 128, 2048
"""Events of a slice: about as many as a whole match may span, for then few sequences are stored
that have expired, and few are tried in vain; or more where they are of one instant. The least
is that for every two threads: they wait for one another at the end of each.
"""
FEW = 64
"""A slice of fewer events is worked off by one thread, if it has all inputs."""

OWN = (
    "frame",
    "stack",
    "stack_defined",
    "chosen",
    "chosen_types",
    "slots",
    "slots_defined",
    "gathered",
    "digits",
)
"""The arrays of the engine that each worker has for itself: the memory of steps and programs."""

AtOnce = Callable[[Callable[[int], None], Sequence[int]], Iterable[None]]
"""A way to run a function for each of several arguments, at once, that ends when all have ended."""


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers: how many, their roles, how they are run, and how they take work.

    ``at_once`` must not have one wait for another to end, unless each has all inputs.

    ``batch`` events, and sequences of a chunk of ``capacity``, are taken at once at most; slices
    are of ``slice`` events at most, and those of less than ``few`` for one worker, if it has all
    inputs.
    ``weighs``: agents have threads by what they have to do, not all alike. ``fuses``: agents are
    fused where threads are too few for the roles. With a ``seed`` workers let others run at random
    where they wait for, or write, what they share. Without ``tickets``, as
    published, pairs may be evaluated twice; sequences that are complete twice count as ``repeats``.
    """

    threads: int = 1
    roles: str = "full"
    at_once: AtOnce = map
    capacity: int = 64
    batch: int = 32
    seed: int = 0
    few: int = FEW
    slice: int = SLICE_MOST
    weighs: bool = True
    fuses: bool = True
    tickets: bool = True


@dataclass(frozen=True, slots=True)
class _Place:
    """A state of a rule: the event's number, its type's, the step that tests it, and the access
    that it comes by; that of the terminator is -1. ``told_by``: the type by which its events are
    told from others of a match.
    """

    event: int
    type: int
    step: int
    access: int
    told_by: int


class Feed:
    """Owner of the events of one place that may still be needed, by their numbers."""

    def __init__(self) -> None:
        self._times, self._rows = (zeros((first_length(64),), np.int64) for _ in range(2))
        self._first = 0  # the number of the first that is kept
        self._count = 0

    @property
    def end(self) -> int:
        """The number of the next event."""
        return self._first + self._count

    @property
    def addresses(self) -> tuple[int, int]:
        """Where the time and the row of number 0 stand, or would."""
        return (
            self._times.ctypes.data - 8 * self._first,
            self._rows.ctypes.data - 8 * self._first,
        )

    def room(self, more: int) -> tuple[int, int]:
        """Where the times and the rows of so many more events are to be written."""
        if self._count + more > len(self._times):
            length = 2 * (self._count + more)
            self._times = grown(self._times, length)
            self._rows = grown(self._rows, length)
        return self._times[self._count :].ctypes.data, self._rows[self._count :].ctypes.data

    def note(self, more: int) -> Int64s:
        """Take in what was written there: the times."""
        self._count += more
        return self._times[self._count - more : self._count]

    def forget(self, before: int) -> None:
        """Forget the events that are earlier, once they are half of all."""
        gone = int(np.searchsorted(self._times[: self._count], before))
        if 2 * gone > self._count:
            kept = slice(gone, self._count)
            self._times[: self._count - gone] = self._times[kept].copy()
            self._rows[: self._count - gone] = self._rows[kept].copy()
            self._first += gone
            self._count -= gone

    def times_of(self, numbers: npt.NDArray[np.int64]) -> Int64s:
        """The times of events by their numbers."""
        return self._times[numbers - self._first]


class Pipeline:
    """Owner of one rule's block, its feeds and its sequences."""

    def __init__(self, linked: LinkedRule, arrays: Arrays, crew: Crew) -> None:
        self.linked = linked
        self._crew = crew
        self._places = _places_of(linked, arrays)
        self._windows = windows_of(linked.plan)
        self._memory = ChunkMemory()
        self._feeds = [Feed() for _ in self._places]
        self._block = self._made(arrays)
        self._reaches = reaches(self._windows, len(self._places))
        self._stored = self._slices = self.repeats = 0
        self._assign()
        self._held: Sequence[Int64s] = ()

    @property
    def address(self) -> int:
        """Where the block stands."""
        return self._block.ctypes.data

    @property
    def terminators(self) -> Feed:
        """The events of the last place."""
        return self._feeds[-1]

    @property
    def size(self) -> int:
        """Events of a complete sequence."""
        return len(self._places)

    def memory(self) -> dict[str, int]:
        """How many sequences wait, how many words chunks have, and how many were complete twice."""
        return {
            "sequences": self._stored,
            "chunks": self._memory.words,
            "repeats": self.repeats,
        }

    # --- words -------------------------------------------------------------------------------

    def _made(self, arrays: Arrays) -> Int64s:
        places, crew = len(self._places), self._crew
        length = layout.windows_at(places, crew.threads) + layout.WINDOW * len(self._windows)
        block = zeros((length,), np.int64)
        block[layout.PLACES], block[layout.WORKERS] = places, crew.threads
        block[layout.CAPACITY], block[layout.BATCH] = crew.capacity, crew.batch
        block[layout.WINDOWS] = len(self._windows)
        block[layout.WINDOWS_AT] = at = layout.windows_at(places, crew.threads)
        for window in self._windows:
            block[at : at + layout.WINDOW] = window.later, window.earlier, window.duration
            at += layout.WINDOW
            base = layout.place_at(window.later) + layout.FIRST_WINDOW
            block[base] = block[base] or at - layout.WINDOW
        block[layout.SEED], block[layout.TICKETLESS] = crew.seed, not crew.tickets
        block[layout.MORE] = self._memory.address
        block[layout.RULE] = self.linked.number
        block[layout.IS_DECIDED] = is_decided(self.linked.plan)
        types = [one.told_by for one in self._places]
        for number, place in enumerate(self._places):
            base = layout.place_at(number)
            block[base + layout.EVENT], block[base + layout.TYPE] = place.event, place.type
            block[base + layout.TOLD_BY] = place.told_by
            block[base + layout.TEST] = arrays["steps"]["residue"][place.step]
            is_run = place.told_by == LAST_OF_RUN
            block[base + layout.IS_REPEATED] = not is_run and types.count(place.told_by) > 1
        for worker in range(crew.threads):
            base = layout.worker_at(places, worker)
            block[base + layout.CHANCE] = 1 + worker + crew.threads * crew.seed
        return block

    # --- workers -----------------------------------------------------------------------------

    def _assign(self) -> None:
        """Give the workers their inputs, by what agents had to do so far."""
        self._inputs = [np.array(one) for one in inputs_by_work(self._crew, self.work_done())]
        for worker, inputs in enumerate(self._inputs):
            base = layout.worker_at(self.size, worker)
            self._block[base + layout.INPUTS] = len(inputs)
            self._block[base + layout.INPUTS_AT] = inputs.ctypes.data
            self._block[base + layout.LAST] = -1

    def work_done(self) -> list[AgentWork]:
        """The work of each agent so far."""
        return [
            AgentWork(
                self._feeds[place].end,
                self._sum(place, layout.SEQUENCES),
                self._sum(place, layout.EVALUATIONS),
                self._sum(place, layout.SUCCESSES),
            )
            for place in range(1, self.size)
        ]

    def _sum(self, place: int, word: int) -> int:
        at = layout.share_at(self.size, 0, place) + word
        step = layout.share_at(self.size, 1, place) - layout.share_at(self.size, 0, place)
        return int(self._block[at : at + step * self._crew.threads : step].sum())

    # --- events ------------------------------------------------------------------------------

    def take_in(self, arrays: Arrays, begin: int, until: int) -> Iterator[tuple[int, Int64s]]:
        """Work off the events from one instant to another, excluded, and the noted terminators:
        complete sequences in the order of results, one slice after another.
        """
        new = [self._events(arrays, *one, begin, until) for one in enumerate(self._places)]
        if not any(map(len, new)):
            if self._stored:  # or sequences would outlive their events
                self._stored = settle(self.address, until)
            return
        kernels.follow_rings(arrays.state, self.address)
        own = [self._own(arrays) for _ in range(self._crew.threads)]
        states = [arrays.beside(one) for one in own]
        for worker, state in enumerate(states):
            self._block[layout.worker_at(self.size, worker) + layout.STATE] = state.ctypes.data
        done = [0] * self.size
        for limit in limits(new, until, self._reaches[0], self._crew):
            ends = [int(np.searchsorted(times, limit)) for times in new]
            self._work_off([end - begun for begun, end in zip(done, ends, strict=True)])
            done = ends
            self._slices += 1
            if self._slices & (self._slices - 1) == 0:
                self._assign()  # seldom, once much is known
            self._stored = settle(self.address, limit)
            yield self._complete()

    def _events(self, arrays: Arrays, number: int, place: _Place, begin: int, until: int) -> Int64s:
        """The times of a place's new events, which its feed has taken in."""
        feed, state = self._feeds[number], arrays.state
        if place.access < 0:
            noted = int(arrays["accepted"][0])
            count = kernels.copy_noted(state, self.linked.number, place.type, *feed.room(noted))
        else:
            first, end = kernels.entries_between(state, place.access, begin, until)
            count = end - first
            if count:
                kernels.copy_entries(state, place.access, first, end, *feed.room(count))
        base = layout.place_at(number)
        self._block[base + layout.NEXT] = feed.end
        times = feed.note(count)
        self._block[base + layout.END] = feed.end - count
        self._block[base + layout.TIMES], self._block[base + layout.ROWS] = feed.addresses
        return times

    def _own(self, arrays: Arrays) -> dict[str, Any]:
        return {name: np.zeros_like(arrays[name]) for name in OWN}

    def _work_off(self, counts: Sequence[int]) -> None:
        """Let the workers have so many more events of each place, and wait until all is done."""
        block, left = self._block, sum(counts)
        if not left:
            return
        for number, count in enumerate(counts):
            block[layout.place_at(number) + layout.END] += count
        block[layout.LEFT], block[layout.IDLE], block[layout.TICKET] = left, 0, 1
        ranges = np.empty((self._crew.threads, self.size, layout.RANGE * max(counts)), np.int64)
        for worker in range(self._crew.threads):
            for place in range(1, self.size):
                share = layout.share_at(self.size, worker, place)
                block[share + layout.RANGES] = 0
                block[share + layout.RANGES_AT] = ranges[worker, place].ctypes.data
        is_alone = self._crew.roles == "full" and left < self._crew.few
        for _ in self._crew.at_once(self._work, range(1 if is_alone else self._crew.threads)):
            pass
        if block[layout.FAILED]:
            raise self._memory.error or RuntimeError("a worker has failed")

    def _work(self, worker: int) -> None:
        try:
            work(self.address, worker)
        except BaseException:
            self._block[layout.FAILED] = 1  # or the others would wait for it
            raise

    def _complete(self) -> tuple[int, Int64s]:
        """The complete sequences, sorted by the terminator, then by the event before it, and so on
        (E4); how many there are.
        """
        count = kernels.count_complete(self.address)
        found = np.empty((count, self.size), np.int64)
        if count:
            kernels.take_complete(self.address, found.ctypes.data)
            found = np.ascontiguousarray(found[np.lexsort(found.T)])
        if count and not self._crew.tickets:
            is_new = np.append(True, (found[1:] != found[:-1]).any(axis=1))
            found = np.ascontiguousarray(found[is_new])
            self.repeats += count - len(found)
        return len(found), found

    def hold(self, found: Sequence[Int64s]) -> None:
        """Keep complete sequences in memory until events are forgotten."""
        self._held = found

    def forget(self, mark: int) -> None:
        """Forget the events that no sequence has any more, all before a mark being worked off."""
        self._held = ()
        for feed, reach in zip(self._feeds, self._reaches, strict=True):
            feed.forget(max(mark, TIME_MIN + reach) - reach)


def inputs_by_work(
    crew: Crew, work: Sequence[AgentWork], units_max: int | None = None
) -> list[list[int]]:
    """The inputs of each worker, by what agents had to do so far; all alike before that.

    ``units_max``: agents are fused to so many units at most; else to as many as have threads.
    """
    loads = loads_of(work, crew.threads, crew.batch)
    if not any(loads) or not crew.weighs:
        loads = [1.0] * len(work)
    least = LEAST[crew.roles]
    if units_max is None:
        units_max = max(1, crew.threads // max(1, least)) if crew.fuses else len(work)
    units = units_of(loads, units_max)
    verify_roles(crew.roles, crew.threads, len(units))
    by_unit = [sum(loads[place - 1] for place in unit) for unit in units]
    return inputs_of(crew.roles, shares_of(by_unit, crew.threads, least), units)


def _places_of(linked: LinkedRule, arrays: Arrays) -> list[_Place]:
    """The places of a rule, read from the words of its automaton (``published.layout``)."""
    at = words_of_models
    assert linked.automaton is not None
    words = arrays["published"][int(arrays["automata"][linked.automaton.number]["first_state"]) :]
    types = words[words[at.TYPES_AT] :]
    model = words[words[words[at.MODELS_AT]] :]
    found = {}
    for number in range(int(words[at.NODES])):
        node = words[words[words[at.NODES_AT] + number] :]
        event = int(node[at.NODE_EVENT])
        parts = int(node[at.NODE_PARTS_AT])
        is_run = arrays["steps"]["run"][int(node[at.NODE_STEP])] > 0
        told_by = LAST_OF_RUN if is_run else int(types[event])
        test, access = int(words[parts + 3]), int(node[at.NODE_ACCESS])
        found[event] = _Place(event, int(types[event]), test, access, told_by)
    path = model[at.MODEL_PATH : at.MODEL_PATH + int(model[at.MODEL_LENGTH])].tolist()
    terminator = _Place(0, int(types[0]), int(model[at.MODEL_STEP]), -1, int(types[0]))
    return [*(found[event] for event in path), terminator]


def reaches(windows: Iterable[Window], places: int) -> list[int]:
    """How long the event of each place may be needed after its time: until the terminator at most,
    from window to window.
    """
    windows, found = tuple(windows), [0] * places
    for place in reversed(range(places - 1)):
        found[place] = min(
            one.duration + found[one.later] for one in windows if one.earlier <= place < one.later
        )
    return found


def limits(new: Sequence[Int64s], until: int, reach: int, crew: Crew) -> Iterator[int]:
    """The instants before which each slice ends."""
    least = SLICE_LEAST * max(1, crew.threads // 2)
    times = np.sort(np.concatenate(new))
    span = max(1, int(times[-1]) - int(times[0]))
    size = min(crew.slice, max(least, len(times) * min(reach, span) // span))
    last = TIME_MIN
    for time in times[size::size].tolist():
        if time > last:
            yield time
            last = time
    yield until

"""Workers that try the pairs of a chain, each on a core of its own, in simulated time.

The machine does what :mod:`rules.engine.chains.hybrid.working` does, step by step: it looks for
work at the same inputs in the same order, takes as many events or sequences at once, stores them
and takes a ticket, tries them with all that was stored before, fills chunks and sends them when
they are full or somebody idles. It calls the engine's own functions for slices, roles and shares of
threads. Each step takes the time that a table of costs has for it.

Where it is not the engine: an item is stored, and has its ticket, at the instant at which it is
taken; an idle worker is woken by the item that comes, where the engine's looks again and again; and
some of it may be as the paper prints it (``printed``).

Law: a run is a function of its chain, costs, crew and seed; and pairs, sequences and matches are
those of the chain, whoever comes first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import simpy

from matcher.model import Int64s
from rules.engine.chains.hybrid.costs import AgentWork
from rules.engine.chains.hybrid.layout import CHUNK
from rules.engine.chains.hybrid.pipeline import Crew, inputs_by_work
from studies.multicore.chains import AgentPairs, Chain, agents_of
from studies.multicore.costs import ChainCosts, Counts, StepCosts, work_ns
from studies.multicore.printed import AS_BUILT, Printed, capped, others_as_printed
from studies.multicore.stores import Store

Floats = npt.NDArray[np.float64]
Arrival = Callable[[int], float]
"""When the event of a time comes, in nanoseconds."""
Steps = Generator[Any, Any, None]
"""Events that a process of simpy waits for, one after another."""
WORD_BYTES = 8
CHANGED = 0.5
"""The share of other workers' sub-buffers that have changed since a worker looked at them last, so
that their first words come from another cache."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A stream worked off: seconds of all, and of it while workers run (``pairing_s``).

    ``work`` is that of each agent. ``created`` says when each match was complete, in seconds, and
    ``terminators`` the time of its last event in the stream. ``chunk_bytes``: the most that chunks
    took. ``slices``: the steps of each. ``lost``: matches of the chain that were not found.
    ``idle``: the most workers that had no input.
    """

    seconds: float
    pairing_s: float
    work: tuple[AgentWork, ...]
    created: Floats
    terminators: Int64s
    chunk_bytes: int
    slices: tuple[Counts, ...]
    lost: int = 0
    idle: int = 0

    @property
    def composites(self) -> int:
        """How many matches there are."""
        return len(self.created)

    def latency_s(self, arrival: Arrival) -> float:
        """The mean time from the coming of a match's last event until the match is complete."""
        if not self.composites:
            return 0.0
        times, counts = np.unique(self.terminators, return_counts=True)
        came = np.array([arrival(time) for time in times.tolist()]) * counts
        return float(self.created.mean() - came.sum() / self.composites / 1e9)


@dataclass(slots=True)
class _Worker:
    """A worker: its inputs, the one that it took from last, its chance, and the chunks it fills."""

    number: int
    chance: Random
    inputs: Sequence[int] = ()
    last: int = -1
    filling: dict[int, list[Int64s]] = field(default_factory=dict)


def detect(
    chain: Chain,
    steps: StepCosts,
    costs: ChainCosts,
    crew: Crew,
    *,
    units_max: int | None = None,
    arrival: Arrival | None = None,
    agents: Sequence[AgentPairs] = (),
    printed: Printed = AS_BUILT,
) -> Detection:
    """Work a stream off by a crew. Without ``arrival`` all events are there from the beginning.

    ``agents``: those of the chain, where they are known. ``units_max``: see ``inputs_by_work``.
    """
    known = agents or agents_of(chain)
    return Multicore(chain, known, steps, costs, crew, units_max, printed).run(arrival)


class Multicore:
    """Owner of the simulated clock, the workers, and what they share."""

    def __init__(
        self,
        chain: Chain,
        agents: Sequence[AgentPairs],
        steps: StepCosts,
        costs: ChainCosts,
        crew: Crew,
        units_max: int | None,
        printed: Printed = AS_BUILT,
    ) -> None:
        self._chain, self._steps, self._costs, self._crew = chain, steps, costs, crew
        self._units_max, self._printed = units_max, printed
        self._env = simpy.Environment()
        self._size = len(chain.times)
        self._agents = dict(enumerate(agents, 1))
        self._stores = {
            place: Store(chain, place, one, crew.capacity, purges=printed.purge)
            for place, one in self._agents.items()
        }
        self._queues: dict[int, deque[Int64s]] = {place: deque() for place in self._agents}
        self._next, self._end = [0] * self._size, [0] * self._size
        self._workers = [
            _Worker(number, Random(f"{crew.seed}/{number}")) for number in range(crew.threads)
        ]
        self._idle: dict[int, simpy.Event] = {}
        self._left = 0
        self._shared: dict[str, tuple[float, int]] = {}
        self._taken = dict.fromkeys(self._agents, 0)
        self._evaluations = dict.fromkeys(self._agents, 0)
        self._sent = dict.fromkeys(self._agents, 0)
        self._complete: list[tuple[Floats, Int64s]] = []
        self._counts = Counts()
        self._slices: list[Counts] = []
        self._pairing_ns = 0.0
        self._chunk_bytes = self._complete_chunks = self._idle_workers = 0

    def run(self, arrival: Arrival | None) -> Detection:
        """Work everything off."""
        self._assign()
        self._env.run(self._env.process(self._host(arrival)))
        created = [np.empty(0), *(times for times, _ in self._complete)]
        events = [np.empty(0, np.int64), *(events for _, events in self._complete)]
        return Detection(
            self._env.now / 1e9,
            self._pairing_ns / 1e9,
            tuple(self._work_done()),
            np.concatenate(created) / 1e9,
            self._chain.times[-1][np.concatenate(events)],
            self._chunk_bytes,
            tuple(self._slices),
            len(self._agents[self._size - 1].event) - sum(map(len, events)),
            self._idle_workers,
        )

    def _assign(self) -> None:
        work = self._work_done()
        inputs = inputs_by_work(self._crew, work, self._units_max)
        if self._printed.caps and self._pairing_ns:
            pair_share = self._costs.pair_ns / self._pairing_ns
            inputs = capped(inputs, [one.evaluations * pair_share for one in work])
            self._idle_workers = max(self._idle_workers, inputs.count([]))
        for worker, one in zip(self._workers, inputs, strict=True):
            worker.inputs, worker.last = one, -1

    def _work_done(self) -> list[AgentWork]:
        return [
            AgentWork(
                self._end[place],
                self._taken[place],
                self._evaluations[place],
                self._sent[place],
            )
            for place in self._agents
        ]

    # --- the host ----------------------------------------------------------------------------

    def _host(self, arrival: Arrival | None) -> Steps:
        """Slice after slice: events come in, workers work them off, and sequences are deleted."""
        for limit in self._chain.slices(self._crew):
            ends = [int(np.searchsorted(times, limit)) for times in self._chain.times]
            count = sum(ends) - sum(self._end)
            if not count:
                continue
            if arrival is not None:
                times = self._chain.times
                last = max(int(times[place][end - 1]) for place, end in enumerate(ends) if end)
                yield self._env.timeout(max(0.0, arrival(last) - self._env.now))
            yield self._env.timeout(count * self._costs.event_ns)
            yield from self._work_off(ends, count)
            yield from self._settle(limit)
            if len(self._slices) & (len(self._slices) - 1) == 0:
                self._assign()

    def _work_off(self, ends: Sequence[int], count: int) -> Steps:
        begun, self._counts = self._env.now, Counts()
        self._next = list(self._end)
        self._end, self._left = list(ends), count
        for place, store in self._stores.items():
            store.begin(self._next[place])
        is_alone = self._crew.roles == "full" and count < self._crew.few
        workers = [one for one in self._workers[: 1 if is_alone else None] if one.inputs]
        yield self._env.all_of([self._env.process(self._worker(one)) for one in workers])
        self._pairing_ns += self._env.now - begun

    def _settle(self, limit: int) -> Steps:
        counts = self._counts
        complete = -(-counts.composites // self._crew.capacity)
        chunks = {place: store.chunks for place, store in self._stores.items()}
        chunks[self._size] = complete
        words = sum(
            count * (CHUNK + self._crew.capacity * place) for place, count in chunks.items()
        )
        self._chunk_bytes = max(self._chunk_bytes, WORD_BYTES * words)
        counts.stored = sum(store.count for store in self._stores.values())
        for store in self._stores.values():
            store.settle(limit)
        self._slices.append(counts)
        yield self._env.timeout(
            self._steps.slice_ns
            + counts.stored * self._steps.stored_ns
            + counts.composites * self._steps.composite_ns
        )

    # --- workers -----------------------------------------------------------------------------

    def _worker(self, worker: _Worker) -> Steps:
        yield self._env.timeout(worker.number * self._steps.wake_ns)
        while True:
            source = self._look(worker)
            if source is not None:
                if not self._printed.choice or source in worker.inputs[2:]:
                    worker.last = source
                yield from self._take(worker, source)
                if self._idle and worker.filling:
                    yield self._env.timeout(self._send_all(worker))
                continue
            if not self._printed.choice:
                worker.last = -1
            if worker.filling:
                yield self._env.timeout(self._send_all(worker))
                continue
            if not self._left:
                return
            self._idle[worker.number] = woken = self._env.event()
            yield woken

    def _look(self, worker: _Worker) -> int | None:
        """The input that a worker takes from next (``working.work_once``)."""
        if self._printed.choice:
            order = others_as_printed(worker.inputs, worker.last, worker.chance)
            return next(filter(self._has_some, order), None)
        if worker.last >= 0 and self._has_some(worker.last):
            return worker.last
        count = len(worker.inputs)
        shift = worker.chance.randrange(count)
        for number in range(count):
            at = number if number < 2 else 2 + (number - 2 + shift) % (count - 2)
            if self._has_some(worker.inputs[at]):
                return worker.inputs[at]
        return None

    def _has_some(self, source: int) -> bool:
        place = source >> 1
        if source & 1 == 0:
            return self._next[place] < self._end[place]
        return bool(self._queues[place]) or (place == 1 and self._next[0] < self._end[0])

    def _take(self, worker: _Worker, source: int) -> Steps:
        """Take from an input, and try what was taken."""
        place, store, step = source >> 1, self._stores[source >> 1], Counts(takes=1)
        if source & 1 == 0:
            first, end = self._numbers(place, self._crew.batch)
            done = end - first
            wait = self._have(f"next {place}", worker)
            children = store.take_events(worker.number, first, end, step)
        else:
            if self._queues[place]:
                sequences, done = self._queues[place].popleft(), 1
                wait = self._have(f"queue {place}", worker)
            else:  # the first place has no agent: its events are sequences for the next one's
                first, end = self._numbers(0, self._crew.capacity)
                sequences, done = np.arange(first, end), end - first
                wait = self._have("next 0", worker)
            children = store.take_chunk(sequences, self._next[place], step)
            self._taken[place] += len(sequences)
        wait += self._have("ticket", worker) + self._have("left", worker)
        if self._crew.threads > 1:  # the sub-buffers of all are looked at
            wait += CHANGED * (self._crew.threads - 1) * self._steps.line_ns
        step.puts = len(children)
        self._note(place, step)
        yield self._env.timeout(wait)
        taken_ns = work_ns(step, self._steps, self._costs.pair_ns)
        yield from self._put(worker, place, children, taken_ns)
        self._left -= done
        if not self._left:
            for woken in self._idle.values():
                woken.succeed()
            self._idle.clear()

    def _numbers(self, place: int, most: int) -> tuple[int, int]:
        """Events that are taken at once (``working.take_numbers``)."""
        first = self._next[place]
        share = (self._end[place] - first) // (2 * self._crew.threads)
        self._next[place] = first + max(1, min(share, most))
        return first, self._next[place]

    def _note(self, place: int, step: Counts) -> None:
        self._evaluations[place] += step.pairs
        self._sent[place] += step.puts
        counts = self._counts
        counts.takes += step.takes
        counts.visits += step.visits
        counts.tries += step.tries
        counts.pairs += step.pairs
        counts.puts += step.puts

    # --- sequences ---------------------------------------------------------------------------

    def _put(self, worker: _Worker, place: int, children: Int64s, taken_ns: float) -> Steps:
        """Put children into chunks, one after another while they are found, and send the full
        ones.
        """
        begun, agent = self._env.now, self._agents[place]
        again = children[children < agent.again] + agent.fresh
        full = self._fill(worker, place, again) if len(again) else []
        if place + 1 < self._size:
            full += self._fill(worker, place + 1, children)
        elif len(children):
            self._counts.composites += len(children)
            found = begun + taken_ns * np.arange(1, len(children) + 1) / len(children)
            self._complete.append((found, agent.event[children]))
        wait = 0.0
        for share, to, chunk in sorted(full, key=lambda one: one[:2]):
            yield self._env.timeout(max(0.0, begun + wait + share * taken_ns - self._env.now))
            wait += self._send(worker, to, chunk)
        yield self._env.timeout(max(0.0, begun + wait + taken_ns - self._env.now))

    def _fill(
        self, worker: _Worker, place: int, sequences: Int64s
    ) -> list[tuple[float, int, Int64s]]:
        """Have a worker's chunk for a place take sequences: the chunks that become full, each with
        the share of the sequences up to which it is.
        """
        full, at, capacity = [], 0, self._crew.capacity
        while at < len(sequences):
            parts = worker.filling.get(place)
            if parts is None:
                parts = worker.filling[place] = []
                self._left += 1
            part = sequences[at : at + capacity - sum(map(len, parts))]
            parts.append(part)
            at += len(part)
            if sum(map(len, parts)) == capacity:
                full.append((at / len(sequences), place, np.concatenate(parts)))
                del worker.filling[place]
        return full

    def _send(self, worker: _Worker, place: int, chunk: Int64s) -> float:
        """Let the agent of a place have a chunk: nanoseconds that it takes."""
        self._queues[place].append(chunk)
        for number, woken in self._idle.items():
            if 2 * place + 1 in self._workers[number].inputs:
                del self._idle[number]
                woken.succeed()
                break
        # For the chunk that is sent, and for the next one to fill.
        return 2 * self._have(f"queue {place}", worker) + self._have("left", worker)

    def _send_all(self, worker: _Worker) -> float:
        filling, worker.filling = worker.filling, {}
        chunks = ((place, np.concatenate(parts)) for place, parts in filling.items())
        return sum(self._send(worker, place, chunk) for place, chunk in chunks)

    def _have(self, word: str, worker: _Worker) -> float:
        """Nanoseconds until a worker has had a word that others share (``costs``, Law)."""
        free, last = self._shared.get(word, (0.0, worker.number))
        begun = max(free, self._env.now)
        is_own = last == worker.number
        end = begun + (self._steps.lock_ns if is_own else self._steps.line_ns)
        self._shared[word] = end, worker.number
        return end - self._env.now

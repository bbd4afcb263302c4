"""Stored items of an agent: sequences in chunks, and ranges of events that were taken together.

Law: an item is tried with all that was stored before it, and with nothing that comes later; so each
pair is tried once. Example: B#7 is taken, then ``C#1``: ``C#1`` finds B#7 among the events before
the next one to be taken, and B#7 did not find ``C#1``.

As published (``purges``) sequences go when an event comes that is as far behind them as the window,
and events when a sequence comes whose first event is so far behind them: so a sequence that comes
late does not find events that are gone.
"""

from __future__ import annotations

import numpy as np

from matcher.model import Int64s
from studies.multicore.chains import AgentPairs, Chain, spread
from studies.multicore.costs import Counts


class Store:
    """Owner of one agent's stored sequences, of all workers together."""

    def __init__(
        self, chain: Chain, place: int, agent: AgentPairs, capacity: int, *, purges: bool = False
    ) -> None:
        self._agent, self._times = agent, chain.times[place]
        self._window, self._capacity = chain.window, capacity
        self._is_stored = np.zeros(len(agent.expiry), np.bool_)
        self._covers = np.zeros(len(self._times) + 1, np.int64)
        self._stored: list[Int64s] = []
        self._chunks = np.empty((64, 3), np.int64)
        self._ranges = np.empty((64, 2), np.int64)
        self._range_of: dict[int, int] = {}
        self.chunks = self._range_count = self._first = 0
        self._purges, self._floor = purges, 0

    @property
    def count(self) -> int:
        """How many sequences there are."""
        return sum(map(len, self._stored))

    def begin(self, first: int) -> None:
        """Begin a slice, whose events of the place are those from a number on."""
        self._first, self._range_count = first, 0
        self._range_of.clear()

    def take_events(self, worker: int, first: int, end: int, step: Counts) -> Int64s:
        """Store events, and try the sequences with them: the children, in order of the events."""
        self._note_range(worker, first, end)
        agent, chunks = self._agent, self._chunks[: self.chunks]
        step.visits += len(chunks)
        may_fit = (chunks[:, 0] <= self._times[end - 1]) & (
            chunks[:, 1] + self._window >= self._times[first]
        )
        step.tries += int(chunks[may_fit, 2].sum())
        step.pairs += int(self._covers[:end].cumsum()[first:].sum())
        children = agent.by_event[agent.event_at[first] : agent.event_at[end]]
        found = children[self._is_stored[agent.parent[children]]]
        if self._purges:
            self._purge_sequences(int(self._times[end - 1]))
        return found

    def take_chunk(self, sequences: Int64s, next_event: int, step: Counts) -> Int64s:
        """Store sequences, and try them with all events before the next one to be taken: the
        children, in order of the sequences.
        """
        agent, first = self._agent, max(self._first, self._floor)
        self._add_chunks(sequences)
        self._stored.append(sequences)
        self._is_stored[sequences] = True
        low, high = agent.low[sequences], agent.high[sequences]
        np.add.at(self._covers, low, 1)
        np.add.at(self._covers, high, -1)
        step.visits += self._range_count
        earliest, latest, count = self._chunks[self.chunks - 1].tolist()
        ranges = self._ranges[: self._range_count]
        may_fit = (self._times[ranges[:, 1] - 1] >= earliest) & (
            self._times[ranges[:, 0]] <= latest + self._window
        )
        step.tries += count * int(may_fit.sum())
        tried = np.minimum(high, next_event) - np.maximum(low, first)
        step.pairs += int(np.maximum(tried, 0).sum())
        if self._purges:
            self._purge_events(sequences)
        return in_ranges(agent, sequences, first, next_event)

    def _purge_sequences(self, now: int) -> None:
        """Let go of sequences that began as long ago as the window when an event came."""
        stored = np.concatenate(self._stored) if self._stored else np.empty(0, np.int64)
        self._is_stored[stored[self._agent.expiry[stored] <= now]] = False

    def _purge_events(self, sequences: Int64s) -> None:
        """Let go of events that are more than the window before the first event of a sequence."""
        latest = int(self._agent.expiry[sequences].max()) - self._window
        gone = int(np.searchsorted(self._times, latest - self._window))
        self._floor = max(self._floor, gone)

    def settle(self, limit: int) -> None:
        """Delete the sequences that no event from an instant on can complete."""
        if not self._stored:
            return
        stored = np.concatenate(self._stored)
        stays = self._agent.expiry[stored] >= limit
        self._is_stored[stored[~stays]] = False
        kept = stored[stays]
        self._stored, self.chunks = [kept], 0
        self._add_chunks(kept)

    def _add_chunks(self, sequences: Int64s) -> None:
        last = self._agent.last[sequences]
        for begin in range(0, len(sequences), self._capacity):
            part = last[begin : begin + self._capacity]
            if self.chunks == len(self._chunks):
                self._chunks = np.concatenate((self._chunks, np.empty_like(self._chunks)))
            self._chunks[self.chunks] = part.min(), part.max(), len(part)
            self.chunks += 1

    def _note_range(self, worker: int, first: int, end: int) -> None:
        """Note events that a worker has taken; those beside its last ones are of one range."""
        at = self._range_of.get(worker, -1)
        if at >= 0 and self._ranges[at, 1] == first:
            self._ranges[at, 1] = end
            return
        if self._range_count == len(self._ranges):
            self._ranges = np.concatenate((self._ranges, np.empty_like(self._ranges)))
        self._ranges[self._range_count] = first, end
        self._range_of[worker] = self._range_count
        self._range_count += 1


def in_ranges(agent: AgentPairs, sequences: Int64s, first: int, end: int) -> Int64s:
    """The children of sequences by events from one number to another."""
    _, children = spread(agent.children_at[sequences], agent.children_at[sequences + 1])
    event = agent.event[children]
    return children[(event >= first) & (event < end)]

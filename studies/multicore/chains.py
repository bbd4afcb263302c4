"""The pairs of one rule over one stream: who is tried with whom, and what of it fits.

Place 0 of a chain is the earliest event, the last one the terminator; the *agent* of each place but
the first tries its events with the sequences of the events before it. In real engines conditions
decide what fits. Here all pairs are evaluated beforehand, array by array, and a simulation looks up
what came of them.

An agent's sequences have numbers of its own, and so have those that it completes (*children*). A
child is the next agent's sequence of the same number. Where the place repeats (Kleene closure), its
own children come back to the agent, as sequences behind all that came from the agent before.

Law: each pair that the windows allow is there once, and no other. So whatever order workers take
things in, they evaluate as many pairs, and find as many matches, as the engine does. Example: with
C at 1 s, B at 2 s and 9 s, and a window of 5 s, B's agent has the pair ``C B@2`` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from matcher.model import TIME_MAX, TIME_MIN, Int64s
from rules.engine.chains.hybrid.pipeline import Crew, limits

Bools = npt.NDArray[np.bool_]
Fits = Callable[[int, Int64s, int, Int64s], Bools]
"""Whether events of a place, by their numbers, fit as many of a later place that follow them."""
AT_ONCE = 500_000
"""Pairs that are evaluated at once, about: memory for their columns is taken for so many."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A rule and its stream: the times of each place's events, in order, all in microseconds.

    ``window`` is that of a whole match, which binds all its events. ``repeated`` is the place whose
    event may come up to ``repeats`` times in a row; 0 for none. ``marks`` are the instants to which
    an engine advances, one after another.
    """

    times: tuple[Int64s, ...]
    window: int
    fits: Fits
    repeated: int = 0
    repeats: int = 1
    marks: tuple[int, ...] = (TIME_MAX,)

    @property
    def events(self) -> int:
        """How many events there are."""
        return sum(map(len, self.times))

    @property
    def first(self) -> int:
        """The time of the first event."""
        return min(int(times[0]) for times in self.times if len(times))

    @property
    def last(self) -> int:
        """The time of the last event."""
        return max(int(times[-1]) for times in self.times if len(times))

    def between(self, begin: int, end: int) -> Chain:
        """The chain of the terminators from one instant to another, excluded, and of all events
        that may precede them within the window.
        """
        bounds = [begin - self.window] * (len(self.times) - 1) + [begin]
        first, found = [], []
        for times, bound in zip(self.times, bounds, strict=True):
            low, high = np.searchsorted(times, (bound, end)).tolist()
            first.append(low)
            found.append(times[low:high])

        def fits(place: int, numbers: Int64s, later: int, others: Int64s) -> Bools:
            return self.fits(place, numbers + first[place], later, others + first[later])

        return replace(self, times=tuple(found), fits=fits, marks=(TIME_MAX,))

    def slices(self, crew: Crew) -> Iterator[int]:
        """The instants before which each slice ends, as the engine cuts them for a crew."""
        begin = TIME_MIN
        for mark in self.marks:
            new = [times[slice(*np.searchsorted(times, (begin, mark)))] for times in self.times]
            if any(map(len, new)):
                yield from limits(new, mark, self.window, crew)
            begin = mark


@dataclass(frozen=True, slots=True)
class AgentPairs:
    """The pairs of one agent.

    By the numbers of its sequences: the last instant at which an event may come (``expiry``), the
    time of the last event (``last``), the events that windows allow (from ``low`` to ``high``), and
    where its children begin (``children_at``). By the numbers of children: the event that completed
    each. ``by_event``: children in the order of these events, from ``event_at`` on for each event.
    The first ``again`` children come back as sequences, from number ``fresh`` on.
    """

    expiry: Int64s
    last: Int64s
    low: Int64s
    high: Int64s
    children_at: Int64s
    event: Int64s
    parent: Int64s
    by_event: Int64s
    event_at: Int64s
    fresh: int
    again: int

    @property
    def evaluations(self) -> int:
        """How many pairs there are."""
        return int((self.high - self.low).sum())


def agents_of(chain: Chain) -> list[AgentPairs]:
    """The agents of a chain, from that of place 1 on."""
    expiry, last = chain.times[0] + chain.window, np.arange(len(chain.times[0]))
    found = []
    for place in range(1, len(chain.times)):
        agent = _agent(chain, place, expiry, last)
        found.append(agent)
        expiry, last = agent.expiry[agent.parent], agent.event
    return found


def _agent(chain: Chain, place: int, expiry: Int64s, last: Int64s) -> AgentPairs:
    """The pairs of a place's agent, by what the sequences end with that come to it."""
    times, before, first, fresh = chain.times[place], place - 1, 0, len(last)
    repeats = chain.repeats if place == chain.repeated else 1
    taken: list[tuple[Int64s, ...]] = []
    made: list[tuple[Int64s, Int64s]] = []
    for _ in range(repeats):
        last_time = chain.times[before][last]
        low = last + 1 if before == place else np.searchsorted(times, last_time)
        high = np.maximum(low, np.searchsorted(times, expiry, "right"))
        taken.append((expiry, last_time, low, high))
        owner, event = _fitting(chain, (before, place), last, low, high)
        made.append((owner + first, event))
        first, before = first + len(last), place
        expiry, last = expiry[owner], event
    expiries, last_times, lows, highs = (np.concatenate(one) for one in zip(*taken, strict=True))
    parent, event = (np.concatenate(one) for one in zip(*made, strict=True))
    children = np.bincount(parent, minlength=len(expiries))
    of_events = np.bincount(event, minlength=len(times))
    return AgentPairs(
        expiries,
        last_times,
        lows,
        highs,
        _starts(children),
        event,
        parent,
        np.argsort(event, kind="stable"),
        _starts(of_events),
        fresh,
        len(expiries) - fresh,
    )


def _fitting(
    chain: Chain, places: tuple[int, int], last: Int64s, low: Int64s, high: Int64s
) -> tuple[Int64s, Int64s]:
    """The pairs that fit of sequences that end with events of one place, and events of another."""
    before, place = places
    starts = _starts(high - low)
    blocks = np.searchsorted(starts, np.arange(0, starts[-1], AT_ONCE), "right") - 1
    edges = np.unique(np.append(blocks, len(last))).tolist()
    owners, events = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for begin, end in pairwise(edges):
        owner, event = spread(low[begin:end], high[begin:end])
        owner += begin
        does_fit = chain.fits(before, last[owner], place, event)
        owners.append(owner[does_fit])
        events.append(event[does_fit])
    return np.concatenate(owners), np.concatenate(events)


def spread(low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
    """All numbers of some ranges, each with the place of its range."""
    counts = high - low
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) + np.repeat(low - _starts(counts)[:-1], counts)


def _starts(counts: Int64s) -> Int64s:
    """Where each of several groups begins that follow one another, and the end."""
    return np.concatenate(([0], np.cumsum(counts)))

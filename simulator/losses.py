"""Losses with a broker that fails and has clients, and the results that may lack by them.

What a broker alone had is gone with its memory: the events that it had acknowledged and that were
still needed (its replay buffer). And with the links of its clients go the subscriptions of its
sinks, even where the broker goes on with all that it knew: of such a failure only the gaps of sinks
count. Nothing else may differ from what the oracle says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, TIME_MAX, Event, EventBatch, Int64s
from routing.deployment import Deployed
from routing.partition.replay_starts import replay_starts
from simulator.changes import Held
from simulator.clients import Arrival, Gap
from simulator.oracle import Answer, facts, in_order

Key: TypeAlias = tuple[str, str]
"""An event's key among all others: its source and its id."""


class Losses:
    """Losses that failures excuse.

    A published event that the broker had kept may come to a sink or not, and so may a composite one
    that depends on such an event, or would, within the reach of its rule; none comes twice. What
    was delivered before the broker failed is as it must be. A replay buffer is looked through once
    it has some thousand events, or ``unasked_events_max``; before that it has all of its sources'
    events. What its sources had published by then, and is refused as late when it comes again, may
    have been passed on: it counts as kept.

    ``first_s``: when the first broker failed; ``kept``: the events that its brokers had kept;
    ``ahead_s``: by how much a source's clock is ahead at most, as it may be.
    """

    def __init__(
        self,
        first_s: float,
        kept: Sequence[EventBatch],
        held: Sequence[Held],
        ahead_s: Mapping[str, float],
    ) -> None:
        self._first_s = first_s
        self._ahead_s = ahead_s
        self._most_s = max(ahead_s.values(), default=0.0)
        self._kept = {key_of(event) for batch in kept for event in batch.events()}
        self._times = _times(kept)
        self._rules = [_apart(one, place) for place, one in enumerate(held)]
        self._names = [one.rule.name for one in held]

    def excuse(
        self, expected: Answer, arrivals: Sequence[Arrival], gaps: Sequence[Gap]
    ) -> tuple[Answer, Answer]:
        """The answer expected of a sink, and the one it got, less what is excused of the
        difference.

        ``gaps``: when the sink was without its broker.
        """
        came = self._without_repeats(arrivals, gaps)
        had = {key_of(event): facts(event) for _, event in came}
        due = {key_of(event): facts(event) for event in _events(expected)}
        missing = {
            key_of(event)
            for event in _events(expected)
            if had.get(key_of(event)) != due[key_of(event)]
            and (self._falls_into(gaps, event) or self._hangs(event))
        }
        surplus = {
            key_of(event)
            for moment, event in came
            if due.get(key_of(event)) != had[key_of(event)]
            and moment >= self._first_s
            and self._hangs(event)
        }
        expected, got = less(expected, missing), less(Answer.of(one for _, one in came), surplus)
        turns = {key_of(event): _turn(gaps, moment) for moment, event in came}
        return expected, replace(got, composite=_together(expected.composite, got.composite, turns))

    def _falls_into(self, gaps: Sequence[Gap], event: Event) -> bool:
        """Whether a sink may miss an event because of a gap: what is published or found before its
        new subscription is in force, beyond the instant up to which it had got all.
        """
        is_composite = event.source.startswith(RULE_SOURCE)
        ahead_s = self._most_s if is_composite else self._ahead_s.get(event.source, 0.0)
        return any(
            event.time < (gap.end_s + ahead_s) * MICROSECONDS
            and not (is_composite and event.time < gap.complete)
            for gap in gaps
        )

    def _without_repeats(
        self, arrivals: Sequence[Arrival], gaps: Sequence[Gap]
    ) -> list[tuple[float, Event]]:
        """Events that came, with their times, without repeats: what a sink had got may come again
        after each gap, since its broker does not know any more that it was there.
        """
        came: list[tuple[float, Event]] = []
        seen: dict[Key, tuple[int, object]] = {}  # by how many gaps there had been
        for arrival in arrivals:
            turn = _turn(gaps, arrival.moment)
            for event in in_order(arrival.delivery):
                said = facts(event)
                before, first = seen.get(key_of(event), (turn, said))
                seen[key_of(event)] = turn, first
                if before == turn or (said != first and not self._hangs(event)):
                    came.append((arrival.moment, event))
        return came

    def _hangs(self, event: Event) -> bool:
        """Whether an event is, or may depend on, one that was kept."""
        if not event.source.startswith(RULE_SOURCE):
            return key_of(event) in self._kept
        name = event.source.removeprefix(RULE_SOURCE)
        places = [place for place, one in enumerate(self._names) if one == name]
        return any(
            ((times >= begin) & (times <= event.time)).any()
            for type_name, begin in self._reaches(places, event.time).items()
            if (times := self._times.get(type_name)) is not None
        )

    def _reaches(self, places: Iterable[int], time: int) -> Mapping[str, int]:
        """By type, from when on events may bear on what rules find at an instant."""
        due = {one.rule.name: TIME_MAX for one in self._rules}
        due.update((self._rules[place].rule.name, time) for place in places)
        return replay_starts(self._rules, due).horizons


def _turn(gaps: Sequence[Gap], moment: float) -> int:
    """How many gaps there had been by then."""
    return sum(gap.begin_s <= moment for gap in gaps)


def _together(
    expected: Sequence[Event], got: Sequence[Event], turns: Mapping[Key, int]
) -> tuple[Event, ...]:
    """Events that a sink got, with those that came between gaps put together, where these were in
    order.
    """
    places = {key_of(event): place for place, event in enumerate(expected)}
    got_places = [places.get(key_of(event), -1) for event in got]
    by_turn = sorted(zip((turns[key_of(event)] for event in got), got_places, strict=True))
    if got_places != [place for _, place in by_turn]:
        return tuple(got)
    return tuple(sorted(got, key=lambda event: places.get(key_of(event), -1)))


def _apart(held: Held, place: int) -> Deployed:
    """A rule that held, under a name of its own among all versions."""
    rule = held.rule.named(f"{held.rule.name}/{place}")
    return Deployed(rule, held.since, held.version, place)


def _times(kept: Iterable[EventBatch]) -> dict[str, Int64s]:
    """By type, the times of the events."""
    found: dict[str, list[Int64s]] = {}
    for batch in kept:
        found.setdefault(batch.type.name, []).append(batch.time)
    return {name: np.concatenate(times) for name, times in found.items()}


def less(answer: Answer, gone: AbstractSet[Key]) -> Answer:
    """An answer without these events, each once: what comes twice is no loss."""
    left = set(gone)

    def stays(event: Event) -> bool:
        is_gone = key_of(event) in left
        left.discard(key_of(event))
        return not is_gone

    return Answer(tuple(filter(stays, answer.composite)), tuple(filter(stays, answer.published)))


def _events(answer: Answer) -> tuple[Event, ...]:
    return (*answer.composite, *answer.published)


def key_of(event: Event) -> Key:
    """The key of an event."""
    return event.source, event.id

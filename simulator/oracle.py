"""Answers that sinks must get: the centralised answer, by the obvious engine, over the whole input.

Composite events come in the order of time and E4 over all of a sink's subscriptions; published
events as they come, so those are compared as a set, and each source's in its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import rules.engine
from matcher.identity import RULE_SOURCE, rule_id
from matcher.model import TIME_MAX, TIME_MIN, Bools, Event, EventBatch, EventType
from routing.messages import Delivery
from routing.network.tables.filters import type_named
from rules.engine.order.intervals import Intervals, told
from rules.pattern import RuleSet
from rules.subscription import Subscription, parse_subscription
from simulator.changes import Held
from simulator.clients import Arrival

SHOWN_MAX = 5
"""Differences of one sink that are spelled out."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Composite events in their order, published ones by (source, sequence)."""

    composite: tuple[Event, ...]
    published: tuple[Event, ...]

    @classmethod
    def of(cls, events: Iterable[Event]) -> Answer:
        """The answer of events as they came; published ones by source alone, so each source's in
        that order.
        """
        composite: list[Event] = []
        published: list[Event] = []
        for event in events:
            (composite if event.source.startswith(RULE_SOURCE) else published).append(event)
        return cls(tuple(composite), tuple(sorted(published, key=lambda event: event.source)))


class Oracle:
    """The answer for any subscriptions over one input, and rules that held from when to when."""

    def __init__(
        self, held: Sequence[Held], batches: Sequence[EventBatch], engine: str = "naive"
    ) -> None:
        self._published = batches
        self._schemas: dict[str, EventType] = {batch.type.name: batch.type for batch in batches}
        self._schemas.update((one.rule.defines.name, one.rule.defines) for one in held)
        self._detector = Intervals(rules.engine.make(engine))
        self._detected = list(self._detect(held))

    def _detect(self, held: Sequence[Held]) -> Iterator[EventBatch]:
        """The composite events in their order, each in a batch of its own."""
        turns = [
            (when, one, begins)
            for one in held
            if one.until is None or _time(one.since) < one.until  # else it has held for nothing
            for when, begins in ((one.since, True), (one.until, False))
            if begins or when is not None
        ]
        # What ends at an instant does not hold there; what begins does (S15).
        for when, one, begins in sorted(turns, key=lambda turn: (_time(turn[0]), turn[2])):
            yield from self._advance(_time(when))
            if begins:
                ruleset = RuleSet((one.rule.named(_id(one)),), self._schemas)
                self._detector.deploy(ruleset, since=_time(when), version=one.version)
                for batch in self._published:  # which this rule may be the first to use
                    self._detector.push(batch)
            else:
                self._detector.remove(_id(one))
        yield from self._advance(TIME_MAX)

    def _advance(self, mark: int) -> Iterator[EventBatch]:
        found = self._detector.advance(mark)
        rows = [
            batch.take(slice(place, place + 1))
            for batch in told(found.batches)
            for place in range(len(batch))
        ]
        yield from (rows[place] for place in found.order.tolist())

    def mask(self, batch: EventBatch, text: str) -> Bools:
        """bool[n]: which events of a batch satisfy a filter."""
        if type_named(text) != batch.type.name:
            return np.zeros(len(batch), np.bool_)
        return _parsed(text, batch.type).mask(batch)

    def answer(self, filters: Iterable[str]) -> Answer:
        """The answer that a sink with these subscriptions must get."""
        wanted: dict[str, list[Subscription]] = {}
        for text in filters:
            schema = self._schemas.get(type_named(text) or "")
            if schema is not None:  # else its type never appears, and it waits to the end
                wanted.setdefault(schema.name, []).append(_parsed(text, schema))
        published = [event for batch in self._published for event in _matching(batch, wanted)]
        return Answer(
            tuple(event for batch in self._detected for event in _matching(batch, wanted)),
            tuple(sorted(published, key=lambda event: (event.source, event.sequence))),
        )


@lru_cache(maxsize=4_096)
def _parsed(text: str, schema: EventType) -> Subscription:
    """A filter of a type; deliveries are held against the same ones time and again."""
    return parse_subscription(text, {schema.name: schema})


def _id(held: Held) -> str:
    return rule_id(held.rule.name, held.version)


def _time(when: int | None) -> int:
    return TIME_MIN if when is None else when


def _matching(batch: EventBatch, wanted: Mapping[str, list[Subscription]]) -> Iterable[Event]:
    filters = wanted.get(batch.type.name)
    if not filters:
        return ()
    mask = filters[0].mask(batch)
    for one in filters[1:]:
        mask = mask | one.mask(batch)
    return batch.take(mask).events()


def delivered(arrivals: Iterable[Arrival]) -> Answer:
    """The answer that a sink got."""
    return Answer.of(event for one in arrivals for event in in_order(one.delivery))


def in_order(delivery: Delivery) -> list[Event]:
    """The events of a delivery, in their order."""
    rows = [event for batch in delivery.batches for event in batch.events()]
    return rows if delivery.order is None else [rows[place] for place in delivery.order.tolist()]


def differences(expected: Answer, got: Answer) -> list[str]:
    """Events that are missing, surplus or out of order, in words; empty when nothing is."""
    return [
        *_differences("composite events", expected.composite, got.composite),
        *_differences("published events", expected.published, got.published),
    ]


def _differences(what: str, expected: Sequence[Event], got: Sequence[Event]) -> list[str]:
    wanted, found = [facts(one) for one in expected], [facts(one) for one in got]
    if wanted == found:
        return []
    missing = _without(expected, wanted, found)
    surplus = _without(got, found, wanted)
    lines = [f"{len(found)} {what}, expected {len(wanted)}"]
    for name, events in (("missing", missing), ("not expected, or twice", surplus)):
        lines += [f"{name}: {_shown(event)}" for event in events[:SHOWN_MAX]]
    if not missing and not surplus:
        place = next(
            i for i, pair in enumerate(zip(wanted, found, strict=True)) if pair[0] != pair[1]
        )
        lines.append(f"out of order: {_shown(got[place])} where {_shown(expected[place])} belongs")
    return lines


def _without(events: Sequence[Event], facts: list[object], others: list[object]) -> list[Event]:
    """The events whose facts are not among the others, as often as they are."""
    left: dict[str, int] = {}
    for one in others:
        left[repr(one)] = left.get(repr(one), 0) + 1
    rest = []
    for event, fact in zip(events, facts, strict=True):
        if left.get(repr(fact), 0):
            left[repr(fact)] -= 1
        else:
            rest.append(event)
    return rest


def facts(event: Event) -> object:
    """All by which one event is told from another, and what it says."""
    return (
        event.type,
        event.time,
        event.source,
        event.id,
        tuple((name, repr(value)) for name, value in event.data.items()),  # to the last bit
        event.cause_full,
    )


def _shown(event: Event) -> str:
    return f"{event.type} of {event.source}, id {event.id}, at {event.time} us"

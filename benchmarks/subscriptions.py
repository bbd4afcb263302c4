"""Subscriptions with filters to one type: matched together, and each for itself.

A filter asks for one of 1,000 areas and for values above a threshold, so that of n filters some
n / 2,000 match an event; they are of one sink or each of a sink of its own. Figures are
microseconds of CPU time an event, in batches of 256 and alone, up to the point where it is known
which sinks get which events; the baseline evaluates filter after filter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.report import Row
from matcher.model import EventBatch, EventIds, EventType, StringColumn
from routing.delivery.subscriber_index import SubscriberIndex
from routing.delivery.subscriptions import Interest, Interests
from rules.subscription import Subscription
from rules.terms import CANDIDATE, AttributeOf, Compare, Comparison, Literal

SEED = 7
AREAS = 1_000
READING = EventType.of("Reading", area="string", value="float", floor="int")
ALONE = "each for itself"


class Listener:
    """A sink, as far as the index sees it."""

    def __init__(self) -> None:
        self.interests = Interests()


def run(quick: bool) -> Iterator[Row]:
    for count in (10, 1_000) if quick else (10, 1_000, 100_000):
        for sinks in (1, count):
            yield from _measure(count, sinks, 16 if quick else 64)


def _measure(count: int, sinks: int, batches: int) -> Iterator[Row]:
    rng = np.random.default_rng(SEED)
    index: SubscriberIndex[Listener] = SubscriberIndex()
    listeners = [Listener() for _ in range(sinks)]
    filters = [_filter(rng) for _ in range(count)]
    begun = time.process_time()
    for number, one in enumerate(filters):
        interest = Interest(number, one.text, READING.name, one)
        listener = listeners[number % sinks]
        listener.interests.add(interest)
        index.add(listener, interest)
    _consume(index, _batch(rng, 1))
    added = time.process_time() - begun
    label = f"subscriptions/{count:,} of {'one sink' if sinks == 1 else 'as many sinks'}"
    yield Row(f"{label}, added", added / count * 1e6, "us each")
    for size, name in ((256, "in batches of 256"), (1, "one by one")):
        some = [_batch(rng, size) for _ in range(batches)]
        together = _microseconds(lambda batch: _consume(index, batch), some)
        few = some[: max(1, 20_000 // count)]
        alone = _microseconds(lambda batch: [one.mask(batch) for one in filters], few)
        yield Row(f"{label}, {name}", together, "us an event", ALONE, alone)


def _consume(index: SubscriberIndex[Listener], batch: EventBatch) -> None:
    for _ in index.match(batch):
        pass


def _microseconds(action: Callable[[EventBatch], object], batches: list[EventBatch]) -> float:
    """The least of three rounds over the batches, of CPU time an event."""
    spent = []
    for _ in range(3):
        begun = time.process_time()
        for batch in batches:
            action(batch)
        spent.append(time.process_time() - begun)
    return min(spent) / sum(map(len, batches)) * 1e6


def _filter(rng: np.random.Generator) -> Subscription:
    area, value = f"a{rng.integers(AREAS)}", float(rng.random())
    conditions = tuple(
        Compare(comparison, AttributeOf(CANDIDATE, place, attribute.kind), literal)
        for place, attribute, comparison, literal in zip(
            (0, 1),
            READING.attributes[:2],
            (Comparison.EQUAL, Comparison.GREATER),
            (Literal(area, READING.attributes[0].kind), Literal(value, READING.attributes[1].kind)),
            strict=True,
        )
    )
    return Subscription(READING, conditions, f'Reading(area = "{area}" and value > {value})')


def _batch(rng: np.random.Generator, size: int) -> EventBatch:
    areas = StringColumn.from_strings([f"a{number}" for number in rng.integers(AREAS, size=size)])
    ids = EventIds(StringColumn.constant("s", size), np.arange(size))
    columns = (areas, rng.random(size), np.arange(size))
    return EventBatch(READING, np.arange(size), ids, columns)

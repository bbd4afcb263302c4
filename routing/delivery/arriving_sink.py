"""Arriving sinks: what comes for a durable sink while another broker hands it over to this one.

Nothing leaves an arriving sink: it has no client and so no credit. When the durable sink is here it
gets what this one has and the former broker had not: events behind those that had come there, and
composite events from the time on up to which these were queued there. billing at b2 has had s to 11
and the Fires before 40 s; since it was asked b3 has gathered s 9 to 12 and the Fires of 38 s and 41
s: behind what b2 has sent stand s 12 and the Fire of 41 s.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matcher.model import TIME_MAX, EventBatch, Int64s
from routing.delivery.deduplicator import Deduplicator
from routing.delivery.delivery_batch import DeliveryBatch, select
from routing.delivery.durable import DurableSink
from routing.delivery.sink import Sink
from routing.delivery.sinks import Sinks
from routing.messages import WhenFull

ARRIVING_PREFIX = b"arriving/"
"""Of the keys of arriving sinks."""
UNBOUNDED_QUEUE = 2**31 - 1
"""Events: no bound."""


class ArrivingSink(Sink):
    """One of them, by the name of the durable sink."""

    def __init__(self, name: str) -> None:
        super().__init__(ARRIVING_PREFIX + name.encode(), name, WhenFull.BLOCK, UNBOUNDED_QUEUE)

    @property
    def events(self) -> int:
        """How many it has gathered."""
        return self.queued + self.held.events

    def pass_on(self, sink: DurableSink, known: Deduplicator, sinks: Sinks) -> None:
        """Give a durable sink what it has not had: by ``known`` of published events, by its floor
        of composite ones.
        """
        for one in self._queue:
            if one.batches[0].is_composite:
                sink.offer_found(one)
            elif (news := _news(one, known)).events:
                sink.offer(news)
        held = self.held.release(TIME_MAX)
        if held is not None:
            sink.held.hold(held, sinks.places(held.batches))


def _news(delivery_batch: DeliveryBatch, known: Deduplicator) -> DeliveryBatch:
    is_new = np.concatenate([*_masks(delivery_batch.batches, known)])
    places = delivery_batch.places
    if is_new.all():
        return delivery_batch
    left: Int64s = places[is_new[places]]
    return select(delivery_batch.batches, delivery_batch.subscriptions, left, delivery_batch.late)


def _masks(batches: Iterable[EventBatch], known: Deduplicator) -> Iterable[np.ndarray]:
    for batch in batches:
        places = known.places(batch)
        mask = np.full(len(batch), places is None)
        if places is not None:
            mask[places] = True
        yield mask

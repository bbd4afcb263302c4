"""Last events of a past, one for each key: what a subscription gives before it goes on live.

Of the events that the filters ask for, each replaces the one before it with the same type and
values; what is left comes in the order of time. Temps of a1 at 1 s and 3 s, and of a2 at 2 s, were
published: by area, those of 2 s and 3 s are given.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from broker.errors import BrokerError
from matcher.model import EventBatch
from routing.delivery.delivery_batch import DeliveryBatch, SubscriptionNumbers, join, places_of
from routing.messages import Delivery

KEYS_MAX = 100_000
SOURCE = "source"
"""The name of an event's source among the attributes, unless one is called so."""


class LastValues:
    """The last event of each type and values of these attributes; null where there is none."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._last: dict[tuple[object, ...], tuple[EventBatch, SubscriptionNumbers]] = {}

    def take(self, delivery: Delivery) -> None:
        """Take what comes next of the past. BrokerError for too many keys."""
        keys = [key for batch in delivery.batches for key in self._keys(batch)]
        ends = list(accumulate(map(len, delivery.batches)))
        latest = {keys[place]: place for place in places_of(delivery).tolist()}
        for key, place in latest.items():
            number = bisect_right(ends, place)
            batch = delivery.batches[number]
            row = place - ends[number] + len(batch)
            self._last[key] = batch.take(slice(row, row + 1)), delivery.subscriptions[number]
        if len(self._last) > KEYS_MAX:
            by = ", ".join(self._names)
            raise BrokerError(f"more than {KEYS_MAX:,} last values by {by}: ask for fewer")

    def _keys(self, batch: EventBatch) -> Iterator[tuple[object, ...]]:
        columns = dict(zip(batch.type.names, batch.lists(), strict=False))
        columns.setdefault(SOURCE, batch.ids.source.tolist())
        missing = [None] * len(batch)
        own = [columns.get(name, missing) for name in self._names]
        return zip([batch.type.name] * len(batch), *own, strict=True)

    def given(self) -> Iterator[Delivery]:
        """The events that are left, in order of time; nothing where there are none."""
        in_order = sorted(self._last.values(), key=lambda one: int(one[0].time[0]))
        if in_order:
            yield join([DeliveryBatch.of((one,), (told,)) for one, told in in_order]).delivery

"""Events on their way to one sink, with the subscriptions that each of them matched.

A delivery batch is a Delivery whose events are counted. Sinks that get the same share one, so that
it is encoded once. It can be cut after any event, so that credit and bounds are kept to the event,
and delivery batches can be joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct

from matcher.model import EventBatch, Int64s
from routing.messages import Delivery
from routing.wire.extent import BATCHES_AT_ONCE, EVENTS_AT_ONCE, EXTENT_MAX, extent_of, halved

SubscriptionNumbers = tuple[int, ...]


class DeliveryBatch(Struct, frozen=True, eq=False, gc=False):
    """``delivery``, which tells of no loss, and how many ``events`` are in it."""

    delivery: Delivery
    events: int

    @classmethod
    def of(
        cls,
        batches: tuple[EventBatch, ...],
        subscriptions: tuple[SubscriptionNumbers, ...],
        order: Int64s | None = None,
        late: bool = False,
    ) -> DeliveryBatch:
        """A delivery batch of these fields of Delivery, its events counted."""
        delivery = Delivery(batches, subscriptions, order, 0, late)
        return cls(delivery, len(delivery))

    def __len__(self) -> int:
        return self.events

    @property
    def batches(self) -> tuple[EventBatch, ...]:
        """The events, as in Delivery."""
        return self.delivery.batches

    @property
    def subscriptions(self) -> tuple[SubscriptionNumbers, ...]:
        """The numbers beside the batches, as in Delivery."""
        return self.delivery.subscriptions

    @property
    def order(self) -> Int64s | None:
        """The order of the events, as in Delivery."""
        return self.delivery.order

    @property
    def late(self) -> bool:
        """Whether the events came too late for detection."""
        return self.delivery.late

    @property
    def places(self) -> Int64s:
        """``order``, spelled out where it is None."""
        return places_of(self.delivery)

    def cut(self, events: int) -> tuple[DeliveryBatch, DeliveryBatch]:
        """The first ``events`` and the rest, neither of them empty."""
        if self.order is None:
            return self._cut_as_it_stands(events)
        places = self.places
        head = select(self.batches, self.subscriptions, places[:events], self.late)
        return head, select(self.batches, self.subscriptions, places[events:], self.late)

    def _cut_as_it_stands(self, events: int) -> tuple[DeliveryBatch, DeliveryBatch]:
        """The same as ``cut`` where batches come one after another: one of them is sliced at most,
        no row is copied.
        """
        place, left = 0, events
        while left >= len(self.batches[place]):
            left -= len(self.batches[place])
            place += 1
        head, rest = self.batches[:place], self.batches[place:]
        if left:
            head = (*head, rest[0].take(slice(0, left)))
            rest = (rest[0].take(slice(left, None)), *rest[1:])
        first = DeliveryBatch.of(head, self.subscriptions[: len(head)], late=self.late)
        return first, DeliveryBatch.of(rest, self.subscriptions[place:], late=self.late)

    def without(self, number: int) -> DeliveryBatch | None:
        """The delivery batch without this subscription; None where nothing is left."""
        if not any(number in one for one in self.subscriptions):
            return self
        left = [without(one, number) for one in self.subscriptions]
        stays = np.repeat(np.array(list(map(bool, left))), list(map(len, self.batches)))
        places = self.places
        rest = select(self.batches, left, places[stays[places]], self.late)
        return rest if rest.events else None


def places_of(delivery: Delivery) -> Int64s:
    """``delivery.order``, spelled out where it is None."""
    return np.arange(len(delivery)) if delivery.order is None else delivery.order


def without(numbers: SubscriptionNumbers, number: int) -> SubscriptionNumbers:
    """The others of them."""
    return tuple(one for one in numbers if one != number)


def select(
    batches: Sequence[EventBatch],
    subscriptions: Sequence[SubscriptionNumbers],
    places: Int64s,
    late: bool = False,
) -> DeliveryBatch:
    """The events at ``places`` of the concatenated batches, delivered in that order."""
    starts = np.cumsum([0, *map(len, batches)])
    owners = np.searchsorted(starts, places, side="right") - 1
    parts, numbers, positions = [], [], []
    for number in np.unique(owners).tolist():
        chosen = np.flatnonzero(owners == number)
        parts.append(batches[number].take(places[chosen] - starts[number]))
        numbers.append(subscriptions[number])
        positions.append(chosen)
    return DeliveryBatch.of(tuple(parts), tuple(numbers), order_of(positions), late)


def order_of(positions: Sequence[Int64s]) -> Int64s | None:
    """The order of events by their ``positions`` (distinct), given for each batch."""
    if not positions:
        return None
    flat = positions[0] if len(positions) == 1 else np.concatenate(positions)
    if (flat[1:] > flat[:-1]).all():
        return None
    return np.argsort(flat)


def join(delivery_batches: Sequence[DeliveryBatch]) -> DeliveryBatch:
    """Delivery batches of one lateness, one after another."""
    if len(delivery_batches) == 1:
        return delivery_batches[0]
    order = None
    if any(delivery_batch.order is not None for delivery_batch in delivery_batches):
        starts = np.cumsum([0, *map(len, delivery_batches)])
        order = np.concatenate(
            [
                delivery_batch.places + start
                for delivery_batch, start in zip(delivery_batches, starts, strict=False)
            ]
        )
    return DeliveryBatch.of(
        tuple(batch for delivery_batch in delivery_batches for batch in delivery_batch.batches),
        tuple(
            numbers
            for delivery_batch in delivery_batches
            for numbers in delivery_batch.subscriptions
        ),
        order,
        delivery_batches[0].late,
    )


@lru_cache(maxsize=8)
def joined_once(*delivery_batches: DeliveryBatch) -> DeliveryBatch:
    """The same, one for all sinks that were offered the same, so that it is encoded once, too."""
    return join(delivery_batches)


def in_messages(delivery_batch: DeliveryBatch) -> Sequence[DeliveryBatch]:
    """A delivery batch in parts that fit into messages."""
    return halved(delivery_batch, _fits)


def _fits(delivery_batch: DeliveryBatch) -> bool:
    batches = delivery_batch.delivery.batches
    is_short = delivery_batch.events <= EVENTS_AT_ONCE and len(batches) <= BATCHES_AT_ONCE
    return is_short and extent_of(batches) <= EXTENT_MAX

"""Remainders of deliveries: the events of a durable sink that a client was not given before."""

from __future__ import annotations

import numpy as np

from matcher.model import Bools, Int64s
from routing.delivery.delivery_batch import places_of, select
from routing.messages import Delivery
from routing.traced import traces_left


class Remainder(Delivery, frozen=True, eq=False, gc=False, kw_only=True):
    """A Delivery without some of its events. ``numbers``: those of the events, in the order of
    delivery. An event keeps its number: of Fires 7 to 10 a client had 8 and 10 before, and 7 and 9
    are left.
    """

    numbers: Int64s


def event_numbers(delivery: Delivery) -> Int64s:
    """The numbers of the events, in the order of delivery."""
    if isinstance(delivery, Remainder):
        return delivery.numbers
    return np.arange(delivery.number - len(delivery) + 1, delivery.number + 1)


def positions_of(delivery: Delivery) -> list[int]:
    """The numbers of the events, in the order of delivery; 0 where they have none."""
    return event_numbers(delivery).tolist() if delivery.number else [0] * len(delivery)


def last_position(delivery: Delivery) -> int:
    """The last of them."""
    return int(delivery.numbers[-1]) if isinstance(delivery, Remainder) else delivery.number


def left_of(delivery: Delivery, is_left: Bools) -> Delivery | None:
    """Some events of a delivery; ``is_left``: whether each is among them, in the order of delivery.
    None for none of them.
    """
    if is_left.all():
        return delivery
    if not is_left.any():
        return None
    places = places_of(delivery)[is_left]
    chosen = select(delivery.batches, delivery.subscriptions, places, delivery.late).delivery
    return Remainder(
        chosen.batches,
        chosen.subscriptions,
        chosen.order,
        delivery.dropped,
        delivery.late,
        delivery.number,
        delivery.again,
        traces_left(delivery, chosen.batches),
        numbers=event_numbers(delivery)[is_left],
    )

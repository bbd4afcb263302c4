"""Composite events that must wait for others that come before them (E4).

A sink gets the composite events of all its subscriptions in the order of time and then E4. The
rules that define them may have different marks, so what one rule has detected is held back until
the marks of all of them have passed it. Example: a sink wants Fire and Flood: a Fire of 30 s
waits while the rule of Flood has come to 25 s alone: a Flood of 28 s would come before it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matcher.model import TIME_MAX, EventBatch, Int64s
from routing.delivery.delivery_batch import DeliveryBatch, SubscriptionNumbers, select, without


class HoldBack:
    """The held events of one sink.

    Beside each event stand its keys, int64[n, 4]: its time, its rule's place (since, serial), and
    its rank among the events that were detected with it.
    """

    def __init__(self) -> None:
        self._batches: list[EventBatch] = []
        self._subscriptions: list[SubscriptionNumbers] = []
        self._keys: Int64s = np.empty((0, 4), np.int64)
        self._least = TIME_MAX
        self.events = 0
        """How many there are."""

    def hold(self, delivery_batch: DeliveryBatch, places: Int64s) -> None:
        """Hold a delivery batch back. ``places`` int64[n, 2]: of the events' rules, in delivery
        batch order of the concatenated batches.
        """
        ranks = np.empty(len(delivery_batch), np.int64)
        ranks[delivery_batch.places] = np.arange(len(delivery_batch))
        times = np.concatenate([batch.time for batch in delivery_batch.batches])
        keys = np.column_stack((times, places, ranks))
        self._batches += delivery_batch.batches
        self._subscriptions += delivery_batch.subscriptions
        self._keys = np.concatenate((self._keys, keys)) if len(self._keys) else keys
        self._least = min(self._least, int(times.min()))
        self.events = len(self._keys)

    def release(self, mark: int) -> DeliveryBatch | None:
        """Take what lies before ``mark``, in order; None when that is nothing."""
        if self._least >= mark:
            return None
        return self._take(np.flatnonzero(self._keys[:, 0] < mark))

    def drop(self, events: int) -> None:
        """Drop the first so many in the order of delivery."""
        time, since, serial, rank = self._keys.T
        self._take(np.lexsort((rank, serial, since, time))[:events])

    def withdraw(self, due: Mapping[str, int]) -> None:
        """Drop what is not earlier than the time given for its source: it will come again."""
        if not self.events:
            return
        limits = np.concatenate(
            [
                np.array([due.get(name, TIME_MAX) for name in source.values], np.int64)[
                    source.codes
                ]
                for source in (batch.ids.source for batch in self._batches)
            ]
        )
        gone = np.flatnonzero(self._keys[:, 0] >= limits)
        if len(gone):
            self._take(gone)

    def forget(self, number: int) -> None:
        """A subscription has ended: drop what was held for it alone."""
        if not any(number in one for one in self._subscriptions):
            return
        self._subscriptions = [without(one, number) for one in self._subscriptions]
        is_over = np.array([not one for one in self._subscriptions])
        self._take(np.flatnonzero(np.repeat(is_over, [len(batch) for batch in self._batches])))

    def _take(self, due: Int64s) -> DeliveryBatch:
        time, since, serial, rank = self._keys[due].T
        ordered = due[np.lexsort((rank, serial, since, time))]
        taken = select(self._batches, self._subscriptions, ordered)
        stays = np.ones(len(self._keys), np.bool_)
        stays[due] = False
        rest = select(self._batches, self._subscriptions, np.flatnonzero(stays))
        self._batches, self._subscriptions = list(rest.batches), list(rest.subscriptions)
        self._keys = self._keys[stays]
        self._least = int(self._keys[:, 0].min()) if len(self._keys) else TIME_MAX
        self.events = len(self._keys)
        return taken

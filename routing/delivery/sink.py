"""One sink: what it asked for, what waits for it in its bounded queue, and its credit."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Sequence

from msgspec import structs

from matcher.model import TIME_MAX, TIME_MIN
from routing.delivery.delivery_batch import DeliveryBatch, joined_once
from routing.delivery.holdback import HoldBack
from routing.delivery.subscriptions import Interest, Interests
from routing.deployment import Deployed
from routing.effects import Peer
from routing.messages import EVERYTHING, Delivery, WhenFull
from routing.order import greatest_time
from routing.wire.composites import Encoded
from routing.wire.extent import EXTENT_MAX, extent_of
from rules.engine.order.intervals import is_told, told

JOINED_BATCHES_MAX = 64
"""Batches that waited in a queue and go out in one Delivery."""
QUEUE_BYTES_MAX = 2**26
"""A queue is full by so many bytes, too, however few events they are."""
BLOCKED_BYTES_MAX = 4 * QUEUE_BYTES_MAX
"""So many bytes of what its sources had credit for end a sink that blocks."""


class Sink:
    """One sink: what it asked for, what waits for it, and the credit it has given."""

    def __init__(self, peer: Peer, name: str, when_full: WhenFull, limit: int) -> None:
        self.peer = peer
        self.to = peer
        """The link that its next delivery goes to."""
        self.name = name
        self.when_full = when_full
        self.limit = limit
        self.credit = 0
        self.rights = EVERYTHING
        self.is_fed = True
        """Whether it gets what it asks for; else what is moved into it alone."""
        self.interests = Interests()
        self.rules: tuple[Deployed, ...] = ()
        """The rules that define what it subscribed to."""
        self.feeds: frozenset[str] = frozenset()
        """The published types that its events come or are made from."""
        self.mark = TIME_MAX
        """Composite events before it are due; as of when any were last held or offered."""
        self.delivered = 0
        self.dropped = 0
        self.untold = 0
        """Dropped events that no client has been told of."""
        self._queue: deque[DeliveryBatch] = deque()
        self.queued = 0
        """Events that are due and wait for credit."""
        self.size = 0
        """Bytes of what came while something waited, by and large."""
        self.held = HoldBack()
        """Composite events that are not due yet."""

    @property
    def has_any(self) -> bool:
        """Whether any event waits here, due or not."""
        return self.queued > 0 or self.held.events > 0

    @property
    def excess(self) -> int:
        """By how many events the limit is exceeded; at 0 the queue is just full."""
        return self.queued + self.held.events - self.limit

    @property
    def full_from(self) -> int | None:
        """If it is full and chose to block: sources that have promised as much, or more, are to
        wait. All of them (TIME_MIN) where events that are due fill its queue; where these wait for
        marks, those behind whose promise the mark is not. Else None.
        """
        is_long = self.size >= QUEUE_BYTES_MAX
        if self.when_full is not WhenFull.BLOCK or not (is_long or self.excess >= 0):
            return None
        is_due = is_long or self.queued >= self.limit
        return TIME_MIN if is_due else min(self.mark + 1, TIME_MAX)

    @property
    def is_over(self) -> bool:
        """Whether its bounds are exceeded, so that what it chose is to be done."""
        return self.queued + self.held.events > self.limit or self.size > QUEUE_BYTES_MAX

    def checked(self, interest: Interest) -> Interest:
        """A subscription that is checked against its type, also as one of this sink's."""
        return interest

    def clients(self, number: int) -> Sequence[tuple[Peer, int]]:
        """The clients of a subscription, each with its own number for that."""
        return [(self.peer, number)]

    def offer(self, delivery_batch: DeliveryBatch) -> None:
        """Queue events that are due."""
        if self._queue:
            self.size += extent_of(delivery_batch.batches)
        self._queue.append(delivery_batch)
        self.queued += delivery_batch.events

    def offer_found(self, delivery_batch: DeliveryBatch) -> None:
        """Queue composite events that are due, as clients are told of them."""
        for batch in delivery_batch.delivery.batches:
            if not (isinstance(batch, Encoded) and is_told(batch.rule)):  # needs a look at columns
                delivery_batch = _as_told(delivery_batch)
                break
        self.offer(delivery_batch)

    def must_hold(self, delivery_batch: DeliveryBatch, *, is_joined: bool) -> bool:
        """Whether some composite events of a delivery batch are not due yet, come after held ones,
        or have no common order yet (``is_joined``).
        """
        if self.held.events or (is_joined and self.rules):
            return True
        return max(map(greatest_time, delivery_batch.delivery.batches)) >= self.mark

    def release(self) -> bool:
        """Queue what ``mark`` has passed; whether there was any."""
        due = self.held.release(self.mark)
        if due is not None:
            self.offer_found(due)
        return due is not None

    def forget(self, number: int) -> None:
        """A subscription has ended: nothing more comes for it, not even what has waited."""
        left = [delivery_batch.without(number) for delivery_batch in self._queue]
        self._queue = deque(one for one in left if one is not None)
        self.queued = sum(map(len, self._queue))
        self.size = sum(extent_of(one.batches) for one in self._queue)
        self.held.forget(number)

    def take(self, events_max: int) -> Delivery | None:
        """The next delivery; None when nothing is due or there is no credit."""
        if not self._queue or self.credit == 0:
            return None
        room = self.credit if self.credit < events_max else events_max
        delivery_batch = self._pop(room)
        if delivery_batch.events > 1 or self._queue:
            delivery_batch = self._fitting(delivery_batch, room)
        self.credit -= delivery_batch.events
        self.delivered += delivery_batch.events
        if not self.untold:  # common, and the others' too
            return delivery_batch.delivery
        dropped, self.untold = self.untold, 0
        return structs.replace(delivery_batch.delivery, dropped=dropped)

    def _fitting(self, delivery_batch: DeliveryBatch, events_max: int) -> DeliveryBatch:
        """As much of the first delivery batch as a message has room for, or all of it with what
        waits behind it, at most so many events.
        """
        while (
            size := extent_of(delivery_batch.delivery.batches)
        ) > EXTENT_MAX and delivery_batch.events > 1:
            delivery_batch, rest = delivery_batch.cut(delivery_batch.events // 2)
            self._put_back(rest)
        return self._joined(delivery_batch, size, events_max) if self._queue else delivery_batch

    def _joined(self, first: DeliveryBatch, size: int, events_max: int) -> DeliveryBatch:
        """The first delivery batch, of that extent, with those that wait behind it, up to so many
        events and as long as a message may be.
        """
        delivery_batches, events, batches = [first], first.events, len(first.batches)
        while self._queue and events < events_max and batches < JOINED_BATCHES_MAX:
            if not self._goes_with(first, self._queue[0]):
                break
            size += extent_of(self._queue[0].batches)
            if size > EXTENT_MAX:
                break
            delivery_batch = self._pop(events_max - events)
            delivery_batches.append(delivery_batch)
            events += delivery_batch.events
            batches += len(delivery_batch.batches)
        return joined_once(*delivery_batches)

    def _goes_with(self, first: DeliveryBatch, following: DeliveryBatch) -> bool:
        """Whether two delivery batches can be told of in one message."""
        return first.late == following.late

    def grant(self, peer: Peer, events: int, most: int) -> None:
        """The client at a link may be given so many events more."""
        self.credit = min(self.credit + events, most)

    def drop_oldest(self) -> None:
        """Drop what exceeds the limit, the first in the order of delivery."""
        while self.is_over and self._queue:
            self._note_dropped(self._pop(self._surplus).events)
        if (left := self.excess) > 0:
            self.held.drop(left)
            self._note_dropped(left)

    @property
    def _surplus(self) -> int:
        """So many of the first events to drop: those beyond the limit, else a delivery batch."""
        return self.excess if self.excess > 0 else self._queue[0].events

    def _note_dropped(self, events: int) -> None:
        self.dropped += events
        self.untold += events

    def _pop(self, events_max: int) -> DeliveryBatch:
        delivery_batch = self._queue.popleft()
        if delivery_batch.events > events_max:
            delivery_batch, rest = delivery_batch.cut(events_max)
            self._queue.appendleft(rest)
        self.queued -= delivery_batch.events
        if self.size:
            self.size = max(0, self.size - extent_of(delivery_batch.batches))
        return delivery_batch

    def _put_back(self, delivery_batch: DeliveryBatch) -> None:
        """Have a delivery batch, or part of one, at the head of the queue again."""
        if self._queue:
            self.size += extent_of(delivery_batch.batches)
        self._queue.appendleft(delivery_batch)
        self.queued += delivery_batch.events


def _as_told(found: DeliveryBatch) -> DeliveryBatch:
    """Composite events as clients are told of them."""
    batches = told(found.batches)
    if all(map(operator.is_, batches, found.batches)):
        return found
    return DeliveryBatch.of(batches, found.subscriptions, found.order, found.late)

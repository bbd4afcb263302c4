"""Groups: subscriptions without a store that several clients share.

A group is the clients of one user that subscribe to one filter under one name. Each event goes to
one of them, evenly (routing.delivery.shared) or ``by`` an attribute: then events with one value of
it go to one client as long as the same clients are there. When clients come or go, as few values
as can be go to another client; what waits for it follows, and the events of a value keep their
order. What a client was given when it goes is lost, as is what waits when the last one goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from matcher.checksum import GOLDEN, mix, numbers_of
from matcher.model import EventBatch, Int64s, StringColumn, UInt64s
from routing.delivery.delivery_batch import DeliveryBatch, select
from routing.delivery.shared import Attachment, SharedSink
from routing.delivery.subscriptions import Interest
from routing.effects import Peer
from routing.messages import Subscribe
from routing.permission import EVERY_TYPE
from routing.wire.extent import extent_of

NUMBER = 1
"""The number of a group's one subscription."""
AT_ONCE = 4_096
"""Numbers that draw their lots together, for each client one: so memory is bounded."""


@dataclass(slots=True, eq=False)
class GroupMember(Attachment):
    """A client of a group. ``place``: its number among all that the group has had. ``queue``: the
    events that wait for it alone.
    """

    place: int = 0
    queue: deque[DeliveryBatch] = field(default_factory=deque)


class OneValue(DeliveryBatch, frozen=True, eq=False, gc=False):
    """Events with one value of the attribute that their group shares by; ``value``: its number."""

    value: int


def group_key(message: Subscribe, user: str) -> Peer:
    """The key of the group that a user's client asks for, where other sinks have their link."""
    return "\0".join(("group", user, message.group, message.filter.strip())).encode()


class ClientGroup(SharedSink[GroupMember]):
    """One group, for the first client's subscription."""

    def __init__(self, key: Peer, message: Subscribe) -> None:
        super().__init__(key, message.group, message.when_full, message.limit)
        self.by = message.by
        self._places = 0

    def agrees(self, message: Subscribe) -> bool:
        """Whether a client that subscribes so gets what the others have."""
        asked = message.when_full, message.limit, message.by
        return asked == (self.when_full, self.limit, self.by)

    def __str__(self) -> str:
        by = f", by {self.by}" if self.by else ""
        return f"{self.when_full.value} with {self.limit} events{by}"

    @property
    def interest(self) -> Interest:
        """Its subscription."""
        return next(iter(self.interests), Interest(NUMBER, EVERY_TYPE, EVERY_TYPE, None))

    def checked(self, interest: Interest) -> Interest:
        """The same, but paused where the type has no attribute to share by."""
        if not self.by or interest.schema is None or self.by in interest.schema.names:
            return interest
        problem = f"{interest.type_name} has no attribute {self.by!r} to share events by"
        return replace(interest, filter=None, problem=problem)

    def attach(self, peer: Peer, number: int) -> None:
        """A client comes, with its own number of the subscription."""
        self._places += 1
        waiting = self._take_waiting() if self.by else []
        self.attached[peer] = GroupMember(peer, 0, {number: NUMBER}, self._places)
        self._offer_all(waiting)

    def detach(self, peer: Peer) -> None:
        """A client goes."""
        waiting = self._take_waiting() if self.by or len(self.attached) == 1 else []
        del self.attached[peer]
        self._offer_all(waiting)

    def forget(self, number: int) -> None:
        """Its subscription has ended."""
        self._take_waiting()
        self.held.forget(number)

    def _take_waiting(self) -> list[DeliveryBatch]:
        waiting = [one for queue in self._queues for one in queue]
        for queue in self._queues:
            queue.clear()
        self.queued = self.size = 0
        return waiting

    def _offer_all(self, waiting: list[DeliveryBatch]) -> None:
        """Queue what waits anew. What has one value is shared out together, for it may be much."""
        if not self.attached:
            return
        members = list(self.attached.values())
        values = [one.value for one in waiting if isinstance(one, OneValue)]
        chosen = iter(_chosen(np.array(values, np.uint64), self._seeds).tolist())
        for one in waiting:
            if isinstance(one, OneValue):
                self._give(members[next(chosen)], one)
            else:
                self.offer(one)

    @property
    def _seeds(self) -> UInt64s:
        return np.array([one.place for one in self.attached.values()], np.uint64)

    @property
    def _queues(self) -> list[deque[DeliveryBatch]]:
        return [one.queue for one in self.attached.values()] if self.by else [self._queue]

    def offer(self, delivery_batch: DeliveryBatch) -> None:
        """Queue events that are due, for one client each."""
        if not self.by:
            super().offer(delivery_batch)
            return
        for member, part in self._parts(delivery_batch):
            self._give(member, part)

    def _give(self, member: GroupMember, part: DeliveryBatch) -> None:
        if member.queue:
            self.size += extent_of(part.batches)
        member.queue.append(part)
        self.queued += part.events

    def _parts(self, whole: DeliveryBatch) -> Iterator[tuple[GroupMember, DeliveryBatch]]:
        members = list(self.attached.values())
        numbers = np.concatenate([_numbers(batch, self.by) for batch in whole.batches])
        if (numbers == numbers[0]).all():  # common: one event
            member = members[_chosen(numbers[:1], self._seeds)[0]]
            yield member, OneValue(whole.delivery, whole.events, int(numbers[0]))
            return
        chosen = _chosen(numbers, self._seeds)
        places = whole.places
        for number in np.unique(chosen).tolist():
            own = places[chosen[places] == number]
            yield members[number], select(whole.batches, whole.subscriptions, own, whole.late)

    def _queue_of(self, attachment: GroupMember) -> deque[DeliveryBatch]:
        return attachment.queue if self.by else self._queue

    def drop_oldest(self) -> None:
        """Drop what exceeds the limit, the first of the longest queue."""
        while self.is_over and (longest := max(self._queues, key=len)):
            self._queue = longest
            self._note_dropped(self._pop(self._surplus).events)
        super().drop_oldest()


def _numbers(batch: EventBatch, attribute: str) -> UInt64s:
    """uint64[n]: a number for each event, alike where the values are equal; where the value is
    null as for the zero of its kind, and where the type has no such attribute 0.
    """
    if attribute not in batch.type.names:
        return np.zeros(len(batch), np.uint64)
    column = batch.column(attribute)
    if isinstance(column, StringColumn) or column.dtype != np.float64:
        return numbers_of(column)
    return numbers_of(column.astype(np.float64) + 0.0)  # -0.0 is 0.0


def _chosen(numbers: UInt64s, seeds: UInt64s) -> Int64s:
    """int64[n]: for each number the place of the seed that has the highest lot for it (rendezvous
    hashing): a seed that comes or goes changes no other's.
    """
    chosen = np.empty(len(numbers), np.int64)
    for begin in range(0, len(numbers), AT_ONCE):
        lots = mix(numbers[begin : begin + AT_ONCE])[:, None] * np.uint64(GOLDEN) + seeds
        np.argmax(mix(lots), axis=1, out=chosen[begin : begin + AT_ONCE])
    return chosen

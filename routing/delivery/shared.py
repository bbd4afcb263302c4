"""Sinks that several clients share, each event going to one of them.

Clients take turns in rounds. A round begins with the clients that have credit, and each of them
gets the same share of what waits then, as far as its credit reaches. 1,000 Temps wait, and a, b and
c have credit for 100, 500 and 500: they get 100, 334 and 334, and b and c share the other 232.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from msgspec import structs

from routing.delivery.delivery_batch import DeliveryBatch
from routing.delivery.sink import Sink
from routing.effects import Peer
from routing.messages import Delivery, WhenFull


@dataclass(slots=True, eq=False)
class Attachment:
    """A client of a shared sink: its credit, and by its own numbers the sink's numbers of the
    subscriptions.
    """

    peer: Peer
    credit: int = 0
    numbers: dict[int, int] = field(default_factory=dict)


_Attached = TypeVar("_Attached", bound=Attachment)


class SharedSink(Sink, Generic[_Attached]):
    """One sink with many clients."""

    def __init__(self, key: Peer, name: str, when_full: WhenFull, limit: int) -> None:
        super().__init__(key, name, when_full, limit)
        self.attached: dict[Peer, _Attached] = {}
        self._round: deque[_Attached] = deque()
        """Clients that have yet to get something in this round."""
        self._share = 0
        """Events that each client gets in it at most."""

    def clients(self, number: int) -> list[tuple[Peer, int]]:
        """The clients of one of its subscriptions, each with its own number for that."""
        return [
            (peer, own)
            for peer, one in self.attached.items()
            for own, told in one.numbers.items()
            if told == number
        ]

    def grant(self, peer: Peer, events: int, most: int) -> None:
        """A client may be given so many events more."""
        attachment = self.attached[peer]
        attachment.credit = min(attachment.credit + events, most)

    def take(self, events_max: int) -> Delivery | None:
        """The next delivery, for the client whose turn it is."""
        attachment = self._next_taker()
        if attachment is None:
            return None
        self._queue = self._queue_of(attachment)
        self.to, self.credit = attachment.peer, attachment.credit
        delivery = super().take(min(events_max, self._share))
        attachment.credit, self.credit = self.credit, 0
        return None if delivery is None else self._given_to(attachment, delivery)

    def _next_taker(self) -> _Attached | None:
        """The client whose turn it is, which has credit; None while no client has."""
        while self._round:
            attachment = self._round.popleft()
            if self.attached.get(attachment.peer) is attachment and self._is_ready(attachment):
                return attachment
        self._round.extend(filter(self._is_ready, self.attached.values()))
        if not self._round:
            return None
        self._share = -(-self.queued // len(self._round))
        return self._round.popleft()

    def _is_ready(self, attachment: _Attached) -> bool:
        return attachment.credit > 0 and bool(self._queue_of(attachment))

    def _queue_of(self, attachment: _Attached) -> deque[DeliveryBatch]:
        """The events that a client may get."""
        return self._queue

    def _given_to(self, attachment: _Attached, delivery: Delivery) -> Delivery:
        """A delivery as a client is to see it: by its own numbers of the subscriptions."""
        own, found = attachment.numbers.items(), delivery.subscriptions
        numbers = tuple(tuple(told for told, one in own if one in each) for each in found)
        return structs.replace(delivery, subscriptions=numbers)

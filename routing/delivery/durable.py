"""Durable subscriptions: sinks that stay when their clients go, and forget nothing that was not
acknowledged.

Law 1: a durable sink is found by its name. Clients attach to it, each with credit of its own, and
each event goes to one of them. While none is there its events wait in its queue, which has the
bound, and the choice of what happens there, that it was begun with.

Law 2: its events are numbered from 1 on, in the order of delivery. An event stays until a client
acknowledges it, by the number up to which it has dealt with what it was given; what a client had
and did not acknowledge when it went comes again, marked so. Fires 1 to 5 were given to billing,
which acknowledged 3 and died: the next client gets 4 and 5 again, then 6.

Law 3: what is queued, and up to which time composite events are, is kept together with what it was
made from (routing.durability.journal), and leaves once it is: else its number might mean another
event when a power cut has undone it. After a restart rules are evaluated from that time on;
composite events before it, found once more for the sake of others, are in the queue already, and
are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from msgspec import structs

from matcher.model import TIME_MIN, EventType
from routing.delivery.parcel import Parcel, SubscriptionNumbers, select
from routing.delivery.sinks import Sink, Sinks
from routing.delivery.subscriptions import Interest
from routing.effects import Peer
from routing.errors import Refusal
from routing.messages import EVERYTHING, Code, Delivery, Rights, Subscribe, WhenFull
from routing.order import least_time
from routing.permission import EVERY_TYPE

KEY_PREFIX = b"durable/"
"""Of the keys of durable sinks, where others have the peer of their link."""


class Numbered(Parcel, frozen=True, eq=False, gc=False):
    """A parcel whose events have the numbers ``first`` to ``last``, all of them unless some were
    dropped in between. ``again``: a client had it before.
    """

    first: int = 0
    last: int = 0
    again: bool = False

    @classmethod
    def from_(cls, parcel: Parcel, first: int) -> Numbered:
        """A parcel whose first event has this number."""
        return cls(parcel.delivery, parcel.events, first, first + parcel.events - 1)

    def cut(self, events: int) -> tuple[Parcel, Parcel]:
        """The first ``events`` and the rest, neither of them empty."""
        head, rest = super().cut(events)
        # Where some were dropped the numbers in between are anybody's guess: the last ones stay.
        middle = self.last - rest.events
        one = Numbered(head.delivery, head.events, self.first, middle, self.again)
        return one, Numbered(rest.delivery, rest.events, middle + 1, self.last, self.again)

    def without(self, number: int) -> Parcel | None:
        """The parcel without this subscription; None where nothing is left."""
        left = super().without(number)
        if left is None or left is self:
            return left
        return Numbered(left.delivery, left.events, self.first, self.last, self.again)


@dataclass(slots=True, eq=False)
class Attachment:
    """A client of a durable sink: its credit, what it has not acknowledged, and by its own numbers
    the sink's numbers of the subscriptions.
    """

    peer: Peer
    credit: int = 0
    given: deque[Numbered] = field(default_factory=deque)
    numbers: dict[int, int] = field(default_factory=dict)


class DurableSink(Sink):
    """One durable sink. ``changed`` is called when it has something to be kept."""

    def __init__(
        self,
        name: str,
        when_full: WhenFull,
        limit: int,
        changed: Callable[[DurableSink], None],
    ) -> None:
        super().__init__(KEY_PREFIX + name.encode(), name, when_full, limit)
        self.attached: dict[Peer, Attachment] = {}
        self.last = 0
        """The number of the last event that was queued."""
        self.kept = 0
        """The number up to which the store has them, and they may leave."""
        self.floor = TIME_MIN
        """Composite events before it were queued before a restart (Law 3)."""
        self.new: list[Numbered] = []
        """Parcels that were queued since ``take_new``."""
        self._changed = changed
        self._taken: list[Numbered] = []
        self._turn: deque[Peer] = deque()

    @property
    def filters(self) -> Sequence[tuple[int, str]]:
        """Its filters, by number."""
        return [(number, self.interests.asked(number)) for number in sorted(self.interests.numbers)]

    def interest_of(self, text: str) -> Interest | None:
        """Its subscription with this filter."""
        number = next((one for one, own in self.filters if own.strip() == text.strip()), None)
        if number is None:
            return None
        found = (one for one in self.interests if one.number == number)
        return next(found, Interest(number, EVERY_TYPE, EVERY_TYPE, None))

    # --- clients ---

    def attach(self, peer: Peer) -> Attachment:
        """A client is there, or has been."""
        found = self.attached.get(peer)
        if found is None:
            found = self.attached[peer] = Attachment(peer)
            self._turn.append(peer)
        return found

    def detach(self, peer: Peer) -> None:
        """A client has gone: what it has not acknowledged comes again (Law 2)."""
        gone = self.attached.pop(peer)
        self._turn.remove(peer)
        again = [structs.replace(one, again=True) for one in gone.given]
        self.queued += sum(one.events for one in again)
        if again:
            self._queue = deque(sorted((*again, *self._queue), key=_first))

    def grant(self, peer: Peer, events: int, most: int) -> None:
        """A client may be given so many events more."""
        attachment = self.attached[peer]
        attachment.credit = min(attachment.credit + events, most)

    def acknowledge(self, peer: Peer, number: int) -> int:
        """A client has dealt with what it was given up to this number; how many events that is."""
        given, events = self.attached[peer].given, 0
        while given and given[0].first <= number:
            first = given.popleft()
            if first.last > number and first.events > 1:
                done, rest = first.cut(min(number - first.first + 1, first.events - 1))
                assert isinstance(rest, Numbered)
                given.appendleft(rest)
                events += done.events
                break
            events += first.events
        if events:
            self._changed(self)
        return events

    # --- what is queued, and goes ---

    def offer(self, parcel: Parcel) -> None:
        """Queue events that are due, with the next numbers."""
        numbered = Numbered.from_(parcel, self.last + 1)
        self.last = numbered.last
        self.new.append(numbered)
        self._changed(self)
        super().offer(numbered)

    def offer_found(self, parcel: Parcel) -> None:
        """Queue composite events that are due and were not queued before a restart."""
        if self.floor > TIME_MIN and any(least_time(one) < self.floor for one in parcel.batches):
            times = np.concatenate([batch.time for batch in parcel.batches])
            places = parcel.places
            left = places[times[places] >= self.floor]
            if not len(left):
                return
            parcel = select(parcel.batches, parcel.subscriptions, left, parcel.late)
        super().offer_found(parcel)

    def take(self, events_max: int) -> Delivery | None:
        """The next delivery, for a client whose turn it is and that has given credit."""
        if not self._queue or _first(self._queue[0]) > self.kept:
            return None
        for _ in range(len(self._turn)):
            peer = self._turn[0]
            self._turn.rotate(-1)
            attachment = self.attached[peer]
            if attachment.credit > 0:
                self.to, self.credit = peer, attachment.credit
                delivery = super().take(events_max)
                attachment.credit, self.credit = self.credit, 0
                taken, self._taken = self._taken, []
                attachment.given += taken
                return None if delivery is None else _told_to(attachment, delivery, taken)
        return None

    def _pop(self, events_max: int) -> Parcel:
        parcel = super()._pop(events_max)
        assert isinstance(parcel, Numbered)
        self._taken.append(parcel)
        return parcel

    def _joined(self, first: Parcel, size: int, events_max: int) -> Parcel:
        assert isinstance(first, Numbered)
        self._taken[0] = first  # it may have been cut, being too long for a message
        return super()._joined(first, size, events_max)

    def _goes_with(self, first: Parcel, following: Parcel) -> bool:
        assert isinstance(first, Numbered)
        assert isinstance(following, Numbered)
        is_alike = first.late == following.late and first.again == following.again
        return is_alike and following.first <= self.kept

    def drop_oldest(self) -> int:
        """Drop what exceeds the limit, the first in the order of delivery; how many it was."""
        dropped = super().drop_oldest()
        self._taken.clear()
        self._changed(self)
        return dropped

    # --- what is kept ---

    @property
    def acknowledged(self) -> int:
        """The number up to which nothing is to come again."""
        firsts = [one.given[0].first for one in self.attached.values() if one.given]
        if self._queue:
            firsts.append(_first(self._queue[0]))
        return min(firsts) - 1 if firsts else self.last

    def complete_to(self, due_mark: Callable[[Any], int]) -> int:
        """Up to which time all composite events are queued (Law 3)."""
        if self.held:
            return max(self.floor, self.mark)
        return max(self.floor, min(map(due_mark, self.rules), default=TIME_MIN))

    def take_new(self) -> Sequence[Numbered]:
        """Parcels that were queued since the last call."""
        new, self.new = self.new, []
        return new

    def recall(self, parcels: Sequence[Numbered], last: int, acknowledged: int, floor: int) -> None:
        """Have what was kept: what is queued and not acknowledged, which clients may have had, the
        last number, and the time as in ``complete_to``.
        """
        left = deque(structs.replace(one, again=True) for one in parcels)
        while left and left[0].first <= acknowledged:
            first = left.popleft()
            if first.last > acknowledged:
                rest = first.cut(acknowledged - first.first + 1)[1]
                assert isinstance(rest, Numbered)
                left.appendleft(rest)
        self._queue = deque(left)
        self.queued = sum(one.events for one in left)
        self.last = self.kept = last
        self.floor = floor


class Durables:
    """The durable sinks, by name, and who is attached to them. ``changed`` as in DurableSink; None
    where there is no store, and so can be none of them.
    """

    def __init__(self, sinks: Sinks, changed: Callable[[DurableSink], None] | None = None) -> None:
        self._all = sinks
        self._are_kept = changed is not None
        self._sinks: dict[str, DurableSink] = {}
        self._attached: dict[Peer, DurableSink] = {}
        self._changed = changed or (lambda sink: None)

    def __iter__(self) -> Iterator[DurableSink]:
        return iter(self._sinks.values())

    def __contains__(self, name: str) -> bool:
        return name in self._sinks

    def find(self, peer: Peer) -> DurableSink | None:
        """The durable sink that a client is attached to."""
        return self._attached.get(peer)

    def subscribe(
        self,
        peer: Peer,
        message: Subscribe,
        schemas: Mapping[str, EventType],
        rights: Rights = EVERYTHING,
    ) -> Interest:
        """Attach a client, with a filter that the sink has, or gets; Refusal, with nothing changed,
        when that is refused: a sink belongs to the user that has made it. Gives the subscription
        with the client's own number.
        """
        if not self._are_kept:
            reason = "this broker keeps nothing (--data): nothing there can be durable"
            raise Refusal(Code.NO_STORE, reason)
        attached = self._attached.get(peer)
        if attached is not None and attached.name != message.durable:
            raise Refusal(Code.IN_USE, f"this client is already attached to {attached.name!r}")
        if attached is not None and message.number in attached.attached[peer].numbers:
            raise Refusal(Code.IN_USE, f"subscription {message.number} exists")
        if self._all.find(peer) is not None:
            raise Refusal(Code.IN_USE, "this client has subscriptions that end with its link")
        if message.when_full is WhenFull.DISCONNECT:
            raise Refusal(Code.IN_USE, "a durable sink blocks or drops: it has no link to end")
        self._all.check_limit(message.limit)
        sink = self._sinks.get(message.durable)
        if sink is None:
            sink = DurableSink(message.durable, message.when_full, message.limit, self._changed)
        elif (sink.when_full, sink.limit) != (message.when_full, message.limit):
            own = f"{sink.when_full.value} with {sink.limit} events"
            raise Refusal(Code.IN_USE, f"the queue of {sink.name!r} is already {own}")
        else:
            _check_owner(sink, rights)
            if rights != sink.rights:
                self._all.change_rights(sink.peer, rights, schemas)
                self._changed(sink)
        added = sink.interest_of(message.filter)
        if added is None:
            number = max(sink.interests.numbers, default=0) + 1
            asked = number, message.filter
            added = self._all.add(sink, *asked, schemas, again=message.again, rights=rights)
            self._changed(sink)
        else:
            self._all.index()  # so that it is confirmed as any other
        self._sinks[sink.name] = self._attached[peer] = sink
        sink.attach(peer).numbers[message.number] = added.number
        self._all.touch(sink)
        return replace(added, number=message.number)

    def unsubscribe(self, peer: Peer, number: int) -> None:
        """End a subscription of the sink that a client is attached to, unless it, or another one,
        has the same by another number; Refusal for none.
        """
        sink = self._attached[peer]
        own = sink.attached[peer].numbers.pop(number, None)
        if own is None:
            raise Refusal(Code.UNKNOWN, f"there is no subscription {number}")
        if all(own not in one.numbers.values() for one in sink.attached.values()):
            self._all.unsubscribe(sink.peer, own)
            self._changed(sink)

    def detach(self, peer: Peer) -> None:
        """A client has gone."""
        sink = self._attached.pop(peer, None)
        if sink is not None:
            sink.detach(peer)
            self._all.touch(sink)

    def remove(self, name: str, rights: Rights = EVERYTHING) -> DurableSink:
        """Remove a durable sink; Refusal for one that is not there or has clients."""
        sink = self._sinks.get(name)
        if sink is None:
            raise Refusal(Code.UNKNOWN, f"no durable sink is named {name!r}")
        _check_owner(sink, rights)
        if sink.attached:
            raise Refusal(Code.IN_USE, f"{len(sink.attached)} clients are attached to {name!r}")
        del self._sinks[name]
        self._all.remove(sink.peer)
        self._changed(sink)
        return sink

    def recall(
        self,
        name: str,
        when_full: WhenFull,
        limit: int,
        filters: Sequence[tuple[int, str]],
        rights: Rights,
        schemas: Mapping[str, EventType],
    ) -> DurableSink:
        """Have a durable sink that was kept, with its filters by number, and its user's rights."""
        sink = self._sinks[name] = DurableSink(name, when_full, limit, self._changed)
        for number, text in filters:
            self._all.add(sink, number, text, schemas, again=True, rights=rights)
        return sink

    @property
    def facts(self) -> Sequence[Mapping[str, Any]]:
        """The durable sinks, as plain data."""
        return [
            {
                "name": one.name,
                "filters": [text for _, text in one.filters],
                "user": one.rights.user,
                "clients": len(one.attached),
                "queued": one.queued + one.held,
                "given": sum(len(given) for own in one.attached.values() for given in own.given),
                "last": one.last,
                "acknowledged": one.acknowledged,
                "dropped": one.dropped,
            }
            for one in self._sinks.values()
        ]


def _check_owner(sink: DurableSink, rights: Rights) -> None:
    if rights.user != sink.rights.user:
        reason = f"durable sink {sink.name!r} is another user's than {rights.user!r}"
        raise Refusal(Code.NOT_ALLOWED, reason)


def _first(parcel: Parcel) -> int:
    assert isinstance(parcel, Numbered)
    return parcel.first


def _told_to(attachment: Attachment, delivery: Delivery, taken: Sequence[Numbered]) -> Delivery:
    """A delivery as a client is to see it: by its own numbers of the subscriptions."""
    own = attachment.numbers.items()
    numbers: tuple[SubscriptionNumbers, ...] = tuple(
        tuple(told for told, one in own if one in each) for each in delivery.subscriptions
    )
    last, again = taken[-1].last, taken[0].again
    return structs.replace(delivery, subscriptions=numbers, number=last, again=again)

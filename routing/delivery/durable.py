"""Durable sinks: sinks that stay when their clients go, and forget nothing that was not
acknowledged.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec import structs

from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, Event
from routing.delivery.delivery_batch import DeliveryBatch, select
from routing.delivery.shared import Attachment, SharedSink
from routing.delivery.subscriptions import Interest
from routing.effects import Peer
from routing.messages import Act, Delivery, Nack, Subscribe, WhenFull
from routing.number_set import NumberRun, NumberSet
from routing.order import greatest_time, least_time
from routing.permission import EVERY_TYPE, allowed

DEAD = ".dead"
"""The end of the name of a sink of dead letters, behind that of the sink that they are of."""
KEY_PREFIX = b"durable/"
"""Of the keys of durable sinks, where others have the peer of their link."""
Handed = tuple[str, int]
"""A broker of a hand-over, and the number of the attempt."""
NOBODY: Handed = ("", 0)
WINDOW = 8_192
"""Events of a queue that are in memory, about: the first ones. Others are in the store alone."""
BEYOND_MAX = 1_024
"""Runs of numbers that are kept of what is acknowledged beyond events that are not."""


class Numbered(DeliveryBatch, frozen=True, eq=False, gc=False):
    """A delivery batch whose events have the numbers ``first`` to ``last``, all of them unless some
    were dropped in between. ``again``: a client had it before. ``at``: when it was queued, in
    microseconds of the broker's clock. ``size``: its bytes in the store.
    """

    first: int = 0
    last: int = 0
    again: bool = False
    at: int = 0
    size: int = 0

    @property
    def low(self) -> int:
        """The number of the first event: where some were dropped the last ones stay."""
        return self.last - self.events + 1

    @classmethod
    def from_(cls, delivery_batch: DeliveryBatch, first: int) -> Numbered:
        """A delivery batch whose first event has this number."""
        return cls(
            delivery_batch.delivery, delivery_batch.events, first, first + delivery_batch.events - 1
        )

    def cut(self, events: int) -> tuple[Numbered, Numbered]:
        """The first ``events`` and the rest, neither of them empty."""
        head, rest = super().cut(events)
        middle = self.last - rest.events
        part = self.size * head.events // self.events
        return (
            self._part(head, self.first, middle, part),
            self._part(rest, middle + 1, self.last, self.size - part),
        )

    def without(self, number: int) -> Numbered | None:
        """The delivery batch without this subscription, which wants none of its events alone: the
        others keep their numbers.
        """
        left = super().without(number)
        return None if left is None else self._part(left, self.first, self.last, self.size)

    def pieces(self, done: NumberSet) -> Iterator[Numbered]:
        """The events whose numbers are not done with, in pieces without a gap."""
        rest = self
        for first, last in done.gaps(self.low, self.last):
            if rest.low < first:
                rest = rest.cut(first - rest.low)[1]
            piece = rest
            if last < rest.last:
                piece, rest = rest.cut(last - rest.low + 1)
            yield piece

    def _part(self, delivery_batch: DeliveryBatch, first: int, last: int, size: int) -> Numbered:
        return Numbered(
            delivery_batch.delivery, delivery_batch.events, first, last, self.again, self.at, size
        )


class QueueBounds(NamedTuple):
    """The bounds of a durable sink's queue: ``events``, ``bytes`` in the store and the ``age_s`` of
    an event (None: any), and its choice. Where it has too many events, or too many bytes in the
    store, the sources wait or the oldest are dropped, as was chosen; an event that has waited
    longer than its age may be is dropped in any case. What is dropped is counted, and said with the
    next delivery, also after a restart and at another broker; said twice where a broker is killed
    right then.
    """

    when_full: WhenFull
    events: int
    bytes: int | None = None
    age_s: float | None = None

    def agree(self, message: Subscribe) -> bool:
        """Whether a client that asks so gets the queue that there is."""
        return (
            (message.when_full, message.limit) == (self.when_full, self.events)
            and message.limit_bytes in (0, self.bytes)
            and message.limit_age_s in (0, self.age_s)
        )

    def __str__(self) -> str:
        size = "" if self.bytes is None else f", {self.bytes} bytes"
        age = "" if self.age_s is None else f", {self.age_s:g} s"
        return f"{self.when_full.value} with {self.events} events{size}{age}"


class SinkKeeper(Protocol):
    """The store of durable sinks, as they need it."""

    @property
    def now(self) -> float:
        """The seconds of the broker's clock."""

    @property
    def elsewhere(self) -> Mapping[str, str]:
        """The durable sinks of other brokers: their brokers, by name."""

    @property
    def brokers(self) -> Collection[str]:
        """The other brokers within reach."""

    def check_room(self) -> None:
        """Refusal while nothing more is kept."""

    def note(self, sink: DurableSink) -> None:
        """A sink has something to be kept."""

    def begin(self, sink: DurableSink) -> None:
        """A sink is made: nothing is to be kept of another one of its name."""

    def forget(self, sink: DurableSink) -> None:
        """A sink is no more."""

    def read(self, name: str, after: int) -> Sequence[Numbered]:
        """The next few records of a sink's queue, in order, the first behind the one whose first
        event has a number (0: the first of all); none where none is kept.
        """


@dataclass(slots=True, eq=False)
class DurableClient(Attachment):
    """A client of a durable sink: what it was ``given`` of which it has not acknowledged all, in
    the order of numbers.
    """

    given: list[Numbered] = field(default_factory=list)

    def give(self, taken: Iterable[Numbered]) -> None:
        """The client is given these."""
        for one in taken:
            insort(self.given, one, key=_last)


class DurableSink(SharedSink[DurableClient]):
    """One durable sink.

    It is found by its name. Clients attach to it, each with credit of its own, and each event goes
    to one of them. Its events are numbered from 1 on, in the order of delivery. An event stays
    until a client acknowledges it. Fires 1 to 5 were given to billing, which acknowledged 1 to 2
    and 4, and died: the next client gets 3 and 5 again, then 6. So it does after a restart. What
    was acknowledged alone is known as far as it has BEYOND_MAX runs at most: behind them all comes
    again, after a restart and where a client gives events back.
    """

    def __init__(self, name: str, bounds: QueueBounds, keeper: SinkKeeper) -> None:
        super().__init__(KEY_PREFIX + name.encode(), name, bounds.when_full, bounds.events)
        self.is_fed = not name.endswith(DEAD)
        self.bounds = bounds
        self.filters_made = 0
        """How many filters it has ever had: their numbers are never used again, since what is in
        the store bears them."""
        self.last = 0
        """The number of the last event that was queued."""
        self.kept = 0
        """The number up to which the store has them, and they may leave."""
        self.floor = TIME_MIN
        """Composite events before it were queued before a restart."""
        self._found_to = TIME_MIN
        """The time behind the composite events that were queued once all sources had closed."""
        self.heir: Handed = NOBODY
        """The broker that takes the sink over, and the attempt; nothing of it leaves any more."""
        self.keeps_all = False
        """Whether nothing is dropped for now: the heir is sent what is queued as it was when the
        sink was given up, and would not hear of it."""
        self.origin: Handed = NOBODY
        """The broker that it was taken over from, and the attempt."""
        self.bytes = 0
        """Bytes in the store of what is queued."""
        self.stored_bytes = 0
        """Bytes in the store of all its records."""
        self._keeper = keeper
        self._new: list[Numbered] = []
        """Delivery batches that were queued since ``take_new``."""
        self._records: deque[tuple[int, int, int]] = deque()
        """Of the records that are, or were, in memory and are not done with: the first and last
        number, and the bytes."""
        self._here = 0
        """Events of the queue that are in memory."""
        self._recorded = 0
        """The number of the last event that ``keep`` was told."""
        self._beyond = 0
        """The first number that is in the store alone; 0: none is."""
        self._read_to = 0
        """The first number of the last record that is, or was, in memory."""
        self._known_to = 0
        """The number up to which clients may have had events before a restart."""
        self._done = NumberSet()
        """Numbers that are not to come again: acknowledged, or dropped."""
        self._later: list[tuple[float, int, Numbered]] = []
        """Events that were given back, from when on they come again, and their first numbers."""
        self._nacks: dict[int, int] = {}
        """How often events were given back, by number."""
        self._taken: list[Numbered] = []

    def note(self) -> None:
        """Have the sink kept as it is now."""
        self._keeper.note(self)

    def end(self) -> None:
        """Have the sink forgotten."""
        self._keeper.forget(self)

    @property
    def is_told(self) -> bool:
        """Whether all that was queued has been given to the store."""
        return not self._new

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

    def attach(self, peer: Peer) -> DurableClient:
        """A client is there, or has been."""
        return self.attached.setdefault(peer, DurableClient(peer))

    def detach(self, peer: Peer) -> None:
        """A client has gone: what it has not acknowledged comes again, marked so."""
        self._forget_done()
        gone = self.attached.pop(peer)
        left = itertools.chain.from_iterable(map(self._wanted, gone.given))
        again = [structs.replace(one, again=True) for one in left]
        for one in again:
            self._count(one, 1)
        self._come_again(again)

    def acknowledge(self, peer: Peer, first: int, last: int) -> int:
        """A client has dealt with the events of these numbers, as far as it was given them; how
        many that is, but for those of which it has said so before. An acknowledgement says nothing
        of numbers that it does not name.
        """
        given = self.attached[peer].given
        begin, end = bisect_left(given, first, key=_last), bisect_right(given, last, key=_low)
        named = given[begin:end]
        events = sum(self._done.add(max(first, one.low), min(last, one.last)) for one in named)
        if events:
            given[begin:end] = [one for one in named if not self._done.has_all(one.low, one.last)]
            self.note()
        return events

    def take_back(self, peer: Peer, nack: Nack) -> Sequence[Numbered]:
        """A client gives events back, as far as it has them; gives those that have been given as
        often as they may be. These come again after a time, which is forgotten at a restart; given
        as often as they may be, they move to the dead letters.
        """
        self._forget_done()
        given, first, last = self.attached[peer].given, nack.first, nack.last
        begin, end = bisect_left(given, first, key=_last), bisect_right(given, last, key=_low)
        named, others = given[begin:end], NumberSet(((0, first - 1), (last + 1, self.last)))
        back = [one for whole in named for one in whole.pieces(others)]
        rest = [one for whole in named for one in whole.pieces(NumberSet(((first, last),)))]
        given[begin:end] = [one for one in rest if not self._done.has_all(one.low, one.last)]
        living, dead = NumberSet(), NumberSet()
        for number in (n for one in back for n in range(one.low, one.last + 1)):
            self._nacks[number] = count = self._nacks.get(number, 0) + 1
            (dead if 0 < nack.deliveries_max <= count else living).add(number, number)
        open_ones = [left for one in back for left in self._wanted(one)]
        due_at = self._keeper.now + nack.delay_s
        self.put_off((left for one in open_ones for left in one.pieces(dead)), due_at)
        return [left for one in open_ones for left in one.pieces(living)]

    def _forget_done(self) -> None:
        """Know of what is acknowledged as much as is kept: what comes again is in few pieces, be
        each second one of many events dealt with.
        """
        if self._done.count > BEYOND_MAX + 1:
            self._done = NumberSet(((1, self.acknowledged), *self.beyond))

    def put_off(self, events: Iterable[Numbered], due_at: float) -> None:
        """Have events come again, from a time on."""
        for one in events:
            self._count(one, 1)
            insort(self._later, (due_at, one.low, structs.replace(one, again=True)), key=_due)

    @property
    def due_at(self) -> float:
        """When the next of the events that were given back comes again; infinite for none."""
        return self._later[0][0] if self._later else math.inf

    def _come_again(self, again: Iterable[Numbered]) -> None:
        """Have events, which are counted, in the queue again."""
        if again:
            self._queue = deque(sorted((*again, *self._queue), key=_first))

    def take_due(self, now: float) -> None:
        """Queue what was put off until now."""
        due = bisect_right(self._later, now, key=_due)
        self._come_again([one for _, _, one in self._later[:due]])
        del self._later[:due]

    def move(self, events: Iterable[Numbered], to: DurableSink) -> None:
        """Have events be another sink's: dealt with here, and queued there, with new numbers."""
        for one in events:
            self._done.add(one.low, one.last)
            to.offer(one)
        self.note()

    def move_all(self, to: DurableSink) -> int:
        """Move all that waits; gives how many events that were."""
        before = to.last
        while self._has_next():
            self._pop(self._queue[0].events)
            taken, self._taken = self._taken, []
            self.move(taken, to)
        return to.last - before

    # --- what is queued, and goes ---

    def offer(self, delivery_batch: DeliveryBatch) -> None:
        """Queue events that are due, with the next numbers; ``keep`` follows."""
        numbered = Numbered.from_(delivery_batch, self.last + 1)
        self.last = numbered.last
        self._new.append(numbered)
        self.queued += numbered.events
        self.note()

    def take_new(self) -> Sequence[Numbered]:
        """Delivery batches that were queued since the last call."""
        new, self._new = self._new, []
        return new

    def keep(self, delivery_batch: Numbered) -> None:
        """Events that are new are one record in the store, of the delivery batch's size. Events
        leave once that is kept with what they were made from (routing.network.brokers.journal):
        else their numbers might mean other events when a power cut has undone it.
        """
        self.stored_bytes += delivery_batch.size
        self._recorded = delivery_batch.last
        if self._beyond or self._here >= WINDOW:
            self._beyond = self._beyond or delivery_batch.first
            self.bytes += delivery_batch.size
            return
        self.queued -= delivery_batch.events  # counted when they were offered
        self._enter(delivery_batch)

    def _enter(self, record: Numbered) -> None:
        """Have the next record in memory, as far as it is still to be delivered."""
        self._records.append((record.first, record.last, record.size))
        self._read_to = record.first
        for left in self._wanted(record):
            delivery_batch = structs.replace(left, again=record.last <= self._known_to)
            self._queue.append(delivery_batch)
            self._count(delivery_batch, 1)

    def _count(self, delivery_batch: Numbered, sign: int) -> None:
        self.queued += sign * delivery_batch.events
        self._here += sign * delivery_batch.events
        self.bytes += sign * delivery_batch.size

    def _read(self) -> None:
        """Read what follows in the store, where there is room for it: billing is away for a million
        Fires, 1 to 8,192 are in memory, and when they have left 8,193 to 16,384 are read.
        """
        while self._beyond and self._here < WINDOW // 2 and self._beyond <= self.kept:
            records = self._keeper.read(self.name, self._read_to)
            if not records:  # a repair of the store has lost the last of them
                self.queued -= self._done.missing(self._beyond, self._recorded)
                self._beyond = 0
            for record in records:
                if record.first > self.kept:
                    return  # it is about to be told that these are kept
                # and what a repair has lost before
                self.queued -= self._done.missing(self._beyond, record.last)
                self.bytes -= record.size
                self._enter(record)
                self._beyond = record.last + 1 if record.last < self._recorded else 0

    def _wanted(self, some: Numbered) -> Iterable[Numbered]:
        """Leave out the events that are done with, that no subscription asks for any more, or that
        the user may not read any more: these are done with, and no others get their numbers. Temps
        of two areas wait, and the user may read those of one by now: they come.
        """
        there, filters = {*self.interests.numbers}, self.rights.filters
        told = {*itertools.chain.from_iterable(some.subscriptions)}
        if told - there or any(filters(batch.type.name) is not None for batch in some.batches):
            masks = [
                allowed(self.rights, Act.SUBSCRIBE, batch) & (not there.isdisjoint(numbers))
                for batch, numbers in zip(some.batches, some.subscriptions, strict=True)
            ]
            for place in np.flatnonzero(~np.concatenate(masks)[some.places]).tolist():
                self._done.add(some.low + place, some.low + place)
        pieces: Iterable[Any] = some.pieces(self._done)
        for number in told - there:
            pieces = [piece.without(number) for piece in pieces]
        return pieces

    def forget(self, number: int) -> None:
        """A subscription has ended, and nothing more comes for it; or its user may read less by it.
        What is not in memory is left out when it is.
        """
        self.take_due(math.inf)
        queue, self._queue = self._queue, deque()
        for one in map(_numbered, queue):
            self._count(one, -1)
            for left in self._wanted(one):
                self._queue.append(left)
                self._count(left, 1)
        if number not in self.interests:
            self.held.forget(number)

    def offer_found(self, delivery_batch: DeliveryBatch) -> None:
        """Queue composite events that are due and were not queued before a restart."""
        if self.floor > TIME_MIN and any(
            least_time(one) < self.floor for one in delivery_batch.batches
        ):
            times = np.concatenate([batch.time for batch in delivery_batch.batches])
            places = delivery_batch.places
            left = places[times[places] >= self.floor]
            if not len(left):
                return
            delivery_batch = select(
                delivery_batch.batches, delivery_batch.subscriptions, left, delivery_batch.late
            )
        if self.mark == TIME_MAX:
            last = max(map(greatest_time, delivery_batch.batches))
            self._found_to = max(self._found_to, last + 1)
        super().offer_found(delivery_batch)

    def take(self, events_max: int) -> Delivery | None:
        """The next delivery, for a client whose turn it is and that has given credit."""
        while self.has_old:
            self._drop(self._queue[0].events)
        self._read()
        if not self._queue or _first(self._queue[0]) > self.kept:
            return None
        return super().take(events_max)

    def _given_to(self, attachment: DurableClient, delivery: Delivery) -> Delivery:
        taken, self._taken = self._taken, []
        attachment.give(taken)
        if delivery.dropped:
            self.note()
        told = super()._given_to(attachment, delivery)
        return structs.replace(told, number=taken[-1].last, again=taken[0].again)

    def _pop(self, events_max: int) -> Numbered:
        delivery_batch = _numbered(super()._pop(events_max))
        self._here -= delivery_batch.events
        self.bytes -= delivery_batch.size
        self._taken.append(delivery_batch)
        return delivery_batch

    def _put_back(self, delivery_batch: DeliveryBatch) -> None:
        self._queue.appendleft(delivery_batch)
        self._count(_numbered(delivery_batch), 1)

    def _joined(self, first: DeliveryBatch, size: int, events_max: int) -> DeliveryBatch:
        self._taken[0] = _numbered(first)  # it may have been cut, being too long for a message
        return super()._joined(first, size, events_max)

    def _goes_with(self, first: DeliveryBatch, following: DeliveryBatch) -> bool:
        one, other = _numbered(first), _numbered(following)
        is_alike = one.late == other.late and one.again == other.again
        is_next = other.low == self._taken[-1].last + 1  # a message has numbers without a gap
        return is_alike and is_next and other.first <= self.kept

    # --- bounds ---

    @property
    def is_over(self) -> bool:
        """Whether its bounds are exceeded, so that what it chose is to be done."""
        is_long = self.bounds.bytes is not None and self.bytes > self.bounds.bytes
        return (self.excess > 0 or is_long) and not self.keeps_all

    @property
    def full_from(self) -> int | None:
        """As any sink's; all its sources wait, too, where its bytes are as many as they may be."""
        most = self.bounds.bytes
        if self.when_full is WhenFull.BLOCK and most is not None and self.bytes >= most:
            return TIME_MIN
        return super().full_from

    def drop_oldest(self) -> None:
        """Drop what exceeds the bounds, the first in the order of delivery: of what is not in the
        store yet, nothing.
        """
        while self.is_over and self._has_next():
            self._drop(self._surplus)
        if self.excess > 0 and not (self._queue or self._beyond or self._new or self._later):
            dropped = self.excess
            self.held.drop(dropped)
            self._note_dropped(dropped)

    @property
    def has_old(self) -> bool:
        """Whether its next event has waited for too long."""
        age_s = self.bounds.age_s
        if age_s is None or self.keeps_all or not self._has_next():
            return False
        return _numbered(self._queue[0]).at < (self._keeper.now - age_s) * MICROSECONDS

    def _has_next(self) -> bool:
        """Whether the next event is, or can be read to be, in memory."""
        if not self._queue:
            self._read()
        return bool(self._queue)

    def _drop(self, most: int) -> None:
        """Drop some of the first delivery batch, so many events at most."""
        dropped = self._pop(most)
        self._done.add(dropped.low, dropped.last)
        self._note_dropped(dropped.events)
        self._taken.clear()
        self.note()

    def waiting(self, most: int) -> Sequence[tuple[int, Event]]:
        """The next events that wait, so many at most, with their numbers; none is taken."""
        self._read()
        found: list[tuple[int, Event]] = []
        for delivery_batch in map(_numbered, self._queue):
            room, first = most - len(found), delivery_batch.low
            head = delivery_batch if room >= len(delivery_batch) else delivery_batch.cut(room)[0]
            events = [event for batch in head.batches for event in batch.events()]
            found += [(first + n, events[place]) for n, place in enumerate(head.places.tolist())]
            if len(found) == most:
                break
        return found

    # --- what is kept ---

    @property
    def acknowledged(self) -> int:
        """The number up to which nothing is to come again."""
        heads = (one.given[0] for one in self.attached.values() if one.given)
        firsts = [next(self._done.gaps(one.low, one.last))[0] for one in heads]
        firsts += [first for _, first, _ in self._later]
        if self._queue:
            firsts.append(_first(self._queue[0]))
        elif self._beyond:
            firsts.append(self._beyond)
        elif self._new:
            firsts.append(self._new[0].first)
        return min(firsts) - 1 if firsts else self.last

    @property
    def beyond(self) -> Iterator[NumberRun]:
        """The runs behind ``acknowledged`` that are not to come again, as many as are kept."""
        return itertools.islice(self._done.within(self.acknowledged + 1, self.last), BEYOND_MAX)

    @property
    def acknowledged_beyond(self) -> int:
        """How many numbers behind ``acknowledged`` are not to come again."""
        first = self.acknowledged + 1
        return self.last - first + 1 - self._done.missing(first, self.last)

    @property
    def given(self) -> int:
        """How many events clients were given and have not acknowledged."""
        given = (given for one in self.attached.values() for given in one.given)
        return sum(self._done.missing(one.low, one.last) for one in given)

    def take_done(self) -> Iterator[int]:
        """The first numbers of records of which nothing is to come again."""
        acknowledged = self.acknowledged
        self._done.add(1, acknowledged)
        if self._nacks:
            self._nacks = {n: nacks for n, nacks in self._nacks.items() if n > acknowledged}
        while self._records and self._records[0][1] <= acknowledged:
            first, _, size = self._records.popleft()
            self.stored_bytes -= size
            yield first

    def complete_to(
        self, complete_to: Callable[[Sequence[Any]], int], reached: Callable[[Any], int]
    ) -> int:
        """Up to which time all composite events are queued: as far as its rules have come,
        and where their sources have all closed, as far as these had ``reached`` before, or as was
        found, since other sources may come.
        """
        if self.held.events:
            return max(self.floor, self.mark)
        found = complete_to(self.rules) if self.rules else TIME_MIN
        if found == TIME_MAX:
            found = max(self._found_to, *map(reached, self.rules))
        return max(self.floor, found)

    def recall(
        self,
        last: int,
        acknowledged: int,
        beyond: Iterable[NumberRun],
        floor: int,
        size: int,
        dropped: int = 0,
        untold: int = 0,
    ) -> None:
        """Go on from what was kept: the last number, the one up to which nothing is to come again,
        the runs ``beyond`` it, the time as in ``complete_to``, the bytes of its records, and how
        many events were dropped. What is queued is read when it is needed; clients may have had it.
        """
        self.dropped, self.untold = dropped, untold
        self.last = self.kept = self._recorded = self._known_to = last
        self._done, self.floor = NumberSet(((1, acknowledged), *beyond)), floor
        self.bytes = self.stored_bytes = size
        self.queued = self._done.missing(1, last)
        self._beyond = acknowledged + 1 if acknowledged < last else 0


def _numbered(delivery_batch: DeliveryBatch) -> Numbered:
    assert isinstance(delivery_batch, Numbered), "it is of the queue of a durable sink"
    return delivery_batch


def _first(delivery_batch: DeliveryBatch) -> int:
    return _numbered(delivery_batch).first


def _due(later: tuple[float, int, Numbered]) -> float:
    return later[0]


def _low(numbered: Numbered) -> int:
    return numbered.low


def _last(numbered: Numbered) -> int:
    return numbered.last

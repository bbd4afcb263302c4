"""The sinks, each with its own bounded queue: a slow one slows nobody who did not ask for it.

Law 1: a primitive event is due at once, in the order of its arrival; a composite event when the
marks of all rules that define the sink's types have passed it (:mod:`routing.delivery.holdback`). A
rule whose sources have all closed holds nothing back.

Law 2: what is due goes out as far as the sink's credit reaches; the rest waits in its queue. When
queue and held-back events exceed the sink's limit, its own choice decides: ``drop-oldest`` drops
and counts, ``disconnect`` ends it, and ``block`` keeps its sources from getting more credit
(:mod:`routing.serving.credit`), so its limit may be exceeded by what they may still have under way.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MAX, TIME_MIN, EventBatch, EventType, Int64s
from routing.config import NodeConfig
from routing.delivery.delivery_batch import DeliveryBatch, SubscriptionNumbers, joined_once
from routing.delivery.holdback import HoldBack
from routing.delivery.merged_detections import MergedDetections
from routing.delivery.selection import Pattern
from routing.delivery.subscriber_index import SubscriberIndex
from routing.delivery.subscriptions import (
    Interest,
    Interests,
    delivery_batch_of,
    interest,
    interest_in,
)
from routing.deployment import Deployed, Deployments
from routing.effects import Peer
from routing.errors import Refusal
from routing.messages import EVERYTHING, Code, Delivery, Rights, Subscribe, WhenFull
from routing.order import greatest_time
from routing.permission import EVERY_TYPE
from routing.wire.composites import Encoded
from routing.wire.extent import EXTENT_MAX, extent_of
from rules.engine.engine import Detections
from rules.engine.order.intervals import is_told, told
from rules.pattern import TIMER

WORK_MAX = 100_000
"""Steps of a tenth of a microsecond that an event may be to the filters of a user."""
JOINED_BATCHES_MAX = 64
"""Batches that waited in a queue and go out in one Delivery."""


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
        if self.when_full is not WhenFull.BLOCK or self.excess < 0:
            return None
        return TIME_MIN if self.queued >= self.limit else min(self.mark + 1, TIME_MAX)

    @property
    def is_over(self) -> bool:
        """Whether its bounds are exceeded, so that what it chose is to be done."""
        return self.queued + self.held.events > self.limit

    def offer(self, delivery_batch: DeliveryBatch) -> None:
        """Queue events that are due."""
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

    def hold(self, delivery_batch: DeliveryBatch, places: Int64s) -> None:
        """Hold composite events back, with the places of their rules. ``release`` must follow."""
        self.held.hold(delivery_batch, places)

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
        self.held.forget(number)

    def withdraw(self, due: Mapping[str, int]) -> None:
        """Drop held events that will come again: by source, those from a time on."""
        self.held.withdraw(due)

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
        excess = left = self.excess
        while left > 0 and self._queue:
            left -= len(self._pop(left))
        if left > 0:
            self.held.drop(left)
        self._note_dropped(excess)

    def _note_dropped(self, events: int) -> None:
        self.dropped += events
        self.untold += events

    def _pop(self, events_max: int) -> DeliveryBatch:
        delivery_batch = self._queue.popleft()
        if delivery_batch.events > events_max:
            delivery_batch, rest = delivery_batch.cut(events_max)
            self._queue.appendleft(rest)
        self.queued -= delivery_batch.events
        return delivery_batch

    def _put_back(self, delivery_batch: DeliveryBatch) -> None:
        """Have a delivery batch, or part of one, at the head of the queue again."""
        self._queue.appendleft(delivery_batch)
        self.queued += delivery_batch.events


def _as_told(found: DeliveryBatch) -> DeliveryBatch:
    """Composite events as clients are told of them."""
    batches = told(found.batches)
    if all(map(operator.is_, batches, found.batches)):
        return found
    return DeliveryBatch.of(batches, found.subscriptions, found.order, found.late)


class Sinks:
    """All sinks, and what is offered to them."""

    def __init__(self, config: NodeConfig, deployments: Deployments) -> None:
        self.config = config
        self._deployments = deployments
        self._sinks: dict[Peer, Sink] = {}
        self._indices: dict[str, SubscriberIndex[Sink]] = {}
        self._composite: dict[Peer, Sink] = {}
        self._touched: dict[Peer, Sink] = {}
        self.version = 0
        """Counts up whenever subscriptions, types or rules have changed."""

    def configure(self, config: NodeConfig) -> None:
        """Take over what is decided by it from now on."""
        self.config = config

    def __iter__(self) -> Iterator[Sink]:
        return iter(self._sinks.values())

    def find(self, peer: Peer) -> Sink | None:
        """The sink at that link, if it has subscribed."""
        return self._sinks.get(peer)

    def subscribe(
        self,
        peer: Peer,
        name: str,
        message: Subscribe,
        schemas: Mapping[str, EventType],
        rights: Rights = EVERYTHING,
    ) -> Interest:
        """Add a subscription; Refusal, with nothing changed, when it is refused."""
        sink = self._sinks.get(peer) or Sink(peer, name, message.when_full, message.limit)
        if (sink.when_full, sink.limit) != (message.when_full, message.limit):
            raise Refusal(
                Code.IN_USE,
                f"this client's queue is already {sink.when_full.value} with {sink.limit} events",
            )
        self.check_limit(message.limit)
        if message.number in sink.interests:
            raise Refusal(Code.IN_USE, f"subscription {message.number} exists")
        asked = message.number, message.filter
        return self.add(sink, *asked, schemas, again=message.again, rights=rights)

    def check_limit(self, limit: int) -> None:
        """Refusal for a queue that is longer than any may be."""
        queue_max = self.config.queue_events_max
        if limit > queue_max:
            raise Refusal(Code.LIMIT, f"a queue of {limit} events (queue_events_max: {queue_max})")

    def add(
        self,
        sink: Sink,
        number: int,
        text: str,
        schemas: Mapping[str, EventType],
        *,
        again: bool = False,
        rights: Rights = EVERYTHING,
    ) -> Interest:
        """Add a subscription of a sink; Refusal, with nothing changed, when it is refused."""
        if len(sink.interests) >= self.config.subscriptions_max:
            bound = f"{self.config.subscriptions_max} subscriptions (subscriptions_max)"
            raise Refusal(Code.LIMIT, f"more than {bound}")
        added = interest(number, text, schemas, again=again, rights=rights)
        if not again:
            self._check_work(sink, added, rights.user)
        self._sinks[sink.peer] = sink
        sink.rights = rights
        return self._begin(sink, added, schemas)

    def _check_work(self, sink: Sink, added: Interest, user: str) -> None:
        """Refusal for a filter that is too much for one user, or one client without a user, beside
        those that it has: each event would be that work before anybody gets it.
        """
        own = [sink]
        if user:
            own = [one for one in self._sinks.values() if one.is_fed and one.rights.user == user]
        work = added.work + sum(one.interests.work for one in own)
        if added.work and work > WORK_MAX:
            whose = f"filters of user {user!r}" if user else "filters of a client"
            raise Refusal(
                Code.LIMIT,
                f"{whose} that would take {work:,} steps for an event: more than {WORK_MAX:,}; "
                "comparisons with constants, joined by and, take none",
            )

    def _begin(self, sink: Sink, added: Interest, schemas: Mapping[str, EventType]) -> Interest:
        """Begin a subscription, and give it, or the first of its parts."""
        parts = [added]
        if added.text == EVERY_TYPE:
            sink.interests.add(added)
            parts = self._parts(sink, added.number, schemas.values())
        for one in parts:
            self._enter(sink, one)
        self._follow(sink)
        return parts[0] if parts else added

    @staticmethod
    def _parts(sink: Sink, number: int, schemas: Iterable[EventType]) -> list[Interest]:
        """The parts of a subscription to all types that the sink may read."""
        found = (interest_in(number, one, sink.rights) for one in schemas)
        return [one for one in found if one is not None]

    def copy(self, sink: Sink, to: Sink) -> None:
        """Have a sink that is not fed subscribe to what another does."""
        self._sinks[to.peer], to.rights = to, sink.rights
        for number in sink.interests.of_all:
            to.interests.add(Interest(number, EVERY_TYPE, EVERY_TYPE, None))
        for part in sink.interests:
            to.interests.add(part)

    def change_rights(
        self, peer: Peer, rights: Rights, schemas: Mapping[str, EventType]
    ) -> list[tuple[int, str]]:
        """Other rights hold for a sink: what these narrow otherwise begins anew, what they do not
        allow ends. Gives the numbers of these, and why.
        """
        sink, ended = self._sinks[peer], []
        sink.rights = rights
        for number in sink.interests.numbers:
            asked = sink.interests.asked(number)
            try:
                now = interest(number, asked, schemas, again=True, rights=rights)
            except Refusal as refusal:
                ended.append((number, str(refusal)))
                self.unsubscribe(peer, number)
                continue
            if now.text == EVERY_TYPE or now.text != sink.interests.text(number):
                self.unsubscribe(peer, number)
                self._begin(sink, now, schemas)
        return ended

    def _enter(self, sink: Sink, added: Interest) -> None:
        """Add what asks for events of one type."""
        sink.interests.add(added)
        if not sink.is_fed:
            return
        index = self._indices.get(added.type_name)
        if index is None:
            index = self._indices[added.type_name] = SubscriberIndex(self.config.matching)
        index.add(sink, added)

    def unsubscribe(self, peer: Peer, number: int) -> None:
        """End a subscription; Refusal when there is none of that number."""
        sink = self._sinks.get(peer)
        if sink is None or number not in sink.interests:
            raise Refusal(Code.UNKNOWN, f"there is no subscription {number}")
        sink.forget(number)
        self._end(sink, number)
        self._follow(sink)

    def check(self, schemas: Mapping[str, EventType]) -> list[tuple[Sink, Interest]]:
        """Types have become known, are others, or were forgotten: check subscriptions again.

        Gives those that are paused now, not fitting their type, and those that go on.
        """
        news = []
        for sink in self._sinks.values():
            for one in list(sink.interests):
                if schemas.get(one.type_name) == one.schema:
                    continue
                now = one.taken(schemas)
                sink.interests.add(now)
                if sink.is_fed:
                    self._indices[one.type_name].forget()
                if now.problem != one.problem:
                    news.append((sink, now))
            for number in sink.interests.of_all:
                known = sink.interests.types_of(number)
                new = [one for name, one in schemas.items() if name not in known]
                for one in self._parts(sink, number, new):
                    self._enter(sink, one)
        self.index()
        return news

    def pause(self, name: str, problem: str) -> list[tuple[Sink, Interest]]:
        """Subscriptions to a type that is known no more are paused, and go on when it is known.

        Gives them; those to all types wait as they do for any type.
        """
        paused = []
        for sink in self._sinks.values():
            for one in list(sink.interests.to(name)):
                if one.schema is None and one.number not in sink.interests.of_all:
                    now = replace(one, problem=problem)
                    sink.interests.add(now)
                    paused.append((sink, now))
        return paused

    def remove(self, peer: Peer) -> None:
        """The link is gone, or its last subscription."""
        self._touched.pop(peer, None)
        sink = self._sinks.pop(peer, None)
        if sink is not None:
            for number in sink.interests.numbers:
                self._end(sink, number)
            self._composite.pop(peer, None)
            self.version += 1

    def index(self) -> None:
        """Work out anew which rules each sink follows: types or rules have changed."""
        self.version += 1
        for sink in self._sinks.values():
            self._follow(sink)

    def _follow(self, sink: Sink) -> None:
        """Work out anew which rules a sink follows: its subscriptions have changed, too."""
        self.version += 1
        names = sink.interests.type_names if sink.is_fed else ()
        sink.rules = tuple(
            deployed for name in names for deployed in self._deployments.defining(name)
        )
        needs = [self._deployments.needs(deployed.rule.name) for deployed in sink.rules]
        sink.feeds = frozenset(names).union(*needs) - {TIMER.name}
        if sink.rules:
            self._composite[sink.peer] = sink
            return
        self._composite.pop(sink.peer, None)
        if sink.mark != TIME_MAX:
            sink.mark = TIME_MAX  # nothing is left to wait for
            sink.release()
            self.touch(sink)

    def _end(self, sink: Sink, number: int) -> None:
        for ended in sink.interests.remove(number):
            if not sink.is_fed:
                continue
            index = self._indices[ended.type_name]
            index.remove(sink, ended)
            if not index:
                del self._indices[ended.type_name]

    @property
    def follow_rules(self) -> bool:
        """Whether any sink gets composite events, so that ``offer_detected`` has to be called."""
        return bool(self._composite)

    @property
    def matched(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The types whose subscriptions are matched together, by name, and how."""
        for name, index in sorted(self._indices.items()):
            if (facts := index.facts) is not None:
                yield name, facts

    def touch(self, sink: Sink) -> None:
        """Something may have to be sent to the sink."""
        self._touched[sink.peer] = sink

    @property
    def touched(self) -> Iterable[Sink]:
        """The sinks that ``take_touched`` would give."""
        return self._touched.values()

    def take_touched(self) -> list[Sink]:
        """The sinks that something may have to be sent to."""
        if not self._touched:
            return []
        touched, self._touched = self._touched, {}
        return list(touched.values())

    def offer(
        self, batches: tuple[EventBatch, ...], order: Int64s | None, late: bool = False
    ) -> None:
        """Queue published events for those who want them."""
        for sink, delivery_batch in self._wanted(batches, order, late):
            sink.offer(delivery_batch)
            self._touched[sink.peer] = sink

    def offer_detected(
        self, detections: Detections, complete_to: Callable[[Sequence[Deployed]], int]
    ) -> None:
        """Queue composite events, and what the rules' new marks release. ``complete_to``: up to
        where the composite events of all these rules are complete.
        """
        for sink in self._composite.values():
            if sink.held.events:  # else nothing asks for its mark
                sink.mark = complete_to(sink.rules)
        is_joined = isinstance(detections, MergedDetections)
        for sink, delivery_batch in self._wanted(detections.batches, detections.order):
            if not sink.held.events:
                sink.mark = complete_to(sink.rules)
            if sink.must_hold(delivery_batch, is_joined=is_joined):
                sink.hold(delivery_batch, self.places(delivery_batch.batches))
            else:
                sink.offer_found(delivery_batch)
            self._touched[sink.peer] = sink
        for sink in self._composite.values():
            # Only now, since what was just detected may come before what was held.
            if sink.held.events and sink.release():
                self.touch(sink)

    def _wanted(
        self, batches: tuple[EventBatch, ...], order: Int64s | None, late: bool = False
    ) -> list[tuple[Sink, DeliveryBatch]]:
        """The sinks that want any of the events, and what each gets."""
        wanted = []
        if len(batches) == 1:  # common
            index = self._indices.get(batches[0].type.name)
            # By subscriptions and rows (None: all): sinks that want the same share it.
            shared: dict[tuple[SubscriptionNumbers, bytes | None], DeliveryBatch | None] = {}
            for sink, patterns in () if index is None else index.match(batches[0]):
                numbers, rows = patterns[0]
                key = numbers, None if rows is None else rows.tobytes()
                if len(patterns) > 1:
                    delivery_batch = delivery_batch_of(batches, (patterns,), order, late)
                elif (delivery_batch := shared.get(key)) is None:
                    delivery_batch = shared[key] = delivery_batch_of(
                        batches, (patterns,), order, late
                    )
                if delivery_batch is not None:
                    wanted.append((sink, delivery_batch))
            return wanted
        found: dict[Sink, list[Sequence[Pattern]]] = {}
        for place, batch in enumerate(batches):
            index = self._indices.get(batch.type.name)
            for sink, patterns in () if index is None else index.match(batch):
                found.setdefault(sink, [()] * len(batches))[place] = patterns
        for sink, chosen in found.items():
            delivery_batch = delivery_batch_of(batches, chosen, order, late)
            if delivery_batch is not None:
                wanted.append((sink, delivery_batch))
        return wanted

    def places(self, batches: Iterable[EventBatch]) -> Int64s:
        """The places of the events' rules (E4), one row an event."""
        columns = []
        for batch in batches:
            source = batch.ids.source
            places = np.array([self._place(name) for name in source.values], np.int64)
            columns.append(places[source.codes])
        return np.concatenate(columns)

    def _place(self, source: str) -> tuple[int, int]:
        # A dictionary may name rules that are gone and that none of its events is from.
        return self._deployments.order(source.removeprefix(RULE_SOURCE))

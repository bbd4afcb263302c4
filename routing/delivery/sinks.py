"""The sinks, each with its own bounded queue: a slow one slows nobody who did not ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MAX, EventBatch, EventType, Int64s
from routing.config import NodeConfig
from routing.delivery.delivery_batch import DeliveryBatch, SubscriptionNumbers
from routing.delivery.group import NUMBER, ClientGroup, group_key
from routing.delivery.merged_detections import MergedDetections
from routing.delivery.selection import Pattern
from routing.delivery.sink import Sink
from routing.delivery.subscriber_index import SubscriberIndex
from routing.delivery.subscriptions import (
    FilterTexts,
    Interest,
    delivery_batch_of,
    interest,
    interest_in,
)
from routing.deployment import Deployed, Deployments
from routing.effects import Peer
from routing.errors import Refusal
from routing.messages import EVERYTHING, Code, Rights, Subscribe, WhenFull
from routing.permission import EVERY_TYPE
from rules.engine.engine import Detections
from rules.patience import PATIENCE, SAID
from rules.pattern import TIMER

WORK_MAX = 100_000
"""Steps of a tenth of a microsecond that an event may be to the filters of a user."""
TURN = 16
"""Sinks of a user that are sent to before others have their turn: some 50 us each."""


class Sinks:
    """All sinks, and what is offered to them.

    A primitive event is due at once, in the order of its arrival; a composite event when the marks
    of all rules that define the sink's types have passed it (:mod:`routing.delivery.holdback`). A
    rule whose sources have all closed holds nothing back. What is due goes out as far as the sink's
    credit reaches; the rest waits in its queue. When queue and held-back events exceed the sink's
    limit, its own choice decides: ``drop-oldest`` drops and counts, ``disconnect`` ends it, and
    ``block`` keeps its sources from getting more credit (:mod:`routing.serving.credit`), so its
    limit may be exceeded by what they may still have under way.
    """

    def __init__(self, config: NodeConfig, deployments: Deployments) -> None:
        self.config = config
        self._deployments = deployments
        self._sinks: dict[Peer, Sink] = {}
        self._groups: dict[Peer, ClientGroup] = {}
        """The groups of their clients, by link."""
        self._indices: dict[str, SubscriberIndex[Sink]] = {}
        self._composite: dict[Peer, Sink] = {}
        self.touched: dict[Peer, Sink] = {}
        """The sinks that something may have to be sent to, the longest waiting first."""
        self.filters = FilterTexts()
        self.version = 0
        """Counts up whenever subscriptions, types or rules have changed."""

    def configure(self, config: NodeConfig) -> None:
        """Take over what is decided by it from now on."""
        self.config = config

    def __iter__(self) -> Iterator[Sink]:
        return iter(self._sinks.values())

    def find(self, peer: Peer) -> Sink | None:
        """The sink, or the group, of the client at a link, if it has subscribed."""
        return self._groups.get(peer) or self._sinks.get(peer)

    def subscribe(
        self,
        peer: Peer,
        name: str,
        message: Subscribe,
        schemas: Mapping[str, EventType],
        rights: Rights = EVERYTHING,
    ) -> Interest:
        """Add a subscription; Refusal, with nothing changed, when it is refused."""
        if message.group or peer in self._groups:
            return self._join(peer, message, schemas, rights)
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

    def _join(
        self, peer: Peer, message: Subscribe, schemas: Mapping[str, EventType], rights: Rights
    ) -> Interest:
        """Have a client join a group, which is made where there is none."""
        if self.find(peer) is not None:
            raise Refusal(Code.IN_USE, "a client of a group has no other subscription")
        if message.when_full is WhenFull.DISCONNECT:
            raise Refusal(Code.IN_USE, "a group blocks or drops: it has no link to end")
        self.check_limit(message.limit)
        key = group_key(message, rights.user)
        there = self._sinks.get(key)
        group = there if isinstance(there, ClientGroup) else ClientGroup(key, message)
        if not group.agrees(message):
            raise Refusal(Code.IN_USE, f"the group {group.name!r} is already {group}")
        if NUMBER in group.interests:
            added = group.interest
            self.version += 1  # so that it is confirmed as any other
        else:
            asked = NUMBER, message.filter
            added = self.add(group, *asked, schemas, again=message.again, rights=rights)
        self._groups[peer] = group
        group.attach(peer, message.number)
        self.touch(group)
        return replace(added, number=message.number)

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
        added = sink.checked(interest(number, text, schemas, again=again, rights=rights))
        if added.problem is not None and not again:
            raise Refusal(Code.BAD_FILTER, added.problem)
        # The link that it was confirmed on may not be known as lost yet, and then counts, too.
        self._check_work(sink, added, rights.user, 2 * WORK_MAX if again else WORK_MAX)
        return self._keep(sink, added, schemas, rights)

    def recall(
        self, sink: Sink, number: int, text: str, schemas: Mapping[str, EventType], rights: Rights
    ) -> None:
        """Add a subscription that was kept: bounds of new ones do not refuse it, which may be less
        than they were, or count otherwise while its type is not known.
        """
        kept = sink.checked(interest(number, text, schemas, again=True, rights=rights))
        self._keep(sink, kept, schemas, rights)

    def _keep(
        self, sink: Sink, added: Interest, schemas: Mapping[str, EventType], rights: Rights
    ) -> Interest:
        self._sinks[sink.peer] = sink
        sink.rights = rights
        return self._begin(sink, added, schemas)

    def _check_work(self, sink: Sink, added: Interest, user: str, work_max: int) -> None:
        """Refusal for a filter that is too much for one user, or one client without a user, beside
        those that it has: each event would be that work before anybody gets it.
        """
        own = [sink]
        if user:
            own = [one for one in self._sinks.values() if one.is_fed and one.rights.user == user]
        work = added.work + sum(one.interests.work for one in own)
        if added.work and work > work_max:
            whose = f"filters of user {user!r}" if user else "filters of a client"
            raise Refusal(
                Code.LIMIT,
                f"{whose} that would take {work:,} steps for an event: more than {work_max:,}; "
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
            self.filters.add(part)

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
                self._end(sink, number)
                self._begin(sink, now, schemas)
                sink.forget(number)
        return ended

    def _enter(self, sink: Sink, added: Interest) -> None:
        """Add what asks for events of one type."""
        sink.interests.add(added)
        self.filters.add(added)
        if not sink.is_fed:
            return
        index = self._indices.get(added.type_name)
        if index is None:
            index = self._indices[added.type_name] = SubscriberIndex(self.config.matching)
        index.add(sink, added)

    def unsubscribe(self, peer: Peer, number: int) -> None:
        """End a subscription; Refusal when there is none of that number."""
        group = self._groups.get(peer)
        if group is not None and number in group.attached[peer].numbers:
            self.remove(peer)
            return
        sink = self._sinks.get(peer)
        if sink is None or number not in sink.interests:
            raise Refusal(Code.UNKNOWN, f"there is no subscription {number}")
        self._end(sink, number)
        sink.forget(number)
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
                now = sink.checked(one.taken(schemas))
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

    def pause_slow(self) -> list[tuple[Sink, Interest]]:
        """Pause the subscriptions whose patterns take too long (rules.patience); gives them."""
        slow, paused = set(map(id, PATIENCE.take_paused())), []
        for sink in self._sinks.values():
            for one in [each for each in sink.interests if id(each.filter) in slow]:
                now = replace(one, filter=None, problem=SAID)
                sink.interests.add(now)
                self._indices[one.type_name].forget()
                paused.append((sink, now))
        return paused

    def remove(self, peer: Peer) -> None:
        """The link is gone, or its last subscription; a group goes with its last client."""
        group = self._groups.pop(peer, None)
        if group is not None:
            group.detach(peer)
            self.touch(group)
            if group.attached:
                return
            peer = group.peer
        self.touched.pop(peer, None)
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
        below = [self._deployments.published_below(name) for name in names]
        sink.feeds = frozenset[str]().union(*below) - {TIMER.name}
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
            self.filters.remove(ended)
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
        self.touched[sink.peer] = sink

    def take_touched(self) -> list[Sink]:
        """The sinks that are ``due``; others wait for the next call."""
        if len(self.touched) <= TURN:
            touched, self.touched = self.touched, {}
            return list(touched.values())
        due = list(self.due())
        for sink in due:
            del self.touched[sink.peer]
        return due

    def due(self) -> Iterable[Sink]:
        """The sinks that something may have to be sent to now: TURN of each user, the first."""
        if len(self.touched) <= TURN:
            return self.touched.values()
        users: dict[str, list[Sink]] = {}
        for sink in self.touched.values():
            users.setdefault(sink.rights.user, []).append(sink)
        return [one for user, own in users.items() for one in (own[:TURN] if user else own)]

    def offer(
        self, batches: tuple[EventBatch, ...], order: Int64s | None, late: bool = False
    ) -> None:
        """Queue published events for those who want them."""
        for sink, delivery_batch in self._wanted(batches, order, late):
            sink.offer(delivery_batch)
            self.touched[sink.peer] = sink

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
                sink.held.hold(delivery_batch, self.places(delivery_batch.batches))
            else:
                sink.offer_found(delivery_batch)
            self.touched[sink.peer] = sink
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

"""Posted events on their way to the broker: a publisher for each user and source."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import TypeAlias

from broker.client.address import Address
from broker.client.async_publisher import AsyncPublisher
from broker.client.outbox import Checked, Rows, checked_id
from broker.cloudevents import CloudEvent
from broker.errors import BrokerError, RefusedError
from broker.schemas import known_in
from matcher.errors import BadEvent, EventError
from matcher.model import EventBatch, EventType
from matcher.rows import inferred_type
from routing.messages import Code
from routing.outgoing import NO_TIME

SOURCES_MAX = 128
"""Publishers at a time; more than requests that are under way."""
IDLE_S = 120.0
DISORDER_S = 5.0
PATIENCE_S = 4.0
"""For so long a post waits for room, and again for the acknowledgement."""
Types: TypeAlias = Mapping[str, EventType]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many events of a post the broker has, and why it refused others: with their places among
    those that were posted, from 1, where these are known.
    """

    published: int
    refusals: Sequence[tuple[int | None, RefusedError]]


@dataclass(slots=True)
class _Writer:
    """The publisher of one source, and its types; ``disorder_s`` 0: it stamps its events."""

    publisher: AsyncPublisher | None = None
    disorder_s: float = 0.0
    types: dict[str, EventType] = field(default_factory=dict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    posts: int = 0
    """Posts that use it, or wait for their turn."""
    used_at: float = 0.0

    async def close(self) -> None:
        """Say that nothing follows."""
        publisher, self.publisher = self.publisher, None
        self.types.clear()
        if publisher is not None:
            with suppress(BrokerError):
                await publisher.close()


class Posts:
    """Publishers of posted events.

    A source of a request is a source of the network: its publisher bears its name, under the keys
    of whoever posts, so the broker decides who may publish, and drops what is posted again by
    source and id. Posts of one source are taken in turn. A publisher is closed ``IDLE_S`` after the
    last post, so that no rule waits for it.
    """

    def __init__(self) -> None:
        self._writers: dict[tuple[str, str], _Writer] = {}
        self._tending: asyncio.Task[None] | None = None

    async def publish(
        self,
        address: Address,
        user: str,
        events: Sequence[CloudEvent],
        known: Types,
        disorder_s: float | None,
    ) -> Outcome:
        """Publish events as their sources, and wait until the broker has them. ``known``: types of
        the broker, as far as they are known here; ``disorder_s``: for how long events may be late,
        if the poster says so.

        Raises BadEvent before anything is published, of the first event of a source that does not
        fit; PublishBlocked, and other BrokerErrors.

        An event without a time is stamped as it comes, and its source then promises by the clock.
        An event with a time may be up to ``DISORDER_S`` late, or as late as its poster says.
        """
        published, refusals = 0, list[tuple[int | None, RefusedError]]()
        places = range(1, len(events) + 1)
        pairs = sorted(zip(places, events, strict=True), key=lambda pair: pair[1].source)
        for source, own in groupby(pairs, key=lambda pair: pair[1].source):
            writer = self._writer(user, source)
            try:
                async with writer.turn:
                    post = _Post(writer, source, [*own], known)
                    try:
                        outcome = await post.publish(address, disorder_s)
                    except BrokerError:
                        await writer.close()
                        raise
            finally:
                writer.posts -= 1
                writer.used_at = time.monotonic()
                await self._keep_bound()
            published += outcome.published
            refusals += outcome.refusals
        return Outcome(published, refusals)

    async def close(self) -> None:
        """Say of all sources that nothing follows."""
        if self._tending is not None:
            self._tending.cancel()
        writers, self._writers = self._writers, {}
        await asyncio.gather(*(writer.close() for writer in writers.values()))

    def _writer(self, user: str, source: str) -> _Writer:
        if self._tending is None or self._tending.done():
            self._tending = asyncio.create_task(self._tend())
        writer = self._writers.setdefault((user, source), _Writer())
        writer.posts += 1
        return writer

    async def _keep_bound(self) -> None:
        """Close what may publish nothing, and of more than ``SOURCES_MAX`` those used least lately
        of the user who has most. So who may not publish closes nobody's source.
        """
        for name in [name for name in self._unused() if not self._writers[name].types]:
            await self._close(name)
        while sum(bool(writer.types) for writer in self._writers.values()) > SOURCES_MAX:
            counts = Counter(user for user, _ in self._writers)
            if not (unused := self._unused()):
                return
            least = min(unused, key=lambda name: (-counts[name[0]], self._writers[name].used_at))
            await self._close(least)

    async def _close(self, name: tuple[str, str]) -> None:
        """Close a publisher, unless somebody uses it by now."""
        if name in self._writers and not self._writers[name].posts:
            await self._writers.pop(name).close()

    def _unused(self) -> list[tuple[str, str]]:
        return [name for name, writer in self._writers.items() if not writer.posts]

    async def _tend(self) -> None:
        """Close publishers that nobody uses, as long as there are any."""
        while self._writers:
            await asyncio.sleep(IDLE_S / 10)
            now = time.monotonic()
            for name in self._unused():
                if name in self._writers and now - self._writers[name].used_at >= IDLE_S:
                    await self._close(name)


class _Post:
    """The events of one source in a request, each with its place there."""

    def __init__(
        self,
        writer: _Writer,
        source: str,
        events: Sequence[tuple[int, CloudEvent]],
        known: Types,
    ) -> None:
        self._writer, self._source, self._known = writer, source, known
        self._places = [place for place, _ in events]
        self._events = [event for _, event in events]

    async def publish(self, address: Address, disorder_s: float | None) -> Outcome:
        """Publish them; see ``Posts.publish``."""
        publisher = await self._open(address, disorder_s)
        await publisher.wait(PATIENCE_S)  # for what an earlier post left, which had no more time
        publisher.take_refusals()
        try:
            batches = await self._batches(publisher)
        except EventError as error:
            raise error if isinstance(error, BadEvent) else BadEvent(str(error)) from None
        count = len(self._events)
        links = {one.id: (one.traceparent,) for one in self._events if one.traceparent is not None}
        receipt = await publisher.publish_batch(batches, traces=links)
        await receipt.wait(PATIENCE_S)
        refusals = [
            (None if place is None else self._places[place], refusal)
            for refusal in publisher.take_refusals()
            for place in _places_of(refusal, receipt.number - count, count)
            if not self._repeats(refusal, place)
        ]
        return Outcome(count - len(refusals), refusals)

    def _repeats(self, refusal: RefusedError, place: int | None) -> bool:
        """Whether an event came before. It is known by its id alone if it bore no time, for each
        time that it comes it is stamped anew.
        """
        is_known = refusal.code == Code.CONFLICT.value and place is not None
        return is_known and self._events[place or 0].time is None

    async def _open(self, address: Address, disorder_s: float | None) -> AsyncPublisher:
        writer = self._writer
        is_timed = any(event.time is not None for event in self._events)
        wanted = disorder_s if disorder_s is not None else DISORDER_S * is_timed
        if writer.publisher is not None and wanted <= writer.disorder_s:
            return writer.publisher
        await writer.close()
        publisher = AsyncPublisher(
            address,
            name=self._source,
            disorder=timedelta(seconds=wanted) if wanted else None,
            on_refusal="keep",
            timeout_s=PATIENCE_S,
            connect_timeout_s=PATIENCE_S,
            close_timeout_s=1.0,
        )
        writer.publisher, writer.disorder_s = await publisher.open(), wanted
        return publisher

    async def _batches(self, publisher: AsyncPublisher) -> list[EventBatch]:
        """The events as batches, numbered together in their order; all are checked first."""
        lots: dict[str, list[tuple[int, Checked]]] = {}
        rows: dict[str, Rows] = {}
        for number, event in enumerate(self._events, 1):
            if event.type not in rows:
                rows[event.type] = Rows(await self._type(publisher, event))
            at = NO_TIME if event.time is None else event.time
            try:
                checked = rows[event.type].check(event.data)
                waiting = rows[event.type], at, checked, checked_id(event.id)
            except BadEvent as error:
                raise event.fault(error.reason) from None
            lots.setdefault(event.type, []).append((number, waiting))
        return [rows[name].batch(self._source, lot) for name, lot in lots.items()]

    async def _type(self, publisher: AsyncPublisher, event: CloudEvent) -> EventType:
        """The type of an event, which its source may publish from now on: as the broker knows it,
        or as its first events look.
        """
        types = self._writer.types
        if event.type in types:
            return types[event.type]
        event_type = self._known.get(event.type) or self._inferred(event)
        try:
            await publisher.advertise(event_type)
        except RefusedError as refusal:
            told = known_in(refusal)
            if told is None:
                raise
            await publisher.advertise(event_type := told)
        types[event.type] = event_type
        return event_type

    def _inferred(self, event: CloudEvent) -> EventType:
        others = [one.data for one in self._events if one.type == event.type and one is not event]
        try:
            return inferred_type(event.type, event.data, others)
        except BadEvent as error:
            raise event.fault(error.reason) from None


def _places_of(refusal: RefusedError, before: int, count: int) -> list[int | None]:
    """The places of the events of a refusal, the first event having the number ``before`` + 1."""
    if not refusal.numbers:
        return [None]
    numbers = (n for first, last in refusal.numbers for n in range(first, last + 1))
    return [n - before - 1 for n in numbers if 0 < n - before <= count]

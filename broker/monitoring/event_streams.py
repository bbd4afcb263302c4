"""Streams of events to programs and browsers, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from broker.client.address import Address
from broker.client.sink import WhenFullName
from broker.client.subscriber import AsyncSubscriber
from broker.errors import BrokerError
from matcher.formats.printing import json_lines
from matcher.model import EventBatch, Int64s, StringColumn
from routing.delivery.delivery_batch import places_of
from routing.delivery.remainder import left_of, positions_of
from routing.messages import Delivery

QUEUE_EVENTS, CREDIT_EVENTS = 65_536, 1_024
UNCONFIRMED_MAX = 8_192
CONNECT_S = 3.0
BEAT_S = 10.0
"""A stream that has nothing to say says so every so many seconds: whether it is read is seen."""
PART_CHARACTERS = 4 << 20
"""Characters of texts, about, that are written at once."""


def parts_of(delivery: Delivery) -> Iterator[Delivery]:
    """A delivery in parts of some PART_CHARACTERS, or of one event. A text of 8 MB that a thousand
    events bear is in a message once, and in a stream a thousand times.
    """
    texts = sum(sum(map(len, column.values)) for column in _texts(delivery.batches))
    if texts * len(delivery) <= PART_CHARACTERS:  # common
        yield delivery
        return
    sizes = np.concatenate([_sizes(batch) for batch in delivery.batches])
    numbers = np.cumsum(sizes[places_of(delivery)]) // PART_CHARACTERS
    for number in np.unique(numbers):
        part = left_of(delivery, numbers == number)
        assert part is not None, "some event has that number"
        yield part


def _texts(batches: Iterable[EventBatch]) -> Iterator[StringColumn]:
    columns = (column for batch in batches for column in batch.columns)
    return (column for column in columns if isinstance(column, StringColumn))


def _sizes(batch: EventBatch) -> Int64s:
    """int64[n]: the characters of each event's texts."""
    sizes = np.zeros(len(batch), np.int64)
    for column in _texts([batch]):
        sizes += np.array([len(text) for text in column.values], np.int64)[column.codes]
    return sizes


@dataclass(frozen=True, slots=True)
class Wish:
    """Filters that a reader asks for, and how. ``last``: the number of the last event that it has
    had of a durable subscription.
    """

    filters: tuple[str, ...]
    name: str = ""
    last: int = 0
    when_full: WhenFullName = "drop-oldest"


@dataclass(slots=True)
class EventStreams:
    """The streams of one page. A name has one: a new one ends the old one, whose reader has mostly
    gone.
    """

    _named: dict[tuple[str, str], asyncio.Event] = field(default_factory=dict)
    """By user and name of a durable subscription, what ends its stream."""

    async def open(self, address: Address, user: str, wish: Wish, seconds: float) -> EventStream:
        """A stream that lasts for so long. Raises BrokerError."""
        is_over, key = asyncio.Event(), (user, wish.name)
        if wish.name:
            if (before := self._named.get(key)) is not None:
                before.set()
            self._named[key] = is_over
        subscriber = AsyncSubscriber(
            address,
            *wish.filters,
            name=wish.name,
            when_full=wish.when_full,
            queue=QUEUE_EVENTS,
            credit=CREDIT_EVENTS,
            durable=bool(wish.name),
            acks="explicit" if wish.name else "auto",
            timeout_s=CONNECT_S,
            connect_timeout_s=CONNECT_S,
        )
        forget = partial(self._forget, key, is_over)
        try:
            return EventStream(await subscriber.open(), wish, is_over, seconds, forget)
        except BaseException:
            forget()
            raise

    def _forget(self, key: tuple[str, str], is_over: asyncio.Event) -> None:
        """A stream is closed: nothing has to end it, unless another one has its name by now."""
        if self._named.get(key) is is_over:
            del self._named[key]


class EventStream:
    """One stream, which is read once and then closed.

    A stream takes the next events from the broker when its reader has taken the last ones, so
    whoever reads slowly holds nobody else up. Without a name its queue at the broker is bounded,
    and drops the oldest events, which the stream tells (``event: gap``). One with a name is a
    durable subscription, and each event bears its number as its id. A reader that comes back says
    the last id that it has had (``Last-Event-ID``), which acknowledges all up to there; what
    follows comes again, marked. Such a stream ends after ``UNCONFIRMED_MAX`` events, so that its
    reader comes back.
    """

    def __init__(
        self,
        subscriber: AsyncSubscriber,
        wish: Wish,
        is_over: asyncio.Event,
        seconds: float,
        forget: Callable[[], None],
    ) -> None:
        self._subscriber, self._wish, self._is_over = subscriber, wish, is_over
        self._seconds, self._forget = seconds, forget
        self._told = 0, 0
        self._brought = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes, as server-sent events."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._seconds
        yield b"retry: 1000\n\n"
        try:
            while loop.time() < until and not self._is_over.is_set():
                if self._brought >= UNCONFIRMED_MAX and self._wish.name:
                    return
                try:
                    delivery = await self._subscriber.receive_delivery(timeout_s=1.0)
                except TimeoutError:
                    delivery = None
                if gap := self._gap():
                    yield gap
                if delivery is not None:
                    for part in parts_of(delivery):
                        yield b"".join(self._events(part))
                elif loop.time() % BEAT_S < 1.0:
                    yield b":\n\n"
        except BrokerError as error:
            yield b"event: error\ndata: %s\n\n" % str(error).replace("\n", " ").encode()

    async def close(self) -> None:
        """Ask for nothing more."""
        self._forget()
        await self._subscriber.close()

    def _events(self, delivery: Delivery) -> Iterator[bytes]:
        lines = json_lines(
            delivery.batches, delivery.order, full_cause=True, traces=delivery.traces
        )
        for line, number in zip(lines.splitlines(), positions_of(delivery), strict=True):
            if not number:
                yield b"data: %s\n\n" % line
            elif number <= self._wish.last and delivery.again:
                self._subscriber.acknowledge_one(number)
            else:
                self._brought += 1
                marked = line[:-1] + b',"again":true}' if delivery.again else line
                yield b"id: %d\ndata: %s\n\n" % (number, marked)

    def _gap(self) -> bytes:
        """Events that are missing since this was last asked, and links that broke; b"" for none."""
        before, self._told = self._told, (self._subscriber.dropped, self._subscriber.losses)
        dropped, losses = (now - then for now, then in zip(self._told, before, strict=True))
        if self._wish.name:
            losses = 0
        if not dropped and not losses:
            return b""
        return b'event: gap\ndata: {"dropped":%d,"links_lost":%d}\n\n' % (dropped, losses)

"""Subscribers: sinks of events, synchronous and asynchronous, of one look. See docs/clients.md."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from broker.client.address import Address, address_of
from broker.client.hands import Worker, this_task, this_thread
from broker.client.looped import Looped
from broker.client.manager import RuleManager
from broker.client.scope import AsyncScoped, AsyncUntilClosed, Scoped, UntilClosed
from broker.client.sink import DurableAcks, Sink, WhenFullName
from broker.client.start import Start, start_time
from broker.client.threaded import Threaded
from broker.sockets import CONNECTED_MISSED_MAX
from matcher.model import Event
from routing.config import SessionConfig
from routing.messages import Delivery

if TYPE_CHECKING:
    from broker.client.history import History

QUEUE_EVENTS = 65_536
CREDIT_EVENTS = 16_384
TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0


def _sink(
    address: Address,
    name: str,
    when_full: str,
    queue: int,
    credit: int,
    worker: Callable[[], Worker],
    durable: bool,
    acks: str,
    queue_bytes: int | None,
    queue_age_s: float | None,
    group: str,
    by: str,
    start: Start,
) -> Sink:
    if durable and not name:
        raise ValueError("a durable subscriber needs a name, by which it is found again")
    if by and not group:
        raise ValueError(f"a group shares events by {by!r}: name it")
    if durable and group:
        raise ValueError("subscribers share a durable subscription by its name, without a group")
    if group and start_time(start) is not None:
        raise ValueError("a group has no past")
    config = SessionConfig(
        name="" if durable else name,  # clients may share a durable sink
        instance=random.getrandbits(63),
        delivery_credit=credit,
        heartbeats_missed_max=CONNECTED_MISSED_MAX,
    )
    durable_name = name if durable else ""
    own = queue_bytes, queue_age_s, group, by
    return Sink(address, config, when_full, queue, worker, durable_name, acks, *own)


def _start(start: Start, last: Sequence[str], durable: bool) -> Start:
    """The time from which on there may be last values, where these are asked for."""
    if isinstance(last, str):
        raise ValueError(f"last is a list of attributes: [{last!r}]")
    if last and durable:
        raise ValueError("a durable subscription has the past itself, not last values")
    return "earliest" if last and start == "new" else start


def _history(
    address: Address,
    filters: Sequence[str],
    start: Start,
    durable: str,
    last: Sequence[str],
    timeout_s: float,
    connect_timeout_s: float,
) -> History | None:
    from broker.client.history import history_of  # with it come the engines

    manager = RuleManager(address, timeout_s=timeout_s, connect_timeout_s=connect_timeout_s)
    found = None
    try:
        found = history_of(manager, filters, start, durable, last)
    finally:
        if found is None:
            manager.close()
    return found


class Subscriber(Scoped):
    """A sink of events: what matches any of its ``filters``, as rows or in columns.

    A filter is written as in a rule: ``Temp(value > 20 and area = "a1")``, ``Fire()``; ``*`` is all
    events of all types. Events of a type that rules define come in order of time; others as they
    arrive.

    ``queue`` events wait at the broker, and ``credit`` more here and on the way. When they are
    full, ``when_full`` is: ``"block"``, the sources wait, ``"drop-oldest"``, counted in
    ``dropped``, or ``"disconnect"``.

    ``durable=True``: its broker, which needs a store, keeps for ``name`` whatever has not been
    acknowledged, over restarts of both (docs/durability.md); subscribers of one name share the
    events. With ``acks="auto"`` an event counts as dealt with when the next one (or delivery) is
    asked for, or the subscriber is closed; with ``"explicit"`` when ``acknowledge`` says so. Its
    queue has two bounds more: ``queue_bytes`` in the store, where it is full as by ``queue``, and
    ``queue_age_s``, the seconds after which an event is dropped, which is counted; without them
    those of the broker hold.

    ``group``: each event goes to one of the subscribers that name this group and the same filter
    (one each), and have room for it; with ``by`` events with an equal value of that attribute go to
    the same one. What a subscriber was sent when it goes is lost; what waits at the broker goes to
    the others.

    ``start`` is a time (RFC 3339, seconds since the epoch, a datetime) or ``"earliest"``: events
    from then on, from the logs of all brokers of the network, which need stores; then it goes on
    live, without a gap and without anything twice. What rules define is found by the rules that are
    in force, each since it holds. Of a durable subscription this is given until an event behind it
    was acknowledged.

    ``last``: of these past events, only the last one of each type with equal values of these
    attributes (``"source"``: of each source), in order of time; without a ``start`` of all that are
    kept. So ``last=["area"]`` gives where each area stands, then what changes.

    ``key`` and ``server_key`` are those of ``Publisher``.

    Iterating gives events until the subscriber is closed. Raises BrokerUnreachable when no broker
    welcomes it within ``connect_timeout_s``, and RefusedError for a filter that is refused.

    >>> with Subscriber(endpoint, "Temp(value > 20)") as subscriber:
    ...     receipt = sensor.publish("Temp", area="a1", value=46.5, id="a-17")
    ...     event = subscriber.receive(timeout_s=5)
    >>> event.source, event.id, event.data
    ('sensor', 'a-17', {'area': 'a1', 'value': 46.5})
    """

    def __init__(
        self,
        endpoint: str | Address | None = None,
        *filters: str,
        name: str = "",
        when_full: WhenFullName = "block",
        queue: int = QUEUE_EVENTS,
        credit: int = CREDIT_EVENTS,
        durable: bool = False,
        acks: DurableAcks = "auto",
        queue_bytes: int | None = None,
        queue_age_s: float | None = None,
        group: str = "",
        by: str = "",
        start: Start = "new",
        last: Sequence[str] = (),
        key: str | Path | None = None,
        server_key: str | Path | None = None,
        timeout_s: float = TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        address = address_of(endpoint, key, server_key)
        start = _start(start, last, durable)
        own = this_thread, durable, acks, queue_bytes, queue_age_s, group, by, start
        self._sink = _sink(address, name, when_full, queue, credit, *own)
        self._timeout_s = timeout_s
        self._driver = Threaded(self._sink.connection)
        self._driver.open(connect_timeout_s)
        self._filters = filters
        self._history: History | None = None
        self._past: Iterator[Delivery] = iter(())
        self._past_lock = threading.Lock()
        try:
            if start_time(start) is not None:
                durable_name = name if durable else ""
                self._history = _history(
                    address, filters, start, durable_name, last, timeout_s, connect_timeout_s
                )
            if self._history is None:
                self._subscribe_all()
            else:
                self._past = self._replay(self._history)
        except BaseException:
            self._leave()
            raise

    def _subscribe_all(self) -> None:
        for text in self._filters:
            self.subscribe(text)

    def _replay(self, history: History) -> Iterator[Delivery]:
        yield from history.before()
        self._subscribe_all()
        yield from history.rest()

    def subscribe(self, text: str) -> int:
        """Ask for further events; gives the number that ``unsubscribe`` takes."""
        requests: list[int] = []

        def request() -> int:
            requests.append(self._sink.subscribe(text))
            return requests[0]

        detail = self._driver.ask(request, self._timeout_s)
        return self._sink.confirmed(requests[0], text, detail)

    def unsubscribe(self, number: int) -> None:
        """End a subscription."""
        self._driver.ask(lambda: self._sink.session.unsubscribe(number), self._timeout_s)

    def receive(self, timeout_s: float | None = None) -> Event:
        """The next event. Raises TimeoutError when none comes within ``timeout_s`` seconds.

        Threads may share a subscriber: each event is given to one of them.
        """
        event = self._sink.next_event()
        if event is None:
            ends_at = None if timeout_s is None else time.monotonic() + timeout_s
            while event is None:
                self._make_ready(ends_at, timeout_s)
                event = self._sink.next_event()
        return event

    def receive_delivery(self, timeout_s: float | None = None) -> Delivery:
        """The next events as they came: batches, and which subscriptions they match.

        Events that ``receive`` has begun to give one by one are not given again.
        """
        self._sink.ask()
        delivery, sink = self._next_past(), self._sink
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            with self._driver:
                while delivery is None:
                    sink.tell()
                    self._driver.wait_until(sink.has_delivery, _left(ends_at))
                    delivery = sink.take_delivery(timeout_s, self._history)
                sink.give(delivery)
        except BaseException:
            if delivery is not None:
                sink.give_back(delivery)
            raise
        return delivery

    def _make_ready(self, ends_at: float | None, timeout_s: float | None) -> None:
        """Have events ready; another thread may take them first."""
        sink = self._sink
        past = self._next_past()
        with self._driver:
            sink.tell()
            if past is not None:
                sink.open(past)
                return
            self._driver.wait_until(sink.has_event, _left(ends_at))
            if not sink.ready:
                delivery = sink.take_delivery(timeout_s, self._history)
                if delivery is not None:
                    sink.open(delivery)

    def _next_past(self) -> Delivery | None:
        if self._history is None:
            return None
        with self._past_lock:
            delivery = next(self._past, None)
        if delivery is None:
            self._history.check_over()
        return delivery

    def acknowledge(self, position: int | None = None) -> None:
        """Say that all events of a durable subscription that were given up to the one of that
        ``position`` are dealt with; None: all that were given.
        """
        with self._driver:
            self._sink.acknowledge(position)

    def acknowledge_one(self, position: int) -> None:
        """Say that the event of that ``position`` is dealt with, whatever is with others
        (``acks="explicit"``): it does not come again. ValueError for an event that was not given,
        or is acknowledged.
        """
        with self._driver:
            self._sink.acknowledge_one(position)

    def nack(
        self, position: int | None = None, *, delay_s: float = 0.0, deliveries_max: int = 0
    ) -> None:
        """Give the event of that ``position`` (None: the one that was given last) back to its
        durable subscription: it comes again, marked, to this or another subscriber of the name,
        after ``delay_s`` seconds. One that has been given ``deliveries_max`` times (0: any number)
        moves to the dead letters, the durable subscription ``NAME.dead``.

        ValueError for an event that was not given, or is acknowledged.
        """
        with self._driver:
            self._sink.nack(position, delay_s, deliveries_max)

    @property
    def position(self) -> int:
        """The number of the event that was given last, of a durable subscription."""
        return self._sink.position

    def close(self) -> None:
        """End it; a durable subscription goes on at the broker."""
        with self._driver:
            self._sink.close()
        self._leave()

    def _leave(self) -> None:
        if self._history is not None:
            self._history.close()
        with self._driver:
            self._sink.tell()
        super()._leave()

    @property
    def dropped(self) -> int:
        """Events lost because this sink's queue at the broker was full (``drop-oldest``)."""
        return self._sink.dropped

    @property
    def losses(self) -> int:
        """How often its link has ended; what was published until the next one was made is missing.
        Waiting tells it.
        """
        return self._sink.losses

    @property
    def paused(self) -> Mapping[int, str]:
        """The subscriptions that bring nothing for now, since their type's schema is another and
        has not what they ask for: by number, and why. Waiting tells it.
        """
        return dict(self._sink.session.paused)

    @property
    def waits_for(self) -> Mapping[int, Sequence[str]]:
        """The types that a subscription's rules need and nobody published when it began: by its
        number, of those that lack some.
        """
        return dict(self._sink.waits_for)

    def deliveries(self) -> Iterator[Delivery]:
        """Deliveries until the subscriber is closed."""
        return UntilClosed(self.receive_delivery)

    def __iter__(self) -> Iterator[Event]:
        return UntilClosed(self.receive)


def _left(ends_at: float | None) -> float | None:
    return None if ends_at is None else max(0.0, ends_at - time.monotonic())


class AsyncSubscriber(AsyncScoped):
    """A sink of events in an asyncio loop; see ``Subscriber`` for what the arguments mean.

    It connects when it is entered or ``open`` is awaited.

    >>> import asyncio
    >>> async def first():
    ...     async with AsyncSubscriber(endpoint, "Temp(value > 20)") as subscriber:
    ...         sensor.publish("Temp", area="a1", value=46.5)
    ...         async for event in subscriber:
    ...             return event.data
    >>> asyncio.run(first())
    {'area': 'a1', 'value': 46.5}
    """

    def __init__(
        self,
        endpoint: str | Address | None = None,
        *filters: str,
        name: str = "",
        when_full: WhenFullName = "block",
        queue: int = QUEUE_EVENTS,
        credit: int = CREDIT_EVENTS,
        durable: bool = False,
        acks: DurableAcks = "auto",
        queue_bytes: int | None = None,
        queue_age_s: float | None = None,
        group: str = "",
        by: str = "",
        start: Start = "new",
        last: Sequence[str] = (),
        key: str | Path | None = None,
        server_key: str | Path | None = None,
        timeout_s: float = TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        address = address_of(endpoint, key, server_key)
        start = _start(start, last, durable)
        own = this_task, durable, acks, queue_bytes, queue_age_s, group, by, start
        self._sink = _sink(address, name, when_full, queue, credit, *own)
        self._filters = filters
        self._start, self._last = start, last
        self._durable = name if durable else ""
        self._address = address
        self._history: History | None = None
        self._past: AsyncIterator[Delivery] | None = None
        self._past_lock = asyncio.Lock()
        self._step: asyncio.Task[Delivery | None] | None = None
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._driver = Looped(self._sink.connection)

    async def open(self) -> Self:
        """Connect and subscribe."""
        await self._driver.open(self._connect_timeout_s)
        try:
            if start_time(self._start) is not None:
                self._history = await asyncio.to_thread(
                    _history,
                    self._address,
                    self._filters,
                    self._start,
                    self._durable,
                    self._last,
                    self._timeout_s,
                    self._connect_timeout_s,
                )
            if self._history is None:
                await self._subscribe_all()
            else:
                self._past = self._replay(self._history)
        except BaseException:
            await self._leave()
            raise
        return self

    async def _subscribe_all(self) -> None:
        for text in self._filters:
            await self.subscribe(text)

    async def _replay(self, history: History) -> AsyncIterator[Delivery]:
        before, rest = history.before(), history.rest()
        while (delivery := await asyncio.to_thread(next, before, None)) is not None:
            yield delivery
        await self._subscribe_all()
        while (delivery := await asyncio.to_thread(next, rest, None)) is not None:
            yield delivery

    async def subscribe(self, text: str) -> int:
        """See ``Subscriber.subscribe``."""
        requests: list[int] = []

        def request() -> int:
            requests.append(self._sink.subscribe(text))
            return requests[0]

        detail = await self._driver.ask(request, self._timeout_s)
        return self._sink.confirmed(requests[0], text, detail)

    async def unsubscribe(self, number: int) -> None:
        """See ``Subscriber.unsubscribe``."""
        await self._driver.ask(lambda: self._sink.session.unsubscribe(number), self._timeout_s)

    async def receive(self, timeout_s: float | None = None) -> Event:
        """See ``Subscriber.receive``; tasks may share a subscriber."""
        self._driver.check_place()
        event = self._sink.next_event()
        if event is None:
            ends_at = None if timeout_s is None else time.monotonic() + timeout_s
            while event is None:
                await self._make_ready(ends_at, timeout_s)
                event = self._sink.next_event()
        return event

    async def receive_delivery(self, timeout_s: float | None = None) -> Delivery:
        """See ``Subscriber.receive_delivery``."""
        self._driver.check_place()
        self._sink.ask()
        delivery, sink = await self._of_past(), self._sink
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        while delivery is None:
            with self._driver:
                sink.tell()
            await self._driver.wait_until(sink.has_delivery, _left(ends_at))
            with self._driver:
                delivery = sink.take_delivery(timeout_s, self._history)
        sink.give(delivery)
        return delivery

    async def _make_ready(self, ends_at: float | None, timeout_s: float | None) -> None:
        """Have events ready; another task may take them first."""
        sink = self._sink
        past = await self._of_past()
        if past is not None:
            sink.open(past)
            return
        with self._driver:
            sink.tell()
        await self._driver.wait_until(sink.has_event, _left(ends_at))
        if not sink.ready:
            with self._driver:
                delivery = sink.take_delivery(timeout_s, self._history)
                if delivery is not None:
                    sink.open(delivery)

    async def _of_past(self) -> Delivery | None:
        if self._history is None:
            return None
        delivery = None
        if self._past is not None:
            async with self._past_lock:
                delivery = await self._next_past(self._past)
        if delivery is None:
            self._past = None
            self._history.check_over()
        return delivery

    async def _next_past(self, past: AsyncIterator[Delivery]) -> Delivery | None:
        """The next delivery of the past, which is read on where who waits for it is cancelled."""

        async def step() -> Delivery | None:
            return await anext(past, None)

        if self._step is None:
            self._step = asyncio.create_task(step())
        try:
            return await asyncio.shield(self._step)
        finally:
            if self._step.done():
                self._step = None

    def acknowledge(self, position: int | None = None) -> None:
        """See ``Subscriber.acknowledge``."""
        with self._driver:
            self._sink.acknowledge(position)

    def acknowledge_one(self, position: int) -> None:
        """See ``Subscriber.acknowledge_one``."""
        with self._driver:
            self._sink.acknowledge_one(position)

    def nack(
        self, position: int | None = None, *, delay_s: float = 0.0, deliveries_max: int = 0
    ) -> None:
        """See ``Subscriber.nack``."""
        with self._driver:
            self._sink.nack(position, delay_s, deliveries_max)

    def acknowledge_each(self, positions: Sequence[int]) -> None:
        """``acknowledge_one`` of many, told together; what was not given, or is acknowledged, is
        passed over.
        """
        with self._driver:
            self._sink.acknowledge_each(positions)

    async def close(self) -> None:
        """See ``Subscriber.close``."""
        if not self._driver.is_closed:
            with self._driver:
                self._sink.close()
        await self._leave()

    async def _leave(self) -> None:
        if self._step is not None:
            self._step.cancel()
        if self._history is not None:
            self._history.close()
        if not self._driver.is_closed:
            with self._driver:
                self._sink.tell()
        await super()._leave()

    @property
    def position(self) -> int:
        """See ``Subscriber.position``."""
        return self._sink.position

    @property
    def dropped(self) -> int:
        """See ``Subscriber.dropped``."""
        return self._sink.dropped

    @property
    def losses(self) -> int:
        """See ``Subscriber.losses``."""
        return self._sink.losses

    @property
    def paused(self) -> Mapping[int, str]:
        """See ``Subscriber.paused``."""
        return dict(self._sink.session.paused)

    @property
    def waits_for(self) -> Mapping[int, Sequence[str]]:
        """See ``Subscriber.waits_for``."""
        return dict(self._sink.waits_for)

    def deliveries(self) -> AsyncIterator[Delivery]:
        """See ``Subscriber.deliveries``."""
        return AsyncUntilClosed(self.receive_delivery)

    def __aiter__(self) -> AsyncIterator[Event]:
        return AsyncUntilClosed(self.receive)

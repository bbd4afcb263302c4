"""The publisher for asyncio: the same calls as ``Publisher``, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from broker.client import publisher as synchronous
from broker.client.address import Address, address_of
from broker.client.looped import Looped
from broker.client.open_clients import tell_unsaid
from broker.client.outbox import Checked
from broker.client.publisher import AcksName, blocked, check_seen_off, new_source
from broker.client.receipt import AsyncReceipt
from broker.client.scope import AsyncScoped
from broker.client.source import NOTHING_GIVEN, OnRefusal
from broker.client.teller import OnAck, telling
from broker.errors import RefusedError
from matcher.model import Event, EventType


class AsyncPublisher(AsyncScoped):
    """A source of events in an asyncio loop; see ``Publisher`` for what the arguments mean.

    It connects when it is entered or ``open`` is awaited.

    >>> import asyncio
    >>> from matcher import EventType
    >>> temp = EventType.of("Temp", area="string", value="float")
    >>> async def publish():
    ...     async with AsyncPublisher(endpoint, name="sensor/8", types=[temp]) as publisher:
    ...         receipt = await publisher.publish("Temp", area="a1", value=46.5)
    ...         await receipt
    >>> asyncio.run(publish())
    """

    def __init__(
        self,
        endpoint: str | Address | None = None,
        *,
        name: str,
        types: Sequence[EventType] = (),
        increasing: bool = False,
        disorder: timedelta | None = None,
        acks: AcksName = "broker",
        batch_events: int = synchronous.BATCH_EVENTS,
        delay_s: float = synchronous.DELAY_S,
        unacknowledged_max: int = synchronous.UNACKNOWLEDGED_MAX,
        on_refusal: OnRefusal = "raise",
        time_unit: str = "s",
        replay: bool = False,
        live: bool = True,
        on_ack: OnAck | None = None,
        key: str | Path | None = None,
        server_key: str | Path | None = None,
        timeout_s: float = synchronous.TIMEOUT_S,
        connect_timeout_s: float = synchronous.CONNECT_TIMEOUT_S,
        close_timeout_s: float = synchronous.CLOSE_TIMEOUT_S,
    ) -> None:
        self._source = new_source(
            address_of(endpoint, key, server_key),
            name,
            increasing,
            disorder,
            acks,
            batch_events,
            delay_s,
            unacknowledged_max,
            on_refusal,
            time_unit,
            replay,
            live,
        )
        self.on_ack = on_ack
        self._types = tuple(types)
        self._timeout_s = timeout_s
        self._close_timeout_s = close_timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._driver = Looped(self._source.connection)

    async def open(self) -> Self:
        """Connect and advertise."""
        if self.on_ack is not None:
            soon, tell = asyncio.get_running_loop().call_soon, telling(self)
            self._source.tell = lambda number: soon(tell, number)
        await self._driver.open(self._connect_timeout_s)
        try:
            if self._types:
                await self.advertise(*self._types)
        except BaseException:
            self._driver.close()
            raise
        return self

    async def advertise(self, *types: EventType) -> None:
        """See ``Publisher.advertise``."""
        await self._driver.ask(lambda: self._source.advertise(types), self._timeout_s)
        for event_type in types:
            self._source.outbox.know(event_type)

    async def publish(
        self,
        event: str | Event,
        data: Mapping[str, Any] | None = None,
        /,
        *,
        time: float | str | datetime | None = None,
        at: int | datetime | None = None,
        id: str | None = None,  # noqa: A002 - the event model's word
        traceparent: str | None = None,
        **attributes: Any,
    ) -> AsyncReceipt:
        """See ``Publisher.publish``."""
        source, driver = self._source, self._driver
        driver.check_place()
        source.check()
        values = {**data, **attributes} if data else attributes
        while not source.has_room:
            await self._room(1)
        is_bare = time is None and at is None and id is None
        given = NOTHING_GIVEN if is_bare else (time, at, id)
        due = source.gathers(event, values, given, traceparent)
        if due is not None:
            with driver:
                source.hand_over(due)
        elif source.outbox.count == 1:  # its deadline is that of those that follow
            driver.rearm()
        return AsyncReceipt(self, source.published)

    async def publish_checked(self, events: Sequence[Checked]) -> int:
        """Publish as many of these events, which were checked as ``Outbox`` does, as there is room
        for, one at least; gives how many. They gather as with ``publish``. Raises as this does.
        """
        source, driver = self._source, self._driver
        driver.check_place()
        source.check()
        while not source.has_room:
            await self._room(1)
        is_due = source.is_due(source.connection.clock.now())
        count = source.gather_all(events)
        if is_due or not source.has_room:
            with driver:
                source.send()
        else:
            driver.rearm()
        return count

    async def publish_batch(
        self,
        events: object,
        *,
        type: str | None = None,  # noqa: A002 - the event model's word
        promise: int | None = None,
        numbered: bool = False,
        traces: Mapping[str, tuple[str, ...]] | None = None,
    ) -> AsyncReceipt:
        """See ``Publisher.publish_batch``."""
        source = self._source
        batches = source.batches(events, type)
        if unknown := source.unknown_types(batches):
            await self.advertise(*unknown)
        pieces = list(source.slices(batches))
        self._driver.check_place()
        source.note_traces(traces or {})
        for place, piece in enumerate(pieces):
            source.check()
            await self._room(sum(map(len, piece)))
            last = place == len(pieces) - 1
            with self._driver:
                source.send_batches(piece, promise if last else None, numbered)
        return AsyncReceipt(self, source.published)

    async def promise(self, time: int | datetime) -> None:
        """See ``Publisher.promise``."""
        with self._driver:
            self._source.check()
            self._source.promise(time)

    async def flush(self) -> None:
        """See ``Publisher.flush``."""
        with self._driver:
            self._source.check()
            self._source.send()

    async def wait(self, timeout_s: float | None = None, *, up_to: int | None = None) -> None:
        """See ``Publisher.wait``."""
        seconds = self._timeout_s if timeout_s is None else timeout_s
        await self.flush()
        source = self._source
        if not await self._driver.wait_until(lambda: source.has_had(up_to), seconds):
            raise blocked(self._source, seconds)
        self._source.check()

    @property
    def published(self) -> int:
        """See ``Publisher.published``."""
        return self._source.published

    def has_acknowledged(self, number: int) -> bool:
        """See ``Publisher.has_acknowledged``."""
        return self._source.has_acknowledged(number)

    @property
    def rejected(self) -> int:
        """How many events the broker has refused so far."""
        return self._source.rejected

    def take_refusals(self) -> list[RefusedError]:
        """See ``Publisher.take_refusals``."""
        return self._source.take_refusals()

    async def close(self) -> None:
        """See ``Publisher.close``."""
        try:
            check_seen_off(self._source, await self._see_off())
        finally:
            self._driver.close()
            await asyncio.sleep(0)  # on_ack is told what is left

    async def _leave(self) -> None:
        try:
            await self._see_off()
        finally:
            tell_unsaid(self._source.connection)
            self._driver.close()

    async def _see_off(self) -> float | None:
        """See ``Publisher``."""
        source, session, seconds = self._source, self._source.session, self._close_timeout_s
        connection, driver = source.connection, self._driver
        if driver.is_closed:
            return None
        with driver:
            source.send()
        while left := session.outgoing.unacknowledged:
            if not await driver.holds_in_time(
                lambda left=left: session.outgoing.unacknowledged < left,  # type: ignore[misc]
                seconds,
            ):
                return seconds
        with driver:
            session.leave(connection.clock.now())
        await driver.holds_in_time(lambda: session.has_left, seconds)
        return None

    async def _room(self, events: int) -> None:
        source = self._source
        with self._driver:
            source.send()
        if source.session.outgoing.room >= events:
            return
        if not await self._driver.wait_until(
            lambda: source.session.outgoing.room >= events, self._timeout_s
        ):
            raise blocked(source, self._timeout_s)

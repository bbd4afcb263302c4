"""Pumps: messages to the broker, and events to another system, with their acknowledgements."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from broker.client.address import Address
from broker.client.async_publisher import AsyncPublisher
from broker.client.subscriber import AsyncSubscriber
from broker.connect.dead_letters import DeadLetters
from broker.connect.reading import Reading
from broker.connect.systems import Giver, Message, Outgoing, Taker
from broker.connect.writing import Writing
from broker.errors import BrokerError, PublishBlocked
from matcher.errors import BadEvent, EventError
from matcher.model import EventType

CLOSE_S = 5.0
"""For so long a source that ends waits until the broker has what it has published."""


class SourcePump:
    """Publishes what a system gives, as the source ``name``; at most ``window`` messages are under
    way.
    """

    def __init__(
        self,
        name: str,
        giver: Giver,
        reading: Reading,
        letters: DeadLetters,
        types: Mapping[str, EventType],
        window: int,
        disorder_s: float | None,
    ) -> None:
        self.name, self._giver, self._reading, self.letters = name, giver, reading, letters
        self._types, self._window, self._disorder_s = types, window, disorder_s
        self._waiting: deque[tuple[int, Message]] = deque()
        self.count = 0
        """Messages that the broker has acknowledged as events."""

    async def run(self, address: Address) -> None:
        """Pump until it is cancelled. Raises BrokerError."""
        disorder_s = self._disorder_s
        publisher = AsyncPublisher(
            address,
            name=self.name,
            types=tuple(self._types.values()),
            unacknowledged_max=self._window,
            disorder=None if disorder_s is None else timedelta(seconds=disorder_s),
            on_refusal="keep",
            on_ack=lambda number: self._acknowledged(publisher, number),
        )
        async with publisher:
            await self._giver.open()
            try:
                while True:
                    await self._publish(publisher, await self._giver.receive())
            finally:
                with suppress(BrokerError):  # what it has not by then comes again
                    await publisher.wait(CLOSE_S)
                await self._giver.close()
                self.letters.close()

    async def _publish(self, publisher: AsyncPublisher, message: Message) -> None:
        try:
            event = self._reading.event(message)
        except EventError as error:
            self._bury(message, str(error))
            return
        while True:
            try:
                receipt = await publisher.publish(
                    event.type, event.data, at=event.time, id=event.id
                )
                break
            except PublishBlocked:
                continue  # the message waits, and those behind it
            except EventError as error:
                self._bury(message, str(error))
                return
        self._waiting.append((receipt.number, message))

    def _acknowledged(self, publisher: AsyncPublisher, number: int) -> None:
        refused = {
            one: str(refusal)
            for refusal in publisher.take_refusals()
            for first, last in refusal.numbers
            for one in range(first, last + 1)
        }
        while self._waiting and self._waiting[0][0] <= number:
            own, message = self._waiting.popleft()
            if own in refused:
                self._bury(message, refused[own])
            else:
                self.count += 1
                message.acknowledge()

    def _bury(self, message: Message, reason: str) -> None:
        self.letters.keep(message.topic, message.body, reason)
        message.acknowledge()


class SinkPump:
    """Gives a system the events of a subscription ``name``, which is durable unless that is said;
    at most ``window`` messages are unconfirmed.
    """

    def __init__(
        self,
        name: str,
        taker: Taker,
        writing: Writing,
        letters: DeadLetters,
        filters: tuple[str, ...],
        window: int,
        durable: bool,
    ) -> None:
        self.name, self._taker, self._writing, self.letters = name, taker, writing, letters
        self._filters, self._durable = filters, durable
        self._room = asyncio.Semaphore(window)
        self._window = window
        self.count = 0
        """Messages that the other system has confirmed."""

    async def run(self, address: Address) -> None:
        """Pump until it is cancelled. Raises BrokerError."""
        subscriber = AsyncSubscriber(
            address,
            *self._filters,
            name=self.name,
            credit=self._window,
            durable=self._durable,
            acks="explicit" if self._durable else "auto",
        )
        async with asyncio.TaskGroup() as sending, subscriber:
            await self._taker.open()
            try:
                while True:
                    delivery = await subscriber.receive_delivery()
                    for position, message in self._writing.messages(delivery):
                        await self._room.acquire()
                        sending.create_task(self._send(subscriber, position, message))
            finally:
                await self._taker.close()
                self.letters.close()

    async def _send(
        self, subscriber: AsyncSubscriber, position: int, message: Outgoing | BadEvent
    ) -> None:
        try:
            if isinstance(message, BadEvent):
                self.letters.keep("", (message.place or "").encode(), message.reason)
            else:
                try:
                    await self._taker.send(message)
                    self.count += 1
                except BadEvent as error:
                    self.letters.keep(message.topic, message.body, error.reason)
            if position:
                subscriber.acknowledge_one(position)
        finally:
            self._room.release()

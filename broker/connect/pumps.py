"""Pumps: messages to the broker, and events to another system, with their acknowledgements.

Law: messages are acknowledged to their system in the order in which it gave them, dead letters too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from broker.client.address import Address
from broker.client.async_publisher import AsyncPublisher
from broker.client.subscriber import AsyncSubscriber
from broker.connect.dead_letters import DeadLetters
from broker.connect.reading import Event, Reading
from broker.connect.systems import CLOSE_S, Giver, Message, Outgoing, Taker, persist
from broker.connect.writing import Writing
from broker.errors import BrokerError, PublishBlocked, RefusedError
from matcher.errors import BadEvent, EventError
from matcher.model import EventType
from routing.messages import Code


class _Waiting(NamedTuple):
    """A message whose event the broker is to acknowledge, or whose letter is to be written once all
    before it are acknowledged.
    """

    number: int
    message: Message
    reason: str | None = None
    is_stamped: bool = False


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
        self._waiting: deque[_Waiting] = deque()
        self._refusals: dict[int, RefusedError] = {}
        self._number_had = 0
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
                    for message in await persist(self._giver.receive):
                        await self._publish(publisher, message)
            finally:
                with suppress(BrokerError):  # what it has not by then comes again
                    await publisher.wait(CLOSE_S)
                await self._giver.close()
                self.letters.close()

    async def _publish(self, publisher: AsyncPublisher, message: Message) -> None:
        try:
            event = self._reading.event(message)
            number = await self._number(publisher, event)
        except EventError as error:
            number = self._waiting[-1].number if self._waiting else 0
            self._waiting.append(_Waiting(number, message, str(error)))
            self._acknowledged(publisher, 0)
            return
        self._waiting.append(_Waiting(number, message, is_stamped=event.time is None))

    async def _number(self, publisher: AsyncPublisher, event: Event) -> int:
        while True:
            with suppress(PublishBlocked):  # the message waits, and those behind it
                receipt = await publisher.publish(
                    event.type, event.data, at=event.time, id=event.id
                )
                return receipt.number

    def _acknowledged(self, publisher: AsyncPublisher, number: int) -> None:
        """Acknowledge messages in the order in which they came, up to a number."""
        for refusal in publisher.take_refusals():
            for first, last in refusal.numbers:
                self._refusals |= dict.fromkeys(range(first, last + 1), refusal)
        self._number_had = max(self._number_had, number)
        while self._waiting and self._waiting[0].number <= self._number_had:
            waiting = self._waiting.popleft()
            reason = waiting.reason or self._refused(waiting)
            message = waiting.message
            if reason is None:
                self.count += 1
            else:
                self.letters.keep(message.topic, message.body, reason)
            message.acknowledge()

    def _refused(self, waiting: _Waiting) -> str | None:
        """Why the broker has refused a message's event; None if it has it, now or from before."""
        refusal = self._refusals.pop(waiting.number, None)
        if refusal is None:
            return None
        if waiting.is_stamped and refusal.code == Code.CONFLICT.value:
            return None  # it came again: its stamp alone differs
        return str(refusal)


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
                    await persist(partial(self._taker.send, message))
                    self.count += 1
                except BadEvent as error:
                    self.letters.keep(message.topic, message.body, error.reason)
            if position:
                subscriber.acknowledge_one(position)
        finally:
            self._room.release()

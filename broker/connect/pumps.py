"""Pumps: messages to the broker, and events to another system, with their acknowledgements.

Messages with times promise by these, and by the clock only while there are none: what has waited in
its system for this connector is not late.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from broker.client.address import Address
from broker.client.async_publisher import AsyncPublisher
from broker.client.outbox import Checked
from broker.client.subscriber import AsyncSubscriber
from broker.connect.dead_letters import DeadLetters
from broker.connect.reading import Reading
from broker.connect.systems import CLOSE_S, UNFIT, Gathered, Giver, Message, Pending, Taker, persist
from broker.connect.writing import Writing
from broker.errors import BrokerError, PublishBlocked, RefusedError
from matcher.errors import BadEvent, EventError
from matcher.model import MICROSECONDS, EventType
from routing.messages import Code
from routing.session import NO_TIME

QUIET_S = 2.0
"""A system that gives nothing for so long has given what it had."""
LOT_EVENTS = 4_096
"""Events that leave together at most."""
_Waiting: TypeAlias = tuple[int, Message, str | None, bool]
"""A message whose event of this number the broker is to acknowledge, or whose letter is to be
written, with this reason, once all up to this number are acknowledged; and whether it is stamped.
"""


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
        self._newest = self._promise_had = NO_TIME
        self.count = 0
        """Messages that the broker has acknowledged as events."""

    async def run(self, address: Address) -> None:
        """Pump until it is cancelled, or nothing will come any more. Raises BrokerError."""
        publisher = AsyncPublisher(
            address,
            name=self.name,
            types=tuple(self._types.values()),
            batch_events=LOT_EVENTS,
            unacknowledged_max=self._window,
            live=self._disorder_s is None,
            on_refusal="keep",
            on_ack=lambda number: self._acknowledged(publisher, number),
        )
        async with asyncio.TaskGroup() as tasks, publisher:
            self._acknowledgements = Gathered(self._giver.acknowledge, tasks)
            await self._giver.open()
            try:
                while messages := await self._received(publisher):
                    await self._publish(publisher, messages)
                while not publisher.has_acknowledged(publisher.published):
                    with suppress(PublishBlocked):
                        await publisher.wait()
            finally:
                with suppress(BrokerError):  # what it has not by then comes again
                    await publisher.wait(CLOSE_S)
                await asyncio.sleep(0)  # on_ack is told
                await self._acknowledgements.close(CLOSE_S)
                await self._giver.close()
                self.letters.close()

    async def _publish(self, publisher: AsyncPublisher, messages: Sequence[Message]) -> None:
        """Publish the events of messages, of which each gets the number that follows."""
        events: Sequence[Checked] = self._read(publisher.published, messages)
        while events:
            with suppress(PublishBlocked):  # the messages wait, and those behind them
                events = events[await publisher.publish_checked(events) :]
        self._acknowledged(publisher, 0)
        await self._promise(publisher, min(time.time(), self._newest / MICROSECONDS))

    async def _received(self, publisher: AsyncPublisher) -> Sequence[Message]:
        """The next messages. While there are none, time goes on by the clock."""
        if self._disorder_s is None:  # none has a time, and the publisher promises by itself
            return await persist(self._giver.receive)
        receiving = asyncio.create_task(persist(self._giver.receive))
        try:
            while not (await asyncio.wait([receiving], timeout=QUIET_S))[0]:
                await self._promise(publisher, time.time() - QUIET_S)
            return receiving.result()
        finally:
            receiving.cancel()

    async def _promise(self, publisher: AsyncPublisher, newest_s: float) -> None:
        """Promise that messages are no more than ``disorder_s`` older than that moment."""
        if self._disorder_s is not None:
            promise = int((newest_s - self._disorder_s) * MICROSECONDS)
            if promise > self._promise_had:
                self._promise_had = promise
                await publisher.promise(promise)

    def _read(self, number: int, messages: Sequence[Message]) -> list[Checked]:
        """The events of messages, which wait for the numbers behind this one."""
        events, wait = [], self._waiting.append
        for message, event in zip(messages, self._reading.events(messages), strict=True):
            if isinstance(event, EventError):
                wait((number, message, str(event), False))
            else:
                number += 1
                events.append(event)
                self._newest = max(self._newest, event[1])
                wait((number, message, None, event[1] == NO_TIME))
        return events

    def _acknowledged(self, publisher: AsyncPublisher, number: int) -> None:
        """Acknowledge messages in the order in which they came, up to a number. Dead letters are
        among them.
        """
        for refusal in publisher.take_refusals():
            for first, last in refusal.numbers:
                self._refusals |= dict.fromkeys(range(first, last + 1), refusal)
        self._number_had = had = max(self._number_had, number)
        waiting, done = self._waiting, []
        while waiting and waiting[0][0] <= had:
            number, message, reason, is_stamped = waiting.popleft()
            if reason is None and self._refusals:
                reason = self._refused(number, is_stamped)
            if reason is None:
                self.count += 1
            else:
                self.letters.keep(message.topic, message.body, reason)
            done.append(message)
        if done:
            self._acknowledgements.add(done)

    def _refused(self, number: int, is_stamped: bool) -> str | None:
        """Why the broker has refused an event; None if it has it, now or from before."""
        refusal = self._refusals.pop(number, None)
        if refusal is None:
            return None
        if is_stamped and refusal.code == Code.CONFLICT.value:
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
        self._dealt_with: list[int] = []
        """Positions of which the broker is to be told."""
        self.count = 0
        """Messages that the other system has confirmed."""

    async def run(self, address: Address) -> None:
        """Pump until it is cancelled. Raises BrokerError."""
        self._subscriber = subscriber = AsyncSubscriber(
            address,
            *self._filters,
            name=self.name,
            credit=self._window,
            durable=self._durable,
            acks="explicit" if self._durable else "auto",
        )
        async with asyncio.TaskGroup() as self._tasks, subscriber:
            sending = Gathered(self._send, self._tasks)
            await self._taker.open()
            try:
                while True:
                    delivery = await subscriber.receive_delivery()
                    for position, message in self._writing.messages(delivery):
                        await self._room.acquire()
                        if isinstance(message, BadEvent):
                            self._dead("", (message.place or "").encode(), message, position)
                        else:
                            sending.add((Pending(message, position, self._told),))
            finally:
                await self._taker.close()
                self._tell()
                self.letters.close()

    async def _send(self, lot: Sequence[Pending]) -> None:
        if left := [pending for pending in lot if not pending.is_done]:
            await self._taker.send(left)

    def _told(self, pending: Pending, error: Exception | None) -> None:
        """The other system has confirmed a message, or never will."""
        if error is None:
            self.count += 1
            self._settle(pending.position)
        elif isinstance(error, (BadEvent, *UNFIT)):
            message = pending.message
            if not isinstance(error, BadEvent):
                error = BadEvent(f"the other system's client refuses it: {error}")
            self._dead(message.topic, message.body, error, pending.position)
        else:
            self._tasks.create_task(_raised(error))

    def _dead(self, topic: str, body: bytes, error: BadEvent, position: int) -> None:
        try:
            self.letters.keep(topic, body, error.reason)
        except OSError as fault:
            self._tasks.create_task(_raised(fault))
            return
        self._settle(position)

    def _settle(self, position: int) -> None:
        """An event is dealt with; the broker is told of those of one turn of the loop together."""
        self._room.release()
        if position:
            if not self._dealt_with:
                asyncio.get_running_loop().call_soon(self._tell)
            self._dealt_with.append(position)

    def _tell(self) -> None:
        positions, self._dealt_with = self._dealt_with, []
        if positions:
            self._subscriber.acknowledge_each(positions)


async def _raised(error: Exception) -> None:
    raise error

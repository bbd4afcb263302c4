"""Other systems, as pumps see them: one that gives messages, and one that takes them, in lots."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote

from msgspec import Struct

from broker.errors import BrokerError
from broker.log import log

CONNECT_S = 10.0
CLOSE_S = 5.0
"""For so long a connector that ends waits for what is under way."""
PLAIN = "".join(map(chr, range(0x20, 0x7F))).translate(dict.fromkeys(map(ord, '"%')))
"""Characters that are not percent-encoded (CloudEvents 1.0.2, HTTP binding, 3.1.3.2)."""
PAUSE_MIN_S, PAUSE_MAX_S = 0.25, 30.0
HEADING = "$heading"
"""The header that is the first line of a table of CSV, of which the message is a row."""
UNFIT = ValueError, TypeError, OverflowError, struct.error
"""Errors of other systems' clients for messages that they cannot write."""
T = TypeVar("T")


class SystemLost(BrokerError):
    """Another system cannot be reached, or refuses; the message names it. What raised it is called
    again after a pause, for a system that is away is waited for; only ``open``, before anything was
    moved, fails for good.
    """


class Message(Struct, frozen=True, eq=False):
    """A message that has come: its topic, subject or path, and its body.

    ``place``: what its system needs to acknowledge it. ``headers``: what it bears beside the body,
    as texts. ``id``: what the system calls it, also when it comes again. ``time``: when the system
    got it, in microseconds.
    """

    topic: str
    body: bytes
    place: Any = None
    headers: Mapping[str, str] = {}
    id: str | None = None
    time: int | None = None


class Outgoing(Struct, frozen=True):
    """A message that is to leave, with the id of its event, for consumers that drop repeats.

    ``attributes``: those of a CloudEvent whose data is the body.
    """

    topic: str
    body: bytes
    id: str
    content_type: str
    headers: Mapping[str, str] = {}
    attributes: Mapping[str, str] = {}
    key: str | None = None

    def all_headers(self, prefix: str) -> dict[str, str]:
        """The headers, with the attributes under their names behind a prefix."""
        return {prefix + name: text for name, text in self.attributes.items()} | {**self.headers}


class Pending:
    """A message that a system is to confirm, and the ``position`` of its event."""

    def __init__(
        self, message: Outgoing, position: int, told: Callable[[Pending, Exception | None], None]
    ) -> None:
        self.message, self.position, self._told = message, position, told
        self.is_done = False

    def tell(self, error: Exception | None = None) -> None:
        """Say that the system has confirmed the message, or by a BadEvent or an error of UNFIT that
        it never will. Any other error ends the connector.
        """
        if not self.is_done:
            self.is_done = True
            self._told(self, error)


class Giver(Protocol):
    """A system that gives messages."""

    async def open(self) -> None:
        """Connect. Raises SystemLost."""

    async def receive(self) -> Sequence[Message]:
        """The next messages; none if none will come any more. Raises SystemLost."""

    async def acknowledge(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages, the next ones of those that were received. Raises SystemLost."""

    async def close(self) -> None:
        """Hang up; what was not acknowledged comes again."""


class Taker(Protocol):
    """A system that takes messages."""

    async def open(self) -> None:
        """Connect. Raises SystemLost."""

    async def send(self, lot: Sequence[Pending]) -> None:
        """Give messages to the system, in their order, and tell each once it is confirmed, which
        may be later. Raises SystemLost: those that were not told are given again.
        """

    async def close(self) -> None:
        """Hang up."""


class Singly:
    """Sends messages side by side, each by a call that returns once the message is confirmed, for a
    system whose client knows no lots. The call raises BadEvent, and SystemLost: it is made again.
    """

    def __init__(self, send: Callable[[Outgoing], Awaitable[None]]) -> None:
        self._send = send
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, lot: Sequence[Pending]) -> None:
        """Send messages soon."""
        for pending in lot:
            task = asyncio.create_task(self._send_one(pending))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Give up what is not confirmed."""
        for task in self._tasks:
            task.cancel()

    async def _send_one(self, pending: Pending) -> None:
        try:
            await persist(partial(self._send, pending.message))
        except Exception as error:
            pending.tell(error)
        else:
            pending.tell()


def quoted_headers(message: Outgoing) -> dict[str, str]:
    """The headers of a message, and the attributes of its CloudEvent, as HTTP and NATS bear them:
    other characters than printable ones of ASCII are percent-encoded.
    """
    return {name: quote(text, safe=PLAIN) for name, text in message.all_headers("ce-").items()}


async def persist(attempt: Callable[[], Awaitable[T]]) -> T:
    """The result of an attempt. After SystemLost it is made again, after pauses that double."""
    pause_s = PAUSE_MIN_S
    while True:
        try:
            return await attempt()
        except SystemLost as error:
            fields = {"reason": str(error), "again_in_s": pause_s}
            log("warning", "another system is away", fields, "connect")
        await asyncio.sleep(pause_s)
        pause_s = min(PAUSE_MAX_S, 2 * pause_s)


class Inbox:
    """At most so many messages that a client's callbacks have brought, until they are received; any
    number if its user sees to the bound.
    """

    def __init__(self, most: int = 0) -> None:
        self._messages = asyncio.Queue[Message](most)

    @property
    def count(self) -> int:
        """How many there are."""
        return self._messages.qsize()

    async def put(self, message: Message) -> None:
        """Add a message; wait if there is no room."""
        await self._messages.put(message)

    def put_now(self, message: Message) -> None:
        """Add a message for which there is room."""
        self._messages.put_nowait(message)

    async def take(self) -> list[Message]:
        """All that there are, one at least."""
        messages = [await self._messages.get()]
        while not self._messages.empty():
            messages.append(self._messages.get_nowait())
        return messages


class Gathered(Generic[T]):
    """Things given to a system together: those that came while it was busy with others. They are
    given in the order in which they came. If the system is away, all that it was given last are
    given again.
    """

    def __init__(
        self, give: Callable[[Sequence[T]], Awaitable[None]], tasks: asyncio.TaskGroup
    ) -> None:
        self._give, self._tasks = give, tasks
        self._things: list[T] = []
        self._giving: asyncio.Task[None] | None = None

    def add(self, things: Sequence[T]) -> None:
        """Give things soon."""
        self._things += things
        if self._giving is None or self._giving.done():
            self._giving = self._tasks.create_task(self._give_all())

    async def close(self, seconds: float) -> None:
        """Give what is left, for so long at most."""
        if self._giving is not None:
            await asyncio.wait([self._giving], timeout=seconds)
            self._giving.cancel()

    async def _give_all(self) -> None:
        while self._things:
            things, self._things = self._things, []
            await persist(partial(self._give, things))

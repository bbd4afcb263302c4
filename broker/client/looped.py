"""Drives a connection from an asyncio event loop, for the asynchronous clients.

The loop watches the link's descriptors itself (``add_reader``) and drains what has come: no
thread, and none of the cost of a poller per call. Used from the loop's thread alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from types import TracebackType
from typing import Any

from broker.client.connection import Connection
from broker.client.open_clients import is_seen_off, note_closed, note_open, see_off, tell_unsaid
from broker.errors import BrokerError, BrokerUnreachable


class Looped:
    """A connection in an event loop. ``with driver:`` uses the connection, as in ``Threaded``."""

    def __init__(self, connection: Connection) -> None:
        self.lock = contextlib.nullcontext()
        """As in ``Threaded``; the loop's thread needs none."""
        self._connection = connection
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watched: tuple[int, ...] = ()
        self._links = 0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: set[asyncio.Event] = set()

    async def open(self, timeout_s: float) -> None:
        """Connect and wait for the broker's welcome; BrokerUnreachable after ``timeout_s``."""
        self._loop = asyncio.get_running_loop()
        connection = self._connection
        connection.start()
        self.rearm()
        try:
            if not await self.wait_until(lambda: connection.session.ready, timeout_s):
                raise self._connection.unreachable(timeout_s)
            note_open(self)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Connection:
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._connection.session.effects:
            self.pump()

    async def wait_until(self, holds: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until ``holds()``; False after ``timeout_s`` seconds. Raises what went wrong."""
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            async with asyncio.timeout(timeout_s):
                while self._connection.failure is None and not holds():
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(changed)
        if not holds():
            self._connection.check()
        return holds()

    async def ask(self, request: Callable[[], int], timeout_s: float) -> Any:
        """Make a request of the session and wait for its answer. Raises RefusedError."""
        with self as connection:
            connection.check()
            answer = connection.answer(request())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(answer), timeout_s)
        except TimeoutError:
            raise BrokerUnreachable(
                f"{connection.endpoint}: no answer within {timeout_s:g} s"
            ) from None

    def close(self) -> None:
        """Say goodbye and let go of the loop."""
        note_closed(self)
        self._connection.close()
        self.rearm()
        self._tell()

    def end(self, seconds: float) -> None:
        """Close as the interpreter ends (broker.client.open_clients). Its loop has ended mostly,
        and is not needed; one that runs on in a thread of its own does it itself.
        """
        note_closed(self)
        if self._loop is None or not self._loop.is_running():
            see_off(self._connection, seconds)
            return
        leaving = asyncio.run_coroutine_threadsafe(self._leave(seconds), self._loop)
        with contextlib.suppress(TimeoutError, BrokerError):
            leaving.result(seconds)

    async def _leave(self, seconds: float) -> None:
        connection = self._connection
        if connection.failure is None and connection.due is not None:
            connection.due()
        self.pump()
        await self.wait_until(lambda: is_seen_off(connection), seconds)
        tell_unsaid(connection)
        self.close()

    def pump(self) -> None:
        """Let the connection do what it can."""
        if self._connection.failure is None:
            self._connection.pump()
        self.rearm()
        self._tell()

    def _tell(self) -> None:
        for changed in self._waiting:
            changed.set()

    def rearm(self) -> None:
        """Watch the link's descriptors, and the clock up to the next deadline."""
        assert self._loop is not None, "the client is used before it is opened"
        connection, loop = self._connection, self._loop
        if connection.links != self._links:
            self._links = connection.links
            for descriptor in self._watched:
                loop.remove_reader(descriptor)
            self._watched = connection.descriptors
            for descriptor in self._watched:
                loop.add_reader(descriptor, self.pump)
        deadline = connection.deadline()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline < math.inf and connection.failure is None:
            pause = max(0.0, deadline - connection.clock.now())
            self._timer = loop.call_later(pause, self.pump)

"""Drives a connection from an asyncio event loop, for the asynchronous clients.

The loop watches the link's descriptors itself (``add_reader``) and drains what has come: no
thread, and none of the cost of a poller per call. It is of use in this loop alone, and refused
elsewhere.

A client that is dropped unclosed is closed by its loop, which sees its events off first; if the
loop has ended, that is done at once.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

from broker.client import uninterrupted
from broker.client.connection import Connection
from broker.client.open_clients import (
    EXIT_S,
    is_seen_off,
    note_closed,
    note_open,
    see_off,
    tell_unsaid,
)
from broker.errors import BrokerError, BrokerUnreachable, ClientClosed, ForeignClient


class Looped:
    """A connection in an event loop. ``with driver:`` uses the connection, as in ``Threaded``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watched: tuple[int, ...] = ()
        self._links = 0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: set[asyncio.Event] = set()
        self._leaving: asyncio.Task[None] | None = None

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

    def check_place(self) -> None:
        """Raise ForeignClient outside its loop, and ClientClosed before it is open."""
        if self._loop is None:
            raise ClientClosed("this client is not open yet: async with, or await open()")
        self._connection.refuse_foreign()
        if asyncio._get_running_loop() is not self._loop:
            raise ForeignClient(
                "this client belongs to the event loop, and the thread, that has opened it: open "
                "one here"
            )

    def __enter__(self) -> Connection:
        self.check_place()
        uninterrupted.enter()
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._connection.session.effects:
                self._pump()
        finally:
            uninterrupted.leave()

    async def wait_until(self, holds: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until ``holds()``; False after ``timeout_s`` seconds. Raises what went wrong."""
        if await self.holds_in_time(holds, timeout_s):
            return True
        self._connection.check()
        return False

    async def holds_in_time(self, holds: Callable[[], bool], timeout_s: float | None) -> bool:
        """``wait_until``, but False for what went wrong."""
        changed = asyncio.Event()
        self._waiting.add(changed)
        with suppress(TimeoutError):
            try:
                async with asyncio.timeout(timeout_s):
                    while self._connection.failure is None and not holds():
                        await changed.wait()
                        changed.clear()
            finally:
                self._waiting.discard(changed)
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
        uninterrupted.whole(self._connection.close)
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
        leaving = asyncio.run_coroutine_threadsafe(self.leave(seconds), self._loop)
        with suppress(TimeoutError, BrokerError):
            leaving.result(seconds)

    @property
    def endpoint(self) -> str:
        """Where its broker is."""
        return self._connection.endpoint

    @property
    def is_closed(self) -> bool:
        """Whether there is nothing left to close."""
        return self._loop is None or self._connection.failure is not None

    def drop(self) -> None:
        """Close it as its client is collected, by any thread."""
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._leave_soon)
        elif not sys.is_finalizing():
            self.end(EXIT_S)

    def disown(self) -> None:
        """Begin in a child that was forked, which has nothing of the loop's."""
        self._connection.disown()
        self._watched = ()

    async def leave(self, seconds: float) -> None:
        """See what was published off, for so long at most, say what was not, and close."""
        try:
            await self._see_off(seconds)
        finally:
            tell_unsaid(self._connection)
            self.close()

    async def _see_off(self, seconds: float) -> None:
        with self as connection:
            if connection.failure is None and connection.due is not None:
                connection.due()
        await self.holds_in_time(lambda: is_seen_off(connection), seconds)

    def _leave_soon(self) -> None:
        assert self._loop is not None, "it is open"
        self._leaving = self._loop.create_task(self._leave_dropped())

    async def _leave_dropped(self) -> None:
        with suppress(asyncio.CancelledError):  # its loop ends, so the interpreter's end does this
            await self._see_off(EXIT_S)
            tell_unsaid(self._connection)
            self.close()

    def pump(self) -> None:
        """Let the connection do what it can."""
        uninterrupted.whole(self._pump)

    def _pump(self) -> None:
        if self._connection.failure is None:
            self._connection.pump()
        self.rearm()
        self._tell()

    def _tell(self) -> None:
        for changed in self._waiting:
            changed.set()

    def rearm(self) -> None:
        """Watch the link's descriptors, and the clock up to the next deadline."""
        connection, loop = self._connection, self._loop
        if loop is None or loop.is_closed():
            return
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

"""Drives a connection from a thread of its own, for the synchronous clients.

Law: the connection is touched only between ``__enter__`` and ``__exit__``, by whichever thread.
A caller thus sends in its own thread, without a hand-over; the background thread receives, keeps
the heartbeats and makes links again, whatever the caller does meanwhile.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from broker.client.connection import Connection
from broker.errors import BrokerUnreachable


class Threaded:
    """A connection, its lock and its thread. ``with driver:`` uses the connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.lock = threading.RLock()
        """Guards the connection; ``with driver:`` holds it and pumps at its end."""
        self._changed = threading.Condition(self.lock)
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._sleeps_until = math.inf
        self._watched = 0
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="rexmq client", daemon=True)

    def open(self, timeout_s: float) -> None:
        """Connect and wait for the broker's welcome; BrokerUnreachable after ``timeout_s``."""
        with self._changed:
            self._connection.start()
        self._thread.start()
        session = self._connection.session
        try:
            if not self.wait_until(lambda: session.ready, timeout_s):
                raise BrokerUnreachable(
                    f"no broker answers at {self._connection.endpoint} within {timeout_s:g} s"
                )
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Connection:
        self._changed.acquire()
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.pump()
        finally:
            self._changed.release()

    def wait_until(self, holds: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until ``holds()``; False after ``timeout_s`` seconds. Raises what went wrong."""
        connection = self._connection
        with self._changed:
            self._changed.wait_for(lambda: connection.failure is not None or holds(), timeout_s)
            if not holds():
                connection.check()
            return holds()

    def ask(self, request: Callable[[], int], timeout_s: float) -> Mapping[str, Any]:
        """Make a request of the session and wait for its answer. Raises RefusedError."""
        with self as connection:
            connection.check()
            answer = connection.answer(request())
        try:
            return answer.result(timeout_s)
        except TimeoutError:
            raise BrokerUnreachable(
                f"{connection.endpoint}: no answer within {timeout_s:g} s"
            ) from None

    def close(self) -> None:
        """Say goodbye and end the thread."""
        with self._changed:
            self._connection.close()
            already, self._stopped = self._stopped, True
            self._changed.notify_all()
        if already:
            return
        os.write(self._wake_write, b"\0")
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def pump(self) -> None:
        """Let the connection do what it can. The lock is held."""
        if not self._stopped:
            self._connection.pump()
        self._changed.notify_all()
        self.rearm()

    def rearm(self) -> None:
        """See to it that the thread wakes in time for a new deadline. The lock is held."""
        connection = self._connection
        deadline = connection.deadline()
        sooner = deadline is not None and deadline < self._sleeps_until
        if (sooner or connection.links != self._watched) and not self._stopped:
            self._sleeps_until = -math.inf  # one wake is enough
            os.write(self._wake_write, b"\0")

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                self._connection.pump()
                self._changed.notify_all()
                deadline = self._connection.deadline()
                self._watched = self._connection.links
                self._sleeps_until = math.inf if deadline is None else deadline
                poller = select.poll()
                for descriptor in (*self._connection.descriptors, self._wake_read):
                    poller.register(descriptor, select.POLLIN)
                now = self._connection.clock.now()
            pause_ms = None if deadline is None else math.ceil(max(0.0, deadline - now) * 1000)
            poller.poll(pause_ms)
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)

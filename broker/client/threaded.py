"""Drives a connection for the synchronous clients: by whoever waits, else by a thread of its own.

Law 1: the connection is touched only by who holds ``lock``. A caller sends in its own thread,
without a hand-over.

Law 2: one at a time watches the link. A caller that waits does so itself, for a hand-over between
threads would cost more than the rest of a message's way; further callers wait for the first. The
background thread watches while nobody waits: it receives, keeps the heartbeats and makes links
again, whatever the callers do meanwhile.

Law 3: callers come and go with every event, so the thread does not take over when one leaves but
when none has come for ``RESPITE_S``; until then it looks only once in so long at what has come and
what is due. So a publisher's thread does not wake for each acknowledgement of a stream; nor does
its caller look for one after an event that has left alone, for on a core that all share this would
keep the event from its way. While a caller waits for longer than that, the thread sleeps without
end, and the caller rings for it when it leaves.

Law 4: who changes something while another watches rings that one's bell.

Law 5: a caller is at the connection in sections that no signal handler interrupts
(``uninterrupted``), but for its sleep. The background thread calls nothing of the program's.

Law 6: a client that is dropped unclosed is closed by the thread, which sees its events off first.
A child that was forked has no thread and no link: its parent's clients are of no use to it.
"""

from __future__ import annotations

import math
import select
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeAlias

from broker.client import uninterrupted
from broker.client.bell import Bell
from broker.client.connection import Connection
from broker.client.open_clients import EXIT_S, is_seen_off, note_closed, note_open, tell_unsaid
from broker.errors import BrokerError, BrokerUnreachable
from broker.log import log

RESPITE_S = 0.02
"""So long after a caller has watched the link, in seconds, the thread leaves it unwatched."""
DROP_S = 0.25
"""So long a client that is dropped is waited for, in seconds: mostly it has gone by then, and its
name is free."""
WATCH_S_MAX = 3_600.0
"""The longest single sleep, in seconds; ``poll`` does not take much longer ones."""
_UNKNOWN = -1
"""A number of visits that never was: whatever comes after it counts as news."""
Poll: TypeAlias = Callable[[float], list[tuple[int, int]]]
"""Sleeps for so many milliseconds at most; gives the readable descriptors, each with a word why."""


class Threaded:
    """A connection, its lock and its thread. ``with driver:`` uses the connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.lock = threading.RLock()
        """Guards the connection; ``with driver:`` holds it, and lets out what was said."""
        self._stopped = False
        self._dropped_until: float | None = None
        """When a client that was dropped is given up; None for one that is in use."""
        self._visits = 0
        """How often a caller has come to the link, to watch it or to pump."""
        self._attended = False
        """Whether a caller watches it now."""
        self._thread_watches = False
        self._thread_sleeps_until = math.inf
        self._watched = 0
        self._queue: list[threading.Lock] = []
        """The callers that wait for the one who watches; to release one's lock wakes it."""
        self._poll_link: Poll | None = None
        self._polled = 0
        self._caller_bell, self._thread_bell = Bell(), Bell()
        self._thread = threading.Thread(target=self._run, name="rexmq client", daemon=True)

    def open(self, timeout_s: float) -> None:
        """Connect and wait for the broker's welcome; BrokerUnreachable after ``timeout_s``."""
        session = self._connection.session
        try:
            with self:
                self._connection.start()
                self._thread.start()
                note_open(self)
                if not self.wait_until(lambda: session.ready, timeout_s):
                    raise self._connection.unreachable(timeout_s)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Connection:
        uninterrupted.enter()
        self.lock.acquire()
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._connection.session.effects:
                self.pump()
        finally:
            self.lock.release()
            uninterrupted.leave()

    def wait_until(self, holds: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until ``holds()``; False after ``timeout_s`` seconds. Raises what went wrong.

        To be called in ``with driver:``, once; the lock is released while this waits.
        """
        if self.holds_in_time(holds, timeout_s):
            return True
        self._connection.check()
        return False

    def holds_in_time(self, holds: Callable[[], bool], timeout_s: float | None) -> bool:
        """``wait_until``, but False for what went wrong."""
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        while not holds():
            if self._connection.failure is not None:
                return False
            left_s = WATCH_S_MAX if ends_at is None else ends_at - time.monotonic()
            if left_s <= 0:
                return False
            if self._attended:
                self._wait_in_queue(left_s)
            elif self._attend(left_s, holds):
                return True
        return True

    def ask(self, request: Callable[[], int], timeout_s: float) -> Any:
        """Make a request of the session and wait for its answer. Raises RefusedError."""
        with self as connection:
            connection.check()
            answer = connection.answer(request())
            self.pump()
            # A client that fails meanwhile answers too, so nothing else can end the wait.
            if not self.wait_until(answer.done, timeout_s):
                raise BrokerUnreachable(f"{connection.endpoint}: no answer within {timeout_s:g} s")
            return answer.result()

    def close(self, *, returns: bool = False) -> None:
        """Say goodbye (``Session.close``) and end the thread."""
        with self:
            self._end(returns=returns)
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def end(self, seconds: float) -> None:
        """See what was published off, for so long at most, say what was not, and close."""
        try:
            with self as connection:
                if connection.failure is None and connection.due is not None:
                    connection.due()
                self.holds_in_time(lambda: is_seen_off(connection), seconds)
        finally:
            tell_unsaid(self._connection)
            self.close()

    @property
    def endpoint(self) -> str:
        """Where its broker is."""
        return self._connection.endpoint

    @property
    def is_closed(self) -> bool:
        """Whether there is nothing left to close."""
        return self._stopped or self._thread.ident is None

    def drop(self) -> None:
        """Have the thread close it (Law 6). Called as its client is collected, by any thread, which
        may hold any lock: so nothing here waits for one.
        """
        self._dropped_until = time.monotonic() + EXIT_S
        self._thread_bell.ring()
        if self._thread is not threading.current_thread():
            self._thread.join(DROP_S)

    def disown(self) -> None:
        """Begin in a child that was forked: what the parent's threads were at is none of its."""
        self.lock = threading.RLock()
        self._queue, self._attended, self._thread_watches = [], False, False
        self._stopped = True
        self._connection.disown()

    def _end(self, *, returns: bool = False) -> None:
        note_closed(self)
        self._connection.close(returns=returns)
        if not self._stopped:
            self._stopped = True
            self._wake_queue()
            self._caller_bell.ring()
            self._thread_bell.ring()

    def pump(self, *enough: Callable[[], bool], has_come: bool = False) -> bool:
        """Let the connection do what it can, as ``Connection.pump``. The lock is held."""
        self._visits += 1
        is_enough = not self._stopped and self._connection.pump(*enough, has_come=has_come)
        self._wake_queue()
        self.rearm()
        return is_enough

    def let_out(self) -> None:
        """Let out what was said; what has come is left to the thread (Law 3). The lock is held."""
        if self._thread_watches or self._attended or self._stopped:
            self.pump()
        else:
            self._visits += 1
            self._connection.let_out()

    def rearm(self) -> None:
        """See to it that who watches wakes in time for a new deadline. The lock is held."""
        if self._stopped:
            return
        if self._attended:  # Law 4
            self._caller_bell.ring()
            return
        moved = self._thread_watches and self._connection.links != self._watched
        if moved or self._connection.deadline() < self._thread_sleeps_until:
            self._wake_thread()

    def _wait_in_queue(self, seconds: float) -> None:
        """Wait, for so long at most, for the caller who watches the link."""
        turn = threading.Lock()
        turn.acquire()
        self._queue.append(turn)
        self.lock.release()
        try:
            uninterrupted.interruptible(turn.acquire, True, min(seconds, WATCH_S_MAX))
        finally:
            self.lock.acquire()
            if turn in self._queue:
                self._queue.remove(turn)

    def _wake_queue(self) -> None:
        while self._queue:
            self._queue.pop().release()

    def _attend(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Watch the link in the thread's place, until there is something to do or for so long.

        Gives whether ``holds`` then does. What has come is taken in before that, and only as far as
        ``holds`` asks for it.
        """
        self._visits += 1
        has_come = self._connection.drained and self._sleep(seconds)
        return self.pump(holds, has_come=has_come)

    def _sleep(self, seconds: float) -> bool:
        """Sleep in the thread's place until something comes, a deadline, or for so long; gives
        whether the link has told of something.
        """
        self._attended = True
        if self._thread_watches:
            self._wake_thread()  # so that it steps aside
        wait_s = min(seconds, self._left(self._connection.deadline()))
        poll = self._link_poll()
        self.lock.release()
        try:
            ready = uninterrupted.interruptible(poll, _milliseconds(wait_s))
        except BaseException:  # of a handler: others watch from now on
            self.lock.acquire()
            self._attended = False
            self._wake_queue()
            self.rearm()
            raise
        self.lock.acquire()
        self._attended = False
        if (self._caller_bell.descriptor, select.POLLIN) not in ready:
            return bool(ready)
        self._caller_bell.hush()
        return len(ready) > 1

    def _link_poll(self) -> Poll:
        """The poll of the callers, of the present link."""
        connection = self._connection
        if self._poll_link is None or self._polled != connection.links:
            self._polled = connection.links
            self._poll_link = _poll(*connection.descriptors, self._caller_bell.descriptor)
        return self._poll_link

    def _run(self) -> None:
        try:
            self._watch()
        except Exception as error:  # of ours: a caller is told, for nobody else would be
            with self.lock:
                log("error", "the client has failed", {"error": repr(error)}, "client")
                self._connection.fail(BrokerError(f"the client has failed: {error!r}"))
                self._end()

    def _watch(self) -> None:
        visits = _UNKNOWN
        while True:
            with self.lock:
                if self._stopped or self._has_gone():
                    return
                if not self._attended:
                    self._connection.pump()
                    self._wake_queue()
                undisturbed, visits = visits == self._visits, self._visits
                self._thread_watches = undisturbed and not self._attended
                self._watched = self._connection.links
                if self._attended and undisturbed:
                    until, visits = math.inf, _UNKNOWN
                elif undisturbed:
                    until = self._connection.deadline()
                else:
                    respite_until = self._connection.clock.now() + RESPITE_S
                    until = min(self._connection.deadline(), respite_until)
                self._thread_sleeps_until = until
                wait_s = self._left(until)
                descriptors = self._connection.descriptors if self._thread_watches else ()
                poll = _poll(*descriptors, self._thread_bell.descriptor)
            poll(_milliseconds(wait_s))
            self._thread_bell.hush()

    def _has_gone(self) -> bool:
        """Whether the client was dropped, and has left since: nobody else uses the connection."""
        if self._dropped_until is None:
            return False
        connection = self._connection
        if connection.failure is None and connection.due is not None:
            connection.due()
        is_over = time.monotonic() >= self._dropped_until
        if is_over or connection.pump(lambda: is_seen_off(connection)):
            tell_unsaid(connection)
            self._end()
        return self._stopped

    def _wake_thread(self) -> None:
        self._thread_bell.ring()  # first, for what follows says that it was rung
        self._thread_watches = False
        self._thread_sleeps_until = -math.inf  # one wake is enough

    def _left(self, until: float) -> float:
        """Seconds until then."""
        return max(0.0, until - self._connection.clock.now()) if until < math.inf else until


def _poll(*descriptors: int) -> Poll:
    poller = select.poll()
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)
    return poller.poll


def _milliseconds(seconds: float) -> int:
    return math.ceil(min(seconds, WATCH_S_MAX) * 1000)

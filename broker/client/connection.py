"""The base of all clients: a Session on a link that is made again when it ends."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from broker import names
from broker.client.address import Address
from broker.client.link import Link
from broker.clock import Clock
from broker.errors import (
    BrokerError,
    BrokerUnreachable,
    ClientClosed,
    ForeignClient,
    RefusedError,
)
from broker.log import log
from routing import wire
from routing.config import SessionConfig
from routing.effects import Close, Log, Send
from routing.messages import Code, Confirmed, LogPart, Refused, Welcome
from routing.session import Lost, Result, Session

PAUSE_MIN_S, PAUSE_MAX_S = 0.05, 1.0
"""The first pause before a link is made again, and the longest, in seconds."""
GOODBYE_S = 2.0
"""How long, in seconds, a closing client's last messages have to leave."""

Answer = Future[Any]
"""The detail of a Confirmed, or a LogPart."""


def _never() -> bool:
    return False


class Connection:
    """A session and its links. ``take`` gets every result that answers no request.

    Nothing here waits or knows of threads or event loops; ``threaded`` and ``looped`` drive it.
    They call ``pump`` when a descriptor is readable, when ``deadline`` has passed, and after each
    use of the session. Descriptors are edge-triggered, so none of them is slept on unless the link
    is ``drained``. A link that ends is made again after a pause that doubles, with jitter, so that
    a broker that comes back is not stormed.
    """

    def __init__(
        self,
        address: Address,
        config: SessionConfig,
        take: Callable[[Result], None],
    ) -> None:
        self._addresses = address.all
        self._turn = 0
        self._is_placed = False
        """Whether it has to go on at this address. Of several the next one is tried where a link is
        not let in, or ends; but a source goes on where it is, for elsewhere its name is taken,
        unless its broker has sent it away.
        """
        self._obstacle = ""
        """The reason why links have not been let in since the last welcome; "" for none."""
        self.session = Session(config)
        self.session.others = len(self._addresses) - 1
        self.clock = Clock()
        self.failure: BrokerError | None = None
        """Why this client is at its end; None while it lives."""
        self.links = 0
        """How many links were made and ended."""
        self.drained = False
        """Whether the last pump found nothing more to receive."""
        self.problem: BrokerError | None = None
        """A refusal that answers no request, until a call raises it."""
        self.due: Callable[[], None] | None = None
        """Called when ``due_at`` has passed, for what the client does of its own accord, and
        before the session's timer acts if it waits for anything then."""
        self.due_at = math.inf
        self.unraised: Callable[[], Sequence[BrokerError]] = tuple
        """Gives what the client has yet to raise of its own."""
        self.unacknowledged: Callable[[], int] = lambda: self.session.outgoing.unacknowledged
        """Gives how many events the broker is not known to have."""
        self.settled: Callable[[], None] | None = None
        """Called at each pump's end."""
        self._take = take
        self._answers: dict[int, Answer] = {}
        self._link: Link | None = None
        self._reconnect_at = math.inf
        self._pause_s = PAUSE_MIN_S
        self._random = random.Random()

    # --- for the driver ---

    @property
    def endpoint(self) -> str:
        """Where its broker is, or is looked for."""
        return self._addresses[self._turn].endpoint

    def start(self) -> None:
        """Make the first link."""
        self._connect()
        self.pump()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors to watch; of another link, even if the numbers are the same, once ``links``
        grew.
        """
        return () if self._link is None else self._link.descriptors

    def deadline(self) -> float:
        """When ``pump`` is due at the latest, on this connection's clock; infinite for never."""
        due = self._reconnect_at if self._link is None else self.session.timer_at
        return due if due < self.due_at else self.due_at

    def pump(self, enough: Callable[[], bool] = _never, *, has_come: bool = False) -> bool:
        """Do all that can be done now: receive, timers, effects, results; or stop at ``enough``.

        Gives whether it is. Who waits for one thing gets it at once so, and looks for more when it
        comes back. ``has_come``: a descriptor has told of something, so that it is received without
        a look beforehand.
        """
        now = self.clock.now()
        if self.deadline() <= now:
            self._act(now)
        self.drained = False
        self._carry_out()
        while not (is_enough := enough()):
            # Sending may have consumed the descriptor's signal, so this comes last.
            if not self._receive(has_come=has_come):
                self.drained = True
                break
            has_come = False
            self._carry_out()
        if self.settled is not None:
            self.settled()
        return is_enough

    def let_out(self) -> None:
        """Do what was said, and no more: nothing is received, no timer acts."""
        self.drained = False  # sending may have consumed the descriptor's signal
        self._carry_out()
        if self.settled is not None:
            self.settled()

    # --- for the client ---

    def answer(self, request: int) -> Answer:
        """The future answer to a request that was just made."""
        future: Answer = Future()
        self._answers[request] = future
        return future

    def unreachable(self, timeout_s: float) -> BrokerUnreachable:
        """The error of a broker that has not welcomed this client within ``timeout_s``."""
        if self._obstacle:
            return BrokerUnreachable(
                f"{self.endpoint} does not let this client in: {self._obstacle}"
            )
        text = f"no broker answers at {self.endpoint} within {timeout_s:g} s"
        if reason := names.problem(self.endpoint):
            text = f"{text}: {reason}"
        return BrokerUnreachable(text)

    def refuse_foreign(self) -> None:
        """Raise ForeignClient in a child that was forked."""
        if isinstance(self.failure, ForeignClient):
            raise self.failure

    def check(self) -> None:
        """Raise what ended this client, or what the broker refused without being asked."""
        if self.failure is not None:
            raise self.failure
        if self.problem is not None:
            problem, self.problem = self.problem, None
            raise problem

    def close(self, reason: str = "", *, returns: bool = False) -> None:
        """Say goodbye (``Session.close``) and end the link; harmless when done before."""
        if self._link is not None:
            self.session.close(self.clock.now(), reason, returns=returns)
            self._carry_out()
        self._end_link(GOODBYE_S)
        self.fail(ClientClosed("the client was closed"))

    def fail(self, failure: BrokerError) -> None:
        """End this client, unless it has ended: whoever asks, or has asked, is told why."""
        self.failure = self.failure or failure
        answers, self._answers = self._answers, {}
        for future in answers.values():
            if not future.done():
                future.set_exception(failure)

    def disown(self) -> None:
        """End it in a child that was forked. The link is its parent's, and is left as it is."""
        self._answers.clear()
        self._link = None
        self.failure = ForeignClient(
            f"this client was opened by the process {os.getppid()}, of which this one is a fork: "
            f"open one here"
        )

    # --- inside ---

    def _act(self, now: float) -> None:
        """Do what is due: the client's own first, for the session may promise by the clock."""
        if self.due is not None and self.due_at < math.inf:
            self.due()
        if self._link is None:
            if self._reconnect_at <= now:
                self._connect()
        elif self.session.timer_at <= now:
            self.session.handle_timer(now)

    def _connect(self) -> None:
        self._reconnect_at = math.inf
        self._link = Link(self.endpoint, curve=self._addresses[self._turn].curve)
        self.links += 1
        self.session.connect(self.clock.now())

    def _receive(self, *, has_come: bool) -> bool:
        """Take in all that has come; whether there may be effects or results."""
        link, taken = self._link, False
        while link is not None and link is self._link:
            if not has_come and link.is_quiet:
                return taken
            has_come = False
            frames = link.receive()
            if frames is None:
                break
            self.session.receive_frames(frames, self.clock.now())
            taken = True
            if len(frames) > 1:  # events: let their credit and acknowledgements out first
                return True
        if link is not None and link is self._link and link.ended:
            self._obstacle = link.obstacle or self._obstacle
            self.session.lose(self.clock.now(), f"{self.endpoint}: the connection ended")
            return True
        return taken

    def _carry_out(self) -> None:
        session = self.session
        while session.effects:
            for effect in session.take_effects():
                if isinstance(effect, Send):
                    if self._link is not None and not self._link.send(wire.encode(effect.message)):
                        session.lose(self.clock.now(), f"{self.endpoint}: the connection ended")
                elif isinstance(effect, Close):
                    self._end_link(GOODBYE_S)
                else:
                    assert isinstance(effect, Log), "a client has no store"
                    log(effect.level, effect.text, effect.fields, "client")
        if session.results:
            for result in session.take_results():
                handle = _DISPATCHED.get(type(result))
                if handle is None:
                    self._take(result)
                else:
                    handle(self, result)

    def _welcomed(self, welcome: Welcome) -> None:
        # Whatever stood in the way before does no more.
        self._pause_s, self.problem, self._obstacle = PAUSE_MIN_S, None, ""
        self._is_placed = True
        self._take(welcome)

    def _confirmed(self, result: Confirmed) -> None:
        future = self._answers.pop(result.request, None)
        if future is not None and not future.done():  # whoever asked may have given up
            future.set_result(result.detail)

    def _read(self, result: LogPart) -> None:
        future = self._answers.pop(result.request, None)
        if future is not None and not future.done():
            future.set_result(result)

    def _refused(self, result: Refused) -> None:
        refusal = RefusedError(result.reason, result.code.value)
        future = None if result.request is None else self._answers.pop(result.request, None)
        if future is None:
            self.problem = refusal
        elif not future.done():
            future.set_exception(refusal)

    def _lost(self, lost: Lost) -> None:
        self._end_link(0)
        if not lost.retry:
            kind = BrokerUnreachable if lost.code is Code.CLOSING else None
            self.fail(kind(lost.reason) if kind else RefusedError(lost.reason, lost.code.value))
            return
        self._take(lost)
        pause_s = self._pause_s * self._random.uniform(0.5, 1)
        is_sent_away = lost.code is Code.LEAVING and self._is_placed
        self._is_placed &= lost.code is not Code.LEAVING
        if len(self._addresses) > 1 and not (self._is_placed and self.session.is_source):
            self._turn = (self._turn + 1) % len(self._addresses)
            pause_s *= not is_sent_away
        self._reconnect_at = self.clock.now() + pause_s
        self._pause_s = min(PAUSE_MAX_S, 2 * self._pause_s)

    def _end_link(self, linger_s: float) -> None:
        if self._link is not None:
            self._link.close(linger_s)
            self._link = None
            self.links += 1


_DISPATCHED: Mapping[type, Callable[[Connection, Any], None]] = {
    Welcome: Connection._welcomed,
    Confirmed: Connection._confirmed,
    LogPart: Connection._read,
    Refused: Connection._refused,
    Lost: Connection._lost,
}
"""Handlers of results; the client itself takes the others."""

"""The client's side of the protocol, without sockets, clocks or threads (architecture.md 4).

A Session outlives its links: ``connect`` on a fresh link says Hello; once welcomed, it advertises
and subscribes again and sends again what was not acknowledged. Outcomes come out of
``take_results`` as the broker's own messages, in order, with ``Lost`` where a link ended.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from matcher.model import EventBatch, EventType
from routing import wire
from routing.config import SessionConfig
from routing.effects import BROKER, Close, Effect, Log, Send
from routing.errors import SessionError, VersionMismatch, WireError
from routing.messages import (
    VERSION,
    Acknowledged,
    Advertise,
    Code,
    Confirmed,
    Credit,
    Delivery,
    Deploy,
    FromBroker,
    FromClient,
    Goodbye,
    Heartbeat,
    Hello,
    ListRules,
    Refused,
    Rejected,
    Remove,
    ShowRule,
    StatusRequest,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Welcome,
    WhenFull,
)
from routing.outgoing import NO_TIME as NO_TIME
from routing.outgoing import Outgoing
from routing.requests import Asked, Requests

NO_RETRY = frozenset(
    {Code.VERSION, Code.BAD_NAME, Code.PROTOCOL, Code.SCHEMA, Code.BAD_EVENT, Code.QUEUE_FULL}
)
"""Ends of a link that the next one would come to as well."""


class State(enum.Enum):
    """Where the session's conversation stands."""

    OFF = "off"  # no link
    GREETING = "greeting"  # Hello was said
    READY = "ready"  # Welcome was heard
    CLOSED = "closed"  # Goodbye was said: for good


@dataclass(frozen=True, slots=True)
class Lost:
    """The link is gone: the host may ``connect`` again (after a pause that grows).

    ``retry`` is False when the next link would end like this one.
    """

    code: Code
    reason: str
    retry: bool


Result: TypeAlias = Welcome | Confirmed | Refused | Acknowledged | Rejected | Delivery | Lost


class Session:
    """One client. ``now`` is in seconds since the epoch (it stamps events) and never goes back."""

    def __init__(self, config: SessionConfig) -> None:
        self._config = config
        self._state = State.OFF
        self._now = self._sent_at = self._heard_at = 0.0
        self._tick_s = config.heartbeat_s / 2
        self.timer_at = math.inf
        """As ``next_timer``, but infinite for None."""
        self._broker_heartbeat_s = config.heartbeat_s
        self.effects: list[Effect] = []
        """What ``take_effects`` would give."""
        self.results: list[Result] = []
        """What ``take_results`` would give."""
        self._outgoing = Outgoing(config)
        self._types: dict[str, EventType] = {}
        self._subscriptions: dict[int, Subscribe] = {}
        self._requests = Requests()
        self._last_subscription = 0
        self._backlog = 0
        self._granted = 0

    # --- the link ---

    @property
    def state(self) -> State:
        """Where the conversation stands."""
        return self._state

    @property
    def ready(self) -> bool:
        """Whether the broker has welcomed this session on its present link."""
        return self._state is State.READY

    def connect(self, now: float) -> None:
        """Start on a fresh link: says Hello. SessionError on a link, or after ``close``."""
        if self._state is not State.OFF:
            raise SessionError(f"connect, but the session is {self._state.value}")
        self._now = self._heard_at = now
        self.timer_at = now + self._tick_s
        self._state = State.GREETING
        config = self._config
        self._send(Hello(VERSION, config.name, config.heartbeat_s, config.instance))

    def receive(self, message: FromBroker, now: float) -> None:
        """Take in one message; what comes without a link is ignored."""
        if self._state is State.READY:
            handlers = _HANDLERS_READY
        elif self._state is State.GREETING:
            handlers = _HANDLERS_GREETING
        else:
            return
        self._now = self._heard_at = now
        handler = handlers.get(type(message))
        if handler is None:
            name = type(message).__name__
            self._end(Code.PROTOCOL, f"the broker sent {name} while {self._state.value}")
            return
        handler(self, message)

    def receive_frames(self, frames: Sequence[bytes | memoryview], now: float) -> None:
        """Decode and take in one message; malformed frames end the link (``Lost``)."""
        self._now = now
        try:
            message = wire.decode(frames)
        except VersionMismatch as error:
            self._end(Code.VERSION, str(error))
        except WireError as error:
            self._end(Code.PROTOCOL, f"the broker sent {error}")
        else:
            self.receive(message, now)  # type: ignore[arg-type]

    def lose(self, now: float, reason: str = "the link broke") -> None:
        """The link broke."""
        self._now = now
        self._unsend()
        self._leave(Code.SILENT, reason)

    def handle_timer(self, now: float) -> None:
        """Do what is due: heartbeats, promises of a live source, a silent broker."""
        if self._state not in (State.GREETING, State.READY):
            return
        self._now = now
        self.timer_at = now + self._tick_s
        silence_s = self._broker_heartbeat_s * self._config.heartbeats_missed_max
        if now - self._heard_at > silence_s:
            self._end(Code.SILENT, f"nothing heard from the broker for {silence_s:g} s")
            return
        if self._state is State.READY:
            self._outgoing.promise_by_clock(now)
            self._publish()
            if now - self._sent_at >= self._config.heartbeat_s / 2:
                self._send(Heartbeat())

    def next_timer(self) -> float | None:
        """When ``handle_timer`` is due next; None when not connected."""
        return self.timer_at if self.timer_at < math.inf else None

    def close(self, now: float, reason: str = "", *, returns: bool = False) -> None:
        """Say Goodbye: a source has then published everything, unless another client of its name
        ``returns`` to go on; until then its promise stays where it is.

        What still waits for credit is not published: wait for ``unacknowledged`` to become 0.
        """
        self._now = now
        if self._state in (State.GREETING, State.READY):
            self._send(Goodbye(reason, Code.SILENT if returns else Code.CLOSING))
            self.effects.append(Close(BROKER, reason or "goodbye"))
        self._state = State.CLOSED
        self.timer_at = math.inf

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        effects, self.effects = self.effects, []
        return effects

    def take_results(self) -> list[Result]:
        """The outcomes since the last call, in order."""
        results, self.results = self.results, []
        return results

    # --- a source ---

    @property
    def room(self) -> int:
        """How many events ``publish`` takes now; 0 until the first Welcome, and when full."""
        return self._outgoing.room

    @property
    def unacknowledged(self) -> int:
        """How many events wait for credit or, where they are kept, for acknowledgement."""
        return self._outgoing.unacknowledged

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last event given to ``publish``."""
        return self._outgoing.last_sequence

    def advertise(self, types: Sequence[EventType]) -> int:
        """Announce types (again after each reconnection); gives the request's number.

        What is published before the answer waits for it.
        """
        return self._ask(Advertise(self._requests.number(), tuple(types)))

    def unadvertise(self, names: Sequence[str]) -> int:
        """Announce that these types will be published no more."""
        return self._ask(Unadvertise(self._requests.number(), tuple(names)))

    def publish(
        self, batch: EventBatch, now: float, promise: int | None = None, *, numbered: bool = False
    ) -> tuple[int, int]:
        """Publish events; gives their first and last sequence number.

        The batch's source is replaced by the session's name, and its sequence numbers by the
        session's own, unless it is ``numbered``: then they must increase from above
        ``last_sequence``, and gaps are fine (a recording is published under the identities that
        it bears). Text ids are kept; where there are none the sequence number is the id. Events
        with time ``NO_TIME`` are stamped with ``now``. ``promise``: nothing earlier will follow.

        Raises SessionFull when ``room`` is less than the batch's length, SessionError when times
        or numbers do not increase as they must, or the session has no name or is closed.
        """
        return self.publish_all((batch,), now, promise, numbered=numbered)

    def publish_all(
        self,
        batches: Sequence[EventBatch],
        now: float,
        promise: int | None = None,
        *,
        numbered: bool = False,
    ) -> tuple[int, int]:
        """The same for batches of several types that belong to one promise.

        The batches' own ``ids.sequence`` gives the order in which their events are meant.
        """
        if not self._config.name:
            raise SessionError("a session without a name cannot publish")
        self._refuse_when_closed()
        self._now = now
        numbers = self._outgoing.add(batches, now, promise, numbered)
        self._publish()
        return numbers

    def promise(self, mark: int) -> None:
        """Nothing earlier than ``mark`` (microseconds) will follow."""
        self._outgoing.promise(mark)
        self._publish()

    # --- a sink ---

    def subscribe(
        self, text: str, when_full: WhenFull = WhenFull.BLOCK, limit: int = 65_536
    ) -> tuple[int, int]:
        """Ask for events (again after each reconnection); gives (request, subscription number)."""
        self._last_subscription += 1
        number = self._last_subscription
        return self._ask(Subscribe(self._requests.number(), number, text, when_full, limit)), number

    def unsubscribe(self, number: int) -> int:
        """End a subscription."""
        return self._ask(Unsubscribe(self._requests.number(), number))

    def consume(self, events: int) -> None:
        """The application has taken ``events`` delivered events: grants the broker new credit."""
        self._backlog -= events
        assert self._backlog >= 0, "more was consumed than was delivered"
        self._grant()

    # --- a rule manager ---

    def deploy(self, text: str, replace: bool = False, file: str = "<rules>") -> int:
        """Deploy rules; ``Confirmed.detail["rules"]`` has each one's ``since`` and ``version``."""
        return self._ask(Deploy(self._requests.number(), text, replace, file))

    def remove(self, name: str) -> int:
        """Remove a rule."""
        return self._ask(Remove(self._requests.number(), name))

    def list_rules(self) -> int:
        """Ask for the rules and their states."""
        return self._ask(ListRules(self._requests.number()))

    def show_rule(self, name: str) -> int:
        """Ask for one rule's canonical text."""
        return self._ask(ShowRule(self._requests.number(), name))

    def status(self) -> int:
        """Ask for the broker's status."""
        return self._ask(StatusRequest(self._requests.number()))

    # --- requests and answers ---

    def _ask(self, request: Asked, again: bool = False) -> int:
        """Send a request, or keep it until the broker welcomes this session."""
        self._refuse_when_closed()
        self._requests.add(request, again)
        if self._state is State.READY:
            self._send(request)
        return request.request

    def _receive_confirmed(self, message: Confirmed) -> None:
        answered = self._requests.answer(message.request)
        if answered is None:
            self._end(Code.PROTOCOL, f"an answer to request {message.request}, which is not open")
            return
        request, repeated = answered
        _CONFIRMED.get(type(request), Session._nothing)(self, request)
        if not repeated:
            self.results.append(message)
        self._publish()

    def _receive_refused(self, message: Refused) -> None:
        answered = None if message.request is None else self._requests.answer(message.request)
        if answered is not None and answered[1]:
            request = answered[0]
            _FORGOTTEN.get(type(request), Session._nothing)(self, request)
            message = replace(message, request=None)
        self.results.append(message)
        self._publish()

    def _nothing(self, request: Any) -> None:
        """Most requests leave nothing to remember."""

    def _advertised(self, request: Advertise) -> None:
        self._types.update((schema.name, schema) for schema in request.types)

    def _unadvertised(self, request: Unadvertise | Advertise) -> None:
        for one in request.types:
            self._types.pop(one if isinstance(one, str) else one.name, None)

    def _subscribed(self, request: Subscribe) -> None:
        self._subscriptions[request.number] = request
        self._grant()

    def _unsubscribed(self, request: Unsubscribe | Subscribe) -> None:
        self._subscriptions.pop(request.number, None)

    # --- the other messages ---

    def _receive_welcome(self, message: Welcome) -> None:
        if message.version != VERSION:
            self._end(Code.VERSION, f"the broker speaks version {message.version}, not {VERSION}")
            return
        try:
            acknowledged = self._outgoing.begin(message.last_sequence, message.credit)
        except SessionError as error:
            self._end(Code.BAD_NAME, str(error))
            return
        self._state = State.READY
        self._broker_heartbeat_s = message.heartbeat_s
        self._granted = 0
        self.results.append(message)
        if acknowledged and self._config.acknowledged:
            self.results.append(Acknowledged(acknowledged))
        asked = self._requests.open
        if self._types:
            types = tuple(self._types.values())
            self._ask(Advertise(self._requests.number(), types), again=True)
        for subscription in list(self._subscriptions.values()):
            self._ask(replace(subscription, request=self._requests.number()), again=True)
        for request in asked:
            self._send(request)
        self._publish()

    def _receive_acknowledged(self, message: Acknowledged) -> None:
        self._outgoing.acknowledge(message.sequence)
        self.results.append(message)

    def _receive_rejected(self, message: Rejected) -> None:
        self.results.append(message)

    def _receive_delivery(self, message: Delivery) -> None:
        events = len(message)
        self._granted -= events
        if self._granted < 0:
            self._end(Code.PROTOCOL, f"{-self._granted} events more than there was credit for")
            return
        self._backlog += events
        self.results.append(message)

    def _receive_credit(self, message: Credit) -> None:
        self._outgoing.credit += message.events
        self._publish()

    def _receive_heartbeat(self, message: Heartbeat) -> None:
        """Being heard is all there is to it."""

    def _receive_goodbye(self, message: Goodbye) -> None:
        self._unsend()
        self.effects.append(Close(BROKER, message.reason))
        self._leave(message.code, message.reason)

    # --- inside ---

    def _publish(self) -> None:
        """Send what credit and advertisements allow."""
        if self._state is not State.READY:
            return
        if self._requests.advertising:
            return  # a source publishes once its advertisement is confirmed
        for message in self._outgoing.take():
            self._send(message)

    def _grant(self) -> None:
        """Give the broker credit for what the application can still take."""
        if self._state is not State.READY or not self._subscriptions:
            return
        wanted = self._config.delivery_credit - self._backlog - self._granted
        if wanted > 0 and (self._granted <= 0 or wanted >= self._config.delivery_credit // 2):
            self._granted += wanted
            self._send(Credit(wanted))

    def _end(self, code: Code, reason: str) -> None:
        """End the link from this side."""
        if self._state in (State.GREETING, State.READY):
            self._send(Goodbye(reason, code))
            self.effects.append(Close(BROKER, reason))
        self._leave(code, reason)

    def _leave(self, code: Code, reason: str) -> None:
        if self._state not in (State.GREETING, State.READY):
            return
        self._state = State.OFF
        self.timer_at = math.inf
        lost = f"the link was lost before the answer: {reason}"
        self.results += [
            Refused(request.request, Code.SILENT, lost) for request in self._requests.lose()
        ]
        self.results.append(Lost(code, reason, code not in NO_RETRY))
        self.effects.append(Log("warning", "link lost", {"reason": reason}))

    def _unsend(self) -> None:
        """What was meant for a link that is gone must not go out on the next one."""
        self.effects = [one for one in self.effects if not isinstance(one, Send)]

    def _refuse_when_closed(self) -> None:
        if self._state is State.CLOSED:
            raise SessionError("the session is closed")

    def _send(self, message: FromClient) -> None:
        self._sent_at = self._now
        self.effects.append(Send(BROKER, message))


_CONFIRMED: Mapping[type, Callable[[Session, Any], None]] = {
    Advertise: Session._advertised,
    Unadvertise: Session._unadvertised,
    Subscribe: Session._subscribed,
    Unsubscribe: Session._unsubscribed,
}
"""What a confirmed request leaves to be asked again on the next link."""

_FORGOTTEN: Mapping[type, Callable[[Session, Any], None]] = {
    Advertise: Session._unadvertised,
    Subscribe: Session._unsubscribed,
}
"""What is not asked again once it was refused on a later link."""

_ANYWHERE: Mapping[type, Callable[[Session, Any], None]] = {
    Refused: Session._receive_refused,
    Heartbeat: Session._receive_heartbeat,
    Goodbye: Session._receive_goodbye,
}

_HANDLERS_GREETING: Mapping[type, Callable[[Session, Any], None]] = {
    Welcome: Session._receive_welcome,
    **_ANYWHERE,
}
"""What a broker may send before it has welcomed this session."""

_HANDLERS_READY: Mapping[type, Callable[[Session, Any], None]] = {
    Confirmed: Session._receive_confirmed,
    Acknowledged: Session._receive_acknowledged,
    Rejected: Session._receive_rejected,
    Delivery: Session._receive_delivery,
    Credit: Session._receive_credit,
    **_ANYWHERE,
}
"""And from then on."""

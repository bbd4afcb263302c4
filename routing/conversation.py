"""The client's side of the protocol, without sockets, clocks or threads (protocol.md section 8).

A Conversation outlives its links: ``connect`` on a fresh link says Hello; once welcomed, it
advertises and subscribes again and sends again what was not acknowledged. Outcomes come out of
``take_results`` as the broker's own messages, in order, with ``Lost`` where a link ended.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from msgspec import structs

from matcher.model import EventType
from routing import messages, wire
from routing.config import SessionConfig
from routing.effects import BROKER, Close, Effect, Log, Send
from routing.errors import SessionError, VersionMismatch, WireError
from routing.given import Given
from routing.messages import (
    VERSION,
    Acknowledged,
    Advertise,
    Code,
    Confirmed,
    Credit,
    Delivery,
    Goodbye,
    Heartbeat,
    Hello,
    LogPart,
    Refused,
    Rejected,
    Subscribe,
    Welcome,
)
from routing.outgoing import Outgoing
from routing.requests import ClientRequest, SessionRequests
from routing.silence import excused

NO_RETRY = frozenset(
    {
        Code.VERSION,
        Code.BAD_NAME,
        Code.PROTOCOL,
        Code.SCHEMA,
        Code.BAD_EVENT,
        Code.QUEUE_FULL,
        Code.NOT_ALLOWED,
        Code.IN_USE,
    }
)
"""Ends of a link that the next one would come to as well."""
CLAIMS_MAX = 40
"""So many links after its broker has left a source's name may still be taken: until the others have
heard that it is free."""


class State(enum.Enum):
    """Where the session's conversation stands."""

    OFF = "off"  # no link
    GREETING = "greeting"  # Hello was said
    READY = "ready"  # Welcome was heard
    CLOSED = "closed"  # Goodbye was said: for good


SESSION_MOVES: Mapping[State, Mapping[State, str]] = {
    State.OFF: {State.GREETING: "a fresh link, Hello", State.CLOSED: "the client closes"},
    State.GREETING: {
        State.READY: "Welcome",
        State.OFF: "Refused and Goodbye, silence, or a broken link",
        State.CLOSED: "the client closes, Goodbye (closing)",
    },
    State.READY: {
        State.OFF: "Goodbye of the broker, silence, or a broken link",
        State.CLOSED: "the client closes, Goodbye (closing)",
    },
    State.CLOSED: {},
}
"""The next states of each, and what leads there. docs/protocol.md shows them drawn."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The link is gone: the host may ``connect`` again (after a pause that grows).

    ``retry`` is False when the next link would end like this one.
    """

    code: Code
    reason: str
    retry: bool


Result: TypeAlias = (
    Welcome | Confirmed | LogPart | Refused | Acknowledged | Rejected | Delivery | Lost
)


class Conversation:
    """One client, and what its links need of it. ``now`` as in Session."""

    def __init__(self, config: SessionConfig) -> None:
        self._config = config
        self._state = State.OFF
        self._now = self._sent_at = self._heard_at = 0.0
        self._tick_s = config.heartbeat_s / 2
        self.timer_at = math.inf
        """As ``next_timer``, but infinite for None."""
        self._broker_heartbeat_s = config.heartbeat_s
        self.effects: list[Effect] = []
        """Effects that ``take_effects`` would give."""
        self.results: list[Result] = []
        """Results that ``take_results`` would give."""
        self.paused: dict[int, str] = {}
        """The subscriptions that are paused, by number, and why."""
        self.outgoing = Outgoing(config)
        self._types: dict[str, EventType] = {}
        self._subscriptions: dict[int, Subscribe] = {}
        self._requests = SessionRequests()
        self._last_subscription = 0
        self._backlog = 0
        self._granted = 0
        self._given = Given()
        """The events that a durable sink has brought."""
        self._is_leaving = self._has_said_goodbye = False
        self.has_left = False
        """Whether the broker has answered the Goodbye of ``leave``."""
        self.others = 0
        """Further addresses, at which a durable sink that is at another broker may be found."""
        self._turned_away = 0
        """How many have sent it on since a subscription was confirmed, or an address was found
        where nobody answers: the broker that has the sink may be away."""
        self._unreported = 0
        """Events that a sink has lost, as a delivery said of which nothing was new."""
        self._claims = 0
        """How many more links may find the name taken before anybody is told."""

    # --- the link ---

    @property
    def state(self) -> State:
        """Where the conversation stands."""
        return self._state

    @property
    def ready(self) -> bool:
        """Whether the broker has welcomed this session on its present link."""
        return self._state is State.READY

    @property
    def is_source(self) -> bool:
        """Whether it has advertised types, so that rules may wait for it."""
        return bool(self._types)

    @property
    def unanswered(self) -> int:
        """How many requests wait for their answers."""
        return len(self._requests.open)

    def connect(self, now: float) -> None:
        """Start on a fresh link: says Hello. SessionError on a link, or after ``close``."""
        if self._state is not State.OFF:
            raise SessionError(f"connect, but the session is {self._state.value}")
        self._now = self._heard_at = now
        self.timer_at = now + self._tick_s
        self._enter(State.GREETING)
        config = self._config
        own = config.name, config.heartbeat_s, config.instance, config.replay
        self._send(Hello(VERSION, *own))

    def receive(self, message: messages.FromBroker, now: float) -> None:
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
        if self._is_leaving:
            self._say_goodbye()

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
        self._heard_at = excused(self._heard_at, self.timer_at, now)
        self.timer_at = now + self._tick_s
        silence_s = self._broker_heartbeat_s * self._config.heartbeats_missed_max
        if now - self._heard_at > silence_s:
            self._end(Code.SILENT, f"nothing heard from the broker for {silence_s:g} s")
            return
        if self._state is State.READY and not self._has_said_goodbye:
            self.outgoing.promise_by_clock(now)
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
        if self._state is not State.CLOSED:
            self._enter(State.CLOSED)
        self.timer_at = math.inf

    def leave(self, now: float) -> None:
        """Say Goodbye as ``close`` does, once everything is acknowledged, and go when the broker
        has answered (``has_left``): then it has kept that nothing follows. Where the link breaks
        before, Goodbye is said again on the next one.
        """
        self._now = now
        self._is_leaving = True
        self._say_goodbye()

    def _say_goodbye(self) -> None:
        is_ready = self._state is State.READY and not self._requests.open
        if is_ready and not self._has_said_goodbye:
            self._has_said_goodbye = True
            self._send(Goodbye("", Code.CLOSING))

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        effects, self.effects = self.effects, []
        return effects

    def take_results(self) -> list[Result]:
        """The outcomes since the last call, in order."""
        results, self.results = self.results, []
        return results

    # --- requests and answers ---

    def _ask(self, request: ClientRequest, again: bool = False) -> int:
        """Send a request, or keep it until the broker welcomes this session."""
        self._refuse_when_closed()
        self._requests.add(request, again)
        if self._state is State.READY:
            self._say(request)
        return request.request

    def _say(self, request: ClientRequest) -> None:
        """Send a request, or have it wait for the part of a log that is on its way."""
        if isinstance(request, messages.ReadLog):
            self._read_on()
        else:
            self._send(cast(messages.FromClient, request))

    def _read_on(self) -> None:
        """Ask for the next part of a log, if the last has come."""
        if self._state is State.READY and (request := self._requests.take_read()) is not None:
            self._send(request)

    def _receive_confirmed(self, message: Confirmed) -> None:
        has_ended = self._requests.is_ended(message.request)
        answered = self._requests.answer(message.request)
        if answered is None:
            self._end(Code.PROTOCOL, f"an answer to request {message.request}, which is not open")
            return
        request, repeated = answered
        if isinstance(request, Advertise):
            self._claims = 0
        if not has_ended:
            _CONFIRMED.get(type(request), Conversation._nothing)(self, request)
        if isinstance(request, Advertise):
            self.outgoing.go_on_above(message.detail.get("last_sequence", 0))
        if not repeated:
            self.results.append(message)
        self._publish()

    def _receive_refused(self, message: Refused) -> None:
        if self._claims and message.code is Code.NAME_TAKEN:
            self._claims -= 1
            self._end(Code.NAME_TAKEN, message.reason)
            return
        if self._goes_on_elsewhere(message):
            self._end(message.code, message.reason)  # it is asked again at the next address
            return
        answered = None if message.request is None else self._requests.answer(message.request)
        if answered is not None and answered[1]:
            request = answered[0]
            _FORGOTTEN.get(type(request), Conversation._nothing)(self, request)
            message = replace(message, request=None)
        self.results.append(message)
        self._publish()
        self._read_on()

    def _goes_on_elsewhere(self, message: Refused) -> bool:
        """Whether a durable subscription is at another broker, perhaps that of the next address.
        Each is tried once, if all of them answer; for one that was confirmed before, again and
        again.
        """
        number = message.request
        if number is None or not self.others:
            return False
        if self._requests.is_repeated(number):
            return message.code in (Code.ELSEWHERE, Code.NO_STORE)
        if message.code is not Code.ELSEWHERE or not self._requests.is_wished(number):
            return False
        self._turned_away += 1
        return self._turned_away <= self.others

    def _receive_log_part(self, message: LogPart) -> None:
        if self._requests.answer(message.request) is None:
            reason = f"an answer to request {message.request}, which is not open"
            self._end(Code.PROTOCOL, reason)
        else:
            self._send(messages.LogReceived(message.request))
            self.results.append(message)
            self._read_on()

    def _nothing(self, request: Any) -> None:
        """Most requests leave nothing to remember."""

    def _advertised(self, request: Advertise) -> None:
        self._types.update((schema.name, schema) for schema in request.types)

    def _unadvertised(self, request: messages.Unadvertise | Advertise) -> None:
        for one in request.types:
            self._types.pop(one if isinstance(one, str) else one.name, None)

    def _subscribed(self, request: Subscribe) -> None:
        self._subscriptions[request.number] = request
        self._turned_away = 0
        self._grant()

    def _unsubscribed(self, request: messages.Unsubscribe | Subscribe) -> None:
        self._subscriptions.pop(request.number, None)
        self.paused.pop(request.number, None)
        self._requests.end_subscription(request.number)

    # --- the other messages ---

    def _receive_welcome(self, message: Welcome) -> None:
        if message.version != VERSION:
            self._end(Code.VERSION, f"the broker speaks version {message.version}, not {VERSION}")
            return
        try:
            acknowledged = self.outgoing.begin(
                message.last_sequence, message.credit, message.message_bytes_max
            )
        except SessionError as error:
            self._end(Code.BAD_NAME, str(error))
            return
        self._enter(State.READY)
        self._broker_heartbeat_s = message.heartbeat_s
        self._granted = 0
        self.paused.clear()
        self.results.append(message)
        if acknowledged and self._config.acks is not messages.Acks.NONE:
            self.results.append(Acknowledged(acknowledged))
        asked = self._requests.open
        if self._types:
            types = tuple(self._types.values())
            self._ask(Advertise(self._requests.number(), types), again=True)
        for subscription in list(self._subscriptions.values()):
            self._ask(
                structs.replace(subscription, request=self._requests.number(), again=True),
                again=True,
            )
        for request in asked:
            self._say(request)
        self._publish()

    def _receive_acknowledged(self, message: Acknowledged) -> None:
        self.outgoing.acknowledge(message.sequence)
        self.results.append(message)

    def _receive_rejected(self, message: Rejected) -> None:
        if message.code is Code.AHEAD:
            self.outgoing.forget_times()
        self.results.append(message)

    def _receive_delivery(self, message: Delivery) -> None:
        events = len(message)
        self._granted -= events
        if self._granted < 0:
            self._end(Code.PROTOCOL, f"{-self._granted} events more than there was credit for")
            return
        if message.number:
            new, unheard = self._given.take(message)
            for run in unheard:
                self._deal_with(*run)
            if new is None:
                self._unreported += message.dropped
                self._grant()
                return
            message, events = new, len(new)
        if self._unreported:
            dropped, self._unreported = message.dropped + self._unreported, 0
            message = structs.replace(message, dropped=dropped)
        self._backlog += events
        self.results.append(message)

    def _deal_with(self, first: int, last: int) -> None:
        """Tell a durable sink what has been dealt with, which may get lost with the link."""
        if self._state is State.READY:
            self._send(messages.DealtWith(first, last))

    def _receive_paused(self, message: messages.SubscriptionPaused) -> None:
        asked = self._subscriptions.get(message.number)
        fields = {"number": message.number, "filter": "" if asked is None else asked.filter}
        if message.reason is None:
            self.paused.pop(message.number, None)
            self.effects.append(Log("warning", "subscription goes on", fields))
        else:
            self.paused[message.number] = message.reason
            fields["reason"] = message.reason
            self.effects.append(Log("warning", "subscription paused", fields))

    def _receive_credit(self, message: Credit) -> None:
        self.outgoing.credit += message.events
        self._publish()

    def _receive_heartbeat(self, message: Heartbeat) -> None:
        """Being heard is all there is to it."""

    def _receive_goodbye(self, message: Goodbye) -> None:
        self._unsend()
        self.effects.append(Close(BROKER, message.reason))
        if self._has_said_goodbye and message.code is Code.CLOSING:
            self.has_left = True
            self._enter(State.CLOSED)
            self.timer_at = math.inf
            return
        if message.code is Code.LEAVING:
            self._claims = CLAIMS_MAX
        self._leave(message.code, message.reason)

    # --- inside ---

    def _enter(self, state: State) -> None:
        assert state in SESSION_MOVES[self._state], (self._state, state)
        self._state = state

    def _publish(self) -> None:
        """Send what credit and advertisements allow."""
        if self._state is not State.READY or self._has_said_goodbye:
            return
        if self._requests.advertising:
            return  # a source publishes once its advertisement is confirmed
        for message in self.outgoing.take():
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
        # A broker that is away is tried again and again: that is said once.
        level = "warning" if self._state is State.READY else "debug"
        if self._state is State.GREETING:
            self._turned_away = 0
        self._has_said_goodbye = False
        self._enter(State.OFF)
        self.timer_at = math.inf
        lost = f"the link was lost before the answer: {reason}"
        self.results += [
            Refused(request.request, Code.SILENT, lost) for request in self._requests.lose()
        ]
        self.results.append(Lost(code, reason, code not in NO_RETRY))
        self.effects.append(Log(level, "link lost", {"reason": reason}))

    def _unsend(self) -> None:
        """Drop messages for a link that is gone: none may go out on the next one."""
        self.effects = [one for one in self.effects if not isinstance(one, Send)]

    def _refuse_when_closed(self) -> None:
        if self._state is State.CLOSED:
            raise SessionError("the session is closed")

    def _send(self, message: messages.FromClient) -> None:
        self._sent_at = self._now
        self.effects.append(Send(BROKER, message))


_CONFIRMED: Mapping[type, Callable[[Conversation, Any], None]] = {
    Advertise: Conversation._advertised,
    messages.Unadvertise: Conversation._unadvertised,
    Subscribe: Conversation._subscribed,
    messages.Unsubscribe: Conversation._unsubscribed,
}
"""Handlers of a confirmed request, which leaves something to be asked again on the next link."""

_FORGOTTEN: Mapping[type, Callable[[Conversation, Any], None]] = {
    Advertise: Conversation._unadvertised,
    Subscribe: Conversation._unsubscribed,
}
"""Handlers of requests that are not asked again once they were refused on a later link."""

_ANYWHERE: Mapping[type, Callable[[Conversation, Any], None]] = {
    Refused: Conversation._receive_refused,
    Heartbeat: Conversation._receive_heartbeat,
    Goodbye: Conversation._receive_goodbye,
}

_HANDLERS_GREETING: Mapping[type, Callable[[Conversation, Any], None]] = {
    Welcome: Conversation._receive_welcome,
    **_ANYWHERE,
}
"""Messages that a broker may send before it has welcomed this session."""

_HANDLERS_READY: Mapping[type, Callable[[Conversation, Any], None]] = {
    Confirmed: Conversation._receive_confirmed,
    LogPart: Conversation._receive_log_part,
    Acknowledged: Conversation._receive_acknowledged,
    Rejected: Conversation._receive_rejected,
    Delivery: Conversation._receive_delivery,
    messages.SubscriptionPaused: Conversation._receive_paused,
    Credit: Conversation._receive_credit,
    **_ANYWHERE,
}
"""And from then on."""

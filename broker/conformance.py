"""A broker that plays a part with a client of any language, and says what the client got wrong.

A source is given little credit, its link is ended before anything is acknowledged, and the next one
knows its first event alone. A sink is delivered batches of each shape, loses its link in between,
and, if it is durable, gets again what it has not dealt with. docs/protocol.md is the law.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import zmq

from broker.sockets import CONNECTED_MISSED_MAX, bound
from matcher.model import Event, EventBatch, EventType
from matcher.rows import batch_of
from routing.errors import WireError
from routing.messages import (
    Acknowledged,
    Advertise,
    Code,
    Confirmed,
    Credit,
    DealtWith,
    Delivery,
    Goodbye,
    Heartbeat,
    Hello,
    Promise,
    Publish,
    Refused,
    Subscribe,
    Welcome,
)
from routing.number_set import NumberSet
from routing.wire import decode, encode

HEARTBEAT_S = 1.0
PAUSE_MIN_S = 0.05
CREDIT = 3
"""Events that a source may publish on its first link."""
COUNT = 20
"""Events that a sink is delivered."""
ROUND = 5
"""Of these in one message."""
ALL = EventType.of("All", n="int", x="float", ok="bool", s="string", maybe="float?")
OTHER = EventType.of("Other", s="string")
Say: TypeAlias = Callable[[Any], object]


class Play:
    """One client's links. ``cuts``: whether the first link is ended in the midst of it."""

    def __init__(self, say: Say, cuts: bool) -> None:
        self._say, self._cuts = say, cuts
        self.faults: dict[str, None] = {}
        """Faults of the client, in order."""
        self.links = 0
        self.is_cut = False
        self._hello: Hello | None = None
        self._cut_at = self._heard_at = time.monotonic()
        self._has_left = False

    def fault(self, text: str) -> None:
        """Note what the client got wrong."""
        self.faults[text] = None

    def begin(self, message: Any) -> None:
        """Take the first message of a link."""
        self._heard_at = now = time.monotonic()
        if not isinstance(message, Hello):
            self.fault(f"a link begins with Hello, not {type(message).__name__}")
            return
        self.links += 1
        self.is_cut = False
        former, self._hello = self._hello, message
        if message.version != 1:
            self.fault(f"Hello: version is 1, not {message.version}")
        if former is not None and former.instance != message.instance:
            self.fault("Hello: another instance on the second link")
        if former is not None and former.name != message.name:
            self.fault("Hello: another name on the second link")
        if former is not None and now - self._cut_at < PAUSE_MIN_S / 2:
            self.fault(f"it was back without a pause of {PAUSE_MIN_S} s")
        self._greet(message)

    def receive(self, message: Any) -> None:
        """Take a message of the link that there is."""
        self._heard_at = time.monotonic()
        if isinstance(message, Heartbeat):
            return
        if isinstance(message, Goodbye):
            self._has_left = message.code is Code.CLOSING
            if not self._has_left:
                self.fault(f"Goodbye: the code of who ends is closing, not {message.code.value}")
            self._check_end()
            self._say(Goodbye("", Code.CLOSING))
        elif not self._take(message):
            if hasattr(message, "request"):
                self._say(Refused(message.request, Code.NOT_ALLOWED, "this is a test"))
            else:
                self.fault(f"{type(message).__name__}: it is out of place")

    def tick(self) -> None:
        """Look at the clock."""
        if self._hello is None or self.is_cut or self._has_left:
            return
        self._say(Heartbeat())
        most = CONNECTED_MISSED_MAX * self._hello.heartbeat_s
        if time.monotonic() - self._heard_at > most:
            self.fault(f"it promised a sign of life every {self._hello.heartbeat_s} s")

    def end(self) -> None:
        """The client has ended."""
        if self._hello is None:
            self.fault("it never said Hello")
        elif not self._has_left:
            self.fault("it ended without Goodbye, code closing")
        if self._cuts and self.links < 2 and self._hello is not None:
            self.fault("it did not come back when its link was ended")

    def _cut(self) -> None:
        self.is_cut, self._cut_at = True, time.monotonic()
        self._say(Goodbye("the test goes on by another link", Code.SILENT))

    def _greet(self, hello: Hello) -> None:
        raise NotImplementedError

    def _take(self, message: Any) -> bool:
        raise NotImplementedError

    def _check_end(self) -> None:
        raise NotImplementedError


class SourcePlay(Play):
    """The broker of a client that publishes."""

    def __init__(self, say: Say, cuts: bool) -> None:
        super().__init__(say, cuts)
        self._types: dict[str, EventType] = {}
        self._events: dict[int, Event] = {}
        self._of_link: set[int] = set()
        self._last = self._credit = 0

    def _greet(self, hello: Hello) -> None:
        if not hello.name:
            self.fault('Hello: a client without a name ("") cannot publish')
        self._types, self._of_link = {}, set()
        self._last = min(self._events, default=0)
        self._credit = CREDIT if self._cuts and self.links == 1 else 1_000
        self._say(Welcome(1, "conformance", self._last, self._credit, HEARTBEAT_S))

    def _take(self, message: Any) -> bool:
        if isinstance(message, Advertise):
            self._types |= {one.name: one for one in message.types}
            times = dict.fromkeys((one.name for one in message.types), None)
            self._say(Confirmed(message.request, {"from": times}))
        elif isinstance(message, Publish):
            self._take_events(message)
        else:
            return isinstance(message, Promise)
        return True

    def _take_events(self, message: Publish) -> None:
        events = [event for batch in message.batches for event in batch.events()]
        for batch in message.batches:
            if self._types.get(batch.type.name) != batch.type:
                self.fault(f"Publish: {batch.type.name} is not advertised so on this link")
        self._credit -= len(events)
        if self._credit < 0:
            self.fault("Publish: more events than credit")
        for event in sorted(events, key=lambda one: one.sequence):
            self._take_event(event)
        if self._cuts and self.links == 1:
            if self._credit <= 0:
                self._cut()
        elif events:
            self._say(Acknowledged(self._last))
            self._say(Credit(len(events)))
            self._credit += len(events)

    def _take_event(self, event: Event) -> None:
        number, known = event.sequence, self._events.get(event.sequence)
        if self._hello is not None and event.source != self._hello.name:
            self.fault(f"Publish: the source of its events is its name, not {event.source!r}")
        if number <= self._last and number not in self._of_link and known is None:
            self.fault(f"Publish: number {number} does not rise above {self._last}")
        if known is not None and _content(known) != _content(event):
            self.fault(f"Publish: number {number} was another event on the first link")
        self._events[number] = event
        self._of_link.add(number)
        self._last = max(self._last, number)

    def _check_end(self) -> None:
        first = min(self._events, default=0)
        for number in sorted({*self._events} - self._of_link - {first}):
            self.fault(f"Publish: number {number} was not acknowledged, and not sent again")
        if not self._events:
            self.fault("Publish: no event has come")


class SinkPlay(Play):
    """The broker of a client that subscribes."""

    def __init__(self, say: Say, cuts: bool) -> None:
        super().__init__(say, cuts)
        self._numbers: tuple[int, ...] = ()
        self._durable = ""
        self._credit = self._given = 0
        self._dealt_with = NumberSet()

    def _greet(self, hello: Hello) -> None:
        self._numbers, self._credit = (), 0
        if self._durable:  # what was not dealt with comes again
            self._given = next(self._dealt_with.gaps(1, COUNT), (COUNT + 1, 0))[0] - 1
            self._given -= self._given % ROUND
        self._say(Welcome(1, "conformance", 0, 0, HEARTBEAT_S))

    def _take(self, message: Any) -> bool:
        if isinstance(message, Subscribe):
            if message.again != (self.links > 1):
                self.fault(f"Subscribe: again is {message.again} on link {self.links}")
            if message.number in self._numbers:
                self.fault(f"Subscribe: number {message.number} is a subscription's already")
            self._numbers, self._durable = (*self._numbers, message.number), message.durable
            self._say(Confirmed(message.request, {"waits": False}))
        elif isinstance(message, Credit):
            if not self._numbers:
                self.fault("Credit: it is out of place before a subscription is confirmed")
            self._credit += message.events
            self._deliver()
        elif isinstance(message, DealtWith):
            if not self._durable or not 0 <= message.first <= message.last <= self._given:
                self.fault(f"DealtWith: {message.first} to {message.last} were not given")
            self._dealt_with.add(max(1, message.first), message.last)
        else:
            return False
        return True

    def _deliver(self) -> None:
        while self._credit >= ROUND and self._given < COUNT and not self.is_cut:
            first, self._given = self._given, self._given + ROUND
            self._credit -= ROUND
            again = bool(self._durable) and self.links > 1 and first < 2 * ROUND
            self._say(delivery(first, self._numbers[:1], bool(self._durable), again))
            if self._cuts and self.links == 1 and self._given == 2 * ROUND:
                self._cut()

    def _check_end(self) -> None:
        if self._given < COUNT:
            self.fault(f"Credit: {self._given} of {COUNT} events could be delivered")
        if self._durable and not self._dealt_with.has_all(1, COUNT):
            self.fault("DealtWith: some events were given and are not dealt with")


def _content(event: Event) -> tuple[object, ...]:
    return event.type, event.time, event.id, event.data


def delivery(first: int, numbers: tuple[int, ...], durable: bool, again: bool) -> Delivery:
    """The next events of a sink: of two types, in an order of their own, with texts of one value
    and of several, numbers at their bounds, and nulls.
    """
    places = range(first, first + ROUND)
    bounds = (0, 2**53 + 1, -(2**63), 2**63 - 1, -1)
    rows = [
        {
            "n": bounds[place % 5],
            "x": place / 4,
            "ok": place % 2 == 0,
            "s": "küche" * (place % 3),
            "maybe": None if place % 2 else 0.5,
        }
        for place in places[:-1]
    ]
    batches = _batch(ALL, rows, 1), _batch(OTHER, [{"s": "one"}], ROUND)
    order = np.array([4, 0, 1, 2, 3], np.int64)
    number = first + ROUND if durable else 0
    return Delivery(batches, (numbers, numbers), order=order, number=number, again=again)


def _batch(event_type: EventType, rows: Sequence[Mapping[str, Any]], first: int) -> EventBatch:
    times = [1_700_000_000_000_000 + place for place in range(len(rows))]
    batch: EventBatch = batch_of(event_type, rows, source="conformance", times=times)
    return batch


PLAYS: Mapping[str, type[Play]] = {"source": SourcePlay, "sink": SinkPlay}


def examine(role: str, words: Sequence[str], cuts: bool, seconds: float) -> list[str]:
    """The faults of a client that these words start, in which ``{endpoint}`` is the broker's."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        bound(router)
        router.bind("tcp://127.0.0.1:*")
        endpoint = router.get_string(zmq.LAST_ENDPOINT)
        link = [b""]
        play = PLAYS[role](lambda message: router.send_multipart([*link, *encode(message)]), cuts)
        own = [word.replace("{endpoint}", endpoint) for word in words]
        with subprocess.Popen(own, stdin=subprocess.DEVNULL) as client:
            _play(router, play, link, client, time.monotonic() + seconds)
    return [*play.faults]


def _play(
    router: zmq.Socket[bytes],
    play: Play,
    link: list[bytes],
    client: subprocess.Popen[bytes],
    ends_at: float,
) -> None:
    """Play until the client has ended, and all that it has said is heard."""
    tick_at = 0.0
    ended: set[bytes] = set()
    while (is_heard := bool(router.poll(100))) or client.poll() is None:
        if is_heard:
            _hear(router.recv_multipart(), play, link, ended)
        if time.monotonic() >= tick_at:
            tick_at = time.monotonic() + HEARTBEAT_S / 2
            play.tick()
        if time.monotonic() > ends_at:
            play.fault("it was still running when its time was over")
            client.kill()
            return
    play.end()
    if client.returncode:
        play.fault(f"it ended with status {client.returncode}")


def _hear(frames: list[bytes], play: Play, link: list[bytes], ended: set[bytes]) -> None:
    """Have a play take what has come by a link; by one that has ended it counts for nothing."""
    sender, *rest = frames
    if play.is_cut:
        ended.add(link[0])
    if sender in ended:
        return
    try:
        message = decode(rest)
    except WireError as error:
        play.fault(f"bytes that are no message: {error}")
        return
    if sender == link[0]:
        play.receive(message)
    else:
        link[0] = sender
        play.begin(message)

"""Clients of the network: sources, sinks and a rule manager, each with a Session of its own.

A client's link to its broker is short and loses nothing; it breaks when the broker fails, and
the client tries again every ``RETRY_S``. One that its broker sends away, since that drains, goes on
at the next broker that lets it in. Frames of a link that is gone arrive nowhere.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from matcher.model import TIME_MAX, TIME_MIN, EventBatch, EventType
from routing.config import SessionConfig
from routing.conversation import State
from routing.delivery.remainder import last_position
from routing.effects import BROKER, Peer
from routing.messages import Code, Confirmed, Delivery, Refused, Rejected, Unadvertise, Welcome
from routing.network.evaluation.divided import OUT_OF_REACH
from routing.order import greatest_time
from routing.session import Lost, Result, Session
from simulator.due import Due
from simulator.hosts import BrokerHost, Driver
from simulator.lanes import Frames, Lane, Quality
from simulator.moments import Moments
from simulator.simulation import Simulation

RETRY_S = 0.5
"""Seconds until a client whose link is lost tries again."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client is: at the first broker, or at the next ones if it is sent away, over lanes
    of that quality, with such heartbeats.
    """

    simulation: Simulation
    brokers: tuple[BrokerHost, ...]
    quality: Quality
    heartbeat_s: float


class Client:
    """A session at a broker, from ``start`` on. Subclasses say what it does there."""

    def __init__(self, place: Place, name: str, *, source: str = "") -> None:
        self.name = name
        self._source = source
        self.refusals: list[Refused | Rejected] = []
        self.refused_at: list[float] = []
        """When each of these came."""
        self.losses = 0
        self._simulation = place.simulation
        self._quality = place.quality
        self._links = 0
        self._peer: Peer | None = None
        self._lane: Lane | None = None
        self._left_at = -math.inf
        self._is_in_reach = True
        self._begin(place)

    def _begin(self, place: Place) -> None:
        """Be a new client there."""
        self._brokers = deque(place.brokers)
        self._is_placed = True
        """Whether it has to go on at this broker: it has not been sent away since its welcome."""
        config = SessionConfig(self._source, instance=1, heartbeat_s=place.heartbeat_s)
        self.session = Session(config)
        self.session.others = len(place.brokers) - 1
        self._driver = Driver(
            place.simulation, self.session, self._send, self._close, self._take_results
        )

    @property
    def broker(self) -> BrokerHost:
        """The broker that it is at, or tries to come to."""
        return self._brokers[0]

    @property
    def peer(self) -> Peer | None:
        """Its link, as its broker knows it; None while there is none."""
        return self._peer

    @property
    def has_just_left(self) -> bool:
        """Whether it has closed at this very instant, so that nobody has heard of it yet."""
        return self._left_at == self._simulation.now

    def start(self) -> None:
        """Connect for the first time."""
        self._connect()

    def set_in_reach(self, is_in_reach: bool) -> None:
        """Whether it reaches its broker from now on; where it does not, its link breaks."""
        self._is_in_reach = is_in_reach
        if not is_in_reach and self._peer is not None:
            self.broker.lose(self._peer)

    def _say_goodbye(self) -> None:
        self._left_at = self._simulation.now
        self.session.close(self._simulation.now)

    def _connect(self) -> None:
        if self._peer is not None:
            return
        if not (self.broker.is_running and self._is_in_reach):
            if not self._is_placed:
                self._brokers.rotate(-1)
            self._retry()
            return
        self._links += 1
        peer = self._peer = f"{self.name}/{self._links}".encode()
        there, back = f"{self.name}>{self.broker.name}", f"{self.broker.name}>{self.name}"
        self._lane = Lane(
            self._simulation,
            there,
            self._quality,
            partial(self.broker.arrive, peer),
        )
        to_client = Lane(self._simulation, back, self._quality, partial(self._arrive, peer))
        self.broker.connect(peer, to_client, lambda: self._lose(peer))
        self.session.connect(self._simulation.now)
        self._driver.settle()

    def _retry(self) -> None:
        self._simulation.after(RETRY_S, lambda _: self._connect_again())

    def _connect_again(self) -> None:
        if self.session.state is not State.CLOSED:  # else it has left meanwhile
            self._connect()

    def _arrive(self, peer: Peer, frames: Frames) -> None:
        if peer == self._peer:
            self.session.receive_frames(frames, self._simulation.now)
            self._driver.settle()

    def _lose(self, peer: Peer) -> None:
        if peer == self._peer:
            self._peer = self._lane = None
            self.session.lose(self._simulation.now)
            self._driver.settle()

    def _send(self, peer: Peer, frames: Frames) -> None:
        assert peer == BROKER
        if self._lane is not None:
            self._lane.send(frames)

    def _close(self, peer: Peer) -> None:
        # What was sent before, a Goodbye above all, is still under way; the broker closes.
        self._peer = self._lane = None

    def _take_results(self) -> None:
        if not self.session.results:
            return
        for result in self.session.take_results():
            if isinstance(result, Lost):
                self._hear_lost(result)
            elif isinstance(result, Welcome):
                self._is_placed = True
            elif isinstance(result, Refused | Rejected) and not self.is_expected(result):
                self.refusals.append(result)
                self.refused_at.append(self._simulation.now)
            self.take(result)

    def _hear_lost(self, lost: Lost) -> None:
        """Try again there, or elsewhere (as broker.client.connection)."""
        self.losses += 1
        self._peer = self._lane = None
        if lost.code in (Code.LEAVING, Code.ELSEWHERE):
            self._is_placed = False
            self._brokers.rotate(-1)
        if lost.retry:
            self._retry()

    def is_expected(self, refusal: Refused | Rejected) -> bool:
        """Whether that is no fault, and it is tried again."""
        return False

    def take(self, result: Result) -> None:
        """Something has come of what the session did."""


class Publication(Struct, frozen=True, eq=False, gc=False):
    """Events that are published together at a moment, and what is promised with them.

    Without events there is the promise alone, or nothing: a source stays that long.
    """

    moment: float
    batches: tuple[EventBatch, ...]
    promise: int | None


class Move(NamedTuple):
    """At a moment a source begins to close; so much later it comes as a new client of a broker. Or
    it stays, and un-advertises its types for so long. ``says_goodbye`` False: its link is lost.
    """

    moment: float
    away_s: float
    to: Place | None
    says_goodbye: bool = True


class Source(Client):
    """Publishes when its clock shows the moments given, under the numbers that the events bear;
    then it closes. Where it moves it closes in between, and goes on elsewhere under its name.

    Its clock may be ahead of the others', or behind. Where it is turned forward, what has become
    due goes out at once; where it is turned back, nothing does until it has caught up. So moments
    keep their order whatever it shows, and promises with them.
    """

    def __init__(
        self,
        place: Place,
        name: str,
        types: Sequence[EventType],
        publications: Iterator[Publication],
        moves: Iterable[Move] = (),
    ) -> None:
        super().__init__(place, name, source=name)
        self.moves = tuple(moves)
        self.types = tuple(types)
        self.published = 0
        self.is_done = False
        self._publications = publications
        self._next = next(publications, None)
        self._queue: deque[Publication] = deque()
        self._ahead_s = 0.0
        self._is_here = False
        self._to_move = deque[Move]()
        """The moves that are due, the one that it is about to make first."""
        self._asked = 0
        """The request by which it has advertised last."""
        self._has_asked = False
        """Whether it has moved, and its new broker has yet to let it publish."""
        self._rests = False
        """Whether it has un-advertised its types."""
        self._waits = 0
        """How often it has begun to wait: only what was armed last counts."""
        self._said: list[tuple[float, int]] = []
        """At which moments it has said something of later times, and up to when."""

    def said_by(self, moment: float) -> int:
        """How far what it has published, or promised, by a moment is; TIME_MIN for nowhere."""
        place = bisect_right(self._said, (moment, TIME_MAX))
        return self._said[place - 1][1] if place else TIME_MIN

    def start(self) -> None:
        """Connect, advertise, and publish what is due when it is due; at once, what was."""
        self._is_here = True
        self._come()
        self._wait()
        for move in self.moves:
            self._simulation.at(move.moment, partial(self._go, move))

    @property
    def is_there(self) -> bool:
        """Whether it is linked, and its broker knows what it publishes, or is about to."""
        return self.session.ready and not self._has_asked

    @property
    def advertised(self) -> Sequence[EventType]:
        """The types that it has advertised."""
        return () if self._rests else self.types

    def _come(self) -> None:
        self._connect()
        self._advertise()

    def _advertise(self) -> None:
        self._asked = self.session.advertise(self.types)
        self._driver.settle()

    def _go(self, move: Move) -> None:
        if not self.is_done:
            self._to_move.append(move)
            self._publish()
            self._driver.settle()

    def _leave(self) -> None:
        """All that it has published was acknowledged: be away for a while, then come elsewhere, or
        publish nothing for a while.
        """
        move = self._to_move[0]
        if move.to is None:
            self._rests = True
            self.session.ask(Unadvertise, [one.name for one in self.types])
        elif move.says_goodbye:
            self._say_goodbye()
        else:
            self.set_in_reach(False)
        self._simulation.after(move.away_s, lambda _: self._move())

    def _move(self) -> None:
        place = self._to_move.popleft().to
        self._has_asked = True
        if place is None:
            self._rests = False
            self._advertise()
        else:
            self._begin(place)
            self._is_in_reach, self._peer = True, None
            self._come()

    def is_expected(self, refusal: Refused | Rejected) -> bool:
        """Where it has come to its name may still be taken, since others hear later that it has
        closed.
        """
        return bool(self.moves) and refusal.code is Code.NAME_TAKEN

    def set_clock(self, ahead_s: float) -> None:
        """From now on the clock is so many seconds ahead; behind by a negative number."""
        self._ahead_s = ahead_s
        self._wait()

    def _wait(self) -> None:
        if self._is_here and self._next is not None:
            self._waits += 1
            rest_s = self._next.moment - self._ahead_s - self._simulation.now
            self._simulation.after(max(0.0, rest_s), self._come_due, self._waits)

    def _come_due(self, due: Due) -> None:
        if due.what != self._waits:
            return
        assert self._next is not None
        self._queue.append(self._next)
        self._next = next(self._publications, None)
        self._publish()
        self._driver.settle()
        self._wait()

    def _take_results(self) -> None:
        super()._take_results()
        if self._to_move:  # a session that has come back asks by itself, and says nothing of it
            self._publish()

    def take(self, result: Result) -> None:
        """Room may have come, or the end of everything."""
        if isinstance(result, Refused) and self.is_expected(result):
            self._simulation.after(RETRY_S, lambda _: self._advertise())
        elif isinstance(result, Confirmed) and result.request == self._asked:
            self._has_asked = False
        self._publish()

    def _publish(self) -> None:
        """Publish the events that are due, as far as the session has room for them."""
        if self._has_asked or self._rests:
            return
        if self._to_move:
            if self.session.ready and not (
                self.session.outgoing.unacknowledged or self.session.unanswered
            ):
                self._leave()
            return
        if not (self._queue or self._next is None):
            return
        while self._queue and self._fits(self._queue[0]):
            due, now = self._queue.popleft(), self._simulation.now
            self._note_said(due)
            if due.batches:
                self.session.publish(due.batches, now, due.promise, numbered=True)
                self.published += sum(map(len, due.batches))
            elif due.promise is not None:
                self.session.promise(due.promise)
        ended = self._next is None and not self._queue and not self.session.outgoing.unacknowledged
        if ended and not self.is_done and self.session.ready:
            self.is_done = True
            self._say_goodbye()

    def _note_said(self, due: Publication) -> None:
        said = before = self._said[-1][1] if self._said else TIME_MIN
        for batch in due.batches:
            said = max(said, greatest_time(batch))
        if due.promise is not None:
            said = max(said, due.promise)
        if said > before:
            self._said.append((self._simulation.now, said))

    def _fits(self, due: Publication) -> bool:
        return sum(map(len, due.batches)) <= self.session.outgoing.room


class Arrival(Struct, frozen=True, eq=False, gc=False):
    """Events that a sink was delivered at a moment."""

    moment: float
    delivery: Delivery


class Gap(NamedTuple):
    """A sink was without its broker, or its subscriptions were not in force again; in seconds.

    ``complete``: up to where it had got all composite events before.
    """

    begin_s: float
    end_s: float
    complete: int


@dataclass(slots=True)
class Wish:
    """A subscription: when it was asked for, confirmed, given up, and ended; in seconds."""

    text: str
    asked_at: float
    confirmed_at: float = math.inf
    left_at: float = math.inf
    ended_at: float = math.inf


class Sink(Client):
    """Subscribes, and takes whatever comes at once.

    ``moments`` notes it. ``keeps``: what is delivered is kept whole, too, as ``arrivals``.
    """

    def __init__(
        self,
        place: Place,
        name: str,
        filters: Sequence[str],
        moments: Moments,
        *,
        keeps: bool = True,
        durable: bool = False,
    ) -> None:
        super().__init__(place, name)
        self.durable = name if durable else ""
        self._filters = tuple(filters)
        self.confirmed_at: float | None = None
        """When all that it subscribes to was in force for the first time; None before."""
        self.has_left = False
        self.gaps: list[Gap] = []
        """When its link was lost, and when all was in force again on another; inf until then."""
        self.wishes: dict[int, Wish] = {}
        """Its subscriptions, those that it has given up, too."""
        self._requests: dict[int, tuple[Wish, bool]] = {}
        """Subscriptions that it has asked to begin or to end, without an answer yet."""
        self.arrivals: list[Arrival] = []
        self.moments = moments
        self._keeps = keeps
        self._last_number = 0

    def start(self) -> None:
        """Connect and subscribe."""
        super().start()
        self._subscribe(self._filters)
        self._driver.settle()

    def turn(self, wanted: Iterable[str], unwanted: Iterable[str]) -> None:
        """Subscribe to these, and to those no more."""
        if self.has_left:
            return
        self._subscribe(wanted)
        for text in unwanted:
            number, wish = next(one for one in self._wanted if one[1].text == text)
            self._requests[self.session.unsubscribe(number)] = wish, False
            wish.left_at = self._simulation.now
        self._driver.settle()

    def _subscribe(self, filters: Iterable[str]) -> None:
        for text in filters:
            request, number = self.session.subscribe(text, durable=self.durable)
            wish = self.wishes[number] = Wish(text, self._simulation.now)
            self._requests[request] = wish, True

    @property
    def _wanted(self) -> Iterator[tuple[int, Wish]]:
        return (one for one in self.wishes.items() if one[1].left_at == math.inf)

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters that it subscribes with."""
        return tuple(wish.text for _, wish in self._wanted) if self.wishes else self._filters

    def leave(self) -> None:
        """Subscribe to nothing any more."""
        self.has_left = True
        self._say_goodbye()
        self._driver.settle()

    def _lose(self, peer: Peer) -> None:
        if peer == self._peer and not self.is_away:
            complete = self.broker.failures[-1].complete.get(peer, TIME_MIN)
            self.gaps.append(Gap(self._simulation.now, math.inf, complete))
        super()._lose(peer)

    def _hear_lost(self, lost: Lost) -> None:
        if lost.code is Code.LEAVING and not self.is_away:
            self.gaps.append(Gap(self._simulation.now, math.inf, TIME_MIN))
        super()._hear_lost(lost)

    def _take_results(self) -> None:
        super()._take_results()
        if self.is_away and self.session.ready and not self.session.unanswered:
            self.gaps[-1] = self.gaps[-1]._replace(end_s=self._simulation.now)

    def last_of(self, source: str, before: int) -> int | None:
        """The time of the last event of a source, before an instant, that came and was kept."""
        batches = (batch for one in self.arrivals for batch in one.delivery.batches)
        events = (event for batch in batches for event in batch.events())
        times = (event.time for event in events if event.source == source)
        return max((time for time in times if time < before), default=None)

    @property
    def is_away(self) -> bool:
        """Whether it is in a gap."""
        return bool(self.gaps) and self.gaps[-1].end_s == math.inf

    @property
    def is_in_force(self) -> bool:
        """Whether all that it subscribes to is in force."""
        return self.confirmed_at is not None and not self.is_away and not self._requests

    def take(self, result: Result) -> None:
        """Take what is delivered, and grant as much credit."""
        if isinstance(result, Delivery):
            now = self._simulation.now
            self.moments.note(now, result)
            if self._keeps:
                self.arrivals.append(Arrival(now, result))
            self.session.consume(len(result))
            if result.number:  # the one before is dealt with
                self.session.acknowledge(self._last_number)
                self._last_number = last_position(result)
        elif isinstance(result, Confirmed):
            self._hear(result)

    def _hear(self, answer: Confirmed) -> None:
        now, asked = self._simulation.now, self._requests.pop(answer.request, None)
        if asked is not None:
            wish, begins = asked
            if begins:
                wish.confirmed_at = now
            else:
                wish.ended_at = now
        if self.confirmed_at is None and not self._requests:
            self.confirmed_at = now

    def is_expected(self, refusal: Refused | Rejected) -> bool:
        """Where its link is lost before it has heard whether a subscription is in force that it has
        given up since, it hears that nobody knows.
        """
        request = refusal.request if isinstance(refusal, Refused) else None
        asked = None if request is None else self._requests.get(request)
        if request is None or asked is None or refusal.code is not Code.SILENT:
            return False
        wish, begins = asked
        is_over = begins and wish.left_at != math.inf
        if is_over:
            del self._requests[request]
        return is_over


class Manager(Client):
    """Asks for one change of the rules, and hands on the answer, None for a refusal."""

    def __init__(
        self,
        place: Place,
        name: str,
        ask: Callable[[Session], int],
        on_answer: Callable[[Confirmed | None], None],
    ) -> None:
        super().__init__(place, name)
        self.is_done = False
        self.came: Mapping[str, int] = {}
        """By source, the number of the last event that a broker had taken in when it asked."""
        self.answer: Confirmed | None = None
        self.is_decided = False
        """Where it was refused, or had no answer: whether it is known what has become of it."""
        self._ask = ask
        self._on_answer = on_answer
        self._request: int | None = None

    def start(self) -> None:
        """Connect and ask."""
        super().start()
        self._request = self._ask(self.session)
        self._driver.settle()

    def take(self, result: Result) -> None:
        """Wait for the answer."""
        if isinstance(result, Confirmed | Refused) and result.request == self._request:
            self.is_done = True
            self.answer = result if isinstance(result, Confirmed) else None
            self._on_answer(self.answer)

    @property
    def is_refused(self) -> bool:
        """Whether it was not done, since a broker is out of reach."""
        return any(OUT_OF_REACH in one.reason for one in self._silent)

    @property
    def is_without_answer(self) -> bool:
        """Whether the answer was lost with a tree, so that nobody knows if it was done."""
        return bool(self._silent) and not self.is_refused

    @property
    def _silent(self) -> list[Refused | Rejected]:
        return [one for one in self.refusals if one.code is Code.SILENT]

"""The work of both subscribers between waits: keep deliveries, and grant credit as they are taken.

The queue needs no bound of its own: the broker sends no more events than it was granted credit
for, and credit is granted for what the application has taken.

Threads, or tasks, may share a subscriber: each event is given to one of them, and stays in its
``hands`` until it asks for the next one.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from msgspec import structs

from broker.client.address import Address
from broker.client.connection import Connection
from broker.client.hands import Hands, Lot, Worker
from broker.log import log
from matcher.model import Event
from routing.config import SessionConfig
from routing.delivery.remainder import positions_of
from routing.messages import Delivery, WhenFull
from routing.messages.values import HEARTBEAT_MAX_S
from routing.session import Lost, Result

if TYPE_CHECKING:
    from broker.client.history import History

DurableAcks: TypeAlias = Literal["auto", "explicit"]
WhenFullName: TypeAlias = Literal["block", "drop-oldest", "disconnect"]


class Sink:
    """The half of a subscriber that never waits."""

    def __init__(
        self,
        address: Address,
        config: SessionConfig,
        when_full: str,
        queue_events: int,
        worker: Callable[[], Worker],
        durable: str = "",
        acks: str = "auto",
        queue_bytes: int | None = None,
        queue_age_s: float | None = None,
        group: str = "",
        by: str = "",
    ) -> None:
        for what, most in (("queue_bytes", queue_bytes), ("queue_age_s", queue_age_s)):
            if most is not None and (most <= 0 or not durable):
                raise ValueError(f"{what} is a positive bound of a durable subscriber, not {most}")
        if acks not in get_args(DurableAcks):
            raise ValueError(f"acks is 'auto' or 'explicit', not {acks!r}")
        if when_full not in get_args(WhenFullName):
            expected = ", ".join(get_args(WhenFullName))
            raise ValueError(f"when_full is one of {expected}, not {when_full!r}")
        self.connection = Connection(address, config, self._take)
        self.session = self.connection.session
        self.deliveries: deque[Delivery] = deque()
        self._returned: deque[Delivery] = deque()
        """Deliveries that were taken, and never given."""
        self.dropped = 0
        """Events lost because this sink's queue at the broker was full."""
        self.losses = 0
        """How often the link ended, without which events may have passed."""
        self.waits_for: dict[int, tuple[str, ...]] = {}
        """By subscription, the types that nobody published, when it began, and its rules need."""
        self._when_full = WhenFull(when_full)
        self._asked = queue_events, durable, queue_bytes or 0, queue_age_s or 0.0, group, by
        self._hands = Hands(worker, is_auto=acks == "auto") if durable else None
        self._passed: list[int] = []
        """Positions of events that were given of the past, and that nobody has acknowledged."""
        self.connection.due = self.tell  # as the interpreter ends
        self.ready: deque[tuple[Event, Lot | None]] = deque()
        """Events that are to be given one by one, each with its lot in the hands."""
        self._popped = iter(self.ready.popleft, None)
        """Takes them out one by one; IndexError where there is none."""
        self._numbers: dict[int, int] = {}

    def subscribe(self, text: str) -> int:
        """Ask for events; gives the request's number."""
        request, number = self.session.subscribe(text, self._when_full, *self._asked)
        self._numbers[request] = number
        return request

    def confirmed(self, request: int, text: str, detail: Mapping[str, Any]) -> int:
        """Take the broker's answer; gives the number of the subscription that was asked for."""
        if detail["waits"]:
            log(
                "warning",
                "subscription waits: its type is not known yet",
                {"filter": text},
                "client",
            )
        number = self._numbers.pop(request)
        if missing := detail.get("waits_for"):
            self.waits_for[number] = tuple(missing)
        return number

    def has_delivery(self) -> bool:
        """Whether a subscriber that waits for a delivery has something to give or to raise."""
        has_some = bool(self.deliveries or self._returned)
        return has_some or self.connection.problem is not None

    def has_event(self) -> bool:
        """The same of one that waits for an event."""
        return bool(self.ready) or self.has_delivery()

    def ask(self) -> None:
        """Somebody asks for the next delivery, and has dealt with the last one."""
        if self._hands is not None:
            self._hands.ask()

    def tell(self) -> None:
        """Tell the broker what has been dealt with."""
        if self._hands is not None:
            for told in self._hands.take_told():
                (self.session.acknowledge if told.all else self._acknowledge_open)(told.position)

    def take_delivery(self, timeout_s: float | None, history: History | None) -> Delivery | None:
        """The next delivery, and the broker may send as many events more; None where all of it was
        given of the past. Raises what went wrong, else TimeoutError where there is none.
        """
        if self._returned:
            return self._returned.popleft()
        if not self.deliveries:
            self.connection.check()
            raise TimeoutError(f"no event within {timeout_s:g} s")
        taken = self.deliveries.popleft()
        self.session.consume(len(taken))
        return taken if history is None else self._news(history, taken)

    def _news(self, history: History, taken: Delivery) -> Delivery | None:
        """A delivery without what was given of the past, which is dealt with as soon as an event is
        acknowledged; None for none.
        """
        left = history.news(taken)
        if taken.number and left is not taken:
            new = set(() if left is None else positions_of(left))
            self._passed += [one for one in positions_of(taken) if one not in new]
        return left

    def give_back(self, delivery: Delivery) -> None:
        """A delivery was taken and is not given, since a signal handler has raised."""
        self._returned.append(delivery)

    def open(self, delivery: Delivery) -> None:
        """Let ``next_event`` give the events of a delivery that was taken."""
        hands = self._hands
        if hands is None or not delivery.number:
            self.ready += [(event, None) for event in rows(delivery)]
        else:
            lots = [hands.take_in((position,)) for position in positions_of(delivery)]
            self.ready += zip(rows(delivery), lots, strict=True)

    def next_event(self) -> Event | None:
        """The next event of what was opened, or None when it is used up. Who asks for it has dealt
        with the last one.
        """
        if self._hands is not None:
            self._hands.ask()
        try:
            # Not by a call: behind one a handler of a signal may raise, and what it gave were lost.
            for event, lot in self._popped:
                if lot is not None and self._hands is not None:
                    try:
                        self._hands.give(lot)
                    except BaseException:  # of a handler: it was not given
                        self.ready.appendleft((event, lot))
                        raise
                return event
        except IndexError:
            pass
        return None

    def give(self, delivery: Delivery) -> None:
        """Give a delivery that was taken, as a whole."""
        if self._hands is not None and delivery.number:
            self._hands.give(self._hands.take_in(positions_of(delivery)))

    @property
    def position(self) -> int:
        """The number of the event that was given last, of a durable sink's; 0: none yet."""
        return 0 if self._hands is None else self._hands.position

    def close(self) -> None:
        """All that was given is dealt with."""
        if self._hands is not None:
            self._hands.close()
            self.tell()

    def _acknowledge_open(self, position: int) -> None:
        self.session.acknowledge_each((position,))

    def acknowledge(self, position: int | None) -> None:
        """The application has dealt with all that it was given up to that position (None: with
        all).
        """
        self.connection.refuse_foreign()
        self.session.acknowledge(self.position if position is None else position)
        self._pass_over()

    def acknowledge_one(self, position: int) -> None:
        """The application has dealt with the event of that position; ValueError for none that was
        given and is open.
        """
        self.connection.refuse_foreign()
        if not self.session.acknowledge_each((position,)):
            raise ValueError(f"no event of position {position} was given and is unacknowledged")
        self._pass_over()

    def nack(self, position: int | None, delay_s: float, deliveries_max: int) -> None:
        """The application gives the event of that position back (None: the one that was given
        last); ValueError for none that was given and is open, or for what no Nack may bear.
        """
        self.connection.refuse_foreign()
        if not 0 <= delay_s <= HEARTBEAT_MAX_S or not 0 <= deliveries_max < 2**31:
            raise ValueError(f"delay_s is 0 to {HEARTBEAT_MAX_S:g}, deliveries_max 0 to 2^31 - 1")
        number = self.position if position is None else position
        if not self.session.nack(number, float(delay_s), deliveries_max):
            raise ValueError(f"no event of position {number} was given and is unacknowledged")

    def acknowledge_each(self, positions: Sequence[int]) -> None:
        """The application has dealt with the events of these positions that are open."""
        self.connection.refuse_foreign()
        self.session.acknowledge_each(positions)
        self._pass_over()

    def _pass_over(self) -> None:
        passed, self._passed = self._passed, []
        self.session.acknowledge_each(passed)

    def _take(self, result: Result) -> None:
        if isinstance(result, Delivery):
            self.dropped += result.dropped
            self.deliveries.append(result)
        elif isinstance(result, Lost):
            self.losses += 1


_events = methodcaller("events")


def rows(delivery: Delivery) -> Iterator[Event]:
    """A delivery's events as rows, in the order of delivery."""
    events: Iterator[Event] = itertools.chain.from_iterable(map(_events, delivery.batches))
    if delivery.traces:
        events = _traced(events, dict(delivery.traces))
    if delivery.order is None:
        return events
    return map(list(events).__getitem__, delivery.order.tolist())


def _traced(events: Iterator[Event], traces: Mapping[int, tuple[str, ...]]) -> Iterator[Event]:
    for place, event in enumerate(events):
        yield structs.replace(event, traces=traces[place]) if place in traces else event

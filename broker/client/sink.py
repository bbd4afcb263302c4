"""The work of both subscribers between waits: keep deliveries, and grant credit as they are taken.

The queue needs no bound of its own: the broker sends no more events than it was granted credit
for, and credit is granted for what the application has taken.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from broker.client.address import Address
from broker.client.connection import Connection
from broker.log import log
from matcher.model import Event
from routing.config import SessionConfig
from routing.delivery.remainder import last_position, positions_of
from routing.messages import Delivery, WhenFull
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
        durable: str = "",
        acks: str = "auto",
        queue_bytes: int | None = None,
        queue_age_s: float | None = None,
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
        self.dropped = 0
        """Events lost because this sink's queue at the broker was full."""
        self.losses = 0
        """How often the link ended, without which events may have passed."""
        self.waits_for: dict[int, tuple[str, ...]] = {}
        """By subscription, the types that nobody published, when it began, and its rules need."""
        self._when_full = WhenFull(when_full)
        self._bounds = queue_events, durable, queue_bytes or 0, queue_age_s or 0.0
        self.position = 0
        """The number of the event that was given last, of a durable sink's; 0: none yet."""
        self._is_auto = bool(durable) and acks == "auto"
        self._passed: list[int] = []
        """Positions of events that were given of the past, and that nobody has acknowledged."""
        self._before = 0
        """The position before the event, or delivery, that was given last."""
        if self._is_auto:
            self.connection.due = self._acknowledge_before  # as the interpreter ends
        self._rows: Iterator[tuple[Event, int]] = iter(())
        """Events that were not given yet, each with the position that goes with it."""
        self._numbers: dict[int, int] = {}

    def subscribe(self, text: str) -> int:
        """Ask for events; gives the request's number."""
        request, number = self.session.subscribe(text, self._when_full, *self._bounds)
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

    def has_something(self) -> bool:
        """Whether a waiting subscriber has something to give or to raise."""
        return bool(self.deliveries) or self.connection.problem is not None

    def check(self, timeout_s: float | None) -> None:
        """Raise why there is no delivery to take: what went wrong, else TimeoutError."""
        self.connection.check()
        raise TimeoutError(f"no event within {timeout_s:g} s")

    def take_delivery(self) -> Delivery:
        """The next delivery; the broker may send as many events more."""
        if self._is_auto:
            self.acknowledge_given()
        delivery = self.deliveries.popleft()
        self.session.consume(len(delivery))
        if delivery.number:
            self._before, self.position = self.position, last_position(delivery)
        return delivery

    def news(self, history: History, taken: Delivery) -> Delivery | None:
        """A delivery without what was given of the past, which is dealt with as soon as an event is
        acknowledged; None for none.
        """
        left = history.news(taken)
        if taken.number and left is not taken:
            new = set(() if left is None else positions_of(left))
            self._passed += [one for one in positions_of(taken) if one not in new]
        return left

    def next_event(self) -> Event | None:
        """The next event of the delivery at hand, or None when it is used up."""
        found = next(self._rows, None)
        if found is None:
            return None
        event, position = found
        self._before, self.position = self.position, position
        return event

    def open(self, delivery: Delivery) -> None:
        """Let ``next_event`` give the events of a delivery that was taken."""
        self._rows = zip(rows(delivery), positions_of(delivery), strict=True)
        self.position = self._before

    def acknowledge_given(self) -> None:
        """Acknowledge what was given before, unless the application says so itself."""
        if self._is_auto:
            self.session.acknowledge(self.position)

    def _acknowledge_before(self) -> None:
        """Acknowledge all but what was given last, which may not be dealt with."""
        self.session.acknowledge(self._before)

    def acknowledge(self, position: int | None) -> None:
        """The application has dealt with all that it was given up to that position (None: with
        all).
        """
        self.session.acknowledge(self.position if position is None else position)
        self._pass_over()

    def acknowledge_one(self, position: int) -> None:
        """The application has dealt with the event of that position; ValueError for none that was
        given and is open.
        """
        if not self.session.acknowledge_one(position):
            raise ValueError(f"no event of position {position} was given and is unacknowledged")
        self._pass_over()

    def _pass_over(self) -> None:
        passed, self._passed = self._passed, []
        for position in passed:
            self.session.acknowledge_one(position)

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
        yield replace(event, traces=traces[place]) if place in traces else event

"""Publishers: sources of events, synchronous and asynchronous, of one look.

A publisher has a name, which is the source of its events, and sequence numbers that survive
reconnection: what the broker has not acknowledged is sent again, and the broker drops what it
has already. See docs/clients.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

from broker.client.address import Address, address_of
from broker.client.open_clients import tell_unsaid
from broker.client.receipt import Receipt
from broker.client.scope import Scoped
from broker.client.source import NOTHING_GIVEN, Given, OnRefusal, Source
from broker.client.teller import OnAck, Teller, telling
from broker.client.threaded import Threaded
from broker.errors import ClientClosed, ForeignClient, PublishBlocked, RefusedError
from broker.sockets import CONNECTED_MISSED_MAX
from matcher.model import Event, EventType
from matcher.times import UNITS
from routing.config import SessionConfig
from routing.messages import Acks

AcksName = Literal["broker", "committed", "none"]

BATCH_EVENTS = 1_024
DELAY_S = 0.002
TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 5.0
UNACKNOWLEDGED_MAX = 65_536


def new_source(
    address: Address,
    name: str,
    increasing: bool,
    disorder: timedelta | None,
    acks: AcksName,
    batch_events: int,
    delay_s: float,
    unacknowledged_max: int,
    on_refusal: OnRefusal,
    time_unit: str,
    replay: bool,
    live: bool,
) -> Source:
    """The half of a publisher that never waits, of either form."""
    if acks not in get_args(AcksName):
        raise ValueError(f"acks is one of {', '.join(get_args(AcksName))}, not {acks!r}")
    if on_refusal not in ("raise", "keep"):
        raise ValueError(f"on_refusal is 'raise' or 'keep', not {on_refusal!r}")
    if time_unit not in UNITS:
        raise ValueError(f"time_unit is one of {', '.join(UNITS)}, not {time_unit!r}")
    if batch_events < 1 or delay_s < 0:
        raise ValueError("batch_events is at least 1 and delay_s is not negative")
    config = SessionConfig(
        name=name,
        instance=time.time_ns(),  # of two clients of a part the later one is at work
        increasing=increasing,
        disorder_us=None if disorder is None else disorder // timedelta(microseconds=1),
        replay=replay,
        acks=Acks(acks),
        unacknowledged_max=unacknowledged_max,
        heartbeats_missed_max=CONNECTED_MISSED_MAX,
    )
    is_unsaid = live and not (increasing or disorder is not None or replay)
    return Source(address, config, batch_events, delay_s, on_refusal, time_unit, is_unsaid)


class Publisher(Scoped):
    """A source of events.

    ``name`` is the source of its events, unique among the live clients of the network; ``types``
    are what it will publish. Unless told more it is live: it stamps its events, and promises by the
    clock that nothing earlier follows, also while it publishes nothing. Rules wait until it closes
    once an event has an explicit time; but ``increasing=True`` says that its times
    strictly increase, ``disorder`` that events are at most so much older than the clock when
    they are published, and ``promise`` says it by hand. ``live=False``: it promises nothing unless
    by hand. ``replay=True``: the events are recorded, and it is not live,
    so that their times and promises may be as far ahead of the broker's clock as they like; of
    others the broker refuses what is more than its ``ahead_max_s`` ahead.

    ``acks="broker"``: events are kept, and sent again after a reconnection, until the broker has
    them (in its store, where it has one); ``"committed"``: until all that follows from them up to
    their times has come to the sinks that are there, or to the stores of durable ones, in the whole
    network, for which all sources of its rules have to promise as much; ``"none"``: they are sent
    once. ``unacknowledged_max`` events are kept at most; then
    ``publish`` waits, and raises PublishBlocked after ``timeout_s`` seconds. ``close`` gives up
    once the broker has taken nothing for ``close_timeout_s`` seconds.

    ``on_refusal="raise"``: what the broker refused of events published earlier is raised by the
    next call. ``"keep"``: nothing is raised, ``rejected`` counts and ``take_refusals`` tells.

    ``on_ack`` is called with a number once everything that was published up to there is
    acknowledged, in a thread of its own: it may take its time, wait, or close the publisher. What
    it raises is printed and logged.

    ``time_unit`` (s, ms, us or ns): what times that are numbers count; where they count something
    else their years are most often beyond 9999, and they are refused.

    Events published one at a time leave at once where they come slowly, and gather in batches
    of at most ``batch_events`` where they come fast; none waits longer than ``delay_s`` seconds
    (plus the millisecond of a sleeping thread).

    Of a broker with keys (docs/security.md) it has to know the public one, ``server_key``, as such
    or by its file; ``key`` is the file of its own secret one. Without them REXMQ_KEY and
    REXMQ_SERVER_KEY count.

    Raises BrokerUnreachable when no broker welcomes it within ``connect_timeout_s``, and
    RefusedError when one refuses its name or types. Any thread may use it.

    >>> from matcher import EventType
    >>> temp = EventType.of("Temp", area="string", value="float")
    >>> with Publisher(endpoint, name="sensor/7", types=[temp], increasing=True) as publisher:
    ...     publisher.publish("Temp", area="a1", value=46.5).wait()
    """

    def __init__(
        self,
        endpoint: str | Address | None = None,
        *,
        name: str,
        types: Sequence[EventType] = (),
        increasing: bool = False,
        disorder: timedelta | None = None,
        acks: AcksName = "broker",
        batch_events: int = BATCH_EVENTS,
        delay_s: float = DELAY_S,
        unacknowledged_max: int = UNACKNOWLEDGED_MAX,
        on_refusal: OnRefusal = "raise",
        time_unit: str = "s",
        replay: bool = False,
        live: bool = True,
        on_ack: OnAck | None = None,
        key: str | Path | None = None,
        server_key: str | Path | None = None,
        timeout_s: float = TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        close_timeout_s: float = CLOSE_TIMEOUT_S,
    ) -> None:
        self._source = new_source(
            address_of(endpoint, key, server_key),
            name,
            increasing,
            disorder,
            acks,
            batch_events,
            delay_s,
            unacknowledged_max,
            on_refusal,
            time_unit,
            replay,
            live,
        )
        self._timeout_s = timeout_s
        self._close_timeout_s = close_timeout_s
        self.on_ack = on_ack
        self._teller = None if on_ack is None else Teller(telling(self))
        if self._teller is not None:
            self._source.tell = self._teller.tell
        self._driver = Threaded(self._source.connection)
        try:
            self._driver.open(connect_timeout_s)
            if types:
                self.advertise(*types)
        except BaseException:
            self._end()
            raise

    def __del__(self) -> None:
        super().__del__()
        if getattr(self, "_teller", None) is not None:
            self._teller.end()  # type: ignore[union-attr]

    def advertise(self, *types: EventType) -> None:
        """Announce further types, and wait until the broker has confirmed them."""
        self._driver.ask(lambda: self._source.advertise(types), self._timeout_s)
        for event_type in types:
            self._source.outbox.know(event_type)

    def publish(
        self,
        event: str | Event,
        data: Mapping[str, Any] | None = None,
        /,
        *,
        time: float | str | datetime | None = None,
        at: int | datetime | None = None,
        id: str | None = None,  # noqa: A002 - the event model's word
        traceparent: str | None = None,
        **attributes: Any,
    ) -> Receipt:
        """Publish one event: a row, or a type and its attributes.

        ``time`` is its time (seconds since the epoch, or the ``time_unit``; RFC 3339 text; a
        datetime with its offset); without one it is stamped now. ``at`` is the same in
        microseconds. ``id`` is its id; without one its sequence number is.
        ``traceparent``: the trace context (W3C) that it belongs to, for brokers that trace.
        Attributes that are not names of Python, or are called as these, go into ``data``.

        Raises BadEvent or SchemaError, before anything happens, for an event that does not fit;
        PublishBlocked when no room comes in time; and what the broker refused of events
        published earlier (LateEvents, RefusedError).

        Gives a receipt, of which ``wait`` returns once the event is acknowledged.
        """
        source, driver = self._source, self._driver
        values = {**data, **attributes} if data else attributes
        is_bare = time is None and at is None and id is None
        given = NOTHING_GIVEN if is_bare else (time, at, id)
        while True:
            with driver.lock:
                source.check()
                if source.has_room:
                    self._publish(event, values, given, traceparent)
                    return Receipt(self, source.published)
            with driver:
                self._await_room(1)

    def _publish(
        self,
        event: str | Event,
        values: Mapping[str, Any],
        given: Given,
        traceparent: str | None,
    ) -> None:
        """Publish one event, for which there is room. The lock is held."""
        source, driver = self._source, self._driver
        due = source.gathers(event, values, given, traceparent)
        if due is not None:
            with driver:
                source.hand_over(due)
                (driver.let_out if source.sent_alone else driver.pump)()
        elif source.outbox.count == 1:  # its deadline is that of those that follow
            driver.rearm()

    def publish_batch(
        self,
        events: object,
        *,
        type: str | None = None,  # noqa: A002 - the event model's word
        promise: int | None = None,
        numbered: bool = False,
        traces: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Receipt:
        """Publish many events: an EventBatch, a frame (pandas, polars, Arrow) or a list of dicts.

        Several EventBatches, of several types, can be published together: their sequence numbers
        say in which order their events are meant. These are replaced by the publisher's own
        unless ``numbered``: then they must increase from one call to the next, and a recording
        is published under the identities that it bears.

        A list of dicts has its times under ``"time"`` (RFC 3339 or numbers of the ``time_unit``;
        without any, they are stamped) and ids under ``"id"``; ``type`` names its type where several
        were advertised. An EventBatch of a type that was not advertised advertises it. ``promise``:
        nothing earlier than this will follow, in microseconds. ``traces``: the trace contexts (W3C)
        of events with these ids. Gives the receipt of the last event.
        """
        source, driver = self._source, self._driver
        batches = source.batches(events, type)
        if unknown := source.unknown_types(batches):
            self.advertise(*unknown)
        pieces = list(source.slices(batches))
        with driver:
            source.note_traces(traces or {})
            for place, piece in enumerate(pieces):
                source.check()
                self._await_room(sum(map(len, piece)))
                last = place == len(pieces) - 1
                source.send_batches(piece, promise if last else None, numbered)
                driver.pump()
            return Receipt(self, source.published)

    def promise(self, time: int | datetime) -> None:
        """Promise that nothing earlier than ``time`` (microseconds, or a datetime) will follow."""
        with self._driver:
            self._source.check()
            self._source.promise(time)

    def flush(self) -> None:
        """Send what is gathered now."""
        with self._driver:
            self._source.check()
            self._source.send()

    def wait(self, timeout_s: float | None = None, *, up_to: int | None = None) -> None:
        """Send what is gathered and wait until the broker has everything, or everything up to a
        number (``published``), as ``acks`` says.

        Raises PublishBlocked after ``timeout_s`` seconds (default: the publisher's), and what
        the broker refused.
        """
        seconds = self._timeout_s if timeout_s is None else timeout_s
        self.flush()
        source = self._source
        with self._driver:
            if not self._driver.wait_until(lambda: source.has_had(up_to), seconds):
                raise blocked(self._source, seconds)
            self._source.check()

    @property
    def published(self) -> int:
        """The number of the event that was published last."""
        with self._driver.lock:
            return self._source.published

    def has_acknowledged(self, number: int) -> bool:
        """Whether everything up to a number is acknowledged, by what has been heard so far.
        ValueError with ``acks="none"``.
        """
        return self._source.has_acknowledged(number)

    @property
    def rejected(self) -> int:
        """How many events the broker has refused so far."""
        return self._source.rejected

    def take_refusals(self) -> list[RefusedError]:
        """The broker's refusals since the last call, with ``on_refusal="keep"``: the first
        hundred refusals, each of one or more events.
        """
        with self._driver.lock:
            return self._source.take_refusals()

    @property
    def unacknowledged(self) -> int:
        """How many events, the last ones, the broker is not yet known to have."""
        return self._source.unacknowledged

    def close(self) -> None:
        """Wait until the broker has everything, promise that nothing follows, and leave.

        It waits for as long as the broker takes events. Once that has taken none for
        ``close_timeout_s`` seconds, as when it is gone, it leaves nevertheless: PublishBlocked
        says how many events are lost. So it does where the broker has refused the link for good.
        """
        try:
            check_seen_off(self._source, self._see_off())
        finally:
            self._end()

    def _leave(self) -> None:
        try:
            self._see_off()
        finally:
            tell_unsaid(self._source.connection)
            self._end()

    def pause(self) -> None:
        """Leave without having published everything: what was promised stays, and rules wait,
        until a client of this name goes on. Events that the broker does not have are given up.
        """
        self._end(returns=True)

    @property
    def is_connected(self) -> bool:
        """Whether a broker answers at the moment."""
        return self._source.session.ready

    def _see_off(self) -> float | None:
        """Wait until the broker has everything, and say goodbye. Gives the seconds in which the
        broker has taken nothing, where it does not come to that.
        """
        source, session, seconds = self._source, self._source.session, self._close_timeout_s
        with self._driver as connection:
            if connection.failure is not None:
                return None
            source.send()
            while left := session.outgoing.unacknowledged:
                if not self._driver.holds_in_time(
                    lambda left=left: session.outgoing.unacknowledged < left,  # type: ignore[misc]
                    seconds,
                ):
                    return seconds
            session.leave(connection.clock.now())
            self._driver.holds_in_time(lambda: session.has_left, seconds)
        return None

    def _end(self, *, returns: bool = False) -> None:
        self._driver.close(returns=returns)
        if self._teller is not None:
            self._teller.close()

    def _await_room(self, events: int) -> None:
        source = self._source
        source.send()
        if source.session.outgoing.room >= events:
            return
        self._driver.pump()
        if not self._driver.wait_until(
            lambda: source.session.outgoing.room >= events, self._timeout_s
        ):
            raise blocked(source, self._timeout_s)


def check_seen_off(source: Source, blocked_s: float | None) -> None:
    """Raise what a publisher that closes has to say: PublishBlocked if the broker may lack events,
    or has taken none for ``blocked_s`` seconds; else what it has refused.
    """
    failure, events = source.connection.failure, source.unacknowledged
    if failure and events and not isinstance(failure, ClientClosed | ForeignClient):
        text = f"{source.connection.endpoint}: {events} events are not acknowledged: {failure}"
        raise PublishBlocked(text) from failure
    if failure is None:
        if blocked_s is not None:
            raise blocked(source, blocked_s)
        source.check()


def blocked(source: Source, timeout_s: float) -> PublishBlocked:
    """The broker did not take what was published, for so long."""
    return PublishBlocked(
        f"{source.connection.endpoint}: {source.unacknowledged} events are still "
        f"unacknowledged after {timeout_s:g} s"
    )

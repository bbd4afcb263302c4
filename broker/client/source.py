"""The work of both publishers between waits: gather events, hand them on, hear of refusals.

An event after a pause leaves at once; in a stream, events gather, for one at a time they would
cost everybody many times what they cost together. They gather for some times as long as the last
sending took (once as long after an event that left alone), up to ``delay_s`` seconds or
``batch_events``: a slow stream's events thus never wait, and a fast one's batches grow until the
pace is kept, on a busy machine more than on an idle one. Whatever was gathered leaves before the
session's own timer acts, for that may promise by the clock that nothing earlier will follow.

A source of which nothing is said is live: its events are stamped now, and its promise follows the
clock (Outgoing.is_live), from its first event on, or once it has published none for ``SILENT_S``.
An explicit time, or a promise, says otherwise, and once for all: the first such event is logged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

import numpy as np

from broker.client.address import Address
from broker.client.connection import Connection
from broker.client.outbox import Checked, Outbox, single
from broker.client.teller import OnAck
from broker.errors import LateEvents, RefusedError
from broker.log import log
from matcher.errors import BadEvent, SchemaError
from matcher.model import MICROSECONDS, Event, EventBatch, EventType
from matcher.rows import batch_of, refuse_surplus_of_rows, refuse_taken
from matcher.single import Single
from matcher.times import RFC_3339_MAX, RFC_3339_MIN, spoken, time_of, verify_range
from matcher.traces import Contexts, is_context
from routing.config import SessionConfig
from routing.messages import Acknowledged, Acks, Code, Rejected
from routing.order import least_time
from routing.session import NO_TIME, Result

OnRefusal = Literal["raise", "keep"]

GATHERING = 3
"""In a stream, events gather for so many times as long as the last sending took."""
SLICE_EVENTS_MAX = 4_096
"""Events of a large batch that are handed over at once."""
Given: TypeAlias = tuple[object, object, str | None]
"""An event's time, the same in microseconds, and its id, as a call gives them; None for nothing."""
NOTHING_GIVEN: Given = (None, None, None)
SILENT_S = 5.0
"""A source that has published nothing for so long, in seconds, is live. One that is to publish
explicit times has begun by then, mostly."""
TO_SAY = "increasing=True, disorder=timedelta(...), promise(...), or live=False"
"""Ways to say how far a publisher of explicit times is."""
REFUSALS_MAX = 100
"""Refusals kept for the caller; of later ones only the number is."""


class Source:
    """The half of a publisher that never waits."""

    def __init__(
        self,
        address: Address,
        config: SessionConfig,
        batch_events: int,
        delay_s: float,
        on_refusal: OnRefusal = "raise",
        time_unit: str = "s",
        is_unsaid: bool = False,
    ) -> None:
        self.tell: OnAck | None = None
        """Called with the number up to which events are acknowledged."""
        self.connection = Connection(address, config, self._take)
        self.connection.due = self._do_what_is_due
        self.connection.unacknowledged = lambda: self.unacknowledged
        self.connection.settled = self._rest
        self.connection.unraised = self.take_refusals
        self.session = self.connection.session
        self._outgoing = self.session.outgoing
        self.outbox = Outbox(config.name)
        self.rejected = 0
        """Events that the broker did not take."""
        self._has_acks = config.acks is not Acks.NONE
        self._slice_events = min(SLICE_EVENTS_MAX, config.unacknowledged_max)
        self._increasing = config.increasing
        self._last_time = NO_TIME
        self._batch_events = min(batch_events, config.unacknowledged_max)
        self._delay_s = delay_s
        self._sending_since: float | None = None
        self.sent_alone = True
        """Whether what was sent last was a single event, as in a slow stream."""
        self._due_at = 0.0
        self._refusals: list[RefusedError] = []
        self._keeps_refusals = on_refusal == "keep"
        self._time_unit = time_unit
        self._is_unsaid = is_unsaid
        """Whether nothing has been said of its times, so that it is live."""
        self._live_at = math.inf
        self._hint = ""
        """Said to who publishes events that are late for the clock."""

    # --- one event at a time ---

    @property
    def has_room(self) -> bool:
        """Whether one more event can be added: what is gathered must always be able to leave."""
        count = self.outbox.count
        return count < self._batch_events and self._outgoing.room > count

    def is_due(self, now: float) -> bool:
        """Whether an event that is added now leaves at once, with what is gathered."""
        return now >= self._due_at or self.outbox.count + 1 >= self._batch_events

    def gathers(
        self, what: str | Event, attributes: Mapping[str, Any], given: Given, trace: str | None
    ) -> Checked | None:
        """Check an event, and have it wait for those that follow it soon; gives it where it is due
        instead, and to be handed over.
        """
        now = self.connection.clock.now()
        event = self.check_event(what, attributes, given, now, trace)
        if self.is_due(now):
            return event
        self.connection.due_at = self._due_at
        self.outbox.add(event)
        return None

    def gather_all(self, events: Sequence[Checked]) -> int:
        """Gather checked events, as many as there is room for; gives how many. Those of ``NO_TIME``
        are stamped as they leave.
        """
        room = min(self._batch_events, self._outgoing.room) - self.outbox.count
        taken = events if room >= len(events) else events[: max(0, room)]
        if self._is_unsaid:
            for event in taken:
                if event[1] != NO_TIME or not self._outgoing.is_live:
                    self._note(is_explicit=event[1] != NO_TIME)
        self.outbox.extend(taken)
        self.connection.due_at = self._due_at
        return len(taken)

    @property
    def unacknowledged(self) -> int:
        """How many events, the last ones, the broker is not known to have."""
        return self.outbox.count + self._outgoing.unacknowledged

    def check(self) -> None:
        """Raise what went wrong since the last call."""
        connection = self.connection
        if connection.failure is not None or connection.problem is not None:
            connection.check()
        if self._refusals and not self._keeps_refusals:
            raise self._refusals.pop(0)

    def take_refusals(self) -> list[RefusedError]:
        """The broker's refusals since the last call of which nobody was told."""
        refusals, self._refusals = self._refusals, []
        return refusals

    def check_event(
        self,
        what: str | Event,
        attributes: Mapping[str, Any],
        given: Given,
        now: float,
        traceparent: str | None = None,
    ) -> Checked:
        """Check an event that is to be added. Raises BadEvent, or SchemaError for a type that was
        not advertised, and has changed nothing then.
        """
        if isinstance(what, Event):
            name, attributes, text_id = what.type, what.data, what.id or None
            moment: int | None = what.time
        else:
            name, text_id = what, given[2]
            moment = None
            if given is not NOTHING_GIVEN:
                self._refuse_taken(name, attributes, given)
                moment = self._moment(given[0], given[1])
        time = self._stamp(now) if moment is None else moment
        if not RFC_3339_MIN <= time <= RFC_3339_MAX:
            raise BadEvent(f"time {time} us is none of the years 1 to 9999")
        if self._increasing and time <= self._last_time:
            raise BadEvent(f"time {time} does not increase: the last was {self._last_time}")
        if traceparent is not None and not is_context(traceparent):
            raise BadEvent(f"traceparent: expected 00-TRACE-SPAN-01 (W3C), found {traceparent!r}")
        try:
            event = self.outbox.check(name, attributes, time, text_id)
        except KeyError:
            raise self._unknown(name) from None
        if traceparent is not None:
            self.session.note_trace(text_id or str(self.published + 1), (traceparent,))
        if self._is_unsaid and not (moment is None and self._outgoing.is_live):
            self._note(is_explicit=moment is not None)
        if time > self._last_time:
            self._last_time = time
        return event

    def hand_over(self, event: Checked) -> None:
        """Hand an event to the session, behind what is gathered."""
        now = self.connection.clock.now()
        if self.outbox.count:
            self.outbox.add(event)
            self._send(now, self._gathered())
        else:
            number = self._outgoing.last_sequence + 1
            self._send(now, (single(event, self.outbox.source, number),))

    def send(self) -> None:
        """Hand what is gathered to the session."""
        if self.outbox.count:
            self._send(self.connection.clock.now(), self._gathered())

    def promise(self, time: object) -> None:
        """Promise that nothing earlier follows."""
        mark = _microseconds("promise", time)
        self.send()
        self._speak_for_itself()
        self.session.promise(mark)

    @property
    def published(self) -> int:
        """The number of the last event, be it sent or gathered."""
        return self._outgoing.last_sequence + self.outbox.count

    def has_had(self, number: int | None) -> bool:
        """Whether the broker has dealt with all up to a number (None: with all that was sent)."""
        outgoing = self._outgoing
        if number is None:
            return outgoing.unacknowledged == 0
        has_all = outgoing.unacknowledged == 0 and outgoing.last_sequence >= number
        return has_all or outgoing.acknowledged >= number

    def has_acknowledged(self, number: int) -> bool:
        """The same, as the broker has said; ValueError where it is not asked to."""
        if not self._has_acks:
            raise ValueError("a publisher with acks='none' hears of no acknowledgement")
        return self.has_had(number)

    # --- many at a time ---

    def batches(self, events: object, type_name: str | None) -> list[EventBatch]:
        """The arguments of ``publish_batch``, as batches. Raises BadEvent or SchemaError."""
        if isinstance(events, EventBatch):
            events = [events]
        if not isinstance(events, Sequence) or isinstance(events, str | bytes):
            return self._batches_of_table(events, type_name)
        if events and all(isinstance(one, EventBatch) for one in events):
            for batch in events:
                verify_range(batch.time[batch.time != NO_TIME])
            return list(events)
        return [self._batch_of_rows(events, type_name)]

    def note_traces(self, contexts: Mapping[str, Contexts]) -> None:
        """Events that are published next, with these ids, belong to these traces."""
        for own_id, own in contexts.items():
            self.session.note_trace(own_id, own)

    def advertise(self, types: Sequence[EventType]) -> int:
        """Announce types; gives the request's number. SchemaError for what is no type."""
        for one in types:
            if not isinstance(one, EventType):
                raise SchemaError(
                    f"types are made by EventType.of(name, attribute=kind, ...), not {one!r}"
                )
        if self._is_unsaid and not self._outgoing.is_live:
            self._live_at = self.connection.clock.now() + SILENT_S
            self.connection.due_at = min(self.connection.due_at, self._live_at)
        return self.session.advertise(tuple(types))

    def unknown_types(self, batches: Sequence[EventBatch]) -> list[EventType]:
        """The types of these batches that were not advertised yet."""
        types = {batch.type.name: batch.type for batch in batches}
        return [types[name] for name in types if name not in self.outbox.types]

    def slices(self, batches: Sequence[EventBatch]) -> Iterator[list[EventBatch]]:
        """The events in pieces that the session can take one after another, in their order."""
        size, events = self._slice_events, sum(map(len, batches))
        if events <= size:
            yield [batch for batch in batches if len(batch)]
            return
        if len(batches) == 1:
            (batch,) = batches
            for start in range(0, events, size):
                yield [batch.take(slice(start, start + size))]
            return
        numbers = np.sort(np.concatenate([batch.ids.sequence for batch in batches]))
        for start in range(0, events, size):
            piece = numbers[start : start + size]
            rows = [
                (batch, (batch.ids.sequence >= piece[0]) & (batch.ids.sequence <= piece[-1]))
                for batch in batches
            ]
            yield [batch.take(mask) for batch, mask in rows if mask.any()]

    def send_batches(
        self, batches: Sequence[EventBatch], promise: int | None, numbered: bool
    ) -> None:
        """Hand batches to the session."""
        now = self.connection.clock.now()
        if promise is not None:
            promise = _microseconds("promise", promise)
            self._speak_for_itself()
        if batches:
            if self._is_unsaid:
                self._note(is_explicit=any(map(_is_timed, batches)))
            self.session.publish(batches, now, promise, numbered=numbered)
            self._last_time = max(self._last_time, self._outgoing.latest)
        elif promise is not None:
            self.session.promise(promise)

    # --- inside ---

    def _gathered(self) -> Sequence[EventBatch]:
        return self.outbox.batches(self.session.outgoing.last_sequence + 1)

    def _send(self, now: float, batches: Sequence[EventBatch]) -> None:
        self._sending_since = now
        self.sent_alone = len(batches) == 1 and isinstance(batches[0], Single)
        self.connection.due_at = math.inf
        self.session.publish(batches, now, numbered=True)
        self.outbox.clear()

    def _do_what_is_due(self) -> None:
        if self.outbox.count:
            self.send()
            return
        awaits = self._is_unsaid and not self._outgoing.is_live
        if awaits and self.connection.clock.now() >= self._live_at:
            self._outgoing.is_live, awaits = True, False
        self.connection.due_at = self._live_at if awaits else math.inf

    def _note(self, *, is_explicit: bool) -> None:
        """Be live, since nothing is said, or be so no more, since an event has an explicit time."""
        if not is_explicit:
            self._outgoing.is_live = True
            return
        if self._outgoing.is_live:
            self._hint = f"; this publisher had promised by its clock: say {TO_SAY}"
        self._speak_for_itself()
        fields = {"publisher": self.outbox.source, "say": TO_SAY}
        log("warning", "explicit times promise nothing: rules wait for them", fields, "client")

    def _speak_for_itself(self) -> None:
        self._is_unsaid = self._outgoing.is_live = False

    def _stamp(self, now: float) -> int:
        """The time of an event without one: later than the last, so that order is kept."""
        return max(int(now * MICROSECONDS), self._last_time + 1)

    def _batch_of_rows(
        self, rows: Sequence[Mapping[str, Any]], type_name: str | None
    ) -> EventBatch:
        event_type = self._known(type_name)
        is_timed = any("time" in row for row in rows)
        times = None if is_timed else [NO_TIME] * len(rows)
        batch = batch_of(event_type, rows, source="", times=times, time_unit=self._time_unit)
        refuse_surplus_of_rows(event_type, rows)
        return batch

    def _batches_of_table(self, data: object, type_name: str | None) -> list[EventBatch]:
        from matcher.formats.frames import FRAME, table_of
        from matcher.formats.intake import Intake, Place
        from matcher.formats.layout import RESERVED, Layout
        from matcher.formats.tabular import batches_of

        table = table_of(data, FRAME)
        place = Place(FRAME, source="", layout=Layout().in_unit(self._time_unit))
        intake = Intake(self.outbox.types)
        batches = batches_of(table, place, intake, type_name)
        if intake.surplus:
            known = {name for batch in batches for name in batch.type.names}
            others = [one for one in table.schema.names if one not in (*RESERVED, *known)]
            named = ", ".join(others) or "columns of other types"
            raise BadEvent(f"its types do not have all attributes of the table: {named}")
        return batches

    def _known(self, name: str | None) -> EventType:
        if name is None and len(self.outbox.types) == 1:
            return next(iter(self.outbox.types.values()))
        if name is None:
            raise SchemaError("which type? give type=..., or publish an EventBatch")
        event_type = self.outbox.types.get(name)
        if event_type is None:
            raise self._unknown(name)
        return event_type

    def _refuse_taken(self, name: str, attributes: Mapping[str, Any], given: Given) -> None:
        event_type = self.outbox.types.get(name)
        if event_type is not None:
            words = zip(("time", "at", "id"), given, ("time", "time", "id"), strict=True)
            taken = {word: what for word, value, what in words if value is not None}
            refuse_taken(event_type, attributes, taken)

    def _moment(self, time: object, at: object) -> int | None:
        """The time of an event, in microseconds, as a call gives it; None for one to be stamped.
        BadEvent for what is none.
        """
        if time is None:
            return None if at is None else _microseconds("at", at)
        if at is not None:
            raise BadEvent("time and at are two names for the time of an event: give one")
        return time_of(time, self._time_unit)

    def _unknown(self, name: str) -> SchemaError:
        known = ", ".join(sorted(self.outbox.types)) or "none"
        return SchemaError(f"event type {name} was not advertised by this publisher: {known}")

    def _rest(self) -> None:
        """Gather the next events for as long as sending took, or longer."""
        if self._sending_since is not None:
            now = self.connection.clock.now()
            took_s, self._sending_since = now - self._sending_since, None
            times = 1 if self.sent_alone else GATHERING
            self._due_at = now + min(self._delay_s, times * took_s)

    def _take(self, result: Result) -> None:
        if isinstance(result, Acknowledged):
            if self.tell is not None:
                self.tell(self.session.outgoing.acknowledged)
        elif isinstance(result, Rejected):
            self.rejected += sum(last - first + 1 for first, last in result.sequences)
            kind = LateEvents if result.code is Code.LATE else RefusedError
            if result.code is Code.AHEAD:
                self._last_time = NO_TIME  # as the session has it (Outgoing.forget_times)
            if len(self._refusals) < REFUSALS_MAX:
                hint = self._hint if kind is LateEvents else ""
                reason = result.reason + hint
                self._refusals.append(kind(reason, result.code.value, result.sequences))


def _is_timed(batch: EventBatch) -> bool:
    """Whether its events have times, and are not to be stamped."""
    return least_time(batch) != NO_TIME


def _microseconds(word: str, time: object) -> int:
    """A time in microseconds, or a datetime."""
    if isinstance(time, datetime):
        return time_of(time)
    if isinstance(time, int | np.integer) and not isinstance(time, bool):
        return int(time)
    raise BadEvent(
        f"{word}: expected microseconds as an int, or a datetime, found {spoken(time)}; an event's "
        f"time=... takes seconds and RFC 3339, too"
    )

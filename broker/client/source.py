"""The work of both publishers between waits: gather events, hand them on, hear of refusals.

An event after a pause leaves at once; in a stream, events gather, for one at a time they would
cost everybody many times what they cost together. They gather for some times as long as the last
sending took (once as long after an event that left alone), up to ``delay_s`` seconds or
``batch_events``: a slow stream's events thus never wait, and a fast one's batches grow until the
pace is kept, on a busy machine more than on an idle one. Whatever was gathered leaves before the
session's own timer acts, for that may promise by the clock that nothing earlier will follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

import numpy as np

from broker.client.address import Address
from broker.client.connection import Connection
from broker.client.outbox import Outbox
from broker.errors import LateEvents, RefusedError
from matcher.errors import BadEvent, SchemaError
from matcher.model import MICROSECONDS, Event, EventBatch, EventType
from matcher.rows import batch_of, refuse_surplus, refuse_taken
from matcher.single import Single
from matcher.times import RFC_3339_MAX, RFC_3339_MIN, spoken, time_of, verify_range
from matcher.traces import Contexts, is_context
from routing.config import SessionConfig
from routing.messages import Acknowledged, Acks, Code, Rejected
from routing.order import greatest_time
from routing.session import NO_TIME, Result

OnRefusal = Literal["raise", "keep"]
OnAck: TypeAlias = Callable[[int], object]
"""Told the number up to which events are acknowledged."""

GATHERING = 3
"""In a stream, events gather for so many times as long as the last sending took."""
SLICE_EVENTS_MAX = 4_096
"""Events of a large batch that are handed over at once."""
_OF_THE_EVENT = ("time", "id")
"""Keys of dicts that say when and who an event is."""
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
        on_ack: OnAck | None = None,
    ) -> None:
        self._on_ack = on_ack
        self.connection = Connection(address, config, self._take)
        self.connection.due = self.send
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

    # --- one event at a time ---

    @property
    def has_room(self) -> bool:
        """Whether one more event can be added: what is gathered must always be able to leave."""
        count = self.outbox.count
        return count < self._batch_events and self._outgoing.room > count

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

    def add(
        self,
        what: str | Event,
        attributes: Mapping[str, Any],
        at: int | datetime | None,
        text_id: str | None,
        traceparent: str | None = None,
    ) -> bool:
        """Add an event; whether what is gathered was handed to the session, being due.

        Raises BadEvent, or SchemaError for a type that was not advertised.
        """
        now = self.connection.clock.now()
        if isinstance(what, Event):
            name, attributes, time, text_id = what.type, what.data, what.time, what.id or None
        else:
            name = what
            if not (at is None and text_id is None):
                self._refuse_taken(name, attributes, at, text_id)
            time = self._stamp(now) if at is None else _time_given(at)
        if not RFC_3339_MIN <= time <= RFC_3339_MAX:
            raise BadEvent(f"at={time} is no time in microseconds of the years 1 to 9999")
        if self._increasing and time <= self._last_time:
            raise BadEvent(f"time {time} does not increase: the last was {self._last_time}")
        if traceparent is not None and not is_context(traceparent):
            raise BadEvent(f"traceparent: expected 00-TRACE-SPAN-01 (W3C), found {traceparent!r}")
        outbox, is_due, batches = self.outbox, now >= self._due_at, None
        try:
            if is_due and not outbox.count:
                number = self._outgoing.last_sequence + 1
                batches = (outbox.single(name, attributes, time, text_id, number),)
            else:
                outbox.add(name, attributes, time, text_id)
        except KeyError:
            raise self._unknown(name) from None
        if traceparent is not None:
            number = self.session.last_sequence + (1 if batches else outbox.count)
            self.session.note_trace(text_id or str(number), (traceparent,))
        if time > self._last_time:
            self._last_time = time
        if is_due or outbox.count >= self._batch_events:
            self._send(now, batches or self._gathered())
            return True
        self.connection.due_at = self._due_at
        return False

    def send(self) -> None:
        """Hand what is gathered to the session."""
        if self.outbox.count:
            self._send(self.connection.clock.now(), self._gathered())

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
                verify_range(batch.time)
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
        if batches:
            self.session.publish_all(batches, now, promise, numbered=numbered)
            self._last_time = max(self._last_time, *map(greatest_time, batches))
        elif promise is not None:
            self.session.promise(promise)

    # --- inside ---

    def _gathered(self) -> Sequence[EventBatch]:
        return self.outbox.take(self.session.last_sequence + 1)

    def _send(self, now: float, batches: Sequence[EventBatch]) -> None:
        self._sending_since = now
        self.sent_alone = len(batches) == 1 and isinstance(batches[0], Single)
        self.connection.due_at = math.inf
        self.session.publish_all(batches, now, numbered=True)

    def _stamp(self, now: float) -> int:
        """The time of an event without one: later than the last, so that order is kept."""
        return max(int(now * MICROSECONDS), self._last_time + 1)

    def _batch_of_rows(
        self, rows: Sequence[Mapping[str, Any]], type_name: str | None
    ) -> EventBatch:
        event_type = self._known(type_name)
        times = None
        if not any("time" in row for row in rows):
            first = self._stamp(self.connection.clock.now())
            times = range(first, first + len(rows))
        batch = batch_of(event_type, rows, source="", times=times, time_unit=self._time_unit)
        refuse_surplus(
            event_type, sorted(set[str]().union(*rows).difference(_OF_THE_EVENT), key=str)
        )
        return batch

    def _batches_of_table(self, table: Any, type_name: str | None) -> list[EventBatch]:
        from matcher.formats.intake import Intake, Place
        from matcher.formats.layout import RESERVED, Layout
        from matcher.formats.tabular import batches_of

        place = Place("<table>", source="", layout=Layout().in_unit(self._time_unit))
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

    def _refuse_taken(
        self, name: str, attributes: Mapping[str, Any], at: object, text_id: object
    ) -> None:
        event_type = self.outbox.types.get(name)
        if event_type is not None:
            words = (("at", at, "time"), ("id", text_id, "id"))
            taken = {word: what for word, given, what in words if given is not None}
            refuse_taken(event_type, attributes, taken)

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
            if self._on_ack is not None:
                self._on_ack(self.session.acknowledged)
        elif isinstance(result, Rejected):
            self.rejected += sum(last - first + 1 for first, last in result.sequences)
            kind = LateEvents if result.code is Code.LATE else RefusedError
            if result.code is Code.AHEAD:
                self._last_time = NO_TIME  # as the session has it (Outgoing.forget_times)
            if len(self._refusals) < REFUSALS_MAX:
                self._refusals.append(kind(result.reason, result.code.value))


def _time_given(at: object) -> int:
    if isinstance(at, datetime):
        return time_of(at)
    if isinstance(at, int | np.integer):
        return int(at)
    raise BadEvent(f"at: expected microseconds as an int, or a datetime, found {spoken(at)}")

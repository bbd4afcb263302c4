"""A client's events on their way to the broker: numbered, bounded, kept until acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from matcher.joining import are_alike, concatenated
from matcher.model import MICROSECONDS, TIME_MIN, EventBatch, EventIds, Int64s, StringColumn
from matcher.single import Row, Single
from matcher.traces import TraceContexts
from routing.config import SessionConfig
from routing.errors import SessionError, SessionFull
from routing.messages import Acks, Promise, Publish
from routing.names import whole_of
from routing.order import (
    ends,
    greatest_time,
    in_sequence,
    least_time,
    one_after_another,
    strictly_rises,
)
from routing.wire.extent import EXTENT_MAX, extent, extent_of, halved

NO_TIME = TIME_MIN
"""The time of an event that is to be stamped."""
JOINED_BYTES_MAX = 2**18
"""Bytes of batches that leave as one; longer messages save nothing any more."""
CHARACTER_BYTES = 4
"""Bytes of a character at most, which a size has as one."""


class OutgoingItem(Struct, frozen=True, eq=False, gc=False):
    """Events that go out together, ``last`` their greatest number, and the promise after them.
    ``size``: they are at most so many bytes, by and large (routing.wire.extent).
    """

    batches: tuple[EventBatch, ...]
    events: int
    last: int
    promise: int | None
    size: int

    def cut(self, events: int) -> tuple[OutgoingItem, OutgoingItem]:
        """The first so many, and the rest with the promise; neither is empty."""
        numbers = np.sort(np.concatenate([batch.ids.sequence for batch in self.batches]))
        last = int(numbers[events - 1])
        head, rest = [], []
        for batch in self.batches:
            place = int(np.searchsorted(batch.ids.sequence, last, side="right"))
            head += [batch.take(slice(0, place))] if place else []
            rest += [batch.take(slice(place, None))] if place < len(batch) else []
        return (
            OutgoingItem(tuple(head), events, last, None, self.size),
            OutgoingItem(tuple(rest), self.events - events, self.last, self.promise, self.size),
        )

    def can_leave_with(self, other: OutgoingItem, promise: int | None) -> bool:
        """Whether it and another one behind it can leave as one: of what that brings
        nothing is earlier than what has been ``promise``d before it.
        """
        if len(self.batches) != 1 or len(other.batches) != 1:
            return False
        (own,), (batch,) = self.batches, other.batches
        if isinstance(own, Single) or isinstance(batch, Single) or not are_alike(own, batch):
            return False
        return promise is None or least_time(batch) >= promise


class Outgoing:
    """The source's side of one session.

    Sequence numbers strictly increase, from above the last one that the broker has of this name;
    they are given once, so an event that is sent again bears the number that it had. What is not
    acknowledged is kept, at most ``unacknowledged_max`` events, and goes out again on the next
    link; without acknowledgements only what waits for credit is kept.
    """

    def __init__(self, config: SessionConfig) -> None:
        self._config = config
        self._unacknowledged_max = config.unacknowledged_max
        self._is_part = whole_of(config.name) is not None
        self._waiting: deque[OutgoingItem] = deque()
        self._sent: deque[OutgoingItem] = deque()
        self._promise: int | None = None
        self._latest = TIME_MIN
        self._stamp = TIME_MIN
        self.credit = 0
        self._bytes_max = EXTENT_MAX
        """How long batches may be that leave as one, joined or not."""
        self.unacknowledged = 0
        self.acknowledged = 0
        """The number up to which the broker has said that it has dealt with all."""
        self.last_sequence = 0
        self._begun_above = 0
        """The number above which this session's own begin."""
        self.traces = TraceContexts()
        """Trace contexts of events, under the names that they leave by."""
        self.is_live = False
        """Whether events that follow are stamped now: then it promises by the clock, and that
        nothing follows at the time of its last event."""
        self.is_numbered = False
        """Whether the broker has said where the numbers start."""

    @property
    def room(self) -> int:
        """How many events may be added."""
        return self._unacknowledged_max - self.unacknowledged if self.is_numbered else 0

    # --- links ---

    def begin(self, last_sequence: int, credit: int, message_bytes_max: int | None = None) -> int:
        """A link begins; gives the number up to which everything is acknowledged: what the broker
        has, but where that has to be committed, too, and is sent again to hear of it (0).
        ``message_bytes_max``: as in Welcome.

        Raises SessionError when the broker has events of this name that are not this session's.
        """
        has_published = self.last_sequence > self._begun_above
        if has_published and last_sequence > self.last_sequence:
            raise SessionError(
                f"the broker has event {last_sequence} of {self._config.name!r}, but this client "
                f"has published up to {self.last_sequence}: another one has used its name"
            )
        if not has_published:  # it may have been heard of meanwhile where the name was before
            self.last_sequence = self._begun_above = max(self.last_sequence, last_sequence)
        self.is_numbered = True
        self._waiting.extendleft(reversed(self._sent))
        self._sent.clear()
        acknowledged = 0 if self._config.acks is Acks.COMMITTED else last_sequence
        self.acknowledged = max(self.acknowledged, acknowledged)
        while self._waiting and self._waiting[0].last <= acknowledged:
            self.unacknowledged -= self._waiting.popleft().events
        self.credit = credit
        self._bytes_max = EXTENT_MAX
        if message_bytes_max is not None:
            self._bytes_max = min(EXTENT_MAX, message_bytes_max // CHARACTER_BYTES)
            waiting, self._waiting = self._waiting, deque()
            for item in waiting:
                self._waiting += halved(item, self._fits)
        if self._promise is not None:
            self._say(self._promise)  # the broker may be another one than before
        return acknowledged

    def go_on_above(self, last_sequence: int) -> None:
        """Another broker of the network has had events of this name up to this number."""
        if not (self._waiting or self._sent):
            begun = self.last_sequence == self._begun_above
            self.last_sequence = max(self.last_sequence, last_sequence)
            self._begun_above = self.last_sequence if begun else self._begun_above

    def acknowledge(self, sequence: int) -> None:
        """The broker has dealt with everything up to ``sequence``."""
        self.acknowledged = max(self.acknowledged, sequence)
        while self._sent and self._sent[0].last <= sequence:
            self.unacknowledged -= self._sent.popleft().events

    def take(self) -> Iterator[Publish | Promise]:
        """The messages that may go out now. Events leave in the order of their numbers, as far as
        the broker's credit reaches, and promises leave behind the events before them: with credit
        for two of three events and a promise of 40 s, two leave, then, with more credit, the third
        and the promise.
        """
        while self._waiting:
            item = self._waiting[0]
            if item.events == 0:
                self._waiting.popleft()
                if item.promise is not None:
                    yield Promise(item.promise)
                continue
            if self.credit == 0:
                return
            self._waiting.popleft()
            if item.events > self.credit:
                item, rest = item.cut(self.credit)
                self._waiting.appendleft(rest)
            elif self._waiting:
                item = self._joined(item)
            self.credit -= item.events
            if self._config.acks is not Acks.NONE:
                self._sent.append(item)
            else:
                self.unacknowledged -= item.events
            traces = self.traces.of(item.batches) if self.traces.has_any else ()
            yield Publish(item.batches, item.promise, self._config.acks, traces)

    def _joined(self, first: OutgoingItem) -> OutgoingItem:
        """An item with those that wait behind it, as far as they leave as one: batches of one type
        as one of at most ``publish_events_max`` events and JOINED_BYTES_MAX bytes. To the broker it
        is as if they had come alone. Credit for 8,192 comes while a hundred batches of 256 wait,
        and eight messages of 1,024 leave. Where the user's limit is less (Welcome) no message is
        longer than that but for one event.
        """
        items, promise = [first], first.promise
        left = min(self._config.publish_events_max, self.credit) - first.events
        bytes_left = min(JOINED_BYTES_MAX, self._bytes_max) - first.size
        while self._waiting:
            item = self._waiting[0]
            left, bytes_left = left - item.events, bytes_left - item.size
            if left < 0 or bytes_left < 0 or not first.can_leave_with(item, promise):
                break
            items.append(self._waiting.popleft())
            promise = _later(promise, item.promise)
        if len(items) == 1:
            return first
        batch = concatenated([item.batches[0] for item in items])
        sizes = sum([item.size for item in items])
        return OutgoingItem((batch,), len(batch), items[-1].last, promise, sizes)

    # --- events ---

    def add(
        self, batches: Sequence[EventBatch], now: float, promise: int | None, numbered: bool
    ) -> tuple[int, int]:
        """Number, stamp and queue events; gives their first and last number.

        Raises SessionFull without room, SessionError for times or numbers that do not increase
        as they must; either way nothing is queued.
        """
        if len(batches) == 1 and isinstance(batches[0], Single):
            return self._add_single(batches[0], now, promise, numbered)
        events = sum(map(len, batches))
        if events == 0:
            raise SessionError("there is no event to publish")
        size = extent_of(batches)
        if size > EXTENT_MAX:
            for batch in batches:
                for place in range(len(batch)):
                    event = batch.take(slice(place, place + 1))
                    if extent(event) > EXTENT_MAX:
                        raise _too_long(event)
        if events > self.room:
            raise self._full(events)
        order = in_sequence(batches)
        named = self._numbered(self._timed(batches, order, now), order, events, numbered)
        if self._config.increasing:
            promise = self._check_increasing(named, order)
        elif self._config.disorder_us is not None:
            promise = round(now * MICROSECONDS) - self._config.disorder_us
        first, self.last_sequence = _span(named)
        for batch in named:
            self._stamp = max(self._stamp, greatest_time(batch))
        if self.is_live:
            promise = self._live_promise(now)
        self._promise = _later(self._promise, promise)
        item = OutgoingItem(tuple(named), events, self.last_sequence, promise, size)
        self._queue(item)
        return first, self.last_sequence

    def _add_single(
        self, event: Single, now: float, promise: int | None, numbered: bool
    ) -> tuple[int, int]:
        """``add`` of one event, in one stroke: it is common, and cold code is slow."""
        config, row = self._config, event.row
        if self.room < 1:
            raise self._full(1)
        if extent(event) > EXTENT_MAX:
            raise _too_long(event)
        time, sequence = row.time, row.sequence
        if time == NO_TIME:
            time = max(round(now * MICROSECONDS), self._stamp + 1)
        if not numbered:
            sequence = self.last_sequence + 1
        elif sequence <= self.last_sequence:
            raise self._not_increasing()
        if config.increasing:
            if time <= self._latest:
                raise self._not_after(time)
            self._latest, promise = time, time + 1
        elif config.disorder_us is not None:
            promise = round(now * MICROSECONDS) - config.disorder_us
        if time != row.time or sequence != row.sequence or row.source != config.name:
            event = Single(event.type, Row(time, config.name, sequence, row.text, row.values))
        self.last_sequence = sequence
        if time > self._stamp:
            self._stamp = time
        if self.is_live:
            promise = self._live_promise(now)
        if promise is not None and (self._promise is None or promise > self._promise):
            self._promise = promise
        self.unacknowledged += 1
        self._waiting.append(OutgoingItem((event,), 1, sequence, promise, 0))
        return sequence, sequence

    def promise(self, mark: int) -> None:
        """Nothing earlier than ``mark`` will follow."""
        if self._promise is None or mark > self._promise:
            self._promise = mark
            self._say(mark)

    def forget_times(self) -> None:
        """Forget the times of events that the broker has not taken, being too far ahead of its
        clock: neither they nor what was promised by them bind what comes after.
        """
        self._promise = None
        self._latest = self._stamp = TIME_MIN

    def promise_by_clock(self, now: float) -> None:
        """A live source promises by its clock, events or none."""
        if not self.is_numbered:
            return
        if self.is_live:
            self.promise(self._live_promise(now))
        elif self._config.disorder_us is not None:
            self.promise(round(now * MICROSECONDS) - self._config.disorder_us)

    @property
    def latest(self) -> int:
        """The greatest time of its events."""
        return self._stamp

    def _live_promise(self, now: float) -> int:
        # As stamps are made: the next one is no earlier than the clock, and beyond the last.
        return max(int(now * MICROSECONDS), self._stamp + 1)

    def _queue(self, item: OutgoingItem) -> None:
        is_long = item.size > self._bytes_max
        self.unacknowledged += item.events
        while item.events > self._config.publish_events_max:
            head, item = item.cut(self._config.publish_events_max)
            self._waiting += halved(head, self._fits) if is_long else (head,)
        self._waiting += halved(item, self._fits) if is_long else (item,)

    def _fits(self, item: OutgoingItem) -> bool:
        return extent_of(item.batches) <= self._bytes_max

    def _say(self, mark: int) -> None:
        if self._waiting:
            last = self._waiting[-1]
            self._waiting[-1] = replace(last, promise=_later(last.promise, mark))
        else:
            self._waiting.append(OutgoingItem((), 0, self.last_sequence, mark, 0))

    def _timed(
        self, batches: Sequence[EventBatch], order: Int64s | None, now: float
    ) -> list[EventBatch]:
        """The batches with events without a time stamped: strictly rising in their order."""
        if NO_TIME not in map(least_time, batches):
            return list(batches)
        times = np.concatenate([batch.time for batch in batches])
        places = np.arange(len(times)) if order is None else order
        blank = places[times[places] == NO_TIME]
        times[blank] = max(round(now * MICROSECONDS), self._stamp + 1) + np.arange(len(blank))
        pieces = np.split(times, np.cumsum([len(batch) for batch in batches])[:-1])
        return [
            EventBatch(batch.type, own, batch.ids, batch.columns, batch.causes)
            for batch, own in zip(batches, pieces, strict=True)
        ]

    def _numbered(
        self, batches: Sequence[EventBatch], order: Int64s | None, events: int, numbered: bool
    ) -> list[EventBatch]:
        """The batches as this source's own."""
        if numbered:
            numbers = [batch.ids.sequence for batch in batches]
            flat = one_after_another(numbers)
            rising = flat if order is None else flat[order]
            if int(rising[0]) <= self.last_sequence or not strictly_rises(rising):
                raise self._not_increasing()
        else:
            flat = np.arange(self.last_sequence + 1, self.last_sequence + 1 + events)
            if order is None:
                numbers = [flat]
            else:
                ranked = np.empty_like(flat)
                ranked[order] = flat
                numbers = np.split(ranked, np.cumsum([len(batch) for batch in batches])[:-1])
        return [self._own(batch, own) for batch, own in zip(batches, numbers, strict=True)]

    def _own(self, batch: EventBatch, sequence: Int64s) -> EventBatch:
        source = StringColumn.constant(self._config.name, len(batch))
        ids = EventIds(source, sequence, _given_texts(batch.ids))
        # A part says of recorded events whose they are; composite ones that somebody publishes
        # are events of his.
        causes = batch.causes if self._is_part else None
        return EventBatch(batch.type, batch.time, ids, batch.columns, causes)

    def _full(self, events: int) -> SessionFull:
        return SessionFull(f"{events} events, but there is room for {self.room}")

    def _not_increasing(self) -> SessionError:
        return SessionError(f"sequence numbers must increase, from above {self.last_sequence}")

    def _check_increasing(self, batches: Sequence[EventBatch], order: Int64s | None) -> int:
        flat = one_after_another([batch.time for batch in batches])
        times = flat if order is None else flat[order]
        if int(times[0]) <= self._latest or not strictly_rises(times):
            raise self._not_after(int(times.min()))
        self._latest = int(times[-1])
        return self._latest + 1

    def _not_after(self, earliest: int) -> SessionError:
        return SessionError(
            f"this source's times strictly increase, but an event at {earliest} us "
            f"does not follow {self._latest} us, or a later one does not follow it"
        )


def _span(batches: Sequence[EventBatch]) -> tuple[int, int]:
    """The least and the greatest sequence number."""
    if len(batches) == 1:
        return ends(batches[0])
    firsts, lasts = zip(*map(ends, batches), strict=True)
    return min(firsts), max(lasts)


def _later(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _too_long(event: EventBatch) -> SessionError:
    """The error of an event that no message has room for."""
    return SessionError(
        f"an event of {event.type.name} of {extent(event):,} bytes: at most {EXTENT_MAX:,}"
    )


def _given_texts(ids: EventIds) -> StringColumn | None:
    """The explicit ids as texts: those that are numbers too, for the session numbers anew."""
    if ids.text is None and ids.given:
        return StringColumn.from_strings(ids.printed())
    return ids.text

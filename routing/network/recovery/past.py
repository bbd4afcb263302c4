"""Events that a broker's log has and its replay buffer has no more.

Law 1: a rule of which it is said from when on it is due, and that begins anew, is sent all that it
may see from there (recovery.resume_points), however long ago the buffer has let go of it. Of Temp
it has let go up to 40 s, and fire is to see Temps from 10 s on: the log is read from 10 s on, and
what the buffer has, too, is left out. A rule that nobody speaks of has the log read for nothing.

Law 2: the log is read some entries at a time, as what it gives is sent (evaluation.replay), and up
to where it was kept when the rule began. So nobody is held up by how long it is, and of what is
unread it is known, once all of it was looked at, from when on it is: the entries that begin last
may be from 12 s on, and no mark passes that until they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from matcher.model import TIME_MAX, EventBatch, EventType, Int64s
from matcher.times import time_text
from matcher.traces import TraceContexts
from routing.errors import Refusal
from routing.evaluation.replay import SLICE_EVENTS
from routing.messages import Code
from routing.network.recovery.replay_buffer import ReplayBuffer
from routing.network.recovery.resume_points import needed
from routing.storage import Entry, KeptLog, Stretch

PAST_GONE = "some of the past was let go of before it was read"
NOTED, LOOKED_AT, READ_ENTRIES = 1_024, 128, 256
"""Messages of a buffer and stretches of a log that are looked at in one go, and entries that are
read in one.
"""
Messages: TypeAlias = Sequence[Sequence[EventBatch]]
"""Events, message by message."""


@dataclass(frozen=True, slots=True)
class _NotedLog:
    """A log whose events' trace contexts are noted as they are read. ``tell`` (Outlet.log) is told
    where some of it is kept no more.
    """

    log: KeptLog
    contexts: TraceContexts
    tell: Callable[..., object]

    @property
    def whole_from(self) -> int:
        """See KeptLog."""
        return self.log.whole_from

    def stretches(self, since: int) -> Iterator[Stretch]:
        """See KeptLog."""
        return self.log.stretches(since)

    def events(self, stretch: Stretch, since: int) -> Iterator[Entry]:
        """See KeptLog; what is kept no more is left out."""
        try:
            for position, batches, traces in self.log.events(stretch, since):
                self.contexts.take(batches, traces)
                yield position, batches, traces
        except Refusal as refusal:
            self.tell("warning", PAST_GONE, reason=str(refusal))


def noted(
    log: KeptLog | None, contexts: TraceContexts, tell: Callable[..., object]
) -> KeptLog | None:
    """A log, if there is one, whose events' trace contexts are noted as they are read."""
    return None if log is None else _NotedLog(log, contexts, tell)


class Past:
    """The events of a log, those not earlier than the horizons of their types, that a buffer has
    let go, message by message; none of a type that has another schema by now.
    """

    def __init__(
        self,
        log: KeptLog,
        horizons: Mapping[str, int],
        buffered: Sequence[Sequence[EventBatch]],
        schemas: Mapping[str, EventType],
    ) -> None:
        """``buffered``: what the buffer has, message by message."""
        self._log = log
        self._horizons = horizons
        self._schemas = schemas
        self._since = min(horizons.values())
        self._slices = self._read(buffered, log.stretches(self._since))
        self._is_read = False
        self.bounds: Mapping[str, int] = horizons
        """By type, a time that nothing unread is earlier than."""

    def __bool__(self) -> bool:
        """Whether anything may be unread."""
        return not self._is_read

    def take(self) -> Messages:
        """Go on for a moment; gives what was read of it."""
        return next(self._slices, ())

    def _read(
        self, buffered: Iterable[Sequence[EventBatch]], ahead: Iterable[Stretch]
    ) -> Iterator[Messages]:
        """Read all, slice by slice: what there is first, and then the events (Law 2)."""
        numbers: dict[str, list[Int64s]] = {}
        for place, batches in enumerate(buffered, 1):
            _note_numbers(batches, numbers)
            if place % NOTED == 0:
                yield ()
        held = {name: np.unique(np.concatenate(some)) for name, some in numbers.items()}
        stretches: list[Stretch] = []
        for place, one in enumerate(ahead, 1):
            if one.first <= one.last:
                stretches.append(one)
            if place % LOOKED_AT == 0:
                yield ()
        found: list[Sequence[EventBatch]] = []
        events = entries = 0
        for one in _with_least_to_come(stretches):
            for _, batches, _ in self._log.events(one, self._since):
                if some := self._wanted_of(batches, held):
                    found.append(some)
                events, entries = events + sum(map(len, batches)), entries + 1
                if events >= SLICE_EVENTS or entries >= READ_ENTRIES:
                    self.bounds = {name: max(at, one.least) for name, at in self._horizons.items()}
                    yield found
                    found, events, entries = [], 0, 0
        self._is_read = True
        yield found

    def _wanted_of(
        self, batches: Iterable[EventBatch], held: Mapping[str, Int64s]
    ) -> Sequence[EventBatch]:
        known = [one for one in batches if self._schemas.get(one.type.name) == one.type]
        left = [_without(one, held) for one in needed(known, self._horizons)]
        return [one for one in left if len(one)]


def past_of(
    buffer: ReplayBuffer,
    log: KeptLog | None,
    horizons: Mapping[str, int],
    schemas: Mapping[str, EventType],
) -> Past | None:
    """The events of a log that are wanted by these horizons, and that a buffer has let go; None
    where it has all.
    """
    wanted = {
        name: time
        for name, time in horizons.items()
        if time < buffer.let_go.get(name, buffer.let_go_before)
    }
    return Past(log, wanted, tuple(buffer), schemas) if log is not None and wanted else None


def _with_least_to_come(stretches: Iterable[Stretch]) -> Iterable[Stretch]:
    """The same, the least time of each being that of all behind it, too."""
    least, found = TIME_MAX, []
    for one in reversed(tuple(stretches)):
        least = min(least, one.least)
        found.append(one._replace(least=least))
    return reversed(found)


def _note_numbers(batches: Iterable[EventBatch], numbers: dict[str, list[Int64s]]) -> None:
    """Note the numbers of these events, by source."""
    for one in batches:
        source = one.ids.source
        for code, name in enumerate(source.values):
            numbers.setdefault(name, []).append(one.ids.sequence[source.codes == code])


def _without(batch: EventBatch, held: Mapping[str, Int64s]) -> EventBatch:
    """The events of a batch but for those of these numbers."""
    source, sequence = batch.ids.source, batch.ids.sequence
    is_left = np.ones(len(batch), np.bool_)
    for code, name in enumerate(source.values):
        if name in held:
            places = np.searchsorted(held[name], sequence)
            is_held = held[name][np.minimum(places, len(held[name]) - 1)] == sequence
            is_left &= ~(is_held & (source.codes == code))
    return batch if is_left.all() else batch.take(is_left)


def check_logs(
    needs: Collection[str],
    since: int,
    homes: Mapping[str, Collection[str]],
    logs: Mapping[str, int],
) -> None:
    """Raise Refusal unless each broker where any of these types is published, by ``homes``, has a
    log that is whole from a time on. ``logs``: from when on each is.
    """
    for broker, published in sorted(homes.items()):
        if set(needs).isdisjoint(published):
            continue
        whole = logs.get(broker)
        if whole is None:
            reason = f"broker {broker!r} keeps no log (--data), and events are published there"
            raise Refusal(Code.NO_STORE, reason)
        if whole > since:
            reason = f"the log of broker {broker!r} begins at {time_text(whole)}"
            raise Refusal(Code.TRIMMED, reason)

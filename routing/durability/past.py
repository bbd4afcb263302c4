"""Events that a broker's log has and its replay buffer has no more.

Law: a rule of which it is said from when on it is due, and that begins anew, is sent all that it
may see from there (recovery.resume_points), however long ago the buffer has let go of it. Of Temp
it has let go up to 40 s, and fire is to see Temps from 10 s on: the log is read from 10 s on, and
what the buffer has, too, is left out. A rule that nobody speaks of has the log read for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matcher.model import EventBatch, EventType, Int64s
from matcher.times import time_text
from matcher.traces import TraceContexts
from routing.errors import Refusal
from routing.messages import Code
from routing.network.recovery.replay_buffer import ReplayBuffer
from routing.network.recovery.resume_points import needed
from routing.storage import Entry, KeptLog


@dataclass(frozen=True, slots=True)
class NotedLog:
    """A log whose events' trace contexts are noted as they are read."""

    log: KeptLog
    contexts: TraceContexts

    @property
    def whole_from(self) -> int:
        """See KeptLog."""
        return self.log.whole_from

    def events(self, since: int) -> Iterator[Entry]:
        """See KeptLog."""
        for position, batches, traces in self.log.events(since):
            self.contexts.take(batches, traces)
            yield position, batches, traces


def missing_from(
    buffer: ReplayBuffer,
    log: KeptLog | None,
    horizons: Mapping[str, int],
    schemas: Mapping[str, EventType],
) -> Iterator[Sequence[EventBatch]]:
    """The events of a log, those not earlier than the horizons of their types, that a buffer has
    let go, message by message; none of a type that has another schema by now.
    """
    wanted = {
        name: time
        for name, time in horizons.items()
        if time < buffer.let_go.get(name, buffer.let_go_before)
    }
    if log is None or not wanted:
        return
    held = _numbers(buffer)
    for _, batches, _ in log.events(min(wanted.values())):
        known = [one for one in batches if schemas.get(one.type.name) == one.type]
        left = [_without(one, held) for one in needed(known, wanted)]
        if some := [one for one in left if len(one)]:
            yield some


def _numbers(buffer: ReplayBuffer) -> Mapping[str, Int64s]:
    """The numbers of the events that a buffer has, by source."""
    found: dict[str, list[Int64s]] = {}
    for batches in buffer:
        for one in batches:
            source = one.ids.source
            for code, name in enumerate(source.values):
                found.setdefault(name, []).append(one.ids.sequence[source.codes == code])
    return {name: np.unique(np.concatenate(numbers)) for name, numbers in found.items()}


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

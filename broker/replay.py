"""Publishing recorded events to a broker: in order of time, as the sources that they bear.

Each source of the recording is a publisher of its own. All of them advance together, a slice of
event time after another, and each promises the time that the next slice starts at: rules over
several sources fire as the recording goes on, and no source runs ahead of the others. Ids are
kept; sequence numbers are given anew, in order of time. So a file that is published again brings
the same events again, which are duplicates; and those of two files that have no ids are no
duplicates of one another, though one ``name`` is given to both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np

from broker.client.address import Address
from broker.client.publisher import AcksName, Publisher
from broker.errors import BrokerError
from broker.pace import Pace, cuts_of
from broker.recorded import RecordedEvents
from matcher.model import TIME_MAX, EventBatch, EventIds, Int64s, StringColumn
from matcher.traces import Contexts, TraceContexts

SOURCES_MAX = 100
"""Sources of a file that are publishers of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Events of one stretch of time, in their order, and when the next stretch starts. ``traces``:
    contexts of some of them, by id.
    """

    batches: Sequence[EventBatch]
    start: int
    next_start: int
    traces: Mapping[str, Contexts] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.batches))


@dataclass(slots=True)
class Account:
    """The account of a recording's events, so far."""

    publishers: dict[str, Publisher] = field(default_factory=dict)
    sent: int = 0

    @property
    def refused(self) -> int:
        """How many events the broker has refused, being late say."""
        return sum(one.rejected for one in self.publishers.values())

    @property
    def taken(self) -> int:
        """How many it has; at least, where publishing was broken off in the midst of a slice."""
        waiting = sum(one.unacknowledged for one in self.publishers.values())
        return max(0, self.sent - waiting - self.refused)

    def take_reason(self) -> str:
        """Why it refused the first of those of which this was not asked yet."""
        refusals = [one for own in self.publishers.values() for one in own.take_refusals()]
        return str(refusals[0]) if refusals else ""


def replay(
    events: RecordedEvents,
    endpoint: str | Address,
    account: Account,
    *,
    name: str | None = None,
    speed: float | None = None,
    is_replay: bool = False,
    acks: AcksName = "broker",
    connect_timeout_s: float,
) -> None:
    """Publish recorded events, under ``name`` or their own sources; of those that the broker
    refuses the ``account`` tells, the others are published all the same.

    ``speed``: so many seconds of event time a second; None is as fast as the broker takes them.
    ``is_replay``: the events may be ahead of the broker's clock (``Publisher``'s ``replay``).
    ``acks``: as of ``Publisher``; all is acknowledged when this returns.
    Raises BrokerError when there are more than SOURCES_MAX sources and no name.
    """
    pace, publishers = None if speed is None else Pace(speed), account.publishers
    with ExitStack() as stack:
        span = None if pace is None else pace.span
        for one in slices(events, span, is_renamed=name is not None):
            if pace is not None:
                pace.wait(one.start)
            for source, batches in _by_source(one.batches, name):
                if source not in publishers:
                    _refuse_too_many(publishers)
                    publishers[source] = stack.enter_context(
                        Publisher(
                            endpoint,
                            name=source,
                            on_refusal="keep",
                            replay=is_replay,
                            live=False,
                            acks=acks,
                            connect_timeout_s=connect_timeout_s,
                        )
                    )
                publishers[source].publish_batch(batches, traces=one.traces)
                account.sent += sum(map(len, batches))
            mark = one.next_start
            if acks == "committed":  # a promise far ahead, of no more events, may be refused
                mark = min(mark, max(int(batch.time.max()) for batch in one.batches) + 1)
            for publisher in publishers.values():
                publisher.promise(mark)


def slices(
    events: RecordedEvents, span: int | None, *, is_renamed: bool = False
) -> Iterator[Slice]:
    """The events in order of time, in slices of at most so many, or ``span`` us (``cuts_of``).

    Where they are to be of another source (``is_renamed``), the numbers of those without ids say
    which file they are of, as they do where a file names sources (matcher.formats.intake.Place).
    """
    waiting: list[EventBatch] = []
    for step in events.steps():
        waiting = [batch for batch in (*waiting, *step.batches) if len(batch)]
        if not waiting:
            continue
        times = np.concatenate([batch.time for batch in waiting])
        numbers = np.concatenate([batch.ids.sequence for batch in waiting])
        ready = np.flatnonzero(times < step.mark)
        # Within a source simultaneous events keep the order of their numbers (tesla.md E4).
        ready = ready[np.lexsort((numbers[ready], times[ready]))]
        cuts = cuts_of(times[ready], span)
        for first, last in itertools.pairwise(cuts):
            rows = ready[first:last]
            following = times[ready[last]] if last < len(ready) else min(step.mark, TIME_MAX - 1)
            traces: dict[str, Contexts] = {}
            known = events.intake.traces
            chosen = _select(waiting, rows, known, traces, is_renamed=is_renamed)
            yield Slice(chosen, int(times[rows[0]]), int(following), traces)
        waiting = [batch.take(batch.time >= step.mark) for batch in waiting]


def _select(
    batches: Sequence[EventBatch],
    rows: Int64s,
    known: TraceContexts,
    traces: dict[str, Contexts],
    *,
    is_renamed: bool,
) -> list[EventBatch]:
    """The events at ``rows`` of the concatenated batches, numbered in the order of ``rows``; those
    ``traces`` that are ``known`` are noted by id.
    """
    starts = np.cumsum([0, *map(len, batches)])
    owners = np.searchsorted(starts, rows, side="right") - 1
    chosen = []
    for owner in np.unique(owners).tolist():
        places = np.flatnonzero(owners == owner)
        batch = batches[owner].take(rows[places] - starts[owner])
        own = known.of((batch,)) if known.has_any else ()
        texts = batch.ids.printed()
        if is_renamed and not batch.ids.are_explicit and batch.ids.digest is None:
            pairs = zip(batch.ids.source.tolist(), texts, strict=True)
            texts = [f"{source}:{text}" for source, text in pairs]
        traces |= {texts[place]: contexts for place, contexts in own}
        ids = EventIds(batch.ids.source, places, StringColumn.from_strings(texts))
        chosen.append(replace(batch, ids=ids))
    return chosen


def _by_source(
    batches: Sequence[EventBatch], name: str | None
) -> Iterator[tuple[str, list[EventBatch]]]:
    if name is not None:
        yield name, list(batches)
        return
    parts: dict[str, list[EventBatch]] = {}
    for batch in batches:
        source = batch.ids.source
        for code in np.unique(source.codes).tolist():
            own = batch.take(source.codes == code)
            parts.setdefault(source.values[code], []).append(own)
    for one in sorted(parts):
        yield one, parts[one]


def _refuse_too_many(publishers: dict[str, Publisher]) -> None:
    if len(publishers) >= SOURCES_MAX:
        raise BrokerError(
            f"the events have more than {SOURCES_MAX} sources; give --name to publish them as one"
        )

"""Intake of a Publish: events that are taken, late or rejected (tesla.md E1, E5).

Nothing here has a state: :func:`take_in` looks at the message, its source and the advertised
types, and says what is to be done; or it raises, and nothing was done.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from matcher.model import TIME_MIN, EventBatch, EventType
from matcher.single import Single
from matcher.times import RFC_3339_MAX, RFC_3339_MIN, time_text
from routing.errors import ProtocolError
from routing.messages import Act, Code, Rejected
from routing.messages.values import ID_MAX
from routing.order import Extent, bounds_of, greatest_time, strictly_rises
from routing.permission import allowed
from routing.runs import runs
from routing.serving.ahead import Ahead
from routing.serving.published import Sifted
from routing.serving.sources import Source


class Intake(Struct, frozen=True, eq=False, gc=False):
    """The outcome of a Publish: ``taken`` and ``late`` in columns, ``rejections`` to report.

    ``events`` counts all of them, ``duplicates`` and ``rejected`` those that are not taken;
    rejected ones include the late, and those ``ahead`` of the clock. ``front`` is the greatest
    event time of those taken.
    """

    taken: tuple[EventBatch, ...]
    late: tuple[EventBatch, ...]
    rejections: tuple[Rejected, ...]
    last_sequence: int
    front: int
    events: int
    duplicates: int
    rejected: int
    ahead: int

    def sifted(
        self,
        sent: Sequence[EventBatch],
        *found: Sifted,
        late: tuple[EventBatch, ...] = (),
    ) -> Intake:
        """The same for events with ids, or of a part of a source: of those ``sent`` the last of
        what was ``found`` is taken, since others have come before; these count as duplicates, or
        are rejected. Those taken and the ``late`` are given as everybody else knows them.
        """
        events, taken = sum(map(len, sent)), found[-1].batches
        rejected = self.rejected + sum(one.rejected for one in found)
        return replace(
            self,
            taken=taken,
            late=late,
            rejections=(*self.rejections, *(said for one in found for said in one.rejections)),
            last_sequence=max([self.last_sequence, *(bounds_of(batch).last for batch in sent)]),
            front=max(map(greatest_time, taken), default=TIME_MIN),
            events=events,
            rejected=rejected,
            duplicates=events - rejected - sum(map(len, taken)),
        )


def take_in(source: Source, batches: Sequence[EventBatch], ahead: Ahead) -> Intake:
    """Sort a message's batches; ProtocolError when their sender breaks Publish's contract."""
    last = highest = source.last_sequence
    promise, floors = source.promise, source.floors
    front = TIME_MIN
    taken, late, rejections = [], [], []
    events = duplicates = rejected = far = 0
    if len(batches) > 1:
        _check_distinct(batches)
    for batch in batches:
        reach = bounds_of(batch)
        _check_identity(source, batch, reach)
        events += len(batch)
        if reach.last > highest:
            highest = reach.last
        fresh = batch if reach.first > last else _without_repeats(batch, last)
        if fresh is not batch:
            duplicates += len(batch) - len(fresh)
            if len(fresh) == 0:
                continue
            reach = bounds_of(fresh)
        floor = floors.get(fresh.type.name)
        if floor is None:
            rejected += len(fresh)
            rejections.append(_unadvertised(fresh))
            continue
        if source.rights.grants is not None:
            is_allowed = allowed(source.rights, Act.PUBLISH, fresh)
            if not is_allowed.all():
                refused = fresh.take(~is_allowed)
                rejected += len(refused)
                rejections.append(_not_allowed(refused, source))
                if not is_allowed.any():
                    continue
                fresh = fresh.take(is_allowed)
                reach = bounds_of(fresh)
        if reach.greatest > ahead.limit:
            beyond = fresh.time > ahead.limit
            rejections.append(_ahead(fresh.take(beyond), ahead))
            far += int(beyond.sum())
            if beyond.all():
                continue
            fresh = fresh.take(~beyond)
            reach = bounds_of(fresh)
        mark = promise if promise > floor else floor
        if reach.greatest >= mark and reach.greatest > front:
            front = reach.greatest
        if reach.least >= mark:
            taken.append(fresh)
            continue
        tardy = fresh.time < mark
        late.append(fresh.take(tardy))
        rejected += len(late[-1])
        rejections.append(_late(late[-1], source))
        if not tardy.all():
            taken.append(fresh.take(~tardy))
    return Intake(
        tuple(taken),
        tuple(late),
        tuple(rejections),
        highest,
        front,
        events,
        duplicates,
        rejected + far,
        far,
    )


def newer(batches: Sequence[EventBatch], last: int) -> list[EventBatch]:
    """The events above the number ``last`` of their source, the last that was taken."""
    fresh = [_without_repeats(batch, last) for batch in batches]
    return [batch for batch in fresh if len(batch)]


def check_schema(batch: EventBatch, schema: EventType) -> None:
    """ProtocolError when events come in another shape than was advertised for them."""
    if batch.type is not schema and batch.type != schema:
        raise ProtocolError(
            Code.SCHEMA, f"events of {batch.type}, which was advertised as {schema}"
        )


def _check_identity(source: Source, batch: EventBatch, reach: Extent) -> None:
    name, texts = source.name, tuple[str, ...]()
    if isinstance(batch, Single):
        is_own, rises = batch.row.source == name, True
        if batch.row.text is not None:
            texts = (batch.row.text,)
    else:
        ids, causes = batch.ids, batch.causes
        known = [ids.text] if causes is None else [ids.text, causes.ids.text]
        texts = tuple(text for column in known if column is not None for text in column.values)
        # What a part says of a recorded event stands where causes do (routing.serving.parts).
        is_primitive = ids.digest is None and (batch.causes is None or source.whole is not None)
        is_own = ids.source.values == (name,) and is_primitive
        rises = strictly_rises(ids.sequence)
    if not is_own:
        raise ProtocolError(
            Code.BAD_EVENT,
            f"events of {batch.type.name} that are not by {name!r}, who publishes them",
        )
    if reach.least < RFC_3339_MIN or reach.greatest > RFC_3339_MAX:
        raise ProtocolError(Code.BAD_EVENT, "an event time beyond the years 1 to 9999")
    if reach.first < 0 or not rises:
        raise ProtocolError(Code.BAD_EVENT, "sequence numbers must strictly increase")
    # A message has a text once however many events bear it; here it is written for each.
    if texts and (length := max(map(len, texts))) > ID_MAX:
        raise ProtocolError(Code.BAD_EVENT, f"an id of {length} characters: {ID_MAX} at most")


def _check_distinct(batches: Sequence[EventBatch]) -> None:
    numbers = np.sort(np.concatenate([batch.ids.sequence for batch in batches]))
    if not strictly_rises(numbers):
        raise ProtocolError(Code.BAD_EVENT, "one sequence number for two events")


def _without_repeats(batch: EventBatch, last: int) -> EventBatch:
    """The events above the last number taken; the rest was taken before."""
    return batch.take(slice(int(np.searchsorted(batch.ids.sequence, last, side="right")), None))


def _unadvertised(batch: EventBatch) -> Rejected:
    reason = f"event type {batch.type.name} was not advertised by this client"
    return Rejected(Code.UNADVERTISED, runs(batch.ids.sequence), reason)


def _not_allowed(batch: EventBatch, source: Source) -> Rejected:
    name, rights = batch.type.name, source.rights
    either = " or ".join(rights.filters(name, Act.PUBLISH) or ())
    lines = rights.lines(name, Act.PUBLISH)
    reason = f"user {rights.user!r} may publish {either} alone ({lines}): {len(batch)} {name} not"
    return Rejected(Code.NOT_ALLOWED, runs(batch.ids.sequence), reason)


def _ahead(batch: EventBatch, ahead: Ahead) -> Rejected:
    latest = int(batch.time.max())
    reason = f"{len(batch)} {batch.type.name} ahead of the clock: {ahead.describe(latest)}"
    return Rejected(Code.AHEAD, runs(batch.ids.sequence), reason)


def _late(batch: EventBatch, source: Source) -> Rejected:
    mark = source.mark(batch.type.name)
    whose = "what had been evaluated before it joined was"
    if source.promise >= source.floors[batch.type.name]:
        whose = "its source had promised"
    elif batch.type.name in source.overtaken:
        whose = "rules wait no longer for it (wait_at_most):"
    reason = (
        f"{len(batch)} late {batch.type.name}: earliest at {time_text(int(batch.time.min()))}, "
        f"but {whose} up to {time_text(mark)}"
    )
    return Rejected(Code.LATE, runs(batch.ids.sequence), reason)

"""What of a Publish is taken, what is late, and what is rejected (tesla.md E1, E5; 4.2).

Nothing here has a state: :func:`take_in` looks at the message, its source and the advertised
types, and says what is to be done; or it raises, and nothing was done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from matcher.model import EventBatch, EventType, Int64s
from matcher.single import Single
from matcher.times import time_text
from routing.errors import ProtocolError
from routing.messages import Code, Rejected
from routing.order import ends, greatest_time, least_time, strictly_rises
from routing.sources import FAR, Source

RUNS_MAX = 1_000
"""Runs of sequence numbers named in one Rejected; further ones are told as one run."""


class Intake(NamedTuple):
    """What becomes of a Publish: ``taken`` and ``late`` in columns, ``rejections`` to report.

    ``duplicates`` and ``rejected`` count events; rejected ones include the late.
    """

    taken: tuple[EventBatch, ...]
    late: tuple[EventBatch, ...]
    rejections: tuple[Rejected, ...]
    last_sequence: int
    duplicates: int
    rejected: int


def take_in(source: Source, batches: Sequence[EventBatch]) -> Intake:
    """Sort a message's batches; ProtocolError when their sender breaks Publish's contract."""
    last = highest = source.last_sequence
    _check_identities(source, batches)
    taken, late, rejections = [], [], []
    duplicates = rejected = 0
    for batch in batches:
        first, end = ends(batch)
        highest = max(highest, end)
        fresh = batch if first > last else _without_repeats(batch, last)
        if fresh is not batch:
            duplicates += len(batch) - len(fresh)
            if len(fresh) == 0:
                continue
        if fresh.type.name not in source.floors:
            rejected += len(fresh)
            rejections.append(_unadvertised(fresh))
            continue
        mark = source.mark(fresh.type.name)
        if least_time(fresh) >= mark:
            taken.append(fresh)
            continue
        tardy = fresh.time < mark
        late.append(fresh.take(tardy))
        rejected += len(late[-1])
        rejections.append(_late(late[-1], source))
        if not tardy.all():
            taken.append(fresh.take(~tardy))
    return Intake(tuple(taken), tuple(late), tuple(rejections), highest, duplicates, rejected)


def check_schema(batch: EventBatch, schema: EventType) -> None:
    """ProtocolError when events come in another shape than was advertised for them."""
    if batch.type is not schema and batch.type != schema:
        raise ProtocolError(
            Code.SCHEMA, f"events of {batch.type}, which was advertised as {schema}"
        )


def _check_identities(source: Source, batches: Sequence[EventBatch]) -> None:
    for batch in batches:
        if not _is_by(source.name, batch):
            raise ProtocolError(
                Code.BAD_EVENT,
                f"events of {batch.type.name} that are not by {source.name!r}, who publishes them",
            )
        if least_time(batch) < -FAR or greatest_time(batch) > FAR:
            raise ProtocolError(Code.BAD_EVENT, f"an event time beyond {FAR} us of the epoch")
        if ends(batch)[0] < 0 or not _rises(batch):
            raise ProtocolError(Code.BAD_EVENT, "sequence numbers must strictly increase")
    if len(batches) > 1:
        numbers = np.concatenate([batch.ids.sequence for batch in batches])
        if not strictly_rises(np.sort(numbers)):
            raise ProtocolError(Code.BAD_EVENT, "one sequence number for two events")


def _is_by(name: str, batch: EventBatch) -> bool:
    if isinstance(batch, Single):
        return batch.row.source == name
    ids = batch.ids
    return ids.source.values == (name,) and ids.digest is None and batch.causes is None


def _rises(batch: EventBatch) -> bool:
    return isinstance(batch, Single) or strictly_rises(batch.ids.sequence)


def _without_repeats(batch: EventBatch, last: int) -> EventBatch:
    """What lies above the last number taken; the rest was taken before (4.3)."""
    return batch.take(slice(int(np.searchsorted(batch.ids.sequence, last, side="right")), None))


def _unadvertised(batch: EventBatch) -> Rejected:
    reason = f"event type {batch.type.name} was not advertised by this client"
    return Rejected(Code.UNADVERTISED, runs(batch.ids.sequence), reason)


def _late(batch: EventBatch, source: Source) -> Rejected:
    mark = source.mark(batch.type.name)
    own = source.promise >= source.floors[batch.type.name]
    whose = "its source had promised" if own else "what had been evaluated before it joined was"
    reason = (
        f"{len(batch)} late {batch.type.name}: earliest at {time_text(int(batch.time.min()))}, "
        f"but {whose} up to {time_text(mark)}"
    )
    return Rejected(Code.LATE, runs(batch.ids.sequence), reason)


def runs(numbers: Int64s) -> tuple[tuple[int, int], ...]:
    """Ascending numbers as runs of (first, last), at most RUNS_MAX of them."""
    breaks = np.flatnonzero(np.diff(numbers) != 1)
    firsts = numbers[np.concatenate(([0], breaks + 1))]
    lasts = numbers[np.concatenate((breaks, [len(numbers) - 1]))]
    if len(firsts) > RUNS_MAX:
        firsts, lasts = firsts[:RUNS_MAX], lasts[: RUNS_MAX - 1]
        lasts = np.append(lasts, numbers[-1])
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))

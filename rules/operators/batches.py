"""Batches put together, and gathered until they are worth a launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matcher.model import Causes, Column, EventBatch, EventIds, StringColumn


def concatenated(batches: Sequence[EventBatch]) -> EventBatch:
    """Batches of one type and one kind of ids (:func:`are_alike`), one behind the other."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    causes = [batch.causes for batch in batches if batch.causes is not None]
    return EventBatch(
        first.type,
        np.concatenate([batch.time for batch in batches]),
        _ids([batch.ids for batch in batches]),
        tuple(
            _column([batch.columns[place] for batch in batches])
            for place in range(len(first.columns))
        ),
        _causes(causes) if causes else None,
    )


def are_alike(one: EventBatch, other: EventBatch) -> bool:
    """Whether two batches can stand in one: of one type, their events known in one way."""
    return one.type == other.type and _way(one) == _way(other)


def _way(batch: EventBatch) -> tuple[bool, ...]:
    ids = batch.ids
    return (ids.text is None, ids.digest is None, ids.given, batch.causes is None)


def _column(columns: Sequence[Column]) -> Column:
    texts = [column for column in columns if isinstance(column, StringColumn)]
    if texts:
        return StringColumn.concatenate(texts)
    return np.concatenate([column for column in columns if not isinstance(column, StringColumn)])


def _ids(parts: Sequence[EventIds]) -> EventIds:
    texts = [part.text for part in parts if part.text is not None]
    digests = [part.digest for part in parts if part.digest is not None]
    return EventIds(
        StringColumn.concatenate([part.source for part in parts]),
        np.concatenate([part.sequence for part in parts]),
        StringColumn.concatenate(texts) if texts else None,
        np.concatenate(digests) if digests else None,
        parts[0].given,
    )


def _causes(parts: Sequence[Causes]) -> Causes:
    ids = [part.ids for part in parts]
    # Causes have texts and digests where some of theirs do: see Causes.
    if len({(one.text is None, one.digest is None) for one in ids}) > 1:
        ids = [_filled(one) for one in ids]
    starts = np.cumsum([0, *(int(part.offsets[-1]) for part in parts)])
    offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
    return Causes(
        np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
        _ids(ids),
        np.concatenate([part.is_digest for part in parts]),
        np.concatenate([part.has_text for part in parts]),
    )


def _filled(ids: EventIds) -> EventIds:
    text = StringColumn.constant("", len(ids)) if ids.text is None else ids.text
    digest = np.zeros((len(ids), 2), np.uint64) if ids.digest is None else ids.digest
    return EventIds(ids.source, ids.sequence, text, digest, ids.given)


class Batcher:
    """Events of one stream, held until there are enough of them, or the first has waited enough.

    A batch goes out when it has ``least`` events, or ``timeout`` microseconds after its first came
    in; none is of more than ``most``. The time is whatever clock the caller tells, in microseconds:
    the same calls give the same batches. So there are never more than ``least`` - 1 events in it
    when a call has returned.
    """

    def __init__(self, least: int, most: int, timeout: int) -> None:
        if not 1 <= least <= most:
            raise ValueError(f"batches of {least} to {most} events: at least 1, and in that order")
        if timeout < 0:
            raise ValueError(f"a timeout of {timeout} us is negative")
        self.least, self.most, self.timeout = least, most, timeout
        self._held: list[EventBatch] = []
        self._count = 0
        self._due = 0

    def __len__(self) -> int:
        return self._count

    @property
    def due(self) -> int | None:
        """When what is held must go out at the latest; None of nothing."""
        return self._due if self._count else None

    def add(self, batch: EventBatch, now: int) -> list[EventBatch]:
        """Take events in at a time; the batches that go out."""
        out = self.tick(now)
        if self._held and not are_alike(self._held[-1], batch):
            out += self.flush()
        if len(batch) == 0:
            return out
        if not self._count:
            self._due = now + self.timeout
        self._held.append(batch)
        self._count += len(batch)
        return out + self.flush() if self._count >= self.least else out

    def tick(self, now: int) -> list[EventBatch]:
        """Tell the time; the batches that go out."""
        return self.flush() if self._count and now >= self._due else []

    def flush(self) -> list[EventBatch]:
        """All that is held, in batches of ``most`` at the most."""
        if not self._count:
            return []
        whole, most = concatenated(self._held), self.most
        self._held, self._count = [], 0
        return [whole.take(slice(at, at + most)) for at in range(0, len(whole), most)]

"""Batches put together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matcher.model import Causes, Column, EventBatch, EventIds, StringColumn


def concatenated(batches: Sequence[EventBatch]) -> EventBatch:
    """Batches of one type and one kind of ids (:func:`are_alike`), one behind the other. The result
    has the events in their order, each with its values and its name, under dictionaries of their
    own: of Temp(a1), Temp(a2) and Temp(a2), Temp(a3) come four Temps, with a dictionary of three
    areas.
    """
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

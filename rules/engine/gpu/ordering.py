"""Composite events of several rules in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from matcher.identity import RULE_SOURCE
from matcher.model import Causes, Column, EventBatch, EventIds, Int64s, StringColumn
from rules.engine.engine import NOTHING, Detections
from rules.engine.gpu.batches import RuleMatches


class Found(Detections):
    """Detections of which only the matches are known until somebody asks for more: to make a batch
    of one takes longer than all else that the host does for a terminator, and not everybody looks.

    As Detections they lack nothing, and are a value.
    """

    # The fields are the slots of Detections, empty until ``__getattr__`` is asked for one.
    __slots__ = ("_matches",)
    _matches: Sequence[RuleMatches]

    def __init__(self, matches: Sequence[RuleMatches]) -> None:
        _set(self, "_matches", matches)

    def __len__(self) -> int:
        return sum(map(len, self._matches))

    def __getattr__(self, name: str) -> Any:
        if name not in ("batches", "order"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        whole = in_order([one.batch() for one in self._matches])
        _set(self, "batches", whole.batches)
        _set(self, "order", whole.order)
        return getattr(whole, name)


_set = object.__setattr__


def in_order(batches: Sequence[EventBatch]) -> Detections:
    """Batches, each of one rule and in order, as detections: one batch a type. They stand in the
    order of their rules' places (E4), and then of time.
    """
    if len(batches) == 1:
        return Detections(tuple(batches), np.arange(len(batches[0])))
    of_type: dict[str, list[int]] = {}
    for number, batch in enumerate(batches):
        of_type.setdefault(batch.type.name, []).append(number)
    numbers = [number for name in sorted(of_type) for number in of_type[name]]
    whole = tuple(joined([batches[number] for number in of_type[name]]) for name in sorted(of_type))
    times = np.concatenate([batches[number].time for number in numbers])
    ranks = np.repeat(numbers, [len(batches[number]) for number in numbers])
    return Detections(whole, np.lexsort((ranks, times)))


def merged(found: Sequence[Detections], places: Mapping[str, int]) -> Detections:
    """The detections of several engines as one; ``places`` by the names of rules (E4).

    The rules of one engine stand in it in the order of their places.
    """
    if len(found) < 2:
        return found[0] if found else NOTHING
    batches = tuple(batch for one in found for batch in one.batches)
    times = np.concatenate([batch.time for batch in batches])
    ranks = np.concatenate([_ranks(batch, places) for batch in batches])
    orders, before = [], 0
    for one in found:
        orders.append(one.order + before)
        before += len(one)
    order = np.concatenate(orders)
    return Detections(batches, order[np.lexsort((ranks[order], times[order]))])


def _ranks(batch: EventBatch, places: Mapping[str, int]) -> Int64s:
    """The places of the rules that made composite events."""
    source = batch.ids.source
    names = [text.removeprefix(RULE_SOURCE) for text in source.values]
    return np.array([places.get(name, 0) for name in names], np.int64)[source.codes]


def joined(batches: Sequence[EventBatch]) -> EventBatch:
    """Batches of one type, one behind the other: all of composite events or of others, and with
    ids of one form where these are not digests.
    """
    if len(batches) == 1:
        return batches[0]
    causes = [batch.causes for batch in batches if batch.causes is not None]
    columns = tuple(map(_column, zip(*(batch.columns for batch in batches), strict=True)))
    return EventBatch(
        batches[0].type,
        np.concatenate([batch.time for batch in batches]),
        _ids([batch.ids for batch in batches]),
        columns,
        _causes(causes) if causes else None,
    )


def _causes(causes: Sequence[Causes]) -> Causes:
    lengths = np.concatenate([np.diff(one.offsets) for one in causes])
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return Causes(
        offsets,
        _ids([one.ids for one in causes]),
        np.concatenate([one.is_digest for one in causes]),
        np.concatenate([one.has_text for one in causes]),
    )


def _column(columns: Sequence[Column]) -> Column:
    if isinstance(columns[0], StringColumn):
        return StringColumn.concatenate([one for one in columns if isinstance(one, StringColumn)])
    return np.concatenate([one for one in columns if not isinstance(one, StringColumn)])


def _ids(ids: Sequence[EventIds]) -> EventIds:
    text = digest = None
    if any(one.text is not None for one in ids):
        none = [StringColumn.constant("", len(one)) for one in ids]
        text = StringColumn.concatenate(
            [other if one.text is None else one.text for one, other in zip(ids, none, strict=True)]
        )
    if any(one.digest is not None for one in ids):
        digest = np.concatenate(
            [
                np.zeros((len(one), 2), np.uint64) if one.digest is None else one.digest
                for one in ids
            ]
        )
    return EventIds(
        StringColumn.concatenate([one.source for one in ids]),
        np.concatenate([one.sequence for one in ids]),
        text,
        digest,
        all(one.given for one in ids),
    )

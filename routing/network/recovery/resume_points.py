"""Resume points: what is still needed of the past, and what is not sent again (brokers.md section
5).

The *resume point* of a rule is the least time up to which those who want its composite events have
them: what comes from there on has to be found once more when the tree is rebuilt.

Law: what rules need from their resume points on says routing.partition.replay_starts. One that ends
before it has to be right can be dropped: fire ends at 26 s, all sinks have it up to there, and no
rule above it reaches back before 26 s from what it is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MAX, TIME_MIN, Bools, EventBatch, Int64s
from routing.delivery.merged_detections import MergedDetections
from routing.deployment import Deployed
from routing.order import greatest_time, least_time
from routing.partition.replay_starts import replay_starts
from routing.wire.composites import Encoded
from rules.engine.engine import Detections

Times = tuple[tuple[str, int], ...]
"""Rules or types with times, as messages have them."""


def over(rules: Sequence[Deployed], resume_from: Mapping[str, int]) -> list[Deployed]:
    """Rules that can be dropped. One of which nobody speaks, nobody has or wants."""
    ends = {one.rule.name: one.until for one in rules if one.until is not None}
    if not ends:
        return []
    needed = replay_starts(rules, {**ends, **resume_from}).starts
    return [one for one in rules if one.until is not None and one.rule.name not in needed]


def needed(batches: Iterable[EventBatch], horizons: Mapping[str, int]) -> Iterator[EventBatch]:
    """The events that are not earlier than the horizons of their types, of types that have one."""
    for batch in batches:
        horizon = horizons.get(batch.type.name)
        if horizon is not None and greatest_time(batch) >= horizon:
            is_needed = batch.time >= horizon
            yield batch if is_needed.all() else batch.take(is_needed)


def least(tables: Iterable[Iterable[tuple[str, int]]]) -> dict[str, int]:
    """The least time of each name."""
    found: dict[str, int] = {}
    for table in tables:
        for name, time in table:
            found[name] = min(time, found.get(name, TIME_MAX))
    return found


def from_resume_points_on(detections: Detections, resume_from: Mapping[str, int]) -> Detections:
    """Composite events without those that are earlier than their rule's resume point."""
    if not resume_from or not detections.batches:
        return detections
    masks = [is_to_come(batch, resume_from) for batch in detections.batches]
    if all(mask is None for mask in masks):
        return detections
    return _chosen(detections, masks)


def chosen(detections: Detections, is_chosen: Callable[[EventBatch], bool]) -> Detections:
    """The composite events of some of the batches."""
    masks = [
        None if is_chosen(batch) else np.zeros(len(batch), np.bool_) for batch in detections.batches
    ]
    return detections if all(mask is None for mask in masks) else _chosen(detections, masks)


def is_to_come(batch: EventBatch, resume_from: Mapping[str, int]) -> Bools | None:
    """bool[n]: which composite events are not earlier than their rule's resume point; None: all."""
    names = (batch.rule,) if isinstance(batch, Encoded) else batch.ids.source.values
    times = [resume_from.get(name.removeprefix(RULE_SOURCE), TIME_MIN) for name in names]
    if max(times, default=TIME_MIN) <= least_time(batch):
        return None
    mask: Bools = batch.time >= np.array(times, np.int64)[batch.ids.source.codes]
    return mask


def _chosen(detections: Detections, masks: Sequence[Bools | None]) -> Detections:
    batches: list[EventBatch] = []
    kept: list[Bools] = []
    for batch, mask in zip(detections.batches, masks, strict=True):
        mask = np.ones(len(batch), np.bool_) if mask is None else mask
        kept.append(mask)
        if mask.any():
            batches.append(batch if mask.all() else batch.take(mask))
    stays = np.concatenate(kept)
    places: Int64s = np.cumsum(stays) - 1  # of what stays, in the concatenated batches
    order = detections.order[stays[detections.order]]
    kind = MergedDetections if isinstance(detections, MergedDetections) else Detections
    return kind(tuple(batches), places[order])

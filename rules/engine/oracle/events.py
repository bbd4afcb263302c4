"""Events as the oracle keeps them: rows with an explicit order (tesla.md E4), and back to columns.

The order of simultaneous events is a tuple that compares as E4 says: timer ticks ``(0,)``, then
primitive events ``(1, source in bytes, sequence number, id)``, then composite events ``(2, since,
position of the rule, place among the rule's events of that instant by their causes)``. The id
settles what E4 leaves open: two events to which their source gave one number.

A composite event that comes from another engine cannot be placed by its rule and its causes here,
and was placed there: its sequence number is its place among the simultaneous events of its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from matcher.identity import Key, event_key, printed
from matcher.model import (
    DTYPES,
    TIME_MIN,
    Causes,
    Column,
    EventBatch,
    EventIds,
    EventType,
    Kind,
    StringColumn,
    Value,
)
from rules.engine.engine import NOTHING, Detections

Order: TypeAlias = tuple[Any, ...]
TICK: Order = (0,)
PRIMITIVE, COMPOSITE = 1, 2
ELSEWHERE = (TIME_MIN, -1)
"""The place of the rules of other engines: before those of this one, which define other types."""


@dataclass(frozen=True, slots=True, eq=False)
class Occurrence:
    """One event; equal only to itself.

    ``text`` and ``digest`` as in :class:`matcher.model.EventIds`, ``is_explicit`` whether it came
    with its id; ``values`` in the order of the schema; ``causes`` the events of the match,
    terminator first, empty for a primitive event.
    """

    type: EventType
    time: int
    source: str
    sequence: int
    text: str | None
    digest: Key | None
    order: Order
    values: tuple[Value, ...]
    causes: tuple[Occurrence, ...] = ()
    is_explicit: bool = False

    @property
    def contents(self) -> tuple[Any, ...]:
        """The contents that a repeat has in common with the event that it repeats (E1)."""
        return self.type.name, self.time, self.values

    @property
    def id(self) -> str:
        """The id as it is printed."""
        if self.digest is not None:
            return printed(self.digest)
        return self.text if self.text is not None else str(self.sequence)

    @property
    def key(self) -> Key:
        """The name of the event as a number (tesla.md section 4)."""
        return self.digest if self.digest is not None else event_key(self.source, self.id)

    @property
    def moment(self) -> tuple[int, Order]:
        """The key by which events are ordered: time, then E4."""
        return self.time, self.order


def occurrences(batch: EventBatch, *, ticks: bool = False) -> Iterator[Occurrence]:
    """The events of a batch that comes from outside, or of timer ticks."""
    columns = [column.tolist() for column in batch.columns]
    ids = batch.ids
    for place, event in enumerate(batch.events()):
        order: Order = (PRIMITIVE, event.source.encode(), event.sequence, event.id)
        high_low = None if ids.digest is None else tuple(ids.digest[place].tolist())
        if high_low is not None:
            order = (COMPOSITE, *ELSEWHERE, event.sequence)
        yield Occurrence(
            batch.type,
            event.time,
            event.source,
            event.sequence,
            None if ids.text is None else ids.text[place],
            None if high_low is None else (high_low[0], high_low[1]),
            TICK if ticks else order,
            tuple(column[place] for column in columns),
            is_explicit=ids.are_explicit,
        )


def detections(found: Sequence[Occurrence]) -> Detections:
    """Composite events, given in their order, as batches: one a type, types by name."""
    if not found:
        return NOTHING
    of_type: dict[str, list[int]] = {}
    for place, occurrence in enumerate(found):
        of_type.setdefault(occurrence.type.name, []).append(place)
    names = sorted(of_type)
    batches = tuple(_batch([found[place] for place in of_type[name]]) for name in names)
    # ``grouped`` says which event of the common order stands at each place of the batches.
    grouped = np.array([place for name in names for place in of_type[name]], np.int64)
    return Detections(batches, np.argsort(grouped))


def _batch(events: Sequence[Occurrence]) -> EventBatch:
    schema = events[0].type
    columns = zip(*(event.values for event in events), strict=True)
    causes = [cause for event in events for cause in event.causes]
    return EventBatch(
        schema,
        np.array([event.time for event in events], np.int64),
        _ids(events),
        tuple(
            _column(attribute.kind, values)
            for attribute, values in zip(schema.attributes, columns, strict=True)
        ),
        Causes(
            np.cumsum([0, *(len(event.causes) for event in events)]),
            _ids(causes),
            np.array([cause.digest is not None for cause in causes]),
            np.array([cause.text is not None for cause in causes]),
        ),
    )


def _ids(events: Sequence[Occurrence]) -> EventIds:
    texts = [event.text or "" for event in events]
    digests = [event.digest or (0, 0) for event in events]
    return EventIds(
        StringColumn.from_strings([event.source for event in events]),
        np.array([event.sequence for event in events], np.int64),
        StringColumn.from_strings(texts) if any(texts) else None,
        np.array(digests, np.uint64) if any(event.digest for event in events) else None,
    )


def _column(kind: Kind, values: Sequence[Value]) -> Column:
    if kind is Kind.STRING:
        return StringColumn.from_strings([str(value) for value in values])
    return np.array(values, DTYPES[kind])

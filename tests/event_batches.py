"""Batches of events that are written out one by one."""

from collections.abc import Sequence

import numpy as np

from matcher.model import Event, EventBatch, EventIds, EventType, StringColumn
from matcher.rows import batch_of, id_texts


def batch_of_events(event_type: EventType, events: Sequence[Event]) -> EventBatch:
    """A batch of single events, with their own times, sources, ids and sequence numbers."""
    sequence = np.array([event.sequence for event in events], np.int64)
    times = [event.time for event in events]
    rows = [event.data for event in events]
    columns = batch_of(event_type, rows, source="", times=times).columns
    return EventBatch(
        event_type,
        np.array(times, np.int64),
        EventIds(
            StringColumn.from_strings([event.source for event in events]),
            sequence,
            id_texts([event.id for event in events], sequence),
        ),
        columns,
    )

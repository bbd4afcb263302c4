"""The values that some events of a batch have."""

from __future__ import annotations

from typing import Any

from matcher.model import EventBatch, Int64s, StringColumn
from rules.terms import TIME


def values_of(batch: EventBatch, attribute: int, places: Int64s) -> list[Any]:
    """The values of an attribute, or the times (TIME), of the events at these places."""
    column = batch.time if attribute == TIME else batch.columns[attribute]
    part = column.take(places) if isinstance(column, StringColumn) else column[places]
    return part.tolist()

"""What a forwarder gives: events and marks, to be sent together."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from matcher.model import EventBatch, Int64s


class Forwarded(Struct, frozen=True, eq=False, gc=False):
    """What is to be sent at once: events, and then the marks of their types (Law 2).

    ``fresh`` are published events that pass as they come, ``late`` all others (Law 6); but where
    the times at which events come are what counts, those that have waited are apart, with these.
    ``marks`` are those that have risen, or all where other fragments are in force than before.
    """

    fresh: tuple[EventBatch, ...]
    late: tuple[EventBatch, ...]
    marks: Mapping[str, int]
    waited: tuple[tuple[EventBatch, Int64s], ...] = ()

    @property
    def batches(self) -> tuple[EventBatch, ...]:
        """All events but those that have waited."""
        return (*self.fresh, *self.late)

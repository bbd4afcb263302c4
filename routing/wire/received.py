"""A batch of several events as it came, which goes on as the bytes that it came in."""

from __future__ import annotations

from typing import Any

from matcher.extremes import greatest, least
from matcher.model import Causes, Column, EventBatch, EventIds, EventType, Int64s
from routing.wire.headers import BatchHeader


class Received(EventBatch):
    """A batch with its ``header`` and ``body``, which have been checked. What is made of it
    (``take``, ``with_ids``) is a batch without bytes. Only who passes it on whole spares encoding
    it: a sink that wants 256 events of 256 gets the columns of the source's own message.
    """

    __slots__ = ("_times", "body", "header")
    header: BatchHeader
    body: memoryview
    _times: tuple[int, int] | None

    def __init__(
        self,
        header: BatchHeader,
        body: memoryview,
        event_type: EventType,
        time: Int64s,
        ids: EventIds,
        columns: tuple[Column, ...],
        causes: Causes | None,
    ) -> None:
        super().__init__(event_type, time, ids, columns, causes)
        _set(self, "header", header)
        _set(self, "body", body)
        _set(self, "_times", None)

    @property
    def times(self) -> tuple[int, int]:
        """Its least and its greatest event time, which several ask for: found once."""
        if self._times is None:
            _set(self, "_times", (least(self.time), greatest(self.time)))
        assert self._times is not None
        return self._times

    def __reduce__(self) -> tuple[Any, ...]:
        return EventBatch, (self.type, self.time, self.ids, self.columns, self.causes)


_set = object.__setattr__

"""When events came to one sink, and which times they bear: all figures of a run follow from it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

import numpy as np

from matcher.model import MICROSECONDS, EventBatch, Int64s
from matcher.single import Single
from routing.messages import Delivery


class Publications:
    """When primitive events were published, by what composite ones name as their causes."""

    def __init__(self, batches: Callable[[], Iterable[EventBatch]]) -> None:
        self._batches = batches
        self._times: dict[str, int] | None = None

    def last_of(self, batch: EventBatch) -> list[int]:
        """For each event of a batch, the time of the last of its causes, in us. Of published events
        it is their own; of those that have others than published ones for causes, too.
        """
        times: list[int] = batch.time.tolist()
        if batch.causes is None:
            return times
        if self._times is None:
            self._times = {
                f"{source}#{id_}": int(time)
                for one in self._batches()
                for source, id_, time in zip(
                    one.ids.source.tolist(), one.ids.printed(), one.time, strict=True
                )
            }
        rows = zip(batch.causes.printed_rows(full=True), times, strict=True)
        find = self._times.get
        return [max(find(cause, own) for cause in causes) for causes, own in rows]


class Moments:
    """The events that were delivered, in their order; ``publications``: of a run by arrival. An
    event takes sixteen bytes, so a simulated day can be measured; the deliveries, of some kilobytes
    each, are kept only if they are asked for (:class:`simulator.clients.Sink`).
    """

    __slots__ = ("_came", "_lasts", "_publications", "_times")

    def __init__(self, publications: Publications | None = None) -> None:
        self._came = array("q")
        self._times = array("q")
        self._publications = publications
        self._lasts = self._times if publications is None else array("q")

    def __len__(self) -> int:
        """How many events there are."""
        return len(self._times)

    def note(self, moment: float, delivery: Delivery) -> None:
        """A delivery has come at that moment, in seconds."""
        came = round(moment * MICROSECONDS)
        for batch in delivery.batches:
            if isinstance(batch, Single):
                self._came.append(came)
                self._times.append(batch.row.time)
            else:
                self._came.extend([came] * len(batch))
                self._times.extend(batch.time.tolist())
            if self._publications is not None:
                self._lasts.extend(self._publications.last_of(batch))

    def delays(self, since: float) -> Int64s:
        """How long each event took, in us, of what came at ``since`` or later: from the last
        primitive event of a composite one (7.4). By arrival a composite event bears the time of its
        being found, so the times of its causes are looked up, for eight bytes an event. What is
        made of composite events counts from when it was found: nobody is told of what these were
        made.
        """
        came = np.array(self._came, np.int64)
        delays: Int64s = came - np.array(self._lasts, np.int64)
        return delays[came >= round(since * MICROSECONDS)]

    def count_until(self, last: int) -> int:
        """How many of the events bear a time up to ``last``, in us."""
        return int(np.count_nonzero(np.array(self._times, np.int64) <= last))

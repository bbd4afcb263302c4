"""When events came to one sink, and which times they bear: what every figure of a run follows from.

Law: it is always kept, in sixteen bytes an event, so that a run of a simulated day can be
measured. The deliveries themselves take some kilobytes each; whoever looks at them asks for them
to be kept, too (:class:`simulator.clients.Sink`).
"""

from __future__ import annotations

from array import array

import numpy as np

from matcher.model import MICROSECONDS, Int64s
from matcher.single import Single
from routing.messages import Delivery


class Moments:
    """The events that were delivered, in their order."""

    __slots__ = ("_came", "_times")

    def __init__(self) -> None:
        self._came = array("q")
        self._times = array("q")

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

    def delays(self, since: float) -> Int64s:
        """From each event's time to its coming, in us, of what came at ``since`` or later."""
        came = np.array(self._came, np.int64)
        delays: Int64s = came - np.array(self._times, np.int64)
        return delays[came >= round(since * MICROSECONDS)]

    def count_until(self, last: int) -> int:
        """How many of the events bear a time up to ``last``, in us."""
        return int(np.count_nonzero(np.array(self._times, np.int64) <= last))

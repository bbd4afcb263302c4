"""Stream operators in batches: filters, windows, joins and aggregates over streams of EventBatch.

After *Accelerated Complex Event Processing with Graphics Processing Units* (Rodrigo, 2015). An
operator takes the batches of a stream one after another, in order of time, and gives what the
sequential definition gives (:mod:`studies.operators.naive`), on the processor or on a GPU.
[docs/operators.md](../../docs/operators.md) has an example of each.

- :class:`Filter`, :class:`Window`, :class:`Join`, :class:`Aggregate`: the operators;
- :class:`Length`, :class:`Time`: what a window holds; :class:`Stream`: a side of a join;
- :class:`Chain`: the outputs of one operator into the next;
- :class:`Batcher`: events gathered until there are enough of them;
- :func:`share_out`: operators over several devices.

Law: what stands in a condition means what it means in a rule, to the last bit (docs/spec/tesla.md).
"""

from __future__ import annotations

from matcher.joining import concatenated
from studies.operators.aggregates import Aggregate
from studies.operators.batches import Batcher
from studies.operators.chains import Chain
from studies.operators.filters import Filter
from studies.operators.joins import Join
from studies.operators.pairing import Loss, Stream
from studies.operators.places import DevicePlace, Place, share_out
from studies.operators.sliding import Changes, Window
from studies.operators.windows import Length, Time, WindowFull

__all__ = [
    "Aggregate",
    "Batcher",
    "Chain",
    "Changes",
    "DevicePlace",
    "Filter",
    "Join",
    "Length",
    "Loss",
    "Place",
    "Stream",
    "Time",
    "Window",
    "WindowFull",
    "concatenated",
    "share_out",
]

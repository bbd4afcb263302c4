"""Stream operators in batches: filters, windows, joins and aggregates over streams of EventBatch.

After *Accelerated Complex Event Processing with Graphics Processing Units* (Rodrigo, 2015). An
operator takes the batches of a stream one after another, in order of time, and gives what the
sequential definition gives (:mod:`rules.operators.naive`), on the processor or on a GPU.
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
from rules.operators.aggregates import Aggregate
from rules.operators.batches import Batcher
from rules.operators.chains import Chain
from rules.operators.filters import Filter
from rules.operators.joins import Join
from rules.operators.pairing import Loss, Stream
from rules.operators.places import DevicePlace, Place, share_out
from rules.operators.sliding import Changes, Window
from rules.operators.windows import Length, Time, WindowFull

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

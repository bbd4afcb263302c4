"""Messages with the trace contexts of their events (matcher.traces), where there are any.

Contexts go wherever their event goes. t#7, published at b1 with a context, goes up to b2 in a
Forward; b1 gives that message the context, b2 notes it as the message comes, and gives it to the
Delivery of t#7, and to that of the composite event that t#7 is a cause of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from matcher.model import EventBatch
from matcher.traces import TraceContexts
from routing.messages import Delivery, Flow, Forward, Shared, Traces

_Bearing = TypeVar("_Bearing", bound=Delivery | Flow | Forward | Shared)


def with_traces(message: _Bearing, contexts: TraceContexts) -> _Bearing:
    """The message, with the contexts of its events."""
    traces = contexts.of(message.batches)
    return replace(message, traces=traces) if traces else message


def traces_left(whole: Delivery, batches: Sequence[EventBatch]) -> Traces:
    """The contexts of events that are left of a delivery."""
    if not whole.traces:
        return ()
    contexts = TraceContexts()
    contexts.take(whole.batches, whole.traces)
    return contexts.of(batches)

"""Events and their matching: the lowest layer, which knows nothing of rules.

Here live the event model (``model``, ``rows``, ``times``, ``identity``), the files that events come
from and go to (``formats``), what is asked of events by content (``filters``), and the matchers:
PCM and its faster kin (``methods``), on the CPU by ``kernels`` and on the GPU (``gpu``), by the
names of both (``matching``).
"""

from matcher.errors import BadEvent, EventError, SchemaError
from matcher.model import Attribute, Event, EventBatch, EventIds, EventType, Kind, StringColumn

__all__ = [
    "Attribute",
    "BadEvent",
    "Event",
    "EventBatch",
    "EventError",
    "EventIds",
    "EventType",
    "Kind",
    "SchemaError",
    "StringColumn",
]

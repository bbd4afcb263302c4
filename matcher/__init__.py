"""Events and their matching: the lowest layer, which knows nothing of rules.

Here live the event model (:mod:`matcher.model`), the files that events come from and go to
(:mod:`matcher.files`), constraints and filters (:mod:`matcher.constraint`), and the content-based
matchers (:mod:`matcher.matcher`; PCM and its faster kin) on CPU and GPU.
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

"""Histories in the thesis's notation, and what an engine detects in them.

An event is written ``Temp@10("Room1", 24.5)``: type, time in units, values in the schema's order
as JSON. ``T1=Temp@10("Room1", 24.5)`` gives it an id; otherwise its place in the text, from 1, is
its id. Detections are written the same way, with the ids of their causes, terminator first:
``Fire@12(24.5) <- S1 T1``.
"""

import json
import re
from collections.abc import Iterable, Sequence

from engines import make
from event_batches import batch_of_events

import rules
from matcher.model import MICROSECONDS, TIME_MAX, Event, EventBatch, EventType
from rules.engine.engine import Detector
from rules.pattern import RuleSet

SOURCE = "history"
_EVENT = re.compile(r"(?:(\w+)=)?(\w+)@(-?[\d.]+)(?:\(([^()]*)\))?")


def history(text: str, ruleset: RuleSet, *, unit: float = 1) -> list[Event]:
    """The events of a text, in its order; ``unit`` is the length of a unit of time in seconds."""
    events = []
    for place, found in enumerate(_EVENT.finditer(text), start=1):
        name, kind, time, values = found.groups()
        schema = ruleset.schemas[kind]
        names = [one.name for one in schema.declared]
        data = dict(zip(names, json.loads(f"[{values or ''}]"), strict=True))
        moment = round(float(time) * unit * MICROSECONDS)
        events.append(Event(kind, moment, SOURCE, name or str(place), data, place))
    return events


def batches(events: Iterable[Event], schemas: Iterable[EventType]) -> list[EventBatch]:
    """The events as one batch a type, in the order of the schemas."""
    given = list(events)
    return [
        batch_of_events(schema, chosen)
        for schema in schemas
        if (chosen := [event for event in given if event.type == schema.name])
    ]


def push(engine: Detector, events: Iterable[Event], ruleset: RuleSet) -> None:
    for batch in batches(events, ruleset.schemas.values()):
        engine.push(batch)


def detect(engine: str, text: str, events: str, *, unit: float = 1) -> list[str]:
    """What the rules of ``text`` detect in a whole history, in order."""
    ruleset = rules.load(text)
    detector = make(engine)
    detector.deploy(ruleset)
    push(detector, history(events, ruleset, unit=unit), ruleset)
    return written(detector.advance(TIME_MAX).events(), unit=unit)


def written(events: Iterable[Event], *, unit: float = 1) -> list[str]:
    """Composite events in the notation of this module."""
    return [_written(event, unit) for event in events]


def _written(event: Event, unit: float) -> str:
    time = event.time / MICROSECONDS / unit
    values = ", ".join(json.dumps(value) for value in event.data.values())
    return f"{event.type}@{time:g}({values}) <- {' '.join(event.cause)}"


def only(found: Sequence[str], kind: str) -> list[str]:
    """The detections of one type."""
    return [text for text in found if text.startswith(f"{kind}@")]

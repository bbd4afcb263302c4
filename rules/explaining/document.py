"""Explanations as documents: dicts, lists, numbers and texts, ready for JSON (docs/explain.md).

A document has the fields of the value that it is made from, under their names. Times are RFC 3339
texts, durations microseconds. What there may or may not be is left out where there is none.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from matcher.model import Event
from matcher.times import time_text
from rules.explaining.explanation import Explanation, Match, Summary

_TIMES = frozenset(["start", "end", "time"])
_OPTIONAL = frozenset(
    [
        *(
            "because",
            "check",
            "checks",
            "by",
            "considered",
            "distance",
            "is_instant",
            "terms",
            "values",
        ),  # of steps
        *("branches", "chosen", "match", "more", "more_matches"),  # of branches
        *("example", "reasons"),  # of stages
        *("way", "ways"),  # of summaries
    ]
)


def document(told: Explanation | Summary) -> dict[str, Any]:
    """The document of an explanation or of a summary."""
    content: dict[str, Any] = _content(told)
    if isinstance(told, Explanation):
        matches = [_content(match) for match in told.matches]
        content |= {"fired": told.fired, "count": told.count, "matches": matches}
    return content


def _content(value: Any) -> Any:
    match value:
        case Event():
            return _event(value)
        case Match():
            return _match(value)
        case enum.Enum():
            return value.value
        case Mapping():
            return {_content(key): _content(inner) for key, inner in value.items()}
        case tuple():
            return [_content(inner) for inner in value]
        case _ if is_dataclass(value):
            return _fields(value)
        case _:
            return value


def _fields(value: Any) -> dict[str, Any]:
    found = ((field.name, getattr(value, field.name)) for field in fields(value))
    return {
        name: time_text(inner) if name in _TIMES else _content(inner)
        for name, inner in found
        if inner or name not in _OPTIONAL
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "type": event.type,
        "time": time_text(event.time),
        "source": event.source,
        "id": event.id,
        "data": dict(event.data),
    }


def _match(found: Match) -> dict[str, Any]:
    events = zip(found.names, found.events, strict=True)
    return {"events": {name: _event(event) for name, event in events}, "data": dict(found.data)}

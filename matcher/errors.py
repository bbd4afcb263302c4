"""Errors of the event model.

``EventError`` (a ``ValueError``) is the caller's or the input's mistake:

- ``SchemaError``: an event type that is ill-formed, or two schemas for one type (tesla.md E5);
- ``BadEvent``: one event that does not fit its schema (tesla.md E1, E2, E5), with its place;
- ``FilterError``: a filter that is ill-formed, or does not fit the type that it names.
"""

from __future__ import annotations


class EventError(ValueError):
    """An event or a schema that the event model refuses."""


class SchemaError(EventError):
    """An ill-formed event type, or a second, different schema for a type (tesla.md E5)."""


class BadEvent(EventError):
    """One event that is refused, with the place it came from (tesla.md E5).

    ``place`` names file and line where there is one: ``"temps.jsonl:17"``.
    """

    def __init__(self, reason: str, place: str | None = None) -> None:
        super().__init__(f"{place}: {reason}" if place else reason)
        self.reason = reason
        self.place = place


class FilterError(EventError):
    """A constraint or a filter that no event could be held against (docs/matching.md)."""

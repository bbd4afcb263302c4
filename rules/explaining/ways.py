"""The way of a rule that a firing took, where the rule is several (X1, X2).

A composite event names its causes in the order of the text, and not the way. Where events come in
any order, it is told by their times: the latest terminates, and of several the one that the text
names first. Where events may be of either type, it is told by their types.
"""

from __future__ import annotations

from collections.abc import Sequence

from matcher.model import EventType
from rules.engine.oracle.events import Occurrence
from rules.explaining.recording import Firing, Name, Recording
from rules.pattern import Rule
from rules.terms import TERMINATOR


class Ways:
    """The firings of a rule by its ``ways``, the rules that it is."""

    def __init__(self, recording: Recording, rule: Rule, ways: Sequence[Rule]) -> None:
        self._rule = rule
        self._types = {id(way): _types(way) for way in ways}
        columns = list(zip(*self._types.values(), strict=True))
        self._open = [place for place, types in enumerate(columns) if len(set(types)) > 1]
        told = {type_.name: type_ for types in columns for type_ in types}
        self._events: dict[Name, Occurrence] = {
            (event.source, event.id): event
            for type_ in told.values()
            for event in recording.timeline(type_).events
        }
        self._firings = recording.firings(rule)

    def name(self, way: Rule) -> str:
        """A way in words."""
        if self._rule.together is not None:
            return f"{way.event_names[TERMINATOR]} comes last"
        types = self._types[id(way)]
        return ", ".join(
            f"{way.event_names[one]} is of type {types[one].name}" for one in self._open
        )

    def firings(self, way: Rule) -> Sequence[Firing]:
        """The firings that took a way, in order."""
        return [firing for firing in self._firings if self._took(firing, way)]

    def terminator(self, firing: Firing) -> Name:
        """The event at which the rule fired."""
        return firing.causes[self._place(firing)]

    def _took(self, firing: Firing, way: Rule) -> bool:
        if self._rule.together is not None:
            return self._place(firing) == way.latest
        types = self._types[id(way)]
        return all(self._events[firing.causes[one]].type == types[one] for one in self._open)

    def _place(self, firing: Firing) -> int:
        """The place in the text of the event that terminated a match."""
        if self._rule.together is None:
            return TERMINATOR
        times = [self._events[cause].time for cause in firing.causes]
        return times.index(max(times))


def _types(way: Rule) -> tuple[EventType, ...]:
    return (way.terminator, *(clause.type for clause in way.selected))

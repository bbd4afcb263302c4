"""The events of a recording that one rule sees, from one instant on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rules.engine.oracle.events import Occurrence
from rules.engine.oracle.values import Scope
from rules.explaining.explanation import Fate
from rules.explaining.recording import Firing, Name, Recording
from rules.pattern import Rule, Selected, Use, uses_of
from rules.planning.depths import reach_of
from rules.terms import Aggregate, Run


class Sight:
    """The recording as one rule sees it; makes a :class:`Moment` for each instant."""

    def __init__(self, recording: Recording, rule: Rule) -> None:
        self.recording = recording
        self.rule = rule
        self.since = recording.since(rule)
        self.reach = reach_of(rule)
        self.timelines = {use.type.name: recording.timeline(use.type) for use in uses_of(rule)}
        self._consumed: dict[Name, Firing] = {}  # by the first firing, which is what counts
        if rule.consuming:
            consuming = recording.rule(rule.name).consuming  # a variant numbers otherwise (X1)
            for firing in recording.firings(rule):
                others = firing.causes[len(rule.event_names) :]  # of runs
                for cause in (*(firing.causes[number] for number in consuming), *others):
                    self._consumed.setdefault(cause, firing)

    def consumed_by(self, event: Occurrence, instant: int) -> Firing | None:
        """The firing before an instant that consumed an event, if one did (S11)."""
        if not self._consumed:
            return None
        firing = self._consumed.get((event.source, event.id))
        return firing if firing is not None and firing.event.time < instant else None

    def hidden(self, use: Use, scope: Scope, event: Occurrence) -> Fate | None:
        """Why an event that fits is not seen, if it is not."""
        instant = scope.event(0).time
        repeats = isinstance(use, Aggregate) or (isinstance(use, Selected) and use.iteration)
        if not repeats and event in scope.alone:
            return Fate.TAKEN  # S1, S6
        if use.strict and event.time >= instant:
            return Fate.SIMULTANEOUS  # S12
        if self.consumed_by(event, instant) is not None:
            return Fate.CONSUMED  # S11
        return None

    def sees(self, event: Occurrence, instant: int, *, strict: bool) -> bool:
        """Whether an event is seen from an instant: from the rule's ``since`` on (S15), but for
        those that one of its earlier firings has consumed (S11), and within a cycle of rules only
        those strictly earlier than the instant (S12). All matches of one instant see the same.
        """
        return (
            event.time >= self.since  # S15
            and not (strict and event.time >= instant)  # S12
            and self.consumed_by(event, instant) is None  # S11
        )


class Runs(Protocol):
    """Knows the runs of a rule's iterations (X4)."""

    def run(self, run: Run, scope: Scope) -> Sequence[Occurrence]:
        """The events of the run that an event of a match ends."""
        ...


class Moment:
    """The history from one instant; a View for the oracle's arithmetic."""

    def __init__(self, sight: Sight, instant: int, runs: Runs) -> None:
        self.sight = sight
        self.instant = instant
        self._runs = runs
        self._seen: dict[tuple[str, bool], Sequence[Occurrence]] = {}

    def events(self, name: str, *, strict: bool) -> Sequence[Occurrence]:
        """The events of a type within the rule's reach. No window reaches further back than the
        longest sum of windows from the terminator down, and none beyond the terminator.
        """
        if (name, strict) not in self._seen:
            near = self.sight.timelines[name].between(self.instant - self.sight.reach, self.instant)
            self._seen[name, strict] = [
                event for event in near if self.sight.sees(event, self.instant, strict=strict)
            ]
        return self._seen[name, strict]

    def run(self, aggregate: Aggregate, scope: Scope) -> Sequence[Occurrence]:
        """The events of the run that an aggregate ranges over."""
        assert aggregate.run is not None
        return self._runs.run(aggregate.run, scope)

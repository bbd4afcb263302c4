"""The fate of every event of a type when a clause or an aggregate looks at it.

An event is excluded for the first of these that applies: it is outside the window, before the
rule, a condition on it alone is not true, nor one that compares it with the match, it is in the
match already, not strictly earlier, or consumed. The order is one of explanation: what is left
does not depend on it, and the last reasons are the most telling.

All events are counted; those that are listed are at most a *limit*: the ones that fit before the
others, the ones that got far before those that did not, the recent ones before the old. Events
outside the window are listed where nothing within it fits: the nearest, and the nearest that
would have fitted, at either end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rules.engine.oracle.events import Occurrence
from rules.engine.oracle.values import Scope, value_of
from rules.explaining.appraisal import Appraisal, Enclosing, speaks_of_others
from rules.explaining.explanation import Candidate, Check, Considered, Fate
from rules.explaining.sight import Sight
from rules.pattern import Negated, Selected, Use
from rules.terms import CANDIDATE, Aggregate, Expression, Window, Within

NEAR_MAX = 200
"""So many events beyond an end of a window are searched for one that would have fitted."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The fate of one event; ``condition`` is the place of the one that failed, if one did."""

    event: Occurrence
    fate: Fate | None  # None: it fits
    condition: int


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a use, the first ``alone`` of which speak of the event alone."""

    items: tuple[Expression, ...]
    alone: int

    def failing(self, scope: Scope) -> tuple[int, Fate | None]:
        """The place of the first that is not true (S9), and of which sort it is."""
        for place, condition in enumerate(self.items):
            if value_of(condition, scope) is not True:
                return place, Fate.CONDITION if place < self.alone else Fate.PARAMETER
        return len(self.items), None


def scope_of(use: Use, scope: Scope, event: Occurrence) -> Scope:
    """The scope in which the conditions of a use are asked of an event."""
    return scope.with_event(event) if isinstance(use, Selected) else replace(scope, candidate=event)


def number_of(use: Use) -> int:
    """The number that the event of a use has in its own conditions."""
    return use.event if isinstance(use, Selected) else CANDIDATE


def is_open(use: Use) -> bool:
    """Whether the start of the window does not count (S6)."""
    return isinstance(use, Negated) and not isinstance(use.window, Within)


def sorted_conditions(use: Use) -> Conditions:
    """The conditions of a use: those on the event alone, then the others."""
    number = number_of(use)
    others = [one for one in use.conditions if speaks_of_others(one, number)]
    alone = [one for one in use.conditions if not speaks_of_others(one, number)]
    return Conditions((*alone, *others), len(alone))


def ends(window: Window, scope: Scope) -> tuple[int, int]:
    """The first and the last instant of a window."""
    if isinstance(window, Within):
        end = scope.event(window.anchor).time
        return end - window.duration, end
    return scope.event(window.earlier).time, scope.event(window.later).time


class Consideration:
    """Looks at events for one rule; ``limit`` of them are listed at a time."""

    def __init__(self, sight: Sight, appraisal: Appraisal, limit: int) -> None:
        self._sight = sight
        self._appraisal = appraisal
        self._limit = limit

    def rulings(self, use: Use, scope: Scope) -> list[Ruling]:
        """The fate of each event within the window, in their order; S15 is left out."""
        start, end = self._ends(use, scope)
        near = self._sight.timelines[use.type.name].between(max(start, self._sight.since), end)
        conditions = sorted_conditions(use)
        return [self._rule(use, conditions, scope, event) for event in near]

    def considered(
        self, use: Use, scope: Scope, rulings: Sequence[Ruling], fates: Sequence[Fate]
    ) -> Considered:
        """All of it, given what became of the events within; ``fates`` are those that fit."""
        start, end = ends(use.window, scope)
        counts = Counter(ruling.fate for ruling in rulings if ruling.fate is not None)
        timeline = self._sight.timelines[use.type.name]
        first, last = timeline.bounds(*self._ends(use, scope))
        counts[Fate.OUTSIDE] = len(timeline.events) - max(0, last - first)
        counts[Fate.NOT_IN_FORCE] = max(0, last - first) - len(rulings)
        listed = sorted(rulings, key=lambda ruling: _worth(ruling, fates), reverse=True)
        listed = listed[: self._limit]
        if not any(ruling.fate in fates for ruling in rulings):
            listed += self._beyond(use, scope, first, last)
        listed.sort(key=lambda ruling: ruling.event.moment)
        return Considered(
            use.type.name,
            start,
            end,
            is_open(use),
            tuple(self._told(use, scope, ruling) for ruling in listed),
            {fate: counts[fate] for fate in Fate if counts[fate]},
            self._failed(use, rulings),
        )

    def aggregated(self, use: Aggregate, scope: Scope) -> Considered:
        """The events that an aggregate is made of, and the others (S8)."""
        found = self.rulings(use, scope)
        fitting: Iterable[Occurrence] = (one.event for one in found if one.fate is None)
        counted = set(fitting if use.run is None else scope.view.run(use, scope))

        def fate_of(event: Occurrence) -> Fate:
            return Fate.COUNTED if event in counted else Fate.APART  # X4

        rulings = [replace(ruling, fate=ruling.fate or fate_of(ruling.event)) for ruling in found]
        return self.considered(use, scope, rulings, (Fate.COUNTED,))

    # --- one event ---------------------------------------------------------------------------

    def _ends(self, use: Use, scope: Scope) -> tuple[int, int]:
        start, end = ends(use.window, scope)
        return (start + 1 if is_open(use) else start), end

    def _rule(self, use: Use, conditions: Conditions, scope: Scope, event: Occurrence) -> Ruling:
        place, fate = conditions.failing(scope_of(use, scope, event))
        return Ruling(event, fate or self._sight.hidden(use, scope, event), place)

    # --- telling -----------------------------------------------------------------------------

    def _told(self, use: Use, scope: Scope, ruling: Ruling) -> Candidate:
        event, fate = ruling.event, ruling.fate
        assert fate is not None  # whoever asks has decided on those that fit
        firing = self._sight.consumed_by(event, scope.event(0).time)
        return Candidate(
            self._sight.recording.row(event),
            fate,
            self._distance(use, scope, event),
            self._check(use, scope, ruling),
            firing.event if firing is not None and fate is Fate.CONSUMED else None,
        )

    def _check(self, use: Use, scope: Scope, ruling: Ruling) -> Check | None:
        if ruling.condition == len(use.conditions):
            return None
        enclosing = Enclosing(number_of(use), use.type)
        asked = scope_of(use, scope, ruling.event)
        condition = sorted_conditions(use).items[ruling.condition]
        return self._appraisal.check(condition, asked, enclosing)

    def _distance(self, use: Use, scope: Scope, event: Occurrence) -> int:
        start, end = self._ends(use, scope)
        return min(0, event.time - start) + max(0, event.time - end)

    def _failed(self, use: Use, rulings: Sequence[Ruling]) -> dict[str, int]:
        """How many events failed each condition, as it is written."""
        enclosing = Enclosing(number_of(use), use.type)
        numbers = Counter(ruling.condition for ruling in rulings)
        return {
            self._appraisal.text(condition, enclosing): numbers[place]
            for place, condition in enumerate(sorted_conditions(use).items)
            if numbers[place]
        }

    def _beyond(self, use: Use, scope: Scope, first: int, last: int) -> list[Ruling]:
        """The events before place ``first`` and from ``last`` on that are worth a word."""
        events = self._sight.timelines[use.type.name].events
        before = events[max(0, first - NEAR_MAX) : first][::-1]
        after = events[max(first, last) : max(first, last) + NEAR_MAX]
        conditions = sorted_conditions(use)
        found: list[Ruling] = []
        for near in (before, after):
            rulings = [
                Ruling(event, Fate.OUTSIDE, conditions.failing(scope_of(use, scope, event))[0])
                for event in near
            ]
            fitting = [ruling for ruling in rulings if ruling.condition == len(use.conditions)]
            found += dict.fromkeys((*rulings[:1], *fitting[:1]))
        return found


def _worth(ruling: Ruling, fates: Sequence[Fate]) -> tuple[int, int, int]:
    """How much an event within the window is worth telling of."""
    assert ruling.fate is not None
    fits = 2 if ruling.fate in fates else 1 if ruling.fate in (Fate.PASSED_OVER, Fate.APART) else 0
    return fits, ruling.condition, ruling.event.time

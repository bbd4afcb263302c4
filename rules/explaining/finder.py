"""Finding the events that fit a use of a rule without looking at most others."""

from __future__ import annotations

from collections.abc import Iterator

from matcher.model import Datum
from rules.engine.oracle.events import Occurrence
from rules.engine.oracle.values import NOTHING, Scope, attribute_of, value_of
from rules.explaining.appraisal import Appraisal, Enclosing
from rules.explaining.consideration import (
    ends,
    is_open,
    number_of,
    scope_of,
    sorted_conditions,
)
from rules.explaining.explanation import Fate
from rules.explaining.recording import Timeline
from rules.explaining.sight import Sight
from rules.pattern import Use
from rules.terms import AttributeOf, Compare, Comparison, Expression, Slot

SAMPLE_MAX = 32
"""So many events that fail only in comparison with the match are looked at for the reason."""

_HIDDEN = {
    Fate.TAKEN: "is in the match already",
    Fate.SIMULTANEOUS: "is not strictly earlier",
    Fate.CONSUMED: "is consumed",
}


class Finder:
    """Finds the events that fit a use, without looking at most others.

    What is found is what the oracle would find, in its order. The events that satisfy the
    conditions on the event alone are sorted out once, and put into bins by the value of an
    attribute that must equal something of the match, where there is one. The window is then
    bisected, and the rest is asked of what is within it.
    """

    def __init__(self, use: Use, sight: Sight) -> None:
        self._use = use
        self._sight = sight
        self._conditions = sorted_conditions(use)
        self._timeline = sight.timelines[use.type.name]
        alone = self._conditions.items[: self._conditions.alone]
        self._passed = self._judged(alone)
        kept = [
            event
            for event, passed in zip(self._timeline.events, self._passed, strict=True)
            if passed == len(alone)
        ]
        self._kept = Timeline.ordered(kept)
        self._key = next(filter(None, map(self._as_key, self._others)), None)
        self._bins: dict[Datum, Timeline] = {}
        if self._key is not None:
            bins: dict[Datum, list[Occurrence]] = {}
            for event in kept:
                bins.setdefault(attribute_of(event, self._key[0]), []).append(event)
            self._bins = {value: Timeline.ordered(events) for value, events in bins.items()}

    @property
    def _others(self) -> tuple[Expression, ...]:
        return self._conditions.items[self._conditions.alone :]

    def fitting(self, scope: Scope, latest_first: bool = False) -> Iterator[Occurrence]:
        """The events that fit, in order or in reverse."""
        timeline: Timeline | None = self._kept
        if self._key is not None:
            value = value_of(self._key[1], scope)
            timeline = None if value is None else self._bins.get(value)
        if timeline is None:
            return
        # Whoever is in the right bin satisfies the condition that the bins are made by.
        is_settled = self._key is not None and len(self._others) == 1
        first, last = timeline.bounds(*self._ends(scope))
        places = range(first, last)
        for place in reversed(places) if latest_first else places:
            event = timeline.events[place]
            fits = is_settled or self._unmet(scope, event) is None
            if fits and self._sight.hidden(self._use, scope, event) is None:
                yield event

    def reason(self, scope: Scope, appraisal: Appraisal) -> str:
        """Why no event fits, or too few do: told of the one that got furthest."""
        name = self._use.type.name
        first, last = self._timeline.bounds(*self._ends(scope))
        if first >= last:
            return f"no {name} in the window"
        enclosing = Enclosing(number_of(self._use), self._use.type)
        items = self._conditions.items
        furthest = max(self._passed[first:last])
        if furthest == self._conditions.alone:
            first, last = self._kept.bounds(*self._ends(scope))
            near = self._kept.events[max(first, last - SAMPLE_MAX) : last]
            unmet = [self._unmet(scope, event) for event in near]
            if None in unmet:
                return self._hidden(scope, near[unmet.index(None)])
            furthest = max(place for place in unmet if place is not None)
        return f"no {name} in the window with {appraisal.text(items[furthest], enclosing)}"

    def _hidden(self, scope: Scope, event: Occurrence) -> str:
        """Why an event that fits did not do."""
        name = self._use.type.name
        fate = self._sight.hidden(self._use, scope, event)
        return f"fewer {name} fit than it takes" if fate is None else f"the {name} {_HIDDEN[fate]}"

    def _ends(self, scope: Scope) -> tuple[int, int]:
        start, end = ends(self._use.window, scope)
        return max(start + 1 if is_open(self._use) else start, self._sight.since), end

    def _unmet(self, scope: Scope, event: Occurrence) -> int | None:
        """The place of the first condition in comparison with the match that is not true."""
        asked = scope_of(self._use, scope, event)
        for place, condition in enumerate(self._others, self._conditions.alone):
            if value_of(condition, asked) is not True:
                return place
        return None

    def _judged(self, alone: tuple[Expression, ...]) -> list[int]:
        """How many conditions on the event alone each satisfies before it fails one."""
        events = self._timeline.events
        if not alone:
            return [0] * len(events)
        # They speak of no other event and see no history, so any will do in their places.
        number = number_of(self._use)
        judged = []
        for event in events:
            scope = Scope(NOTHING, (event,) * max(number + 1, 1), candidate=event)
            failing = (place for place, one in enumerate(alone) if value_of(one, scope) is not True)
            judged.append(next(failing, len(alone)))
        return judged

    def _as_key(self, condition: Expression) -> tuple[int, Expression] | None:
        """The attribute and what it must equal, if a condition is of that form."""
        if not isinstance(condition, Compare) or condition.comparison is not Comparison.EQUAL:
            return None
        number = number_of(self._use)
        for own, other in ((condition.left, condition.right), (condition.right, condition.left)):
            match own, other:
                case AttributeOf(event, attribute), AttributeOf() | Slot() if event == number:
                    return attribute, other
        return None

"""Ordinary rules for ``all ... within``: one for each event that may be the latest (X1).

Of the events of a match, one terminates it: the latest, and of several that are latest the one that
the text names first. In the variant of that event, those named before it are strictly earlier and
those named after it are not later; so every assignment of events to names is a match of exactly one
variant, ties included. As all lie within the duration before the latest, they do so pairwise.

Where events are of either type (X2), the checker has made the ordinary rules already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from matcher.model import EventType, Kind
from rules.pattern import Clause, Constraint, Let, Policy, Rule, Selected
from rules.terms import (
    CANDIDATE,
    TERMINATOR,
    TIME,
    Aggregate,
    AttributeOf,
    Between,
    Compare,
    Comparison,
    Expression,
    Slot,
    Window,
    Within,
    nodes_of,
    with_operands,
)


def variants(rule: Rule) -> tuple[Rule, ...]:
    """The ordinary rules that are together what the rule is; most rules are their only one."""
    if rule.alternatives:
        return rule.alternatives  # X2
    if rule.together is None:
        return (rule,)
    selected = rule.selected
    events = (
        _Event(rule.terminator, rule.conditions),
        *(_Event(clause.type, clause.conditions) for clause in selected),
    )
    return tuple(
        _Variant(rule, rule.together, events, latest).rule() for latest in range(len(events))
    )


def in_the_text(latest: int, place: int) -> int:
    """The place in the text of event number ``place`` of a variant."""
    if place == TERMINATOR:
        return latest
    return place - 1 if place <= latest else place


@dataclass(frozen=True, slots=True)
class _Event:
    type: EventType
    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class _Variant:
    """The variant in which event ``latest`` of the text terminates.

    It says what the rule says. An event of ``all`` is compared only with those named before it; in
    a variant such a condition belongs to the one that is chosen last, where it can be a key.
    Conditions that cannot be moved (aggregates) are tested once all events are chosen.
    """

    whole: Rule
    duration: int
    events: Sequence[_Event]
    latest: int

    def rule(self) -> Rule:
        whole, count = self.whole, len(self.events)
        order = [in_the_text(self.latest, place) for place in range(count)]
        own: list[list[Expression]] = [[] for _ in order]
        rest: list[Expression] = []
        for event in self.events:
            for condition in map(self._renumbered, event.conditions):
                if any(isinstance(node, Aggregate | Slot) for node in nodes_of(condition)):
                    rest.append(condition)
                else:
                    own[_last_of(condition)].append(condition)
        clauses: list[Clause] = [
            self._selected(place, order[place], own[place]) for place in range(1, count)
        ]
        clauses.extend(map(Constraint, rest))
        clauses.extend(
            self._followed(clause) for clause in whole.clauses if not isinstance(clause, Selected)
        )
        return replace(
            whole,
            terminator=self.events[self.latest].type,
            conditions=tuple(own[TERMINATOR]),
            clauses=tuple(clauses),
            values=tuple(map(self._renumbered, whole.values)),
            consuming=tuple(sorted(map(self._number, whole.consuming))),
            event_names=tuple(whole.event_names[place] for place in order),
            together=None,
            latest=self.latest,
        )

    def _selected(self, number: int, place: int, conditions: list[Expression]) -> Selected:
        if place < self.latest:
            earlier, terminator = _time_of(number), _time_of(TERMINATOR)
            conditions = [*conditions, Compare(Comparison.LESS, earlier, terminator)]
        window = Within(self.duration, TERMINATOR)
        type_ = self.events[place].type
        return Selected(number, type_, Policy.EACH, 0, tuple(conditions), window, False)

    def _followed(self, clause: Clause) -> Clause:
        match clause:
            case Constraint():
                return Constraint(self._renumbered(clause.condition))
            case Let():
                return replace(clause, value=self._renumbered(clause.value))
            case _:
                raise AssertionError("only constraints follow all ... within")

    # --- numbers -----------------------------------------------------------------------------

    def _number(self, place: int) -> int:
        """The number, in the variant, of the event at a place in the text."""
        if place == CANDIDATE:
            return CANDIDATE
        if place == self.latest:
            return TERMINATOR
        return place + 1 if place < self.latest else place

    def _renumbered(self, expression: Expression) -> Expression:
        match expression:
            case AttributeOf():
                return replace(expression, event=self._number(expression.event))
            case Aggregate():
                return replace(
                    expression,
                    conditions=tuple(map(self._renumbered, expression.conditions)),
                    value=None if expression.value is None else self._renumbered(expression.value),
                    window=self._window(expression.window),
                )
            case _:
                return with_operands(expression, self._renumbered)

    def _window(self, window: Window) -> Window:
        match window:
            case Within():
                return replace(window, anchor=self._number(window.anchor))
            case Between():
                raise AssertionError("events that come together are on no chain")


def _last_of(condition: Expression) -> int:
    """The greatest number of an event that a condition speaks of; a constant speaks of any."""
    return max(
        (node.event for node in nodes_of(condition) if isinstance(node, AttributeOf)),
        default=TERMINATOR,
    )


def _time_of(number: int) -> AttributeOf:
    return AttributeOf(number, TIME, Kind.INT)

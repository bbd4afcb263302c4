"""All matches of a rule at one terminator, by trying everything (tesla.md S1 to S9).

A match grows clause by clause in the order of the text (S3). Negations alone wait until it is
complete, since the events of later clauses too do not count as the negated one (S6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rules.engine.oracle.events import Occurrence
from rules.engine.oracle.values import Scope, View, fitting, holds, in_window, value_of
from rules.pattern import Clause, Constraint, Let, Negated, Policy, Rule, Selected, Timed
from rules.terms import Expression


def matches(rule: Rule, terminator: Occurrence, view: View) -> Iterator[Scope]:
    """Every complete match of the rule with this terminator."""
    scope = Scope(view, (terminator,))
    if not holds(rule.conditions, scope):
        return
    negations = [clause for clause in rule.clauses if isinstance(clause, Negated)]
    for match in _extend(scope, rule.clauses):
        if not any(_is_violated(negation, match) for negation in negations):
            yield match


def matches_together(rule: Rule, instant: int, view: View) -> Iterator[Scope]:
    """Every complete match of a rule whose events come in any order, the latest at an instant."""
    uses = [(rule.terminator.name, rule.conditions)]
    uses += [(clause.type.name, clause.conditions) for clause in rule.selected]
    others = tuple(clause for clause in rule.clauses if not isinstance(clause, Selected))
    for scope in _gathered(Scope(view, ()), uses, rule.together or 0, instant):
        # X1: the composite bears the time of the latest.
        if max(event.time for event in scope.events) == instant:
            yield from _extend(scope, others)


def _gathered(
    scope: Scope, uses: Sequence[tuple[str, Sequence[Expression]]], within: int, instant: int
) -> Iterator[Scope]:
    """Every assignment of events to the names that are left (X1)."""
    if not uses:
        yield scope
        return
    name, conditions = uses[0]
    for event in scope.view.events(name, strict=False):
        longer = scope.with_event(event)
        if (
            instant - within <= event.time <= instant  # or they would not be the latest's
            and event not in scope.events  # S1: the events of a match are distinct
            and all(abs(event.time - other.time) <= within for other in scope.events)  # X1
            and holds(conditions, longer)
        ):
            yield from _gathered(longer, uses[1:], within, instant)


def _extend(scope: Scope, clauses: tuple[Clause, ...]) -> Iterator[Scope]:
    """Every way to complete a match by the clauses that are left."""
    if not clauses:
        yield scope
        return
    for longer in _continuations(scope, clauses[0]):
        yield from _extend(longer, clauses[1:])


def _continuations(scope: Scope, clause: Clause) -> Iterator[Scope]:
    """The match after one clause: none when it fails, several when it selects ``each``."""
    match clause:
        case Selected():
            bound = scope.with_run if clause.iteration else scope.with_event
            yield from map(bound, _selected(clause, scope))
        case Timed():  # S7
            if in_window(scope.event(clause.event).time, clause.window, scope):
                yield scope
        case Constraint():  # S9: counts only when true
            if holds((clause.condition,), scope):
                yield scope
        case Let():  # S9: no value, no match
            value = value_of(clause.value, scope)
            if value is not None:
                yield scope.with_slot(clause.slot, value)
        case Negated():
            yield scope  # looked at when the match is complete


def _selected(clause: Selected, scope: Scope) -> list[Occurrence]:
    """The events that a clause chooses, given what is selected already."""
    candidates = [
        event
        for use in (clause, *clause.rivals)  # X2
        for event in scope.view.events(use.type.name, strict=use.strict)
        # S1, S3: the events of a match are distinct, those of runs excepted (X4)
        if (clause.iteration or event not in scope.alone)
        and in_window(event.time, use.window, scope)  # S1, S2, S4
        and holds(use.conditions, scope.with_event(event))  # S3, S5, S9
    ]
    candidates.sort(key=lambda event: event.moment, reverse=clause.policy is Policy.LAST)  # S2, E4
    if clause.policy is Policy.EACH:
        return candidates  # S1
    chosen = candidates[clause.rank - 1 : clause.rank]  # S2: none when there are fewer
    return [event for event in chosen if event.type == clause.type]  # X2: else a rival's match


def _is_violated(negation: Negated, match: Scope) -> bool:
    """Whether an event that must not occur does occur (S6)."""
    return any(
        event not in match.alone  # S6: events of the match do not count
        for event in fitting(negation, match, after_start=True)
    )


def others_consumed(rule: Rule, match: Scope) -> tuple[Occurrence, ...]:
    """The events of consumed runs but the last of each, latest first (S11, X4)."""
    runs = (one.iteration for one in rule.selected if one.event in rule.consuming)
    return tuple(event for run in runs if run for event in match.view.run(run[1], match)[-2::-1])

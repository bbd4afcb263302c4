"""A rule that ends at an instant, as a rule (tesla.md S15).

Law 1: it finds what the rule finds at the instants before, and nothing from there on: a composite
event has the time of its terminator, of events that come together that of the latest, so it is
enough to ask that of these events. Marks, windows and the ids of composite events stay as they are.

Law 2: what lies from that instant on is of no use to it. All events of a match are no later than
its terminator, so the same is asked of those that it selects or negates, which changes nothing of
what it finds: but who forwards events for it need not look at the others.
"""

from __future__ import annotations

from dataclasses import replace

from matcher.model import Kind
from rules.pattern import TIMER, Clause, Constraint, Negated, Rule, Selected
from rules.terms import (
    CANDIDATE,
    TERMINATOR,
    TIME,
    AttributeOf,
    Compare,
    Comparison,
    Expression,
    Literal,
)


def curtailed(rule: Rule, until: int) -> Rule:
    """The rule, for instants before ``until`` (in microseconds)."""
    clauses = tuple(_clause(one, until) for one in rule.clauses)
    conditions = rule.conditions
    if rule.terminator == TIMER:  # which is asked for hours and minutes alone
        clauses = (*clauses, Constraint(_before(TERMINATOR, until)))
    else:
        conditions = (*conditions, _before(TERMINATOR, until))
    alternatives = tuple(curtailed(one, until) for one in rule.alternatives)
    return replace(
        rule, conditions=conditions, clauses=clauses, alternatives=alternatives, until=until
    )


def _clause(clause: Clause, until: int) -> Clause:
    if isinstance(clause, Selected):
        return _selected(clause, until)
    if isinstance(clause, Negated):
        return replace(clause, conditions=(*clause.conditions, _before(CANDIDATE, until)))
    return clause


def _selected(clause: Selected, until: int) -> Selected:
    rivals = tuple(_selected(one, until) for one in clause.rivals)
    conditions = (*clause.conditions, _before(clause.event, until))
    return replace(clause, conditions=conditions, rivals=rivals)


def _before(event: int, until: int) -> Expression:
    return Compare(Comparison.LESS, AttributeOf(event, TIME, Kind.INT), Literal(until, Kind.INT))

"""Rules that are sequences as the paper has them, and the reasons why others are refused.

A *chain* is the terminator and events before it, each anchored on the one after it: for ``A() and
each B() within 5 s from A and each C() within 5 s from B`` it is ``C B A``. Windows beyond those of
anchors (``and C within 8 s from A``) are windows of the chain too: the paper has one for the whole.
Negations, aggregates and iterations may come with it: the last event of a run is one of the chain.

Law: a rule is refused by its text alone, and by what other rules make of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rules.engine.order.timers import uses_timer
from rules.pattern import Policy, Rule
from rules.planning.plan import RulePlan, Step, StepKind
from rules.planning.planner import compile_rule
from rules.terms import TERMINATOR


@dataclass(frozen=True, slots=True)
class Window:
    """A bound: the event of an ``earlier`` place is no more than ``duration`` microseconds before
    that of a ``later`` one.
    """

    later: int
    earlier: int
    duration: int


def windows_of(plan: RulePlan) -> tuple[Window, ...]:
    """The windows of a chain, between places, by the later one: the earliest event has place 0."""
    last = len(plan.event_types) - 1  # the event numbers run the other way

    def between(step: Step) -> Window:
        return Window(last - step.span.later, last - step.event, step.span.duration)

    found = (between(step) for step in plan.steps if step.kind in _SPANNED)
    return tuple(sorted(found, key=lambda one: one.later))


def reason_against(rule: Rule, defined: Collection[str]) -> str | None:
    """Why a rule is no chain, in a phrase; None where it is one. ``defined`` are the types that
    rules define.
    """
    used = {type_.name for type_ in rule.used_types}
    if common := sorted(used & set(defined)):
        return f"its event {common[0]} comes from a rule"
    if rule.together is not None:
        return "its events come in any order (all ... within)"
    if rule.alternatives:
        return "it has alternatives (or)"
    if rule.consuming:
        return "it consumes events"
    if uses_timer(rule):
        return "it uses the Timer"
    return _against_plan(compile_rule(rule))


_SPANNED = (StepKind.SELECT, StepKind.TIMED)
_DECIDING = (StepKind.NEGATE, StepKind.AGGREGATE, StepKind.LET)


def is_decided(plan: RulePlan) -> bool:
    """Whether more than the conditions between its events decides on a chain: other events, or
    values that are made of many (:mod:`rules.engine.chains.hybrid.matches`).
    """
    return plan.slots > 0 or any(step.kind in _DECIDING for step in plan.steps)


def _against_plan(plan: RulePlan) -> str | None:
    for step in plan.steps:
        if step.kind in _SPANNED and step.span.earlier >= 0:
            return "it selects between two events"
        if step.kind is StepKind.SELECT:
            if step.policy is not Policy.EACH:
                return "it selects by first or last, not by each"
            if step.span.later != step.event - 1:
                return "its events form no single chain"
        if step.kind is StepKind.TIMED and not TERMINATOR <= step.span.later < step.event:
            return "it has a window that does not end at a later event"
    return "it is about one event" if len(plan.event_types) == 1 else None

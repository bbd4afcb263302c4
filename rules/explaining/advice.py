"""Advice on rules that are right and may mean something else than they seem to.

Example: of ``each 1.. T((v > 5 and previous.v > 5)) as run within ...`` a run of one event is asked
nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rules.engine.order import timers
from rules.explaining.rewording import Rewording, asks_previous
from rules.pattern import Constraint, Negated, Policy, Rule, RuleSet, Selected, uses_of
from rules.planning.columnar import satisfied
from rules.syntax.printer import print_duration
from rules.terms import (
    TERMINATOR,
    TIME,
    Aggregate,
    AttributeOf,
    Compare,
    Comparison,
    Expression,
    Within,
    nodes_of,
    operands_of,
)
from rules.zones import is_zone_field

_DAYS = range(2 * 86_400_000_000)
"""The two days whose ticks are looked at."""


def advice(rules: RuleSet) -> Iterator[str]:
    """Say for each rule where it may mean something else than it seems to."""
    for rule in rules.rules:
        for way in rule.alternatives[:1] or (rule,):
            for found in (*_single_events(way), *_own_terminators(way), *_double_counts(way)):
                yield f"rule {rule.name}: {found}"


def _single_events(rule: Rule) -> Iterator[str]:
    """Iterations whose runs of one event are not asked what those of two are."""
    words = Rewording(rule)
    for clause in rule.selected:
        if clause.iteration is None or clause.iteration[0] > 1:
            continue
        run = clause.iteration[1].run
        assert run is not None  # the count is of the run
        for condition in run.between:
            if not asks_previous(condition):
                text = words.expression(condition, clause.event, clause.type)
                name = rule.event_names[clause.event]
                yield (
                    f"a run of one event is never asked {text}, since that stands with previous; "
                    f"write while {text} in {name}"
                )


def _own_terminators(rule: Rule) -> Iterator[str]:
    """Last runs that always have the terminator, in rules that ask how long before it they end."""
    for clause in rule.selected:
        if not _ends_at_terminator(clause, rule):
            continue
        times = {(TERMINATOR, TIME), (clause.event, TIME)}
        for other in rule.clauses:
            if isinstance(other, Constraint) and times <= set(_attributes(other.condition)):
                name, last = rule.event_names[TERMINATOR], rule.event_names[clause.event]
                yield (
                    f"{last} has {name}, too, so {last}.time is {name}.time; "
                    f"write time < {name}.time in {last} to leave it out"
                )
                break


def _ends_at_terminator(clause: Selected, rule: Rule) -> bool:
    """Whether a clause selects a run of which the terminator is always the last event."""
    if clause.iteration is None or clause.type != rule.terminator:
        return False
    least, count = clause.iteration
    is_last = clause.policy is Policy.LAST and clause.rank == 1 and clause.window.anchor == 0
    assert count.run is not None
    own = clause.conditions[:-1]
    return is_last and least == 1 and not count.run.kept and all(map(_is_of_one_key, own))


def _is_of_one_key(condition: Expression) -> bool:
    """Whether a condition compares an attribute with that of the terminator: it is its own."""
    match condition:
        case Compare(Comparison.EQUAL, AttributeOf() as left, AttributeOf() as right):
            return left.attribute == right.attribute and TERMINATOR in (left.event, right.event)
        case _:
            return False


def _attributes(condition: Expression) -> Iterator[tuple[int, int]]:
    """The event and the attribute of each value in a condition, those of aggregates left out."""
    match condition:
        case Aggregate():
            return
        case AttributeOf():
            yield condition.event, condition.attribute
        case _:
            for operand in operands_of(condition):
                yield from _attributes(operand)


def _double_counts(rule: Rule) -> Iterator[str]:
    """Windows as long as the time from tick to tick, which have the events on both boundaries."""
    gap = _gap(rule)
    seen = set[str]()
    for use in uses_of(rule):
        window = use.window
        if not isinstance(window, Within) or window.anchor != TERMINATOR or window.duration != gap:
            continue
        if not _gathers(use) or any(map(_asks_time, use.conditions)):
            continue
        name, text = use.type.name, print_duration(gap)
        if name not in seen:
            seen.add(name)
            timer = rule.event_names[TERMINATOR]
            yield (
                f"a {name} at a tick is in two windows of {text}, for both their ends count; "
                f"write {name}(time > {timer}.time - {text}) to have it in one"
            )


def _gathers(use: Selected | Negated | Aggregate) -> bool:
    """Whether a use takes all events of its window."""
    is_each = isinstance(use, Selected) and use.policy is Policy.EACH
    return is_each or (isinstance(use, Aggregate) and use.run is None)


def _asks_time(condition: Expression) -> bool:
    nodes = nodes_of(condition)
    return any(isinstance(one, AttributeOf) and one.attribute == TIME for one in nodes)


def _gap(rule: Rule) -> int:
    """The microseconds between ticks that satisfy a rule, where it is one number; else -1."""
    if not timers.uses_timer(rule):
        return -1
    times = timers.ticks(rule, _DAYS.start, _DAYS.stop)
    batch = timers.batch(times)
    alone = [one for one in rule.conditions if not _is_of_zone(one)]
    gaps = np.unique(np.diff(times[satisfied(alone, batch)]))
    return int(gaps[0]) if len(gaps) == 1 else -1


def _is_of_zone(condition: Expression) -> bool:
    return any(map(is_zone_field, nodes_of(condition)))

"""Conditions and values of operators: text in the language of rules, checked like a rule.

An operator is put into words as the rule that says the same, and that is read: so names, kinds,
nulls and messages are those of TESLA (docs/tesla.md), and every condition that a rule may have of
one event, or of two, an operator may have too. Event 0 is that of the filter, or of the left
stream; 1 is that of the right one.

The parts of the texts stand in parentheses, so that ``or`` needs none of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matcher.model import EventType
from matcher.spelling import spelled
from rules.language import load
from rules.pattern import Constraint, Rule
from rules.terms import Aggregate, AttributeOf, Convert, Expression

LEFT, RIGHT = 0, 1
"""The numbers of the two events of a join."""


@dataclass(frozen=True, slots=True)
class Named:
    """A stream of events of one type, and the name of its events in a join's texts."""

    type: EventType
    name: str


def condition_of(type_: EventType, text: str) -> tuple[Expression, ...]:
    """The conditions on an event of a filter's text, joined by ``and``; RuleErrors if it is wrong.

    An empty text is no condition.
    """
    inside = f"({text})" if text.strip() else ""
    rule = _rule(f"define Filtered() from {spelled(type_.name)}({inside})", (type_,), "<filter>")
    return rule.conditions


def join_of(
    name: str, left: Named, right: Named, on: str, select: Mapping[str, str]
) -> tuple[EventType, tuple[Expression, ...], tuple[Expression, ...]]:
    """The type of what a join makes, its conditions, and its values in the type's order."""
    events = (
        f"{spelled(left.type.name)}() as {spelled(left.name)} and each "
        f"{spelled(right.type.name)}() as {spelled(right.name)} within 1 s from "
        f"{spelled(left.name)}"
    )
    constraint = f" and ({on})" if on.strip() else ""
    names = ", ".join(map(spelled, select))
    where = ", ".join(f"{spelled(key)} = {text}" for key, text in select.items())
    text = f"define {spelled(name)}({names}) from {events}{constraint}"
    rule = _rule(text + (f" where {where}" if where else ""), (left.type, right.type), "<join>")
    conditions = [one.condition for one in rule.clauses if isinstance(one, Constraint)]
    return rule.defines, tuple(conditions), rule.values


def aggregates_of(
    name: str, type_: EventType, by: Sequence[str], select: Mapping[str, str]
) -> tuple[EventType, tuple[int, ...], tuple[Aggregate, ...]]:
    """The type of what an aggregate operator makes, the attributes that make a group, and the
    aggregates, in the type's order: first the group's attributes, then the aggregates.

    Raises ValueError for what is no aggregate alone, or groups by what may be null.
    """
    names = ", ".join(spelled(one) for one in (*by, *select))
    values = [f"{spelled(key)} = it.{spelled(key)}" for key in by]
    values += [f"{spelled(key)} = {text} within 1 s from it" for key, text in select.items()]
    text = f"define {spelled(name)}({names}) from {spelled(type_.name)}() as it"
    rule = _rule(text + f" where {', '.join(values)}", (type_,), "<aggregate>")
    keys = []
    for key, value in zip(by, rule.values, strict=False):
        if not isinstance(value, AttributeOf):
            raise ValueError(f"group by {key}: an attribute that may be null makes no group")
        keys.append(value.attribute)
    found = []
    for key, value in zip(select, rule.values[len(by) :], strict=True):
        one = value.operand if isinstance(value, Convert) else value
        if not isinstance(one, Aggregate):
            raise ValueError(f"{key} = {select[key]}: an aggregate alone, as Avg(Temp().value)")
        found.append(one)
    return rule.defines, tuple(keys), tuple(found)


def _rule(text: str, types: Sequence[EventType], file: str) -> Rule:
    known = {type_.name: type_ for type_ in types}
    return load(text, file=file, known=known).rules[0]

"""The attributes of events that rules look at: what else an event holds changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from matcher.model import EventType
from rules.pattern import Constraint, Let, Negated, Rule, Selected
from rules.planning.variants import variants
from rules.terms import (
    CANDIDATE,
    PREVIOUS,
    TERMINATOR,
    Aggregate,
    AttributeOf,
    Expression,
    nodes_of,
)


def looked_at(rules: Iterable[Rule]) -> Mapping[str, frozenset[int]]:
    """The numbers of the attributes that the rules look at, by the name of the type. An attribute
    that is named here may matter to what the rules find, and one that is not cannot. An event that
    stands for several types, as rivals of a choice do, counts as of each.
    """
    found: dict[str, set[int]] = {}
    for rule in rules:
        for ordinary in variants(rule):
            for name, attribute in _looks(ordinary):
                found.setdefault(name, set()).add(attribute)
    return {name: frozenset(attributes) for name, attributes in found.items()}


def _looks(rule: Rule) -> Iterator[tuple[str, int]]:
    """The looks of one ordinary rule: names of types, and numbers of their attributes."""
    types: dict[int, list[EventType]] = {TERMINATOR: [rule.terminator]}
    for clause in rule.selected:
        for one in (clause, *clause.rivals):
            types.setdefault(one.event, []).append(one.type)
    for expression, candidate in _expressions(rule):
        yield from _of(expression, {**types, CANDIDATE: candidate})


def _of(expression: Expression, types: Mapping[int, list[EventType]]) -> Iterator[tuple[str, int]]:
    for node in nodes_of(expression):
        match node:
            case AttributeOf() if node.attribute >= 0:
                for type_ in types[node.event]:
                    if node.attribute < len(type_.attributes):  # else it is of one beside it
                        yield type_.name, node.attribute
            case Aggregate():
                value = () if node.value is None else (node.value,)
                links = () if node.run is None else node.run.links
                inside = {**types, CANDIDATE: [node.type], PREVIOUS: [node.type]}
                for inner in (*node.conditions, *value, *links):
                    yield from _of(inner, inside)
            case _:
                pass


def _expressions(rule: Rule) -> Iterator[tuple[Expression, list[EventType]]]:
    """Every expression of a rule, with what the candidate is in it."""
    yield from ((one, [rule.terminator]) for one in rule.conditions)
    for clause in rule.clauses:
        match clause:
            case Selected():
                for one in (clause, *clause.rivals):
                    yield from ((condition, [one.type]) for condition in one.conditions)
            case Negated():
                yield from ((condition, [clause.type]) for condition in clause.conditions)
            case Constraint():
                yield clause.condition, []
            case Let():
                yield clause.value, []
            case _:
                pass
    yield from ((value, []) for value in rule.values)

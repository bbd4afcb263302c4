"""``A(...) or B(...)``: what its events have in common, and which of them may occur (X2).

Alternatives are of different types, so an event is one of them at most, and a match chooses for
each ``or`` the one that its event is. A rule is the ordinary rules of all these ways. What is said
behind an ``or`` is said of either type: so its parameters are bound by every alternative, to
attributes of one type, and its attributes are those that all of them have.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from matcher.model import EventType
from matcher.spelling import spelled
from rules.checking.scope import Report
from rules.errors import Span
from rules.syntax import ast
from rules.terms import Expression

WAYS_MAX = 64
"""In so many ways the types of a rule's events may be chosen."""
WAYS_SIZE_MAX = 100_000
"""Nodes that a rule may have, those of each way counted: each of them is checked by itself."""


@dataclass(frozen=True, slots=True)
class Read:
    """An event that has been read: its type and conditions, None where they are wrong, all
    parameters that are bound behind it, and what is known to be there (scope).
    """

    event: ast.Event
    type: EventType | None
    conditions: tuple[Expression, ...] | None
    parameters: dict[str, Expression | None]
    there: frozenset[Expression]


def ways(rule: ast.Rule, report: Report) -> Iterator[tuple[int, ...]]:
    """Every way to choose an alternative for each event; none, and a problem, for too many."""
    counts = [len(ast.alternatives_of(event)) for event in rule.named]
    number = math.prod(counts)
    if number > WAYS_MAX:
        first = next(event for event in rule.named if isinstance(event, ast.Either))
        report(
            f"the types of the rule's events can be chosen in {number} ways, more than {WAYS_MAX}",
            first.span,
            "define one type from several by rules of their own",
        )
        return iter(())
    if number > 1 and number * _size_of(rule) > WAYS_SIZE_MAX:
        report(
            f"a rule of this length is too long to be read in {number} ways",
            next(event for event in rule.named if isinstance(event, ast.Either)).span,
            "define one type from several by rules of their own",
        )
        return iter(())
    return itertools.product(*map(range, counts))


def _size_of(rule: ast.Rule) -> int:
    """How many nodes a rule has."""
    count = 0
    nodes: list[ast.Node] = [rule]
    while nodes:
        count += 1
        nodes.extend(ast.children(nodes.pop()))
    return count


def agree(read: Sequence[Read], span: Span, bound: Collection[str], report: Report) -> None:
    """Report what keeps alternatives from being one event; ``bound`` are parameters before it."""
    for place, one in enumerate(read):
        name = one.event.type
        if any(name.text == other.event.type.text for other in read[:place]):
            report(
                f"{name.text} stands twice between or",
                name.span,
                f"join its conditions: {spelled(name.text)}((x = 1 or x = 2))",
            )
    if any(one.type is None or one.conditions is None for one in read):
        return
    for parameter in dict.fromkeys(name for one in read for name in one.parameters):
        if parameter not in bound:
            _agree_on(parameter, read, span, report)


def _agree_on(parameter: str, read: Sequence[Read], span: Span, report: Report) -> None:
    values = [one.parameters[parameter] for one in read if parameter in one.parameters]
    kinds = dict.fromkeys(value.kind.value for value in values if value is not None)
    if len(kinds) > 1:
        hint = "bind it to attributes of one type"
        report(f"${parameter} is of types {' and '.join(kinds)}", span, hint)
    for one in read:
        if parameter not in one.parameters:
            report(
                f"{one.event.type.text} does not bind ${parameter}, as others do",
                one.event.span,
                "each of the events with or between them binds it, or none",
            )
